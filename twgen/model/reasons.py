"""The reasons of all rows in both tables, and of other decisions. Programs can rely on their names.

The docstring of a reason says when it applies. Its second part tells a person what to do.
"""

from enum import Enum, StrEnum, auto
from typing import Self


class Until(Enum):
    """The event that a rollout waits for before it changes the routing."""

    NOTHING = auto()  # it does not wait
    TIME = auto()  # a known time
    READINESS = auto()  # pods, task queues or servers become ready without a person's help
    SOMEBODY = auto()  # a person or another manager acts; then the same rollout continues
    ANOTHER_INTENT = auto()  # a commit of another version, or a command that restarts the rollout


class RoutingReason(StrEnum):
    """The reason for the next routing change, or for making none."""

    until: Until
    """The event that a rollout with this reason waits for."""

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
    """The intent of the rollout was edited manually, or this release of twgen reads it differently.

    Apply the output of `twgen render` again. Use the release of twgen that is in the image of the Job."""
    ROLLOUT_ENDED = "RolloutEnded", Until.ANOTHER_INTENT
    """The rollout ended before it was settled, so nothing moves the traffic.

    Read its message and the log of its Pod. If its Job is retrying, do nothing. If Argo CD tracks the Job,
    delete it: Argo CD recreates it at once. A hook runs again only in the next sync (`argocd app sync`).
    Without Argo CD, apply the output of `twgen render` again."""
    ROLLOUT_NOT_BEGUN = "RolloutNotBegun", Until.READINESS
    """No rollout has read the newest intent yet.

    Nothing for a minute. Then check the object that its message names: the Pod of the Job, the sync that
    creates the Job, or a Job of a deleted intent. `twgen tick` deletes such a Job."""
    HOOK_SKIPPED = "HookSkipped", Until.SOMEBODY
    """Argo CD applied the commit without its hooks, so no Job carries out the rollout.

    Run `argocd app sync`, which runs the hook. `twgen tick` takes the rollout over if it has
    `--argocd-server`, and if `tick.rollouts` is true in the OperatorConfig."""
    LOOK_FAILED = "LookFailed", Until.READINESS
    """The rollout could not read Temporal or the cluster yet. It tries again.

    Nothing at first. If this lasts, read the message: it names the server and the fix."""
    CLAIM_FAILED = "ClaimFailed", Until.READINESS
    """The rollout could not become the manager of the worker, although there is no other manager. It tries
    again.

    Nothing at first. If the message says that Temporal denies permission, give the rollout's credentials
    write access."""
    OLDER_ROLLOUT = "OlderRollout", Until.READINESS
    """A Pod of an earlier rollout of the worker has not ended yet.

    Nothing: twgen deletes its Job, so the Pod ends within seconds. If its node is lost, delete the Pod."""
    ABORTED = "Aborted", Until.ANOTHER_INTENT
    """A person or the rollout itself aborted the target. If it was the rollout, the sentence says why.

    Commit a new build, or run `twgen retry` to continue with this one."""
    PAUSED = "Paused", Until.SOMEBODY
    """A person or the rollout itself paused the rollout. If it was the rollout, the sentence says why.

    Run `twgen resume`, or commit another build. A pause never stops a revert to another version."""
    FROZEN = "Frozen", Until.SOMEBODY
    """A person annotated the intent of the rollout with `twgen.io/paused`, so nothing is changed.

    Remove the annotation. Until then, even a revert waits."""
    RETIRED = "Retired", Until.NOTHING
    """`twgen retire` sent new workflows to workers without a version, so all versions drain.

    Nothing. `twgen drain` lists the workflows that the versions wait for. To undo this, run `twgen resume`
    and a rollout, or commit another build."""
    REPLACED_RAMP = "ReplacedRamp", Until.NOTHING
    """The ramping version is no longer in the spec.

    Nothing. Its share goes back to the current version, because its metrics are no longer checked. The target
    gets a share of its own when it is ready."""
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
    policy pauses the ramp). `unserved` of a RolloutPolicy limits the time without a polling worker."""
    ANALYSIS_FAILED = "AnalysisFailed", Until.NOTHING
    """A metric of the policy's analysis fails, so the ramp is taken back or paused.

    Read the sentence: it has the numbers. Then commit a new build. If the code was not at fault, run `twgen
    retry` (`twgen resume` if the policy pauses the ramp)."""
    WAITING_FOR_REGISTRATION = "WaitingForRegistration", Until.READINESS
    """No worker of the target has polled yet.

    Nothing at first. After some minutes, see [why a version does not
    register](workers.md#why-a-version-does-not-register)."""
    NOT_SERVING = "NotServing", Until.READINESS
    """The target cannot take traffic.

    Check its pods. The sentence says why they do not poll."""
    ROLLBACK = "Rollback", Until.NOTHING
    """The target was current until recently, so it becomes current again at once.

    Nothing. If a rollback should also wait for the gate and the steps, set a shorter `rollbackWindow`."""
    UPDATE_IN_PROGRESS = "UpdateInProgress", Until.READINESS
    """The last change has not reached every task queue yet.

    Nothing. twgen waits for two minutes at most. If every step waits that long, Temporal has [missed that the
    change is complete](https://github.com/temporalio/temporal/issues/11842), as 1.32.0 sometimes does. The
    waits end when the version that got traffic in that change is deleted."""
    REPLAY_FAILED = "ReplayFailed", Until.ANOTHER_INTENT
    """Some histories could not be replayed on the target, or the replay did not finish.

    Read the log of the Job that the sentence names. Commit a new build whose workflows can continue the open
    ones. If the code was not at fault, run `twgen retry` to replay again. `twgen promote --skip-gate`
    continues without a replay."""
    REPLAY_MISSING = "ReplayMissing", Until.READINESS
    """The target needs a replay before it takes traffic, and no Job runs one.

    Nothing for five minutes. Then the rollout is Blocked: apply the output of `twgen render` with
    `rollout.image` set in the OperatorConfig. If the sentence says that Jobs cannot be read, permit reading
    them. If the Job is suspended, find out why. `twgen promote --skip-gate` continues without a replay."""
    REPLAY_RUNNING = "ReplayRunning", Until.READINESS
    """The target must replay histories before it takes traffic, and the replay is not finished.

    Nothing. The replay ends within an hour, or within `replay.within` if the policy sets it."""
    STEP_GATE_FAILED = "StepGateFailed", Until.NOTHING
    """The gate before a step ended without completing, so the ramp is taken back or paused.

    Read why the workflow failed. Then commit a new build. If the code was not at fault, run `twgen retry`
    (`twgen resume` if the policy's `analysis.onFailure` is Pause) to restart the gate."""
    GATE_FAILED = "GateFailed", Until.ANOTHER_INTENT
    """A gate workflow ended without completing.

    Read why the workflow failed. Then commit a new build. If the code was not at fault, run `twgen retry` to
    restart the gate."""
    GATE_RUNNING = "GateRunning", Until.READINESS
    """The gate has not completed on every workflow task queue.

    Nothing at first: `twgen rollout` starts the gate and waits for it. If all workflow tasks of the gate
    fail, the rollout is Blocked: perhaps the worker has not registered the workflow type. Correct the type in
    the spec, or commit a build that can run it. `twgen retry` ends the run. The rollout is also Blocked if no
    worker has polled for workflows after five minutes. Deploy a worker that does, or remove the gate."""
    MISSING_TASK_QUEUE = "MissingTaskQueue", Until.READINESS
    """The current version polls a task queue that has tasks or may get some, and the target does not.

    Deploy code that polls the queue, or wait until its work has ended. If no later version will poll it, add
    it to `spec.ignoreMissingTaskQueues` of a RolloutPolicy. No versioned worker then takes its later tasks.
    """
    NO_TASK_QUEUES = "NoTaskQueues", Until.READINESS
    """There is no current version, and the task queues of the target are not known yet.

    Nothing at first. twgen waits up to a minute for the first workflow task queue. If there is no task queue
    after some minutes, check whether the target's workers register a workflow or an activity."""
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
    """The target's share is between two steps.

    Nothing. The rollout continues from the next lower step."""
    RAMP_PAUSED = "RampPaused", Until.TIME
    """The pause of the step is not over. If the share is below the first step, the first step's pause counts.

    Nothing. The sentence says when the pause ends. If Temporal does not report when the pause began, the
    rollout is Blocked: run `twgen promote`."""
    UNTIL_PROMOTED = "UntilPromoted", Until.SOMEBODY
    """The pause of the step is over. By the policy, only a person can end this step.

    Run `twgen promote` for the next step, or `twgen abort`."""
    ANALYSIS_UNDECIDED = "AnalysisUndecided", Until.READINESS
    """The pause of the step is over, but the metrics do not show yet whether the target is healthy.

    Nothing at first. The sentence says which data is missing. `twgen promote` continues without it."""
    NEXT_STEP = "NextStep", Until.NOTHING
    """The pause of the step is over.

    Nothing. The target gets the share of the next step, or becomes current after the last."""
    MANUAL = "Manual", Until.SOMEBODY
    """The strategy is Manual, so a person makes the change.

    Run `twgen promote` when you want the change."""


class VersionReason(StrEnum):
    """The reason for the action on a version's Deployment."""

    TARGET = "Target"
    """The spec describes this version.

    Nothing."""
    TEMPLATE_CHANGED = "TemplateChanged"
    """The target's pod template changed, but its custom build ID did not.

    Make sure that the new code can replay the version's open workflows, or change `unsafeCustomBuildID`."""
    EDITED_BY_HAND = "EditedByHand"
    """Its pod template was edited manually. twgen restores it.

    Nothing, if you do not need the edit. To keep the edit, add it to the spec, or to `patches` of a
    RolloutPolicy."""
    PATCHED = "Patched"
    """A patch of the policy changes its pods, or a removed patch is undone. This is a rolling update.

    Nothing. A patched image must be able to replay the open workflows: use the same code on another base
    image."""
    CONNECTION_CHANGED = "ConnectionChanged"
    """Its connection changed, and the policy applies the change to this version.

    Nothing. Its pods restart. To avoid the restart, set `connectionChanges` to `NewVersionsOnly`."""
    LIVES_ELSEWHERE = "LivesElsewhere"
    """Its pods connect to a server, Temporal namespace or Worker Deployment that twgen did not ask.

    First check the version in that place: run `twgen status` with the old spec. Then delete the Deployment
    yourself."""
    OF_OTHERS = "OfOthers"
    """Its build ID, such as `1.4.0+build7`, is not a valid label value. So twgen did not make the version,
    and renders nothing for it.

    Keep the workers that you deployed for it until the version has drained."""
    SERVERLESS = "Serverless"
    """Temporal starts its workers on serverless compute. It has no pods, and twgen renders nothing for it.

    Nothing. The compute provider runs it until it has drained."""
    IN_USE = "InUse"
    """It is current or ramping, so new workflows go to it.

    Nothing."""
    MAY_BE_NEEDED = "MayBeNeeded"
    """It is draining, or Temporal reports no drainage status. Workflows may still need it.

    Nothing. It drains as its workflows end. `twgen drain` lists the workflows that hold it."""
    WORKER_UNKNOWN = "WorkerUnknown"
    """Temporal does not know the worker, so it is unknown whether its versions can be removed.

    Nothing if the worker is new. Otherwise, check the address, the Temporal namespace and the name in the
    spec."""
    OPEN_WORKFLOWS = "OpenWorkflows"
    """By its status, it is idle, but twgen has counted open workflows on it.

    Nothing. twgen keeps it until they end. `twgen drain` lists them."""
    RUNS_ANOTHER_BUILD = "RunsAnotherBuild"
    """No workflow needs it, but its pods poll with another build ID, which was set manually.

    Deploy that build ID with its own spec. Then delete this Deployment yourself."""
    MAY_BE_ANOTHER = "MayBeAnother"
    """Temporal does not know it. But Temporal knows a version without a Deployment whose Deployment would
    have the same name, such as `V1` and `v1`.

    Check which build ID the pods poll with. If it is not the build ID that Temporal knows, delete the
    Deployment yourself."""
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
    """Temporal does not know it yet, and its Deployment is new or is being deleted.

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
    the plan says why it found nothing. Until then, the running pods are kept."""
    VERSION_CAP_REACHED = "VersionCapReached"
    """The target is not created, because `maxVersions` versions still exist.

    Wait until old versions have drained, end the workflows that hold them, or raise `maxVersions`."""
