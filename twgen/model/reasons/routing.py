"""Why the next change of traffic is what it is."""

from enum import Enum, StrEnum, auto
from typing import Self


class Until(Enum):
    """What ends the wait for a change of traffic."""

    NOTHING = auto()  # it does not wait
    TIME = auto()  # a moment that is known
    READINESS = auto()  # pods, task queues or servers are ready: sooner or later, by themselves
    SOMEBODY = auto()  # a person or another manager acts, and the rollout that waits goes on
    ANOTHER_INTENT = auto()  # another version, or a command that starts the rollout anew


class RoutingReason(StrEnum):
    """Why the next change of traffic is what it is, or why there is none."""

    until: Until
    """What ends its wait."""

    def __new__(cls, word: str, until: Until) -> Self:
        """Make the word, which cannot be said without what ends its wait."""
        reason = str.__new__(cls, word)
        reason._value_, reason.until = word, until
        return reason

    FOREIGN_MANAGER = "ForeignManager", Until.SOMEBODY
    """Somebody else manages the Worker Deployment.

    Let the other manager release the worker, take it over by `twgen ownership claim --from`, or name
    it in `spec.adoptFrom` of a RolloutPolicy. If it is you, set `spec.identity`.
    """
    VERSION_CAP_REACHED = "VersionCapReached", Until.SOMEBODY
    """The target is not created: `maxVersions` versions still exist.

    Wait until old versions have drained, end the workflows that hold them, or raise `maxVersions`.
    """
    SUPERSEDED = "Superseded", Until.NOTHING
    """The intent of the rollout has changed: another one goes on from here.

    Nothing.
    """
    INVALID_INTENT = "InvalidIntent", Until.ANOTHER_INTENT
    """The intent of the rollout was edited by hand, or this release of twgen reads it otherwise.

    Apply what `twgen render` prints, by the release of twgen that the image of the Job has.
    """
    ROLLOUT_ENDED = "RolloutEnded", Until.ANOTHER_INTENT
    """The rollout has ended before it was settled: nobody moves the traffic.

    Its message says what ended it, and the log of its Pod more. While its Job tries again: nothing. Else, in
    Argo CD, delete a tracked Job, which is made again at once; a hook is only run by the next sync (`argocd
    app sync`). Elsewhere, apply what `twgen render` prints once more.
    """
    ROLLOUT_NOT_BEGUN = "RolloutNotBegun", Until.READINESS
    """What was applied last is not what its rollout, if there is one, has looked at.

    Nothing for a minute. Then see what its message names: the Pod of its Job, the sync that is to make it, or
    a Job of a deleted intent, which `twgen tick` deletes.
    """
    LOOK_FAILED = "LookFailed", Until.READINESS
    """The rollout could not yet read Temporal or the cluster: it looks again.

    Its message says which of them, and what to mend.
    """
    CLAIM_FAILED = "ClaimFailed", Until.READINESS
    """The rollout could not become the manager of the worker, though nobody else is: it tries again.

    Nothing at first. Where its message says that Temporal does not permit it, let its credentials write.
    """
    OLDER_ROLLOUT = "OlderRollout", Until.READINESS
    """A Pod of an earlier rollout of the worker has not ended yet.

    Nothing: its Job is deleted, and it ends within seconds. On a node that is lost, delete the Pod.
    """
    ABORTED = "Aborted", Until.ANOTHER_INTENT
    """The target is marked as aborted: by a person, or by its rollout, and then the sentence says why.

    Commit a new build, or go on with this one by `twgen retry`.
    """
    PAUSED = "Paused", Until.SOMEBODY
    """A person paused the rollout, or it paused itself, and then the sentence says why.

    Go on by `twgen resume`, or commit another build. A pause never holds a revert to another version.
    """
    FROZEN = "Frozen", Until.SOMEBODY
    """A person annotated the intent of the rollout with `twgen.io/paused`: nothing is changed.

    Remove the annotation: a revert waits for that too.
    """
    RETIRED = "Retired", Until.NOTHING
    """`twgen retire` sent the new workflows to workers without a version; all versions drain.

    Nothing. `twgen drain` says what they wait for. `twgen resume` and a rollout undo it; a commit of another
    build does too.
    """
    REPLACED_RAMP = "ReplacedRamp", Until.NOTHING
    """A version ramps that the spec no longer describes.

    Nothing: its share goes back to the current version, since nothing judges it any more. The target takes
    its own first share when it can.
    """
    OTHER_RAMP = "OtherRamp", Until.NOTHING
    """The target is current, and something else keeps a share of the traffic.

    Nothing: the ramp is ended.
    """
    CURRENT_NOT_SERVING = "CurrentNotServing", Until.READINESS
    """The target is current, and nothing serves the workflows that go to it.

    Look at the pods at once: new workflows wait. `twgen status` repeats what the cluster says; `git
    revert` brings the last version back.
    """
    SETTLED = "Settled", Until.NOTHING
    """The target is current, serves, and nothing else ramps.

    Nothing.
    """
    UNSERVED = "Unserved", Until.NOTHING
    """Nobody polls for the target, which takes a share of the traffic: it is taken back.

    See why its workers do not poll. Then commit a new build, or go on with this one by `twgen retry`
    (`twgen resume` where the policy pauses). How long it may last says `unserved` of a RolloutPolicy.
    """
    ANALYSIS_FAILED = "AnalysisFailed", Until.NOTHING
    """A metric of the policy's analysis fails: the ramp is taken back, or paused.

    Read what failed: the sentence has the numbers. Then commit a new build, or, where the code was not at
    fault, go on by `twgen retry` (`twgen resume` where the policy pauses).
    """
    WAITING_FOR_REGISTRATION = "WaitingForRegistration", Until.READINESS
    """No worker of the target has polled yet.

    Nothing at first. After minutes, see [why a version does not
    register](workers.md#why-a-version-does-not-register).
    """
    NOT_SERVING = "NotServing", Until.READINESS
    """The target cannot take traffic.

    Look at its pods: the sentence names what keeps them from polling.
    """
    ROLLBACK = "Rollback", Until.NOTHING
    """The target was current until lately.

    Nothing. For gate and steps all the same, set a shorter `rollbackWindow`.
    """
    UPDATE_IN_PROGRESS = "UpdateInProgress", Until.READINESS
    """Temporal has not yet told every task queue of the last change.

    Nothing: after two minutes it is no longer waited for. Where each step waits for as long, Temporal has
    [forgotten that it is done](https://github.com/temporalio/temporal/issues/11842), as 1.32.0 now and then
    does; that ends when the version is deleted to which traffic moved then.
    """
    REPLAY_FAILED = "ReplayFailed", Until.ANOTHER_INTENT
    """Not all histories could be replayed on the target, or its replay did not come to an end.

    Read the log of its Job, which the sentence names. Commit a new build whose workflows can go on with what
    is open; or, where the code was not at fault, replay again by `twgen retry`. `twgen promote --skip-gate`
    goes on without.
    """
    REPLAY_MISSING = "ReplayMissing", Until.READINESS
    """Nothing replays the histories that the target has to replay before it takes traffic.

    Nothing for five minutes; then it is Blocked. Apply what `twgen render` prints with `rollout.image` of
    the OperatorConfig; where the sentence says that Jobs cannot be read, let them be; where its Job is
    suspended, see who suspends it. `twgen promote --skip-gate` goes on without.
    """
    REPLAY_RUNNING = "ReplayRunning", Until.READINESS
    """The histories that the target has to replay before it takes traffic are not all replayed.

    Nothing: it ends after an hour at the latest, or as its policy says (`replay.within`).
    """
    STEP_GATE_FAILED = "StepGateFailed", Until.NOTHING
    """The gate before a step ended without completing: the ramp is taken back, or paused.

    Read why the workflow failed. Then commit a new build, or, where the code was not at fault, go on by
    `twgen retry` (`twgen resume` where `analysis.onFailure` of the policy pauses): the gate starts again.
    """
    GATE_FAILED = "GateFailed", Until.ANOTHER_INTENT
    """A gate workflow ended without completing.

    Read why the workflow failed. Commit a new build; or, where the code was not at fault, start it
    again by `twgen retry`.
    """
    GATE_RUNNING = "GateRunning", Until.READINESS
    """The gate has not completed on every workflow task queue.

    Nothing at first: `twgen rollout` starts it and waits for it. Blocked where each of its workflow tasks
    fails, as those of a type that the worker has not registered do: commit a build that can carry it out. And
    where no worker of it has polled for workflows after five minutes: deploy one that does, or take the gate
    away.
    """
    MISSING_TASK_QUEUE = "MissingTaskQueue", Until.READINESS
    """The target does not poll a task queue of the current version that has tasks, or may get some.

    Deploy code that polls it, or let its work end first. When no version is to poll it any more, name it in
    `spec.ignoreMissingTaskQueues` of a RolloutPolicy: what comes to it later has no worker of a version.
    """
    NO_TASK_QUEUES = "NoTaskQueues", Until.READINESS
    """There is no current version, and no task queue of the target is known, for a minute none for workflows.

    Nothing at first. After minutes, see whether its workers register a workflow or an activity.
    """
    FIRST_VERSION = "FirstVersion", Until.NOTHING
    """There is no current version, and no unversioned worker polls any of its workflow task queues.

    Nothing.
    """
    ALL_AT_ONCE = "AllAtOnce", Until.NOTHING
    """The strategy has no steps.

    Nothing.
    """
    FIRST_STEP = "FirstStep", Until.NOTHING
    """The target has no share of the traffic yet.

    Nothing.
    """
    OFF_STEP = "OffStep", Until.NOTHING
    """The live percentage is no step's.

    Nothing. It goes on from the step below, or from the first.
    """
    RAMP_PAUSED = "RampPaused", Until.TIME
    """The pause of the step is not over.

    Nothing: the sentence says until when. Blocked where Temporal does not tell since when: `twgen promote`.
    """
    UNTIL_PROMOTED = "UntilPromoted", Until.SOMEBODY
    """The pause of the step is over, and the policy lets nobody but a person end the step.

    Run `twgen promote` when you want the next one, or `twgen abort`.
    """
    ANALYSIS_UNDECIDED = "AnalysisUndecided", Until.READINESS
    """The pause of the step is over, and the analysis can not tell yet whether the target is well.

    Nothing at first: the sentence says what is missing. `twgen promote` goes on without.
    """
    NEXT_STEP = "NextStep", Until.NOTHING
    """The pause of the step is over.

    Nothing.
    """
    MANUAL = "Manual", Until.SOMEBODY
    """The strategy is Manual: a person makes the change.

    Run `twgen promote` when you want it.
    """
