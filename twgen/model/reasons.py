"""The stable words for why, of both tables and what else decides: when each fits, and what a person does."""

from enum import Enum, StrEnum, auto
from typing import Self


class VersionReason(StrEnum):
    """Why a version's Deployment becomes what it becomes."""

    TARGET = "Target"
    """It is the version that the spec describes.

    Nothing.
    """
    TEMPLATE_CHANGED = "TemplateChanged"
    """It is the target, and its pod template changed under its custom build ID.

    Make sure that the new code replays what is open on it, or give it another `unsafeCustomBuildID`.
    """
    EDITED_BY_HAND = "EditedByHand"
    """Somebody changed its pod template by hand: it is put right.

    Nothing, when the edit may go. To keep it, write it into the spec, or into `patches` of a RolloutPolicy.
    """
    PATCHED = "Patched"
    """A patch of the policy changes its pods, or is gone and they go back: a rolling update.

    Nothing. A patched image must replay what is open: the same code on another base.
    """
    CONNECTION_CHANGED = "ConnectionChanged"
    """Its connection changed, and the policy moves it.

    Nothing. Its pods restart; to spare them, set `connectionChanges` to `NewVersionsOnly`.
    """
    LIVES_ELSEWHERE = "LivesElsewhere"
    """Its pods talk to another server, namespace or Worker Deployment than the one that was asked.

    Read that server first, by `twgen status` with the spec as it was. Then delete the Deployment by hand.
    """
    OF_OTHERS = "OfOthers"
    """Its build ID fits no label (`1.4.0+build7`), so twgen did not make it, and renders nothing for it.

    Keep the workers that were versioned by hand until it has drained.
    """
    IN_USE = "InUse"
    """It is current or ramping: new workflows go to it.

    Nothing.
    """
    MAY_BE_NEEDED = "MayBeNeeded"
    """It is draining, or Temporal does not say: workflows may still need it.

    Nothing. It drains as its workflows end; `temporal workflow list` shows which hold it.
    """
    WORKER_UNKNOWN = "WorkerUnknown"
    """Temporal has never heard of the worker, so nothing speaks against its versions.

    Nothing. If it has been there before, check address, Temporal namespace and name in the spec.
    """
    OPEN_WORKFLOWS = "OpenWorkflows"
    """Its status says that it is idle, and yet open workflows were counted on it.

    Nothing. It stays until they end; `temporal workflow list` shows them.
    """
    RUNS_ANOTHER_BUILD = "RunsAnotherBuild"
    """Nothing needs it, but its pods are told to be another version: somebody set their build ID by hand.

    Deploy that version by its own spec, then take this Deployment away by hand.
    """
    MAY_BE_ANOTHER = "MayBeAnother"
    """Temporal does not know it, but one without Deployment that would have the same name: `V1` and `v1`.

    Look with which build ID its pods poll. Take the Deployment away by hand when it is not the known one.
    """
    NEVER_ACTIVE = "NeverActive"
    """It was never current or ramping, and is not the target.

    Nothing.
    """
    NEVER_ACTIVE_FOR_LONG = "NeverActiveForLong"
    """It was never active, is at zero, and both sunset delays are over.

    Nothing.
    """
    DRAINED = "Drained"
    """It is drained, and `scaledownDelay` is not over.

    Nothing.
    """
    DRAINED_PAST_SCALEDOWN = "DrainedPastScaledown"
    """It has been drained for longer than `scaledownDelay`.

    Nothing.
    """
    DRAINED_PAST_BOTH_DELAYS = "DrainedPastBothDelays"
    """It is at zero, and has been drained for longer than `scaledownDelay` and `deleteDelay` together.

    Nothing.
    """
    AWAITS_REGISTRATION = "AwaitsRegistration"
    """Temporal does not know it yet, and its Deployment is young, or is being deleted.

    Nothing, for ten minutes.
    """
    UNREGISTERED = "Unregistered"
    """Temporal does not know it, and its Deployment is more than 10 minutes old.

    Nothing, if it was given up. Else see [why it does not](workers.md#why-a-version-does-not-register).
    """
    UNREGISTERED_AT_ZERO = "UnregisteredAtZero"
    """Temporal does not know it, and its Deployment is old and at zero.

    Nothing.
    """
    NOT_NEEDED = "NotNeeded"
    """It has no Deployment and no work: it is not listed.

    Nothing.
    """
    MANIFEST_LOST = "ManifestLost"
    """Workflows may need it, and its manifest is known nowhere.

    Branch from the commit that deployed it, run `twgen lock .` there, commit, and merge the branch: in the
    ledger keep the lines of both sides. Where twgen has the history of Git, it looks there by itself, and the
    plan says why it found nothing. Until then, what still runs of it stays.
    """
    VERSION_CAP_REACHED = "VersionCapReached"
    """It is the target, and `maxVersions` versions still exist.

    Wait until old versions have drained, end the workflows that hold them, or raise `maxVersions`.
    """


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
    """A person marked the target as aborted.

    Commit a new build, or go on with this one by `twgen retry`.
    """
    PAUSED = "Paused", Until.SOMEBODY
    """A person paused the rollout.

    Go on by `twgen resume`, by removing the annotation `twgen.io/paused` of its intent, or by a new build.
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
    WAITING_FOR_REGISTRATION = "WaitingForRegistration", Until.READINESS
    """No worker of the target has polled yet.

    Nothing at first. After minutes, see [why it does not](workers.md#why-a-version-does-not-register).
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

    Nothing: after two minutes it is no longer waited for.
    """
    GATE_FAILED = "GateFailed", Until.ANOTHER_INTENT
    """A gate workflow ended without completing.

    Read why the workflow failed. Commit a new build; where the code is right, start it by `twgen retry`.
    """
    GATE_RUNNING = "GateRunning", Until.READINESS
    """The gate has not completed on every workflow task queue.

    Nothing at first: `twgen rollout` starts it and waits for it. One that runs for long shows why in
    `temporal workflow describe`: a worker without that workflow type leaves it running. Blocked where no
    worker of it has polled for workflows after five minutes: deploy one that does, or take the gate away.
    """
    MISSING_TASK_QUEUE = "MissingTaskQueue", Until.READINESS
    """The target does not poll a task queue of the current version.

    Deploy code that polls it. When nothing uses that task queue any more, `twgen promote`: Temporal refuses
    while it has tasks, and what comes to it later has no worker of a version.
    """
    NO_TASK_QUEUES = "NoTaskQueues", Until.READINESS
    """There is no current version, and no task queue of the target is known, for a minute none for workflows.

    Nothing at first. After minutes, see whether its workers register a workflow or an activity.
    """
    FIRST_VERSION = "FirstVersion", Until.NOTHING
    """There is no current version, and no unversioned worker to share with on every task queue.

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
    NEXT_STEP = "NextStep", Until.NOTHING
    """The pause of the step is over.

    Nothing.
    """
    MANUAL = "Manual", Until.SOMEBODY
    """The strategy is Manual: a person makes the change.

    Run `twgen promote` when you want it.
    """
