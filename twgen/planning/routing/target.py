"""The facts about a worker's target version that the routing table uses."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from operator import itemgetter
from typing import Any

from twgen.model.analysis import Analysis, Judgement, OnFailure
from twgen.model.plan import Phase
from twgen.model.policy import POLLERS_ARE_LISTED, WhenNoPollers
from twgen.model.spec import RolloutStep, Strategy, WorkerSpec
from twgen.model.temporal import RampingVersion, TaskQueue, TaskQueueType, Version, WorkerDeployment
from twgen.model.times import later
from twgen.model.values import dataclass
from twgen.model.world import LiveDeployment, WorkerWorld
from twgen.planning.analysis.verdicts import judgements
from twgen.planning.sentences import how_to_resume, rounded_percentage, spoken
from twgen.planning.version_status import UNREGISTERED, is_in_force, recently_current, status_of, stay_began
from twgen.planning.versions.facts import deployments_of
from twgen.versioning.names import Mark, MarkKey, read_mark, write_mark


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why the target cannot take traffic."""

    because: str
    is_known: bool = True
    """Whether twgen knows that the target cannot serve, rather than lacking the information."""
    has_pods: bool = True
    """Whether the target has pods that can run a gate. Pods that are about to terminate cannot."""
    phase: Phase = Phase.WAITING
    """The rollout's phase while the obstacle lasts. Blocked means that waiting does not help."""
    older_pods_serve: bool = False
    """Whether pods with an older pod template serve the target's traffic."""


@dataclass(frozen=True)
class Target:
    """A worker's target version at one moment, and the manager identity that would change its traffic."""

    spec: WorkerSpec
    world: WorkerWorld
    now: datetime
    identity: str
    """The plan's manager identity, or empty if unknown."""
    not_created: str = ""
    """Why the plan does not create the target's Deployment, or empty if it does or need not create one."""

    @property
    def build_id(self) -> str:
        """The target's build ID."""
        return self.spec.build_id

    @cached_property
    def temporal(self) -> WorkerDeployment:
        """The Worker Deployment in Temporal, or an empty one if Temporal does not know the worker."""
        return self.world.temporal or WorkerDeployment()

    @cached_property
    def versions(self) -> dict[str, Version]:
        """The worker's versions in Temporal, by build ID."""
        return {version.build_id: version for version in self.temporal.versions}

    @cached_property
    def version(self) -> Version | None:
        """The target version in Temporal, or None if Temporal does not know it."""
        return self.versions.get(self.build_id)

    @property
    def deployment(self) -> LiveDeployment | None:
        """The target's Deployment, even if it is being deleted, or None if it is missing or was not read."""
        return self.deployments.get(self.build_id)

    @cached_property
    def deployments(self) -> dict[str, LiveDeployment]:
        """The versions' Deployments, by build ID."""
        return {build_id: live for build_id, (live, *_) in deployments_of(self.spec, self.world).items()}

    @property
    def current(self) -> str | None:
        """The build ID of the current version, or None if unversioned workers are current."""
        current = self.temporal.routing.current
        return current.build_id if current else None

    @property
    def is_current(self) -> bool:
        """Whether the target is the current version."""
        return self.current == self.build_id

    @cached_property
    def ramp(self) -> RampingVersion | None:
        """The ramp if the target is the ramping version, otherwise None."""
        ramping = self.temporal.routing.ramping
        return ramping if ramping and ramping.build_id == self.build_id else None

    @property
    def other_ramp(self) -> RampingVersion | None:
        """The ramp if another version or unversioned workers are ramping, otherwise None."""
        ramping = self.temporal.routing.ramping
        return ramping if ramping and ramping.build_id != self.build_id else None

    @cached_property
    def live_percentage(self) -> float:
        """The percentage of new workflows that a ramping target gets, or 0 if it is not ramping."""
        return rounded_percentage(self.ramp.percentage) if self.ramp else 0.0

    @cached_property
    def step(self) -> RolloutStep:
        """The highest step that is not above the live percentage, or else the first step. Requires steps."""
        live, steps = self.live_percentage, self.spec.rollout.steps
        below = (step for step in reversed(steps) if rounded_percentage(step.percentage) <= live)
        return next(below, steps[0])

    @cached_property
    def steps_left(self) -> tuple[RolloutStep, ...]:
        """The steps above the live percentage."""
        live, steps = self.live_percentage, self.spec.rollout.steps
        return tuple(step for step in steps if rounded_percentage(step.percentage) > live)

    @property
    def following_step(self) -> RolloutStep | None:
        """The first step above the live percentage, or None if the target gets all traffic next."""
        return next(iter(self.steps_left), None)

    @cached_property
    def step_ends(self) -> datetime | None:
        """When the current step's pause ends, or None if unknown."""
        since = self.ramp.percentage_since if self.ramp else None
        return later(since, self.step.pause) if since else None

    @cached_property
    def due_percentage(self) -> float | None:
        """The target's share of new workflows according to the steps, or None during a step's pause."""
        steps = self.spec.rollout.steps
        if not steps or self.spec.rollout.strategy is Strategy.ALL_AT_ONCE:
            return 100
        if not self.live_percentage:
            return steps[0].percentage
        if self.is_above_its_step:
            return self.step.percentage
        is_over = self.step_ends is not None and self.now > self.step_ends
        return self.next_percentage if is_over else None

    @property
    def is_above_its_step(self) -> bool:
        """Whether the live percentage is between two steps, because of another client or changed steps."""
        return self.live_percentage > rounded_percentage(self.step.percentage)

    @property
    def next_percentage(self) -> float:
        """The percentage of new workflows at the next step, or 100 after the last step."""
        return self.following_step.percentage if self.following_step else 100

    @property
    def waits_for_a_person(self) -> bool:
        """Whether the target has reached a step that, according to the policy, only a person can end."""
        policy_step = self.spec.policy.step(self.step.percentage)
        has_reached = self.live_percentage >= rounded_percentage(self.step.percentage)
        return has_reached and policy_step is not None and policy_step.until_promoted

    @property
    def has_all_traffic(self) -> bool:
        """Whether the target is current and no other version is ramping."""
        return self.is_current and self.other_ramp is None

    @cached_property
    def marks(self) -> Mapping[MarkKey, Mark]:
        """The marks in the target's metadata that are still in force."""
        version, temporal = self.version, self.temporal
        if not version or not version.metadata:
            return {}
        marks = (read_mark(key, version.metadata.get(key)) for key in MarkKey)
        return {mark.key: mark for mark in marks if mark and is_in_force(mark, version, temporal)}

    @property
    def is_aborted(self) -> bool:
        """Whether a person aborted the target, or a rollout ended its ramp."""
        return MarkKey.ABORTED in self.marks

    @property
    def is_retired(self) -> bool:
        """Whether a person retired the worker, so that unversioned workers get all of its new workflows."""
        return MarkKey.RETIRED in self.marks

    @property
    def is_paused(self) -> bool:
        """Whether the target gets no additional traffic, because it is paused or the worker is retired."""
        return MarkKey.PAUSED in self.marks or self.is_retired

    def new_mark(self, key: MarkKey, because: str = "", **details: object) -> dict[str, Any]:
        """A metadata entry with a new mark, made now."""
        stay, ramps = self.stay_began, self.ramp is not None
        return {key.value: write_mark(Mark(key, self.identity, self.now, because, stay, ramps, details))}

    @property
    def stay_began(self) -> datetime | None:
        """When the target's current period in the routing began, or None if unknown."""
        return stay_began(self.version, self.temporal) if self.version else None

    def why_marked(self, key: MarkKey) -> str:
        """A rollout's reason for a mark, in parentheses, or empty if a person made the mark."""
        mark = self.marks.get(key)
        return f" ({mark.because})" if mark and mark.because else ""

    @property
    def is_foreign(self) -> bool:
        """Whether another manager owns the worker, and the policy does not adopt from that manager."""
        return self.temporal.manager_identity not in {"", self.identity, *self.spec.policy.adopt_from}

    @property
    def is_ours(self) -> bool:
        """Whether the plan's identity is the worker's manager identity."""
        return bool(self.identity) and self.temporal.manager_identity == self.identity

    @property
    def is_held(self) -> bool:
        """Whether gates and objects must not change: another manager or rollout acts, or it is paused."""
        return self.is_foreign or self.world.rollout.is_stopped or self.is_paused

    @cached_property
    def obstacle(self) -> Obstacle | None:
        """Why the target cannot take traffic, based on its Deployment and task queues, or None if it can."""
        live = self.deployment
        workflow = [queue for queue in self.task_queues if queue.type is TaskQueueType.WORKFLOW]
        if self.spec.says_zero:
            because = "its spec says zero replicas: no worker can take traffic"
            return Obstacle(because, has_pods=False, phase=Phase.BLOCKED)
        if self.world.deployments is None:
            # if the cluster was not read, only a poller proves that a worker is running
            queues = workflow or self.task_queues
            if not queues or any(queue.pollers is None for queue in queues):
                unread = "pollers" if queues else "task queues"
                why = f"neither the cluster nor its {unread} were read, so it is unknown whether it serves"
                return Obstacle(why, is_known=False)
            if silent := [queue for queue in queues if not queue.pollers]:
                because = "the cluster was not read, and Temporal lists no poller for it on task queue"
                return Obstacle(f"{because} {silent[0].name}{_unversioned_poller(silent[0])}")
            return None
        if not live:
            return Obstacle("it has no Deployment yet", has_pods=False)
        if live.terminating:
            because = "its Deployment is being deleted, and will be recreated"
            return Obstacle(because, has_pods=False)
        if live.replicas == 0:
            return Obstacle("its Deployment has zero replicas", has_pods=False)
        if live.paused:
            resume = how_to_resume(live.name, self.spec.namespace)
            because = f"its Deployment is paused by hand: to continue, run `{resume}`"
            return Obstacle(because, has_pods=False, phase=Phase.BLOCKED)
        problem = self.world.pod_problems.get(self.build_id)
        newest_pod = f", and its newest Pod {problem}" if problem else ""
        if live.stalled:
            because = f"its Deployment makes no progress ({live.stalled}){newest_pod}"
            return Obstacle(because, has_pods=False, phase=Phase.BLOCKED)
        if not live.serving:
            return Obstacle(f"its Deployment is not available yet{newest_pod}")
        if live.replacing:
            # with a custom build ID, for example, the older pods may run code that the gate did not test
            because = f"its pods are being replaced, and no new pod is available yet{newest_pod}"
            return Obstacle(because, has_pods=False, older_pods_serve=True)
        if silent := [queue for queue in workflow if queue.pollers is False]:
            why = f"none of its workers polls task queue {silent[0].name}{_unversioned_poller(silent[0])}"
            return Obstacle(why)
        return None

    @property
    def unserved(self) -> str:
        """The reason to end the ramp if no worker has polled for too long, otherwise empty."""
        policy, since = self.spec.policy.unserved, self.ramp.since if self.ramp else None
        if not since or not self.live_percentage or policy.action is WhenNoPollers.WAIT:
            return ""
        # an autoscaler that scaled an idle version to zero will create pods when tasks arrive
        may_rest = any(resource.scales_from_zero for resource in self.spec.attached)
        if may_rest and (not self.deployment or self.deployment.replicas == 0):
            return ""
        queue, length = silence(self.task_queues)
        # the server recorded the poll times, and twgen's clock may be ahead of the server's clock
        if length - self.world.clocks_apart < policy.after or self.now - since < policy.after:
            return ""
        return f"none of its workers has polled task queue {queue} for {spoken(length)} or longer"

    @property
    def analysis(self) -> Analysis | None:
        """The current step's analysis, or None if nothing is measured, for example with strategy Manual."""
        steps, ramps = self.spec.rollout.steps, self.version is not None and self.live_percentage > 0
        if not ramps or not steps or self.spec.rollout.strategy is not Strategy.PROGRESSIVE:
            return None
        return self.spec.policy.analysis_at(self.step.percentage)

    @cached_property
    def judgements(self) -> tuple[Judgement, ...]:
        """The verdict on each metric of the analysis, or empty if nothing is measured."""
        if not self.analysis:
            return ()
        measured, is_last = (self.version and self.version.measurements) or (), self.following_step is None
        return judgements(self.analysis, measured, self.measured_since, self.now, is_last=is_last)

    @property
    def measured_since(self) -> datetime | None:
        """When measuring began, or None if unknown: when the ramp began, or when a person resumed it."""
        # Temporal may report when the percentage changed, but not when the ramp began
        since = (self.ramp.since or self.ramp.percentage_changed_at) if self.ramp else None
        mark = self.marks.get(MarkKey.MEASURED_SINCE)
        return max(since, mark.at) if since and mark and mark.at else since

    @property
    def on_failure(self) -> OnFailure:
        """The policy's action if a metric fails."""
        analysis = self.spec.policy.analysis
        return analysis.on_failure if analysis else OnFailure.ABORT

    @cached_property
    def is_rollback(self) -> bool:
        """Whether the target was current recently and is older than the current version.

        In a rollback, the target gets all traffic back at once. If there is no current version, or its age is
        unknown, this is not a rollback.
        """
        # `self.now` is the time on the slowest clock, which is safe for waits. It would extend the rollback
        # window, so the time on the fastest clock is used here
        now = later(self.now, self.world.clocks_apart)
        window = self.spec.policy.rollback_window
        return self.version is not None and recently_current(self.version, self.temporal, now, window)

    @property
    def goes_back(self) -> bool:
        """Whether a rollback will move auto-upgrade workflows to older code."""
        return self.is_rollback and not self.is_aborted

    def has_replaced(self, build_id: str) -> bool:
        """Whether the target is known to replace this version. If not, the plan's spec may be outdated.

        A target that has polled replaces any other version. So does an aborted target: it has already ramped.
        """
        both = (self.versions.get(item) or self.deployments.get(item) for item in (self.build_id, build_id))
        created_at, replaced_created_at = (item and item.created_at for item in both)
        is_younger = bool(created_at and replaced_created_at and created_at > replaced_created_at)
        return self.is_registered or self.is_aborted or is_younger

    @property
    def is_registered(self) -> bool:
        """Whether at least one worker of the target has polled Temporal."""
        status = status_of(self.build_id, self.version, self.temporal)
        return self.version is not None and status not in UNREGISTERED

    @property
    def task_queues(self) -> tuple[TaskQueue, ...]:
        """The target's task queues that Temporal reports."""
        return self.version.own_task_queues if self.version else ()

    @property
    def workflow_task_queues(self) -> tuple[str, ...]:
        """The sorted names of the workflow task queues that the target polls."""
        names = {queue.name for queue in self.task_queues if queue.type is TaskQueueType.WORKFLOW}
        return tuple(sorted(names))


def silence(task_queues: Sequence[TaskQueue]) -> tuple[str, timedelta]:
    """The workflow task queue that has been without polls for the longest time, and for how long at least."""
    silent = [("", timedelta())]
    for queue in task_queues:
        if queue.type is not TaskQueueType.WORKFLOW or queue.pollers is None:
            continue
        length = timedelta(seconds=queue.silent_seconds or 0)
        # Temporal lists a poller for this long after its last poll, so a missing one has been silent longer
        silent.append((queue.name, length if queue.pollers else max(length, POLLERS_ARE_LISTED)))
    return max(silent, key=itemgetter(1))


def _unversioned_poller(queue: TaskQueue) -> str:
    """A clause about an unversioned worker that polls the task queue, or empty if there is none."""
    if not queue.unversioned_pollers:
        return ""
    return ", but an unversioned worker does: is versioning enabled in the worker's SDK options?"
