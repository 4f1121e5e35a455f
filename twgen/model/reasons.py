"""The reasons for each row of both tables, and for other decisions. Their words are stable for programs.

The docstring of a reason first says when it applies, and then what a person must do.
"""

from enum import Enum, StrEnum, auto
from typing import Self


class Until(Enum):
    """The event that ends the wait for a change of traffic."""

    NOTHING = auto()  # there is no wait
    TIME = auto()  # a known moment
    READINESS = auto()  # pods, task queues or servers become ready by themselves
    SOMEBODY = auto()  # a person or another manager acts, and the rollout continues
    ANOTHER_INTENT = auto()  # another version, or a command that restarts the rollout


class RoutingReason(StrEnum):
    """The reason for the next change of traffic, or for none."""

    until: Until
    """The event that ends the wait."""

    def __new__(cls, word: str, until: Until) -> Self:
        """Make the reason. A reason without `until` is an error."""
        reason = str.__new__(cls, word)
        reason._value_, reason.until = word, until
        return reason

    FOREIGN_MANAGER = "ForeignManager", Until.SOMEBODY
    """Another manager owns the Worker Deployment.

    Let the other manager release the worker, or take it over with `twgen ownership claim --from`. A
    RolloutPolicy can name the other manager in `spec.adoptFrom`. If the other manager is you under another
    name, set `spec.identity`."""
    VERSION_CAP_REACHED = "VersionCapReached", Until.SOMEBODY
    """The target is not created, because `maxVersions` versions still exist.

    Wait until old versions have drained, end the workflows that hold them, or raise `maxVersions`."""
    SUPERSEDED = "Superseded", Until.NOTHING
    """The intent of the rollout has changed, so another rollout continues.

    Nothing."""
    INVALID_INTENT = "InvalidIntent", Until.ANOTHER_INTENT
    """The intent of the rollout was edited by hand, or this release of twgen reads it differently.

    Apply the output of `twgen render` again. Use the release of twgen that is in the image of the Job."""
    ROLLOUT_ENDED = "RolloutEnded", Until.ANOTHER_INTENT
    """The rollout ended before it was settled, so nothing moves the traffic.

    Read its message and the log of its Pod. While its Job tries again, do nothing. In Argo CD, delete a
    tracked Job: it is created again at once. A hook only runs in the next sync (`argocd app sync`).
    Elsewhere, apply the output of `twgen render` again."""
    ROLLOUT_NOT_BEGUN = "RolloutNotBegun", Until.READINESS
    """No rollout has read the newest intent yet.

    Nothing for a minute. Then check the object that its message names: the Pod of its Job, the sync that
    creates it, or a Job of a deleted intent. `twgen tick` deletes such a Job."""
    HOOK_SKIPPED = "HookSkipped", Until.SOMEBODY
    """Argo CD applied the commit without its hooks, so no Job carries out the rollout.

    Run `argocd app sync`, which runs the hook. `twgen tick` takes the rollout over if `tick.rollouts` of the
    OperatorConfig is true and it has `--argocd-server`."""
    LOOK_FAILED = "LookFailed", Until.READINESS
    """The rollout could not read Temporal or the cluster yet. It tries again.

    Nothing at first. If it lasts, read its message: it names the server and the fix."""
    CLAIM_FAILED = "ClaimFailed", Until.READINESS
    """The rollout could not become the manager of the worker, although there is no other manager. It tries
    again.

    Nothing at first. If its message says that Temporal does not permit it, give its credentials write access.
    """
    OLDER_ROLLOUT = "OlderRollout", Until.READINESS
    """A Pod of an earlier rollout of the worker has not ended yet.

    Nothing: its Job is deleted, and it ends within seconds. If its node is lost, delete the Pod."""
    ABORTED = "Aborted", Until.ANOTHER_INTENT
    """A person or the rollout marked the target as aborted. If it was the rollout, the sentence says why.

    Commit a new build, or run `twgen retry` to continue with this one."""
    PAUSED = "Paused", Until.SOMEBODY
    """A person or the rollout itself paused the rollout. If it was the rollout, the sentence says why.

    Run `twgen resume`, or commit another build. A pause never stops a revert to another version."""
    FROZEN = "Frozen", Until.SOMEBODY
    """A person annotated the intent of the rollout with `twgen.io/paused`, so nothing is changed.

    Remove the annotation. Until then, even a revert waits."""
    RETIRED = "Retired", Until.NOTHING
    """`twgen retire` sent the new workflows to workers without a version. All versions drain.

    Nothing. `twgen drain` lists the workflows that they wait for. To undo it, run `twgen resume` and a
    rollout, or commit another build."""
    REPLACED_RAMP = "ReplacedRamp", Until.NOTHING
    """A version ramps that is no longer in the spec.

    Nothing. Its share goes back to the current version, because its metrics are no longer checked. The target
    gets its own first share when it is ready."""
    OTHER_RAMP = "OtherRamp", Until.NOTHING
    """The target is current, and another version or unversioned workers keep a share of the traffic.

    Nothing. twgen ends the ramp."""
    CURRENT_NOT_SERVING = "CurrentNotServing", Until.READINESS
    """The target is current, but no worker serves the workflows that go to it.

    Check the pods at once, because new workflows wait. `twgen status` shows the problems that the cluster
    reports. `git revert` brings the last version back."""
    SETTLED = "Settled", Until.NOTHING
    """The target is current, its workers serve, and no other version ramps.

    Nothing."""
    UNSERVED = "Unserved", Until.NOTHING
    """No worker polls for the ramping target, so the ramp is taken back or paused.

    Find out why its workers do not poll. Then commit a new build, or run `twgen retry` (`twgen resume` if the
    policy pauses). `unserved` of a RolloutPolicy sets how long it may last."""
    ANALYSIS_FAILED = "AnalysisFailed", Until.NOTHING
    """A metric of the policy's analysis fails, so the ramp is taken back or paused.

    Read the sentence: it has the numbers. Then commit a new build. If the code was not at fault, run `twgen
    retry` (`twgen resume` if the policy pauses)."""
    WAITING_FOR_REGISTRATION = "WaitingForRegistration", Until.READINESS
    """No worker of the target has polled yet.

    Nothing at first. After some minutes, see [why a version does not
    register](workers.md#why-a-version-does-not-register)."""
    NOT_SERVING = "NotServing", Until.READINESS
    """The target cannot take traffic.

    Check its pods. The sentence says what keeps them from polling."""
    ROLLBACK = "Rollback", Until.NOTHING
    """The target was current until recently, so it becomes current again at once.

    Nothing. If you want gate and steps for a rollback too, set a shorter `rollbackWindow`."""
    UPDATE_IN_PROGRESS = "UpdateInProgress", Until.READINESS
    """The last change has not reached every task queue yet.

    Nothing. twgen waits for two minutes at most. If every step waits that long, Temporal has [missed that the
    change is complete](https://github.com/temporalio/temporal/issues/11842), as 1.32.0 sometimes does. This
    ends when the version that got the traffic in that change is deleted."""
    REPLAY_FAILED = "ReplayFailed", Until.ANOTHER_INTENT
    """Some histories could not be replayed on the target, or the replay did not finish.

    Read the log of the Job that the sentence names. Commit a new build whose workflows can continue the open
    ones. If the code was not at fault, run `twgen retry` to replay again. `twgen promote --skip-gate`
    continues without a replay."""
    REPLAY_MISSING = "ReplayMissing", Until.READINESS
    """The target needs a replay before it takes traffic, and no Job runs one.

    Nothing for five minutes; then it is Blocked. Apply the output of `twgen render` with `rollout.image` set
    in the OperatorConfig. If the sentence says that Jobs cannot be read, permit reading them. If the Job is
    suspended, find out what suspends it. `twgen promote --skip-gate` continues without a replay."""
    REPLAY_RUNNING = "ReplayRunning", Until.READINESS
    """The target must replay histories before it takes traffic, and the replay is not finished.

    Nothing. It ends after an hour at the latest, or after `replay.within` of its policy."""
    STEP_GATE_FAILED = "StepGateFailed", Until.NOTHING
    """The gate before a step ended without completing, so the ramp is taken back or paused.

    Read why the workflow failed. Then commit a new build. If the code was not at fault, run `twgen retry`
    (`twgen resume` if `analysis.onFailure` of the policy is Pause) to start the gate again."""
    GATE_FAILED = "GateFailed", Until.ANOTHER_INTENT
    """A gate workflow ended without completing.

    Read why the workflow failed. Then commit a new build. If the code was not at fault, run `twgen retry` to
    start the gate again."""
    GATE_RUNNING = "GateRunning", Until.READINESS
    """The gate has not completed on every workflow task queue.

    Nothing at first: `twgen rollout` starts it and waits for it. If its workflow tasks all fail, it is
    Blocked: the worker may not have registered the workflow type. Correct the type in the spec, or commit a
    build that can run it; `twgen retry` ends the run. It is also Blocked if no worker has polled for
    workflows after five minutes. Deploy one that does, or remove the gate."""
    MISSING_TASK_QUEUE = "MissingTaskQueue", Until.READINESS
    """The target does not poll a task queue of the current version that has tasks or may get some.

    Deploy code that polls it, or wait until its work has ended. If no version will poll it any more, name it
    in `spec.ignoreMissingTaskQueues` of a RolloutPolicy. Later tasks on it then find no worker of a version.
    """
    NO_TASK_QUEUES = "NoTaskQueues", Until.READINESS
    """There is no current version, and the task queues of the target are not known yet.

    Nothing at first. twgen waits up to a minute for the first workflow task queue. After some minutes without
    any task queue, check whether its workers register a workflow or an activity."""
    FIRST_VERSION = "FirstVersion", Until.NOTHING
    """There is no current version, and no unversioned worker polls the workflow task queues of the target.

    Nothing. The target becomes current at once."""
    ALL_AT_ONCE = "AllAtOnce", Until.NOTHING
    """The strategy has no steps.

    Nothing. The target becomes current at once."""
    FIRST_STEP = "FirstStep", Until.NOTHING
    """The target has no share of the traffic yet.

    Nothing. It gets the share of the first step."""
    OFF_STEP = "OffStep", Until.NOTHING
    """The current percentage is between two steps.

    Nothing. The rollout continues from the next lower step."""
    RAMP_PAUSED = "RampPaused", Until.TIME
    """The pause of the step is not over. Below the first step, it is the pause of that step.

    Nothing. The sentence says when it ends. If Temporal does not report when the pause began, it is Blocked:
    run `twgen promote`."""
    UNTIL_PROMOTED = "UntilPromoted", Until.SOMEBODY
    """The pause of the step is over, and the policy lets only a person end the step.

    Run `twgen promote` for the next step, or `twgen abort`."""
    ANALYSIS_UNDECIDED = "AnalysisUndecided", Until.READINESS
    """The pause of the step is over, but the metrics do not show yet whether the target is healthy.

    Nothing at first. The sentence says what is missing. `twgen promote` continues without it."""
    NEXT_STEP = "NextStep", Until.NOTHING
    """The pause of the step is over.

    Nothing. The target gets the share of the next step, or becomes current after the last."""
    MANUAL = "Manual", Until.SOMEBODY
    """The strategy is Manual, so a person makes the change.

    Run `twgen promote` when you want it."""


class VersionReason(StrEnum):
    """The reason for the action on a version's Deployment."""

    TARGET = "Target"
    """The spec describes this version.

    Nothing."""
    TEMPLATE_CHANGED = "TemplateChanged"
    """The pod template of the target changed, but its custom build ID did not.

    Make sure that the new code can replay its open workflows, or change `unsafeCustomBuildID`."""
    EDITED_BY_HAND = "EditedByHand"
    """Its pod template was edited by hand. twgen restores it.

    Nothing, if you do not need the edit. To keep it, write it into the spec, or into `patches` of a
    RolloutPolicy."""
    PATCHED = "Patched"
    """A patch of the policy changes its pods, or was removed and its pods change back. This is a rolling
    update.

    Nothing. The patched image must be able to replay the open workflows: use the same code on another base.
    """
    CONNECTION_CHANGED = "ConnectionChanged"
    """Its connection changed, and the policy applies the change to this version.

    Nothing. Its pods restart. To avoid that, set `connectionChanges` to `NewVersionsOnly`."""
    LIVES_ELSEWHERE = "LivesElsewhere"
    """Its pods connect to another server, Temporal namespace or Worker Deployment than the one that twgen
    asked.

    Check the version there first: run `twgen status` with the spec as it was. Then delete the Deployment by
    hand."""
    OF_OTHERS = "OfOthers"
    """Its build ID is not a valid label value, such as `1.4.0+build7`. So no release of twgen made it, and
    twgen renders nothing for it.

    Keep the workers that you versioned by hand until the version has drained."""
    SERVERLESS = "Serverless"
    """Temporal starts its workers on serverless compute. It has no pods, and twgen renders nothing for it.

    Nothing. Its provider runs it until it has drained."""
    IN_USE = "InUse"
    """It is current or ramping, so new workflows go to it.

    Nothing."""
    MAY_BE_NEEDED = "MayBeNeeded"
    """It is draining, or Temporal reports no drainage status. Workflows may still need it.

    Nothing. It drains as its workflows end. `twgen drain` lists the workflows that hold it."""
    WORKER_UNKNOWN = "WorkerUnknown"
    """Temporal does not know the worker, so nothing shows that its versions can be removed.

    Nothing if the worker is new. Otherwise, check the address, the Temporal namespace and the name in the
    spec."""
    OPEN_WORKFLOWS = "OpenWorkflows"
    """Its status says that it is idle, but open workflows were counted on it.

    Nothing. It stays until they end. `twgen drain` lists them."""
    RUNS_ANOTHER_BUILD = "RunsAnotherBuild"
    """No workflow needs it, but its pods run under another build ID, which was set by hand.

    Deploy that build ID with its own spec. Then delete this Deployment by hand."""
    MAY_BE_ANOTHER = "MayBeAnother"
    """Temporal does not know it, but knows a version without a Deployment whose name would be the same, such
    as `V1` and `v1`.

    Check which build ID its pods poll with. If it is not the version that Temporal knows, delete the
    Deployment by hand."""
    NEVER_ACTIVE = "NeverActive"
    """It was never current or ramping, and it is not the target.

    Nothing."""
    NEVER_ACTIVE_FOR_LONG = "NeverActiveForLong"
    """It was never active, has zero replicas, and both sunset delays are over, so it is no longer rendered.
    If the cluster was not read, it is rendered with zero replicas and without protection as long as Temporal
    lists it.

    Nothing."""
    DRAINED = "Drained"
    """It is drained, and `scaledownDelay` is not over.

    Nothing."""
    DRAINED_PAST_SCALEDOWN = "DrainedPastScaledown"
    """It has been drained for longer than `scaledownDelay`.

    Nothing."""
    DRAINED_PAST_BOTH_DELAYS = "DrainedPastBothDelays"
    """It has zero replicas and has been drained for longer than both sunset delays together, so it is no
    longer rendered. If the cluster was not read, it is rendered with zero replicas and without protection as
    long as Temporal lists it.

    Nothing."""
    AWAITS_REGISTRATION = "AwaitsRegistration"
    """Temporal does not know it yet, and its Deployment is young or is being deleted.

    Nothing for ten minutes."""
    UNREGISTERED = "Unregistered"
    """Temporal does not know it, and its Deployment is more than 10 minutes old.

    If you still need the version, see [why a version does not
    register](workers.md#why-a-version-does-not-register). Otherwise, do nothing: twgen removes it."""
    UNREGISTERED_AT_ZERO = "UnregisteredAtZero"
    """Temporal does not know it, and its Deployment is old and has zero replicas.

    Nothing."""
    NOT_NEEDED = "NotNeeded"
    """It has no Deployment and no work, so it is not listed.

    Nothing."""
    MANIFEST_LOST = "ManifestLost"
    """Workflows may need it, but no source has its manifest.

    Check out a branch at the commit that deployed it, run `twgen lock .`, commit, and merge the branch. In
    the ledger, keep the lines of both sides. If twgen can read the Git history, it searches there itself, and
    the plan says why it found nothing. Until then, its running pods stay."""
    VERSION_CAP_REACHED = "VersionCapReached"
    """The target is not created, because `maxVersions` versions still exist.

    Wait until old versions have drained, end the workflows that hold them, or raise `maxVersions`."""
