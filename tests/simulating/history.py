"""A simulated worker that lives among people, remembers what happened, and judges every plan by that.

What a version has earned is kept here in words of its own: from what happened, and not from what marks or
servers say of it.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from tests.simulating.attached_objects import Objects
from tests.strategies import NOW
from twgen.model.analysis import FailureCount, Failures, Measurement, Metric
from twgen.model.plan import GateStart, Phase, RoutingAction, RoutingPlan, WorkerPlan
from twgen.model.rollout import RolloutInCluster
from twgen.model.spec import AttachedResource, Strategy, WorkerSpec
from twgen.model.temporal import GateStatus, TaskQueue, TaskQueueType, WorkerDeployment
from twgen.model.times import format_time
from twgen.model.world import LiveDeployment, WorkerWorld
from twgen.planning.interventions import Intervention
from twgen.planning.ownership import acting_identity
from twgen.planning.plan import plan_worker
from twgen.planning.rollout import Claim, WriteMarks, moved_mark, next_write
from twgen.planning.routing.gates import GATE_TIMEOUT
from twgen.planning.routing.target import Target
from twgen.planning.version_status import CLOCKS_DIFFER, shares
from twgen.rendering.manifests import render_manifests
from twgen.simulating.worker import SimulatedWorker
from twgen.versioning.names import MarkKey, read_mark

ALL = 100.0
SOON = 3
"""After so many syncs every version has what is attached."""
MAIN = TaskQueue("main", TaskQueueType.WORKFLOW, pollers=True, unversioned_pollers=False)
LISTED = timedelta(minutes=5)
"""How long Temporal tells of a poller."""
MISSPELT = "Smokee"
"""A workflow type of a gate that no worker knows."""
Health = Literal["well", "failing", "unmeasured"]
STOPS = frozenset({MarkKey.PAUSED, MarkKey.ABORTED, MarkKey.RETIRED})
"""What stops a rollout may go on stopping it when another tool gives its version a share again."""
Mark = Literal["new", "left", "over"]
"""Its version still has the stay that it was made in, has left it, or has begun another."""


@dataclass
class Past:
    """What happened to one version."""

    share: float = 0.0
    since: datetime = NOW
    """It has its share."""
    is_active: bool = False
    was_current: bool = False
    left: datetime | None = None
    """When it was current last."""
    lost: datetime | None = None
    """When it lost a share last."""
    earned: float = 0.0
    """The most that it was given by right in its present stay."""
    marks: dict[str, Mark] = field(default_factory=dict)

    @property
    def old_marks(self) -> set[str]:
        """Those of an earlier stay."""
        return {key for key, mark in self.marks.items() if mark == "over"}


@dataclass
class LivingWorker(SimulatedWorker):
    """A worker, and all that may happen to it."""

    pasts: dict[str, Past] = field(default_factory=dict)
    is_frozen: bool = False
    is_forgotten: bool = False
    """Temporal does not answer for it at this look."""
    clock: timedelta = timedelta()
    """How far the clocks of those who write marks are ahead of Temporal's."""
    health: Health = "well"
    queues: tuple[TaskQueue, ...] = (MAIN,)
    """Those that the code of a new version polls."""
    crashed: dict[str, datetime] = field(default_factory=dict)
    objects: Objects = field(default_factory=Objects)
    attached: tuple[AttachedResource, ...] = ()
    syncs: int = 0
    """Since other resources were attached."""
    seen_metadata: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, worker: SimulatedWorker) -> "LivingWorker":
        """The same worker, with all of its versions where they stand."""
        living = cls(**{one.name: getattr(worker, one.name) for one in fields(worker)})
        living.measure = living.measured
        living.observe(by_right=True)
        return living

    def _task_queues(self) -> tuple[TaskQueue, ...]:
        return self.queues

    def measured(self, metric: Metric, since: datetime, _: datetime) -> Measurement:
        """What its one metric, of failed workflows, is."""
        if self.health == "unmeasured":
            return Measurement(metric.name, since, problem="PERMISSION_DENIED")
        failed = 1000 if self.health == "failing" else 0
        counted = Failures(FailureCount(1000, failed), FailureCount(1000, 0))
        return Measurement(metric.name, since, failures=counted)

    def world(self) -> WorkerWorld:
        """What a reader sees now."""
        found = replace(super().world(), rollout=RolloutInCluster(is_paused=self.is_frozen))
        return replace(found, temporal=None) if self.is_forgotten else found

    def target(self) -> Target:
        """The target as a person's command sees it."""
        world = self.world()
        identity = acting_identity(self.spec, world, self.caller)
        return Target(self.spec, world, self.now, identity)

    def command(self, decide: Callable[[Target], Intervention]) -> None:
        """Do what a person's command does; raises as deciding does."""
        target = self.target()
        wanted = decide(target)
        for workflow_id in wanted.ends:
            self.end_gate(target.build_id, workflow_id, GateStatus.TERMINATED)
        if wanted.first_marks:
            self.temporal.mark(target.build_id, self.dated(wanted.first_marks))
        self.observe()
        if wanted.change:
            self.temporal.manager = target.identity
            self._route(wanted.change)
        if wanted.last_marks:
            self.temporal.mark(target.build_id, self.dated(wanted.last_marks))
            self.observe()

    def dated(self, marks: Mapping[str, Any]) -> dict[str, Any]:
        """The same marks by the clock of their author."""
        at = {"at": format_time(self.now + self.clock)}
        return {key: mark and mark | at for key, mark in marks.items()}

    def end_gate(self, build_id: str, workflow_id: str, status: GateStatus) -> None:
        """End the run of a gate that cannot complete."""
        version = self.temporal.versions[build_id]
        self.temporal.gate_ends.pop((build_id, workflow_id))
        runs = (
            replace(run, status=status) if run.workflow_id == workflow_id else run
            for run in version.gate_runs or ()
        )
        self.temporal.versions[build_id] = replace(version, gate_runs=tuple(runs))

    def crash(self, build_id: str, length: timedelta) -> None:
        """No pod of the version serves for so long."""
        live = self.cluster.deployments[build_id]
        self.cluster.deployments[build_id] = replace(live, serving=False, available_replicas=0)
        self.cluster.ready_at[build_id] = self.now + length
        self.crashed[build_id] = self.now

    def recover(self) -> None:
        """All pods that crashed start again."""
        for build_id in self.cluster.ready_at:
            self.cluster.ready_at[build_id] = self.now + self.cluster.startup

    def token(self) -> object:
        """What a write must know: whoever has another one comes too late."""
        routing = replace(self.temporal.routing, update_state=None)
        return routing, self.temporal.manager

    def sync(self, plan: WorkerPlan) -> bool:
        """Apply what a render prints, as Argo CD does, and delete what the rollout deletes."""
        before = self.cluster.deployments
        rendered = render_manifests([plan.versions], [], self.caller.of)
        is_change = super().sync(plan)
        after = self.cluster.deployments
        for build_id, live in before.items():
            if live.replicas and (self.temporal.is_held(build_id) or build_id in self.routed()):
                assert after[build_id].replicas, f"{build_id} has work, and loses its pods"
                assert after[build_id].protected, f"{build_id} has work, and loses its protection"
        self.objects.sync(rendered, {live.uid for live in after.values()})
        for version in plan.versions.versions:
            if version.replaced and version.is_rendered:
                self._name(version.build_id, also=[f"{item.kind}/{item.name}" for item in version.replaced])
        seen = plan_worker(self.spec, self.world(), self.now, self.caller)
        for version in () if seen.is_held else self.objects.look_after(seen.versions):
            self._name(version.build_id, gone=[f"{item.kind}/{item.name}" for item in version.replaced])
        is_undisturbed = self.spec.attached == self.attached and not seen.is_held
        self.syncs = self.syncs + 1 if is_undisturbed else 0
        self.attached = self.spec.attached
        self.refuse_wrong_objects(before, rendered)
        return is_change

    def _name(self, build_id: str, also: Iterable[str] = (), gone: Collection[str] = ()) -> None:
        """Let the Deployment of a version name what is attached to it, until that is gone."""
        live = self.cluster.deployments[build_id]
        named = tuple(item for item in (*live.attached, *also) if item not in gone)
        self.cluster.deployments[build_id] = replace(live, attached=named)

    def routed(self) -> set[str]:
        """The versions that new workflows go to."""
        return {build_id for build_id, past in self.pasts.items() if past.is_active}

    def refuse_wrong_objects(
        self, before: Mapping[str, LiveDeployment], rendered: Iterable[Mapping[str, Any]]
    ) -> None:
        """One thing decides the replicas of a version; soon it has all that is attached to its like."""
        manifests = {one["metadata"]["name"]: one for one in rendered if one["kind"] == "Deployment"}
        for build_id, live in self.cluster.deployments.items():
            if not live.replicas or live.name not in manifests:
                continue
            scalers = self.objects.of("autoscaler", live.name, build_id)
            budgets = self.objects.of("budget", live.name, build_id)
            assert len(scalers) <= 1, f"{build_id} has several autoscalers: {scalers}"
            assert len(budgets) <= 1, f"{build_id} has several budgets: {budgets}"
            said = manifests[live.name]["spec"].get("replicas")
            was = before.get(build_id)
            if scalers and was and was.replicas and said is not None:
                assert said == was.replicas, f"{build_id}: {scalers} beside {said} replicas of {was.replicas}"
            if self.syncs >= SOON and build_id in before:
                told = f"{build_id} of {was} has {scalers} and {budgets}"
                assert bool(scalers) == any(item.autoscales for item in self.spec.attached), told
                assert bool(budgets) == any(not item.autoscales for item in self.spec.attached), told

    def fork(self) -> "LivingWorker":
        """The same worker once more, to try what becomes of it."""
        temporal, cluster, other = copy(self.temporal), copy(self.cluster), copy(self)
        for name in ("versions", "held_until", "gate_ends"):
            setattr(temporal, name, dict(getattr(temporal, name)))
        cluster.deployments, cluster.ready_at = dict(cluster.deployments), dict(cluster.ready_at)
        other.temporal, other.cluster, other.crashed = temporal, cluster, dict(self.crashed)
        other.pasts = {key: replace(past, marks=dict(past.marks)) for key, past in self.pasts.items()}
        other.seen_metadata, other.measure = dict(self.seen_metadata), other.measured
        return other

    def act_late(self, spec: WorkerSpec, plan: WorkerPlan, token: object) -> None:
        """Make the write of a plan that was made some time ago, as far as Temporal takes it by now."""
        write, own = next_write(plan), self.spec
        if isinstance(write, RoutingPlan | Claim) and token != self.token():
            return
        self.spec = spec
        match write:
            case GateStart() as gate:
                runs = self.temporal.versions[spec.build_id].gate_runs or ()
                if all(run.workflow_id != gate.workflow_id for run in runs):
                    self._start_gate(gate)
            case Claim(manager):
                self.temporal.manager = manager
            case WriteMarks(build_id, marks):
                self.temporal.mark(build_id, marks)
            case RoutingPlan() as change:
                self._route(change)
        self.spec = own
        self.observe()

    def advance(self, now: datetime) -> None:
        """Let time pass; pods that crashed fall silent."""
        super().advance(now)
        for build_id in self.cluster.serving():
            self.crashed.pop(build_id, None)
        for build_id, version in self.temporal.versions.items():
            since = self.crashed.get(build_id)
            if since and version.task_queues:
                silent = int((now - since).total_seconds())
                told = (
                    replace(queue, pollers=now - since < LISTED, silent_seconds=silent)
                    for queue in version.task_queues
                )
                self.temporal.versions[build_id] = replace(version, task_queues=tuple(told))
        self.observe()

    def plan(self) -> WorkerPlan:
        """What twgen would do now, once it is judged."""
        self.observe()
        plan = super().plan()
        if not self.is_forgotten:
            self.refuse_what_is_not_earned(plan)
            self.refuse_silence(plan)
        self.refuse_old_marks(plan)
        return plan

    def roll_out(self, plan: WorkerPlan | None = None) -> WorkerPlan:
        """All that is due now; afterwards nothing is."""
        last = super().roll_out(plan)
        assert not next_write(last), f"it never comes to an end: {next_write(last)}"
        return last

    def refuse_what_is_not_earned(self, plan: WorkerPlan) -> None:
        """No plan gives the target more than the step whose gate, pause and analysis it has passed."""
        change, spec, build_id = plan.routing, self.spec, self.spec.build_id
        past = self.pasts.get(build_id) or Past()
        if change.action not in {RoutingAction.SET_RAMP, RoutingAction.SET_CURRENT}:
            return
        wanted = ALL if change.action is RoutingAction.SET_CURRENT else change.percentage or 0.0
        if wanted <= past.share:
            return
        why = f"{build_id} gets {wanted}% of {past.share}% ({change.reason}: {change.because})"
        assert not self.is_frozen, f"frozen, {why}"
        is_retired = not (self.temporal.routing.current or self.temporal.routing.ramping)
        stops = STOPS if is_retired else STOPS - {MarkKey.RETIRED}
        held = {key for key in stops if self.is_in_force(build_id, key)}
        assert not held, f"{held}, {why}"
        if self.is_rollback():
            return
        gate, name = spec.rollout.gate, f"test-{spec.worker_deployment}:{build_id}"
        first = gate and not past.earned and gate.workflow_type
        assert not first or self.has_passed(name, first), f"ungated, {why}"
        steps = [] if spec.rollout.strategy is Strategy.ALL_AT_ONCE else list(spec.rollout.steps)
        if not steps:
            return
        routing = self.temporal.routing
        if wanted == ALL and not (routing.current or routing.ramping):
            carry = [queue for queue in self.polled() if queue.type is TaskQueueType.WORKFLOW]
            shared = [queue.name for queue in carry or self.polled() if queue.unversioned_pollers]
            assert not shared, f"workers without a version poll {shared}, {why}"
            return
        reached = [step for step in steps if step.percentage <= past.share]
        due = next((step.percentage for step in steps if step.percentage > past.share), ALL)
        assert wanted == due, f"a step is left out, {why}"
        for step in steps:
            told = spec.policy.step(step.percentage)
            if told and told.gate and past.earned < step.percentage <= wanted:
                at_step = f"test@{step.percentage:g}-{spec.worker_deployment}:{build_id}"
                assert self.has_passed(at_step, told.gate), f"ungated at {step.percentage:g}%, {why}"
        if not reached:
            waited = not past.share or self.now - past.since > steps[0].pause
            assert waited, f"steps were edited, and its first pause is not over, {why}"
            return
        assert past.share == reached[-1].percentage, f"off its step, {why}"
        assert self.now - past.since > reached[-1].pause, f"its pause is not over, {why}"
        told = spec.policy.step(past.share)
        assert not (told and told.until_promoted), f"a person is to promote it, {why}"
        assert not spec.policy.analysis_at(past.share) or self.health == "well", f"{self.health}, {why}"

    def refuse_silence(self, plan: WorkerPlan) -> None:
        """Every stop says why."""
        routing = plan.routing
        assert routing.because
        if routing.due_at:
            assert routing.due_at >= self.now, routing

    def refuse_old_marks(self, plan: WorkerPlan) -> None:
        """What an earlier stay of a version left in its metadata changes no plan."""
        world = self.planned_on
        assert world
        temporal, routing = world.temporal, self.temporal.routing
        if not temporal:
            return
        is_settled = plan.routing.phase is Phase.SETTLED and routing.current and not routing.ramping
        versions = []
        for version in temporal.versions:
            past = self.pasts[version.build_id]
            gone = past.old_marks - self.unknown_marks()
            if is_settled and version.build_id == self.spec.build_id:
                gone |= set(version.metadata or {}) - {MarkKey.DRAINED_BY}
            kept = {key: mark for key, mark in (version.metadata or {}).items() if key not in gone}
            versions.append(replace(version, metadata=kept) if gone else version)
        if tuple(versions) == temporal.versions:
            return
        other = replace(world, temporal=replace(temporal, versions=tuple(versions)))
        without = plan_worker(self.spec, other, self.now, self.caller)
        assert without == plan, f"{plan.routing}, and without marks that are over {without.routing}"

    def unknown_marks(self) -> set[str]:
        """Marks that stop a rollout, and of which a server may not tell that their stay is over."""
        return set() if self.temporal.server.reports_when_current else set(STOPS)

    def is_in_force(self, build_id: str, key: str) -> bool:
        """The version has this mark, made in its present stay."""
        version, past = self.temporal.versions.get(build_id), self.pasts.get(build_id)
        mark = (version.metadata or {}).get(key) if version else None
        return bool(mark) and past is not None and past.marks.get(key) == "new"

    def is_rollback(self, *, is_certain: bool = False) -> bool:
        """The target was current until lately, and is older than what took its place.

        The end of a ramp is not told from being replaced at the same time, nor, by an older server, at all.
        It is certain only if the target has not ramped since: a server forgets when that was.
        """
        known, current = self.temporal.versions, self.temporal.routing.current
        target, other = known.get(self.spec.build_id), known.get(current.build_id) if current else None
        past = self.pasts[target.build_id] if target else Past()
        is_told = self.temporal.server.reports_when_current
        left = past.lost if past.left or not is_told else None
        if is_certain and past.left != left:
            return False
        if not target or not other or not left or not target.created_at or not other.created_at:
            return False
        is_older = target.created_at <= other.created_at
        return is_older and self.now - left <= self.spec.policy.rollback_window

    def polled(self) -> tuple[TaskQueue, ...]:
        """What the target polls, or has polled."""
        return self.temporal.versions[self.spec.build_id].task_queues or ()

    def has_passed(self, gate: str, workflow_type: str) -> bool:
        """Runs of the gate have completed on every task queue for workflows that the target polls."""
        version = self.temporal.versions[self.spec.build_id]
        carry = {queue.name for queue in self.polled() if queue.type is TaskQueueType.WORKFLOW}
        passed = {
            queue
            for queue in carry
            for run in version.gate_runs or ()
            if re.fullmatch(rf"{re.escape(gate)}-{queue}(-\d+)?", run.workflow_id)
            and (run.status, run.workflow_type) == (GateStatus.COMPLETED, workflow_type)
        }
        return bool(carry) and passed == carry

    def observe(self, *, by_right: bool = False) -> None:
        """Write down what has happened to each version; by right: twgen did it, or a person through it."""
        routing = self.temporal.routing
        current = routing.current.build_id if routing.current else ""
        ramping = routing.ramping.build_id if routing.ramping else ""
        share_of = shares(routing)
        for build_id, version in self.temporal.versions.items():
            past = self.pasts.setdefault(build_id, Past(since=self.now))
            self._observe_marks(past, build_id, version.metadata or {})
            is_current, share = build_id == current, share_of.get(build_id, 0.0)
            share = ALL if is_current else share
            is_active = is_current or build_id == ramping
            if is_current and not past.was_current:
                past.marks = dict.fromkeys(past.marks, "over")
                self._end_retirements()
            elif is_active and not past.is_active:
                past.marks = {
                    key: "over" if mark == "left" and key not in STOPS else mark
                    for key, mark in past.marks.items()
                }
            elif past.is_active and not is_active:
                past.marks = {key: "left" if mark == "new" else mark for key, mark in past.marks.items()}
                past.earned, past.lost = 0.0, self.now
            if past.was_current and not is_current:
                past.left = self.now
            if share != past.share:
                past.since = self.now
                past.earned = max(past.earned, share) if by_right and share > past.share else past.earned
            past.share, past.is_active, past.was_current = share, is_active, is_current

    def _end_retirements(self) -> None:
        """A version has become current: of all, except one made as lately as clocks may differ."""
        for build_id, past in self.pasts.items():
            version = self.temporal.versions.get(build_id)
            retired = ((version.metadata or {}) if version else {}).get(MarkKey.RETIRED)
            mark = read_mark(MarkKey.RETIRED, retired)
            if mark and mark.at and self.now > mark.at + CLOCKS_DIFFER:
                past.marks[MarkKey.RETIRED] = "over"

    def _observe_marks(self, past: Past, build_id: str, metadata: Mapping[str, Any]) -> None:
        seen = self.seen_metadata.get(build_id, {})
        past.marks |= {key: "new" for key, mark in metadata.items() if seen.get(key) != mark}
        past.marks.pop(MarkKey.DRAINED_BY, None)
        self.seen_metadata[build_id] = metadata

    def _start_gate(self, gate: GateStart) -> None:
        super()._start_gate(gate)
        if gate.workflow_type != MISSPELT:
            return
        # no worker has registered the type
        build_id = self.spec.build_id
        version = self.temporal.versions[build_id]
        *others, run = version.gate_runs or ()
        failing = replace(run, failure=f"{MISSPELT} is not registered")
        self.temporal.versions[build_id] = replace(version, gate_runs=(*others, failing))
        self.temporal.gate_ends[build_id, run.workflow_id] = (self.now + GATE_TIMEOUT, GateStatus.TIMED_OUT)

    def _route(self, change: RoutingPlan) -> None:
        super()._route(change)
        self.observe(by_right=True)
        if change.build_id:
            after = self.temporal.described() or WorkerDeployment()
            moved = moved_mark(change, self.spec, self.caller.identity, self.now, {}, after)
            self.temporal.mark(change.build_id, self.dated(moved))
            self.observe()
