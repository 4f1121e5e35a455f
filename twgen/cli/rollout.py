"""`twgen rollout`: a person or CI rolls out specs; a Job in the cluster rolls out one intent."""

import asyncio
import gc
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from twgen.cli.display import FRAME_SECONDS, Log, Screen, display
from twgen.cli.following import RolloutState, not_settled
from twgen.cli.inputs import Memory, load_specs
from twgen.cli.live import CommonPrometheus, Connections, Servers
from twgen.cli.observer import Observation
from twgen.cli.options import INPUT, MEASURING, NAMES, Grouped, options, output_option, paths_argument
from twgen.cli.rolling import LocalClock, RolloutServers
from twgen.cli.settings import Settings, clock, settings_outside_argocd
from twgen.errors import NegativeAnswer, OutOfTime, OwnedBySomebodyElse, TwgenError
from twgen.executing.cluster import ClusterWriter, restart_job
from twgen.executing.ports import IntentPlace, IntentServers, Reported, RolloutView
from twgen.executing.rollout import RolloutLoop
from twgen.executing.unattended import carry_out
from twgen.model.operator import Caller, PrometheusServer
from twgen.model.plan import Phase, Plan, WorkerPlan
from twgen.model.reasons import RoutingReason
from twgen.model.rollout import RolloutInCluster
from twgen.model.spec import WorkerKey, WorkerSpec
from twgen.model.status import RolloutStatus
from twgen.model.world import WorkerWorld, World
from twgen.planning.cluster_changes import AttachedInCluster
from twgen.reading.objects import attached_objects
from twgen.reading.rollouts import RolloutReader, read_intent, read_reported, read_rollout_status, specs_of
from twgen.records.intent import Intent
from twgen.reporting.printable import printable
from twgen.specs.parse import Specs
from twgen.versioning.names import PROMETHEUS_SECRETS, replay_selector

_WITHIN = 3600.0
"""The default of --within, in seconds."""


@click.command(cls=Grouped)
@paths_argument
@output_option("text", "json")
@options("once", "within", "intent", "intent_hash")
@options(*MEASURING, *INPUT, *NAMES, "strict", "quiet", "color")
def command(output: str, color: str, once: bool, within: float | None, **params: Any) -> None:  # noqa: FBT001
    """Roll out each worker's target: run its gate, ramp its traffic, and make it current.

    The command does not create Deployments: apply the output of `twgen render` first.

    \b
    twgen rollout .
    twgen rollout . --within 2h
    twgen rollout . --once

    Exits with 0 when every worker is Settled, 1 when one is Blocked, 4 when --within has passed, and 5 if
    another manager owns a worker. With --once, the command makes at most one change, and exits with 0 unless
    a worker is Blocked. You can stop and rerun the command at any time: it continues from the state in
    Temporal.
    """
    gc.enable()  # a rollout can run for hours
    settings = settings_outside_argocd(params)
    if place := params["intent"]:
        log = Log(as_json=output == "json")
        return roll_out_intent(settings, place, params["intent_hash"] or "", within, log)
    within = within or _WITHIN
    specs = load_specs(settings, needs_worker=True)
    memory, caller = Memory(settings), replace(settings.planning_caller, drives=True)
    with (
        Servers(settings) as servers,
        display(output, color, "Ctrl-C stops the rollout and leaves the traffic as it is") as screen,
    ):
        view = _AllWorkers(specs, screen)

        async def work(opened: Connections) -> list[WorkerPlan | BaseException]:
            async with asyncio.timeout(within):
                # a failed rollout does not stop the other rollouts
                rollouts = (
                    RolloutLoop(_RecallingServers(spec, opened, memory, specs), caller, view).run(once=once)
                    for spec in specs.workers
                )
                work = asyncio.gather(*rollouts, return_exceptions=True)
                while not (await asyncio.wait([work], timeout=FRAME_SECONDS))[0]:
                    screen.repaint()
            return work.result()

        try:
            outcomes = servers.run(specs.workers, work)
        except TimeoutError as error:
            # a settled rollout still waits until its last change has reached every task queue
            if unsettled := view.unsettled():
                raise OutOfTime(not_settled(within, unsettled)) from error
            return None
    return judge(outcomes)


def judge(outcomes: Sequence[WorkerPlan | BaseException]) -> None:
    """Raise an error if a rollout has failed or is blocked."""
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    plans = [plan for plan in outcomes if isinstance(plan, WorkerPlan)]
    blocked = [plan for plan in plans if plan.routing.phase is Phase.BLOCKED]
    sentence = "; ".join(str(RolloutState.of(plan)) for plan in blocked)
    if any(plan.routing.reason is RoutingReason.FOREIGN_MANAGER for plan in blocked):
        raise OwnedBySomebodyElse(sentence)
    if blocked:
        raise NegativeAnswer(sentence)


class _RecallingServers(RolloutServers):
    """Access to a worker's servers. Each read also looks up the worker's old versions in Git."""

    def __init__(self, spec: WorkerSpec, opened: Connections, memory: Memory, specs: Specs) -> None:
        super().__init__(spec, opened)
        # only this worker's spec: a read must not repeat the work for all other workers
        self._memory, self._specs = memory, specs._replace(workers=(spec,))

    async def read(self, *, for_routing: bool = True) -> World:
        world = await super().read(for_routing=for_routing)
        # in a thread, because reading Git may take seconds
        return await asyncio.to_thread(self._memory.recall, self._specs, world)


class _AllWorkers(RolloutView):
    """Shows all rollouts of one command together, using each worker's last read."""

    def __init__(self, specs: Specs, screen: Screen | Log) -> None:
        super().__init__(screen.say)
        self._specs, self._screen = specs, screen
        self._plans: dict[WorkerKey, WorkerPlan] = {}
        self._worlds: dict[WorkerKey, WorkerWorld] = {}
        self._failures: dict[WorkerKey, str] = {}

    def fail(self, spec: WorkerSpec, failure: str) -> None:
        self._failures[spec.key] = failure

    def show(self, plan: Plan, world: World, caller: Caller) -> None:
        for worker in plan.workers:
            self._failures.pop(worker.spec.key, None)
        self._worlds.update(world.workers)
        self._plans.update((worker.spec.key, worker) for worker in plan.workers)
        read_at = clock()

        def whole() -> Observation:
            # combine the workers only on demand: with many workers, this costs more than reading one worker
            plans = tuple(self._plans[spec.key] for spec in self._specs.workers if spec.key in self._plans)
            together, worlds = replace(plan, workers=plans), replace(world, workers=dict(self._worlds))
            return Observation(worlds, caller, together, read_at)

        self._screen.show_part(Observation(world, caller, plan, read_at), whole)

    def unsettled(self) -> list[str]:
        """A sentence for each worker that was not settled at its last read, or could not be read since."""
        sentences = []
        for spec in self._specs.workers:
            plan, failure = self._plans.get(spec.key), self._failures.get(spec.key, "")
            if failure or not plan or plan.routing.phase is not Phase.SETTLED:
                sentence = str(RolloutState.of(plan)) if plan else f"{spec.worker_deployment} was not read"
                sentences.append(f"{sentence}; {failure}" if failure else sentence)
        return sentences


_TERMINATION_LOG = Path("/dev/termination-log")
"""The default file from which Kubernetes reads a container's termination message."""
_LONGEST_MESSAGE = 4096
"""The number of bytes that Kubernetes reads from that file."""
_NO_PROMETHEUS = (
    "the operator must add the server to `prometheus` of the OperatorConfig, with the Argo CD project; then"
    " render again"
)


class _JobView(RolloutView):
    """Shows a rollout in the log of its Job."""

    def __init__(self, log: Log) -> None:
        super().__init__(log.say)
        self._log = log

    def show(self, plan: Plan, world: World, caller: Caller) -> None:
        self._log.show(Observation(world, caller, plan, clock()))


def roll_out_intent(
    settings: Settings, place: tuple[str, str], intent_hash: str, within: float | None, log: Log
) -> None:
    """Roll out the intent in this namespace with this name. Raises the same errors as `twgen rollout .`.

    The rollout ends after `within` seconds, or when the intent's hash differs from `intent_hash` (if not
    empty).
    """
    try:
        with Servers(settings) as servers:
            view = _JobView(log)
            plan = servers.run((), lambda it: carry_out(JobPlace(it, place, view), intent_hash, within))
        judge([plan] if plan else [])
    except TwgenError as error:
        _leave_message(str(error))
        raise
    message = how_it_ended(plan)
    log.say(message)
    _leave_message(message)


class ClusterServers(RolloutServers, IntentServers):
    """Access to the servers of an intent's worker, and to the intent's cluster."""

    def __init__(self, opened: Connections, intent: Intent, *, in_place_of_hook: bool = False) -> None:
        """Raises UnusableIntent."""
        [spec] = specs_of(intent).workers
        super().__init__(spec, opened)
        self.intent, self._client = intent, opened.cluster_for("--intent")
        self.cluster = ClusterWriter(self._client, intent, opened.settings.timeout)
        self._reader = RolloutReader(self._client, intent, in_place_of_hook=in_place_of_hook)

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
    """Access to an intent and its objects in the cluster, for the intent's Job."""

    def __init__(self, opened: Connections, place: tuple[str, str], view: RolloutView) -> None:
        """`place` is the intent's namespace and name."""
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
        # the Job mounts the Secrets of these servers
        servers = self._opened.settings.usable_prometheus(mounted_prometheus(intent))
        prometheus = CommonPrometheus(servers, _NO_PROMETHEUS)
        return ClusterServers(replace(self._opened, prometheus_of=prometheus.of), intent)


def how_it_ended(plan: WorkerPlan | None) -> str:
    """The outcome of a rollout in its last plan. `plan` is None if the intent has changed or is gone."""
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
    """Write the message to the termination log, which `kubectl describe` and Argo CD show."""
    if _TERMINATION_LOG.is_file():
        with suppress(OSError):
            # an API server rejects a message that ends in the middle of a character
            cut = printable(message).encode()[:_LONGEST_MESSAGE].decode(errors="ignore")
            _TERMINATION_LOG.write_text(cut, encoding="utf-8")
