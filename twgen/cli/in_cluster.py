"""`twgen rollout --intent`: one worker's rollout as a Job in its own cluster."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from twgen.cli.display import Log
from twgen.cli.live import CommonPrometheus, Connections, Servers
from twgen.cli.observer import Observation
from twgen.cli.rolling import LocalClock, RolloutServers, judge
from twgen.cli.settings import Settings, clock
from twgen.errors import TwgenError
from twgen.executing.cluster import ClusterWriter, restart_job
from twgen.executing.ports import IntentPlace, IntentServers, Reported, View
from twgen.executing.unattended import carry_out
from twgen.model.operator import Caller, PrometheusServer
from twgen.model.plan import Plan, WorkerPlan
from twgen.model.rollout import RolloutInCluster
from twgen.model.status import RolloutStatus
from twgen.model.world import World
from twgen.planning.cluster_changes import AttachedInCluster
from twgen.reading.objects import attached_objects
from twgen.reading.rollouts import (
    RolloutReader,
    read_intent,
    read_reported,
    read_rollout_status,
    specs_of,
)
from twgen.records.intent import Intent
from twgen.reporting.printable import printable
from twgen.versioning.names import PROMETHEUS_SECRETS, replay_selector

_TERMINATION_LOG = Path("/dev/termination-log")
"""The default file from which Kubernetes reads a container's termination message."""
_LONGEST_MESSAGE = 4096
"""Bytes that Kubernetes reads there."""
_NO_PROMETHEUS = (
    "the operator must add one to `prometheus` of the OperatorConfig, with the Argo CD project; then"
    " render again"
)


class _JobView(View):
    """Shows the rollout of a Job in its log."""

    def __init__(self, log: Log) -> None:
        super().__init__(log.say)
        self._log = log

    def show(self, plan: Plan, world: World, caller: Caller) -> None:
        self._log.show(Observation(world, caller, plan, clock()))


def roll_out_intent(
    settings: Settings, place: tuple[str, str], intent_hash: str, within: float | None, log: Log
) -> None:
    """Roll out the intent of this namespace and name; raises the same errors as a rollout at a terminal.

    It ends when the intent has another hash (empty: any is accepted), or after `within` seconds, if set.
    """
    try:
        with Servers(settings) as servers:
            plan = servers.run(
                (), lambda opened: carry_out(JobPlace(opened, place, _JobView(log)), intent_hash, within)
            )
        judge([plan] if plan else [])
    except TwgenError as error:
        _leave_message(str(error))
        raise
    message = how_it_ended(plan)
    log.say(message)
    _leave_message(message)


class ClusterServers(RolloutServers, IntentServers):
    """The servers of an intent's worker, and its cluster."""

    def __init__(self, opened: Connections, intent: Intent) -> None:
        """Raises UnusableIntent."""
        [spec] = specs_of(intent).workers
        super().__init__(spec, opened)
        self.intent, self._client = intent, opened.cluster_for("--intent")
        self.cluster = ClusterWriter(self._client, intent, opened.settings.timeout)
        self._reader = RolloutReader(self._client, intent)

    async def state(self) -> RolloutInCluster:
        return await self._reader.read(self.opened.deadline())

    async def attached(self) -> list[AttachedInCluster]:
        return await attached_objects(self._client, self.intent, self.opened.deadline())

    async def reported(self) -> Reported:
        requests, entries = await read_reported(self._client, self.intent, self.opened.deadline())
        return Reported(requests, entries, is_news=bool(requests))

    async def replay_again(self) -> str:
        selector = replay_selector(self.intent.worker)
        return await restart_job(self._client, self.intent.namespace, selector, self.opened.deadline())


class JobPlace(LocalClock, IntentPlace):
    """The ConfigMap of an intent, for its Job."""

    def __init__(self, opened: Connections, place: tuple[str, str], view: View) -> None:
        """`place` is a namespace and a name."""
        self.name, self.view = "/".join(place), view
        self._opened, self._place, self._client = opened, place, opened.cluster_for("--intent")

    async def read_intent(self, intent_hash: str) -> Intent | None:
        return await read_intent(self._client, *self._place, intent_hash, self._opened.deadline())

    async def read_status(self, intent: Intent) -> RolloutStatus | None:
        deadline = self._opened.deadline()
        return await read_rollout_status(self._client, intent.namespace, intent.worker, deadline)

    def writer(self, intent: Intent) -> ClusterWriter:
        return ClusterWriter(self._client, intent, self._opened.settings.timeout)

    def servers(self, intent: Intent) -> ClusterServers:
        # the Secrets of these are mounted
        servers = self._opened.settings.usable_prometheus(mounted_prometheus(intent))
        prometheus = CommonPrometheus(servers, _NO_PROMETHEUS)
        return ClusterServers(replace(self._opened, prometheus=prometheus), intent)


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
