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
    """Whether it is known that the target cannot serve."""
    has_pods: bool = True
    """Whether there are pods that can run a gate: pods that are about to end cannot."""
    phase: Phase = Phase.WAITING
    """The phase of the rollout while the obstacle lasts. Blocked means that waiting does not help."""
    older_pods_serve: bool = False
    """Whether pods of an older template serve its traffic."""


@dataclass(frozen=True)
class Target:
    """The target of a worker at one moment, and the identity that would change its traffic."""

    spec: WorkerSpec
    world: WorkerWorld
    now: datetime
    identity: str
    """The manager identity of the plan, or empty if unknown."""
    not_created: str = ""
    """Why its Deployment is not created. Empty if it is created, exists, or does not matter."""

    @property
    def build_id(self) -> str:
        """The build ID of the target."""
        return self.spec.build_id

    @cached_property
    def temporal(self) -> WorkerDeployment:
        """The worker in Temporal, or an empty one if Temporal does not know it."""
        return self.world.temporal or WorkerDeployment()

    @cached_property
    def versions(self) -> dict[str, Version]:
        """Every version in Temporal, by build ID."""
        return {version.build_id: version for version in self.temporal.versions}

    @cached_property
    def version(self) -> Version | None:
        """The target in Temporal, or None if Temporal does not know it."""
        return self.versions.get(self.build_id)

    @property
    def deployment(self) -> LiveDeployment | None:
        """The target's Deployment, even if it is being deleted. None if it does not exist or was not read."""
        return self.deployments.get(self.build_id)

    @cached_property
    def deployments(self) -> dict[str, LiveDeployment]:
        """The Deployment of every version that has one, by build ID."""
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
        """The ramp, if it goes to the target."""
        ramping = self.temporal.routing.ramping
        return ramping if ramping and ramping.build_id == self.build_id else None

    @property
    def other_ramp(self) -> RampingVersion | None:
        """The ramp, if it goes to another version or to unversioned workers."""
        ramping = self.temporal.routing.ramping
        return ramping if ramping and ramping.build_id != self.build_id else None

    @cached_property
    def live_percentage(self) -> float:
        """The target's percentage of new workflows while it ramps, or 0 if it does not ramp."""
        return rounded_percentage(self.ramp.percentage) if self.ramp else 0.0

    @cached_property
    def step(self) -> RolloutStep:
        """The highest step up to the live percentage, or else the first step. The spec must have steps."""
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
        """The step after the live percentage, or None if the target gets all traffic next."""
        return next(iter(self.steps_left), None)

    @cached_property
    def step_ends(self) -> datetime | None:
        """When the pause of the present step ends, or None if unknown."""
        since = self.ramp.percentage_since if self.ramp else None
        return later(since, self.step.pause) if since else None

    @cached_property
    def due_percentage(self) -> float | None:
        """The share of new workflows that the steps set now, or None until the pause of the step is over."""
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
        """The share that the target gets next."""
        return self.following_step.percentage if self.following_step else 100

    @property
    def waits_for_a_person(self) -> bool:
        """Whether the target has reached a step that, according to the policy, only a person may end."""
        policy_step = self.spec.policy.step(self.step.percentage)
        has_reached = self.live_percentage >= rounded_percentage(self.step.percentage)
        return has_reached and policy_step is not None and policy_step.until_promoted

    @property
    def has_all_traffic(self) -> bool:
        """Whether the target is current and no other version ramps."""
        return self.is_current and self.other_ramp is None

    @cached_property
    def marks(self) -> Mapping[MarkKey, Mark]:
        """The marks in the target's metadata that still count."""
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
        """Whether a person retired the worker, so that unversioned workers take all its new workflows."""
        return MarkKey.RETIRED in self.marks

    @property
    def is_paused(self) -> bool:
        """Whether the target gets no more traffic: it is paused, or the worker is retired."""
        return MarkKey.PAUSED in self.marks or self.is_retired

    def new_mark(self, key: MarkKey, because: str = "", **details: object) -> dict[str, Any]:
        """A new mark with the present time, as a metadata entry."""
        stay, ramps = self.stay_began, self.ramp is not None
        return {key.value: write_mark(Mark(key, self.identity, self.now, because, stay, ramps, details))}

    @property
    def stay_began(self) -> datetime | None:
        """When the target's present period in the routing began, or None if unknown."""
        return stay_began(self.version, self.temporal) if self.version else None

    def why_marked(self, key: MarkKey) -> str:
        """The reason in a rollout's mark, for the end of a sentence. Empty if a person made the mark."""
        mark = self.marks.get(key)
        return f" ({mark.because})" if mark and mark.because else ""

    @property
    def is_foreign(self) -> bool:
        """Whether another manager owns the worker, and the policy does not adopt from that manager."""
        return self.temporal.manager_identity not in {"", self.identity, *self.spec.policy.adopt_from}

    @property
    def is_ours(self) -> bool:
        """Whether the identity of the plan is the manager of the worker."""
        return bool(self.identity) and self.temporal.manager_identity == self.identity

    @property
    def is_held(self) -> bool:
        """Whether no gate starts and no object changes until another rollout, manager or person acts."""
        return self.is_foreign or self.world.rollout.is_stopped or self.is_paused

    @cached_property
    def obstacle(self) -> Obstacle | None:
        """Why the target cannot take traffic, by its Deployment and task queues, or None if it can."""
        live = self.deployment
        workflow = [queue for queue in self.task_queues if queue.type is TaskQueueType.WORKFLOW]
        if self.spec.says_zero:
            because = "its spec says zero replicas: no worker can take traffic"
            return Obstacle(because, has_pods=False, phase=Phase.BLOCKED)
        if self.world.deployments is None:
            # if the cluster was not read, only a poller proves that a worker runs
            queues = workflow or self.task_queues
            if not queues or any(queue.pollers is None for queue in queues):
                unread = "pollers" if queues else "task queues"
                why = f"neither the cluster nor its {unread} were read, so it is unknown whether it serves"
                return Obstacle(why, is_known=False)
            if silent := [queue for queue in queues if not queue.pollers]:
                because = "the cluster was not read, and Temporal lists no poller of it on task queue"
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
            # the older pods may run code that the gate did not test, for example under a custom build ID
            because = f"its pods are being replaced, and no new pod is available yet{newest_pod}"
            return Obstacle(because, has_pods=False, older_pods_serve=True)
        if silent := [queue for queue in workflow if queue.pollers is False]:
            why = f"none of its workers polls task queue {silent[0].name}{_unversioned_poller(silent[0])}"
            return Obstacle(why)
        return None

    @property
    def unserved(self) -> str:
        """Why the ramp must end, if no worker has polled for too long, or empty if it may continue."""
        policy, since = self.spec.policy.unserved, self.ramp.since if self.ramp else None
        if not since or not self.live_percentage or policy.action is WhenNoPollers.WAIT:
            return ""
        # an autoscaler that removed all pods for lack of work creates new ones when work arrives
        may_rest = any(resource.scales_from_zero for resource in self.spec.attached)
        if may_rest and (not self.deployment or self.deployment.replicas == 0):
            return ""
        queue, length = silence(self.task_queues)
        # twgen's clock may be ahead of the server's, which timed the polls
        if length - self.world.clocks_apart < policy.after or self.now - since < policy.after:
            return ""
        return f"none of its workers has polled task queue {queue} for {spoken(length)} or longer"

    @property
    def analysis(self) -> Analysis | None:
        """The analysis of the present step, or None if nothing is measured, as with strategy Manual."""
        steps, ramps = self.spec.rollout.steps, self.version is not None and self.live_percentage > 0
        if not ramps or not steps or self.spec.rollout.strategy is not Strategy.PROGRESSIVE:
            return None
        return self.spec.policy.analysis_at(self.step.percentage)

    @cached_property
    def judgements(self) -> tuple[Judgement, ...]:
        """The verdict of each metric of the analysis. Empty if nothing is measured."""
        if not self.analysis:
            return ()
        measured, is_last = (self.version and self.version.measurements) or (), self.following_step is None
        return judgements(self.analysis, measured, self.measured_since, self.now, is_last=is_last)

    @property
    def measured_since(self) -> datetime | None:
        """When measuring began (with the ramp, or when a person let it continue), or None if unknown."""
        # Temporal may report when the percentage changed, but not when the ramp began
        since = (self.ramp.since or self.ramp.percentage_changed_at) if self.ramp else None
        mark = self.marks.get(MarkKey.MEASURED_SINCE)
        return max(since, mark.at) if since and mark and mark.at else since

    @property
    def on_failure(self) -> OnFailure:
        """The policy's action on the ramp if a metric fails."""
        analysis = self.spec.policy.analysis
        return analysis.on_failure if analysis else OnFailure.ABORT

    @cached_property
    def is_rollback(self) -> bool:
        """Whether the target was current recently and is older than the current version.

        If so, it gets all traffic back at once. If there is no current version, or its age is unknown, this
        is not a rollback.
        """
        # `now` is the time of the slowest clock, which is safe for waits. This window would get longer, so
        # the fastest clock decides here
        now = later(self.now, self.world.clocks_apart)
        window = self.spec.policy.rollback_window
        return self.version is not None and recently_current(self.version, self.temporal, now, window)

    @property
    def goes_back(self) -> bool:
        """Whether the rollout is a rollback, which moves auto-upgrade workflows to older code."""
        return self.is_rollback and not self.is_aborted

    def has_replaced(self, build_id: str) -> bool:
        """Whether the target is known to replace that version. If not, this plan may be of an older spec.

        A target that has polled replaces any other version. An aborted target has already had a ramp.
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
        """The task queues that the target polls, as far as Temporal reports them."""
        return self.version.own_task_queues if self.version else ()

    @property
    def workflow_task_queues(self) -> tuple[str, ...]:
        """The sorted names of the workflow task queues that the target polls."""
        names = {queue.name for queue in self.task_queues if queue.type is TaskQueueType.WORKFLOW}
        return tuple(sorted(names))


def silence(task_queues: Sequence[TaskQueue]) -> tuple[str, timedelta]:
    """The workflow task queue without polls for the longest time, and the least length of that time."""
    silent = [("", timedelta())]
    for queue in task_queues:
        if queue.type is not TaskQueueType.WORKFLOW or queue.pollers is None:
            continue
        length = timedelta(seconds=queue.silent_seconds or 0)
        # Temporal lists a poller for this long, so a missing one has been silent for at least that time
        silent.append((queue.name, length if queue.pollers else max(length, POLLERS_ARE_LISTED)))
    return max(silent, key=itemgetter(1))


def _unversioned_poller(queue: TaskQueue) -> str:
    """The end of a sentence about a task queue that a worker without a version polls."""
    if not queue.unversioned_pollers:
        return ""
    return ", but a worker without a version does: does the worker turn versioning on in its SDK?"
