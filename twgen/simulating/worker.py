"""One worker with a simulated clock, Temporal and cluster, and the changes that twgen makes to them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from twgen.model.analysis import (
    Backlog,
    BacklogAge,
    FailureCount,
    Failures,
    Measurement,
    Metric,
    Point,
    PrometheusQuery,
    ReportedProblems,
    StuckWorkflows,
    Verdict,
    WorkflowFailures,
)
from twgen.model.draining import BatchAction
from twgen.model.operator import Caller
from twgen.model.plan import GateStart, RoutingAction, RoutingPlan, WorkerPlan
from twgen.model.reasons import RoutingReason
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import GateRun, GateStatus, TaskQueue, TaskQueueType, WorkerDeployment
from twgen.model.timeline import Assumptions
from twgen.model.times import FOREVER, later
from twgen.model.world import (
    GitHistory,
    LiveDeployment,
    RecordedDeployment,
    ReplayRun,
    ReplayState,
    WorkerWorld,
)
from twgen.planning.draining.actions import begun_mark, due_actions, in_words
from twgen.planning.plan import plan_worker
from twgen.planning.rollout import Claim, WriteMarks, moved_mark, next_write
from twgen.planning.routing.gates import GATE_TIMEOUT
from twgen.planning.routing.target import Target
from twgen.planning.version_status import shares, stay_began
from twgen.planning.versions.facts import version_facts
from twgen.simulating.servers import ClusterModel, TemporalModel, synced

UNNAMED_QUEUE = "<task queue>"
"""The task queue's name if neither the specs nor the world contain its real name."""
AssumedMeasurement = Callable[[Metric, datetime, datetime], Measurement]
"""A function that returns the measurement of a metric between two times."""


def gate_end(began: datetime, assumed: Assumptions) -> tuple[datetime, GateStatus]:
    """The end time and the final status of a gate that began at this time."""
    if assumed.gate_duration > GATE_TIMEOUT:
        return later(began, GATE_TIMEOUT), GateStatus.TIMED_OUT
    ends_as = GateStatus.COMPLETED if assumed.gate_passes else GateStatus.FAILED
    return later(began, assumed.gate_duration), ends_as


def _measured(
    spec: WorkerSpec, world: WorkerWorld, now: datetime, measure: AssumedMeasurement
) -> WorkerWorld:
    """The world with assumed measurements of a ramping target.

    A metric that already fails in the world that was read is assumed to keep failing.
    """
    if not spec.policy.analysis or not world.temporal:
        return world
    target = Target(spec, world, now, identity="")
    since, analysis = target.measured_since, target.analysis
    if not since or not analysis:
        return world
    known = {item.metric: item for item in (target.version and target.version.measurements) or ()}
    failing = {item.metric for item in target.judgements if item.verdict is Verdict.FAILS} if known else set()
    measurements = tuple(
        known[metric.name] if metric.name in failing else measure(metric, since, now)
        for metric in analysis.metrics
    )
    versions = tuple(
        replace(version, measurements=measurements) if version.build_id == spec.build_id else version
        for version in world.temporal.versions
    )
    return replace(world, temporal=replace(world.temporal, versions=versions))


def _passing(metric: Metric, since: datetime, now: datetime) -> Measurement:
    """The measurement of a healthy version: it has enough workflows and no failures."""
    match metric.measure:
        case WorkflowFailures() as measure:
            counted = Failures(FailureCount(measure.at_least, 0), FailureCount(0, 0))
            return Measurement(metric.name, since, failures=counted)
        case ReportedProblems():
            return Measurement(metric.name, since, stuck=StuckWorkflows(0))
        case BacklogAge():
            return Measurement(metric.name, since, backlog=Backlog("", 0, 0.0, 0.0))
        case PrometheusQuery() as measure:
            inside = measure.most if measure.least is None else measure.least
            return Measurement(metric.name, since, points=(Point(now, inside),))


@dataclass
class SimulatedWorker:
    """A simulated worker's state at one moment."""

    spec: WorkerSpec
    temporal: TemporalModel
    cluster: ClusterModel
    caller: Caller
    assumed: Assumptions
    begin: datetime
    ledger: Mapping[str, RecordedDeployment] = field(default_factory=dict)
    history: GitHistory = field(default_factory=GitHistory)
    planned_on: WorkerWorld | None = None
    """The world of the newest plan, or None if time has passed since then."""
    measure: AssumedMeasurement = _passing
    replay: ReplayRun = field(default_factory=lambda: ReplayRun(ReplayState.PASSED))
    begun: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The policy's actions that have begun on workflows of draining versions, in words, by build ID."""

    @property
    def now(self) -> datetime:
        """The simulated time."""
        return self.temporal.now

    def world(self) -> WorkerWorld:
        """The world that a real read would return at this moment."""
        world = WorkerWorld(
            name=self.spec.worker_deployment,
            temporal_namespace=self.spec.temporal_namespace,
            temporal=self.temporal.described(),
            deployments=tuple(self.cluster.deployments.values()),
            ledger=self.ledger,
            history=self.history,
            replay=self.replay,
        )
        return _measured(self.spec, world, self.now, self.measure)

    def plan(self) -> WorkerPlan:
        """The plan that twgen makes at this moment."""
        self.planned_on = self.world()
        return plan_worker(self.spec, self.planned_on, self.now, self.caller)

    def sync(self, plan: WorkerPlan) -> bool:
        """Apply the manifests of a plan, and return whether this changes anything."""
        after = self._after(plan)
        if after == self.cluster.deployments:
            return False
        self.cluster.sync(after, self.now)
        return True

    def roll_out(self, plan: WorkerPlan | None = None) -> WorkerPlan:
        """Start gates and change traffic as `twgen rollout` would at this moment. Returns the last plan.

        `plan` is the plan for the worker's current state, if it is known.
        """
        plan = plan or self.plan()
        # enough for a gate on each of a version's task queues, because a server allows 100 by default
        for _ in range(200):
            match next_write(plan):
                case None:
                    break
                case GateStart() as gate:
                    self._start_gate(gate)
                case Claim(manager):
                    self.temporal.manager = manager
                case WriteMarks(build_id, marks):
                    self.temporal.mark(build_id, marks)
                case RoutingPlan() as change:
                    self._route(change)
                    after = self.temporal.described() or WorkerDeployment()
                    if change.build_id in self.temporal.versions:
                        moved = moved_mark(change, self.spec, plan.identity, self.now, {}, after)
                        self.temporal.mark(change.build_id, moved)
            plan = self.plan()
        return plan

    def end_workflows(self, plan: WorkerPlan) -> bool:
        """Begin the due actions on workflows of draining versions, as `twgen tick` does.

        Returns whether any action was due. Signalled or cancelled workflows are assumed to keep running.
        """
        if not plan.scheduled_actions:
            return False
        world = self.planned_on or self.world()
        temporal = world.temporal or WorkerDeployment()
        versions = (replace(version, metadata=version.metadata or {}) for version in temporal.versions)
        world = replace(world, temporal=replace(temporal, versions=tuple(versions)))
        target = Target(self.spec, world, self.now, plan.identity)
        # no workflow starts on a draining version, so no entry of the policy needs to be repeated
        due = [scheduled for scheduled in due_actions(target) if not scheduled.is_begun]
        for scheduled in due:
            build_id, action = scheduled.build_id, scheduled.what
            is_held = self.temporal.is_held(build_id)
            self.temporal.mark(
                build_id, begun_mark(target.versions[build_id], scheduled, self.now, int(is_held))
            )
            if action.action in {BatchAction.MOVE, BatchAction.TERMINATE} and not action.workflow_types:
                self.temporal.release(build_id)
            if is_held:
                self.begun[build_id] = (*self.begun.get(build_id, ()), in_words(action, "its workflows"))
        return bool(due)

    def advance(self, now: datetime) -> None:
        """Set the clock to this time."""
        self.planned_on = None
        self.cluster.advance(now)
        self.temporal.advance(now)
        for build_id in self.cluster.serving():
            self.temporal.polled(build_id, self._task_queues())

    def or_next_render(self, plan: WorkerPlan, event: datetime) -> datetime:
        """The time of the next event, or of an earlier render if it changes anything."""
        tick = self._tick_after(self.now)
        return tick if tick < event and self._after(plan) != self.cluster.deployments else event

    def next_event(self, plan: WorkerPlan) -> datetime:
        """The next time when the worker or its plan may change without any action.

        FOREVER if there is none.
        """
        due = plan.routing.due_at
        limits: list[datetime] = []
        # time matters only for versions without traffic: no row of the version table for the others depends
        # on it
        idle = {*self.temporal.versions, *self.cluster.deployments} - {*shares(self.temporal.routing)}
        if idle:
            world = self.planned_on or self.world()
            facts = version_facts(self.spec, world, self.now, idle)
            limits = [limit for version in facts for limit in version.moments()]
        moments = [
            self.temporal.next_event(),
            self.cluster.next_event(),
            # a time limit has passed only after its exact moment
            later(due, datetime.resolution) if due else None,
            self._first_verdict() if plan.routing.reason is RoutingReason.ANALYSIS_UNDECIDED else None,
            *(self._tick_after(limit) for limit in limits if limit >= self.now),
            *(scheduled.at for scheduled in plan.scheduled_actions if scheduled.is_next),
        ]
        return min((moment for moment in moments if moment and moment > self.now), default=FOREVER)

    def _first_verdict(self) -> datetime | None:
        """When an undecided analysis gets its first verdict. A real rollout checks every few seconds."""
        target = Target(self.spec, self.planned_on or self.world(), self.now, identity="")
        since, analysis = target.measured_since, target.analysis
        return later(since, analysis.initial_delay) if since and analysis else None

    def is_render_due(self) -> bool:
        """Whether a render and a sync are due at this moment."""
        return not (self.now - self.begin) % self.assumed.render_interval

    def _after(self, plan: WorkerPlan) -> dict[str, LiveDeployment]:
        identity = self.caller.on_deployments_of(self.spec.policy)
        return synced(plan.versions, self.cluster.deployments, identity, self.now)

    def _tick_after(self, moment: datetime) -> datetime:
        interval = self.assumed.render_interval
        return later(self.begin, ((moment - self.begin) // interval + 1) * interval)

    def _task_queues(self) -> tuple[TaskQueue, ...]:
        """The task queues that a new version is assumed to poll: the task queues of an earlier version."""
        current, versions = self.temporal.routing.current, self.temporal.versions
        first = [versions[current.build_id]] if current and current.build_id in versions else []
        queues = (version.own_task_queues for version in (*first, *versions.values()))
        unnamed = TaskQueue(UNNAMED_QUEUE, TaskQueueType.WORKFLOW, pollers=True, unversioned_pollers=False)
        return next(filter(None, queues), (unnamed,))

    def _start_gate(self, gate: GateStart) -> None:
        # A snapshot's times may be in the future. A gate run that began before the version's current period
        # in the routing would not count, so this run begins no earlier.
        temporal = self.temporal.described() or WorkerDeployment()
        stay = stay_began(self.temporal.versions[self.spec.build_id], temporal)
        began, running = max(self.now, stay or self.now), GateStatus.RUNNING
        run = GateRun(gate.task_queue, gate.workflow_id, running, began, workflow_type=gate.workflow_type)
        self.temporal.start_gate(self.spec.build_id, run, *gate_end(self.now, self.assumed))

    def _route(self, change: RoutingPlan) -> None:
        if change.action is RoutingAction.SET_CURRENT:
            self.temporal.set_current(change.build_id or "")
        else:  # in the model, a ramp to no version at 0% ends the ramp
            self.temporal.set_ramp(change.build_id or "", change.percentage or 0)
