"""`twgen rollout --intent`: one worker's rollout as a Job in its own cluster."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from twgen.cli.display import Log
from twgen.cli.live import Connections, Servers, usable_prometheus
from twgen.cli.observer import Observation
from twgen.cli.rolling import judge, rollout_of, sleep
from twgen.cli.settings import Settings, clock
from twgen.clients.deadline import Deadline
from twgen.errors import TwgenError
from twgen.executing.cluster import ClusterWriter, restart_job
from twgen.executing.unattended import Access, Unattended, carry_out
from twgen.model.operator import PrometheusServer
from twgen.model.plan import Plan, WorkerPlan
from twgen.model.requests import PendingRequest
from twgen.model.spec import WorkerSpec
from twgen.model.world import World
from twgen.reading.attached_objects import attached_objects
from twgen.reading.rollouts import RolloutReader, read_intent, read_requests, read_status, specs_of
from twgen.records.intent import Intent
from twgen.reporting.printable import printable
from twgen.versioning.names import PROMETHEUS_SECRETS, replay_selector

if TYPE_CHECKING:
    from twgen.clients.prometheus import PrometheusServers

_TERMINATION_LOG = Path("/dev/termination-log")
"""The default file from which Kubernetes reads a container's termination message."""
_LONGEST_MESSAGE = 4096
"""Bytes that Kubernetes reads there."""
_NO_PROMETHEUS = (
    "the operator must add one to `prometheus` of the OperatorConfig, with the Argo CD project; then"
    " render again"
)


def roll_out_intent(
    settings: Settings, place: tuple[str, str], intent_hash: str, within: float | None, log: Log
) -> None:
    """Roll out the intent of this namespace and name; raises the same errors as a rollout at a terminal.

    It ends when the intent has another hash (empty: any is accepted), or after `within` seconds, if set.
    """
    try:
        with Servers(settings) as servers:

            def prometheus(intent: Intent) -> "Callable[[WorkerSpec], PrometheusServers]":
                return usable_prometheus(settings, mounted_prometheus(intent), _NO_PROMETHEUS)

            async def story(opened: Connections) -> WorkerPlan | None:
                base = unattended(settings, place, servers, opened, prometheus, log.say)

                def access(intent: Intent) -> Access:
                    async def show(plan: Plan, world: World) -> None:
                        log.show(Observation(world, intent.caller, plan, clock()))

                    return shown(base.access(intent), show)

                return await carry_out(replace(base, access=access), intent_hash, within)

            plan = servers.run((), story)
        judge([plan] if plan else [])
    except TwgenError as error:
        _leave_message(str(error))
        raise
    message = how_it_ended(plan)
    log.say(message)
    _leave_message(message)


def unattended(  # noqa: PLR0913, PLR0917 - what all rollouts of a process share, and what is of each
    settings: Settings,
    place: tuple[str, str],
    servers: Servers,
    opened: Connections,
    prometheus: "Callable[[Intent], Callable[[WorkerSpec], PrometheusServers]]",
    say: Callable[[str], None],
) -> Unattended:
    """The access of an intent's rollout to its servers, over these connections; it shows nothing."""
    client, timeout = opened.cluster_for("--intent"), settings.timeout

    def access(intent: Intent) -> Access:
        [spec] = specs_of(intent).workers
        reader = RolloutReader(client, intent)
        connections = replace(opened, prometheus=prometheus(intent))

        async def show(plan: Plan, world: World) -> None:
            pass

        async def pending() -> Sequence[PendingRequest]:
            return await read_requests(client, intent, Deadline(timeout))

        async def is_asked() -> bool:
            return bool(await pending())

        return Access(
            rollout=rollout_of(spec, intent.caller, settings, servers, connections, show=show, say=say),
            state=lambda: reader.read(Deadline(timeout)),
            attached=lambda: attached_objects(client, intent, Deadline(timeout)),
            pending=pending,
            is_asked=is_asked,
            replay_again=lambda: restart_job(
                client, intent.namespace, replay_selector(intent.worker), Deadline(timeout)
            ),
        )

    return Unattended(
        name="/".join(place),
        read_intent=lambda intent_hash: read_intent(client, *place, intent_hash, Deadline(timeout)),
        read_status=lambda intent: read_status(client, intent, timeout),
        access=access,
        writer=lambda intent: ClusterWriter(client, intent, timeout),
        clock=clock,
        sleep=sleep,
        say=say,
    )


def shown(access: Access, show: Callable[[Plan, World], Awaitable[None]]) -> Access:
    """The same access to a rollout that shows what it reads."""
    return access._replace(rollout=replace(access.rollout, show=show))


def how_it_ended(plan: WorkerPlan | None) -> str:
    """The end of a rollout, by its last plan; None: its intent no longer existed."""
    if not plan:
        return "superseded: its intent has changed or is gone"
    return f"{plan.routing.phase}: {plan.routing.because}"


def mounted_prometheus(intent: Intent) -> list[PrometheusServer]:
    """The intent's Prometheus servers, each with the folder of its Secret in the Pod."""
    return [
        server._replace(secret_folder=f"{PROMETHEUS_SECRETS}/{server.name}" if server.secret_name else "")
        for server in intent.prometheus
    ]


def _leave_message(message: str) -> None:
    """Write the message where `kubectl describe` and Argo CD show it."""
    if _TERMINATION_LOG.is_file():
        with suppress(OSError):
            # an API server rejects a character that is cut in two
            cut = printable(message).encode()[:_LONGEST_MESSAGE].decode(errors="ignore")
            _TERMINATION_LOG.write_text(cut, encoding="utf-8")
