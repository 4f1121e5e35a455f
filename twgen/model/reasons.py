"""The reasons for routing changes and for actions on versions. Programs can rely on the reasons' names.

The first part of a reason's docstring says when the reason applies. The second part says what to do.
"""

from enum import Enum, StrEnum, auto
from typing import Self


class Until(Enum):
    """The event that a rollout waits for before it changes the routing."""

    NOTHING = auto()  # the rollout does not wait
    TIME = auto()  # the rollout waits until a known time
    READINESS = auto()  # pods, task queues or servers become ready without a person's help
    SOMEBODY = auto()  # the same rollout continues after a person or another manager has acted
    ANOTHER_INTENT = auto()  # a person commits another version, or restarts the rollout with a command


class RoutingReason(StrEnum):
    """The reason for the next routing change, or for making none."""

    until: Until
    """The event that a rollout with this reason waits for."""

    def __new__(cls, word: str, until: Until) -> Self:
        """Create a reason from its name and the event that a rollout waits for."""
        reason = str.__new__(cls, word)
        reason._value_, reason.until = word, until
        return reason

    FOREIGN_MANAGER = "ForeignManager", Until.SOMEBODY
    """Another manager owns the Worker Deployment.

    Let the other manager release the worker, or take over the worker with `twgen ownership claim --from`. A
    RolloutPolicy can name the other manager in `spec.adoptFrom`. If the other manager identity is also yours,
    set it in `spec.identity`."""
    VERSION_CAP_REACHED = "VersionCapReached", Until.SOMEBODY
    """The target is not created, because the number of deployed versions has reached `maxVersions`.

    Wait until old versions have drained, end the workflows that keep them running, or raise `maxVersions`."""
    SUPERSEDED = "Superseded", Until.NOTHING
    """The rollout's intent has changed, so a newer rollout continues.

    Nothing."""
    INVALID_INTENT = "InvalidIntent", Until.ANOTHER_INTENT
    """The rollout's intent was edited manually, or was written by an incompatible release of twgen.

    Apply the output of `twgen render` again. Use the same twgen release as the Job's image."""
    ROLLOUT_ENDED = "RolloutEnded", Until.ANOTHER_INTENT
    """The rollout ended before it was settled, so nothing is moving the traffic.

    Read the rollout's message and the log of its Pod. If the rollout's Job is retrying, do nothing. If Argo
    CD tracks the Job, delete the Job: Argo CD recreates it immediately. A hook runs again only in the next
    sync (`argocd app sync`). Without Argo CD, apply the output of `twgen render` again."""
    ROLLOUT_NOT_BEGUN = "RolloutNotBegun", Until.READINESS
    """No rollout has read the newest intent yet.

    Nothing for a minute. After that, check the object that the message names: the Job's Pod, the sync that
    creates the Job, or a Job of a deleted intent. `twgen tick` deletes Jobs of deleted intents."""
    HOOK_SKIPPED = "HookSkipped", Until.SOMEBODY
    """Argo CD applied the commit without its hooks, so no Job carries out the rollout.

    Run `argocd app sync`, which runs the hook. `twgen tick` takes over the rollout if tick runs with
    `--argocd-server` and `tick.rollouts` is true in the OperatorConfig."""
    LOOK_FAILED = "LookFailed", Until.READINESS
    """The rollout could not read Temporal or the cluster yet. The rollout tries again.

    Nothing at first. If the problem lasts, read the message, which names the server and the fix."""
    CLAIM_FAILED = "ClaimFailed", Until.READINESS
    """The rollout could not become the worker's manager, although there is no other manager. The rollout
    tries again.

    Nothing at first. If the message says that Temporal denies permission, give the rollout's credentials
    write access."""
    OLDER_ROLLOUT = "OlderRollout", Until.READINESS
    """A Pod of the worker's previous rollout is still running.

    Nothing: twgen deletes the Pod's Job, so the Pod ends within seconds. If the Pod's node is lost, delete
    the Pod."""
    ABORTED = "Aborted", Until.ANOTHER_INTENT
    """A person or twgen aborted the target. If twgen aborted the target, the sentence says why.

    Commit a new build, or run `twgen retry` to continue with the aborted build."""
    PAUSED = "Paused", Until.SOMEBODY
    """A person or twgen paused the rollout. If twgen paused the rollout, the sentence says why.

    Run `twgen resume`, or commit another build. A pause never stops a revert to another version."""
    FROZEN = "Frozen", Until.SOMEBODY
    """A person annotated the rollout's intent with `twgen.io/paused`, so twgen changes nothing.

    Remove the annotation. While the annotation exists, even a revert waits."""
    RETIRED = "Retired", Until.NOTHING
    """`twgen retire` sent new workflows to unversioned workers, so all versions drain.

    Nothing. `twgen drain` lists the workflows that keep the versions running. To return to versioned workers,
    run `twgen resume` and start a rollout, or commit another build."""
    REPLACED_RAMP = "ReplacedRamp", Until.NOTHING
    """The ramping version is no longer in the spec.

    Nothing. The ramping version's share goes back to the current version, because the metrics of the ramping
    version are no longer checked. The target gets its own share when the target is ready."""
    OTHER_RAMP = "OtherRamp", Until.NOTHING
    """The target is current, but another version or unversioned workers still have a share of the traffic.

    Nothing. twgen ends the ramp."""
    CURRENT_NOT_SERVING = "CurrentNotServing", Until.READINESS
    """The target is current, but no worker serves the workflows that go to it.

    Check the pods immediately, because new workflows are waiting. `twgen status` shows the problems that the
    cluster reports. To return to the previous version, run `git revert`."""
    SETTLED = "Settled", Until.NOTHING
    """The target is current and its workers are polling. No other version is ramping.

    Nothing."""
    UNSERVED = "Unserved", Until.NOTHING
    """No worker polls for the ramping target, so the ramp is taken back or paused.

    Find out why the target's workers are not polling. Then commit a new build, or run `twgen retry` (`twgen
    resume` if the policy pauses the ramp). `unserved` in a RolloutPolicy limits the time without a polling
    worker."""
    ANALYSIS_FAILED = "AnalysisFailed", Until.NOTHING
    """A metric of the policy's analysis fails, so the ramp is taken back or paused.

    Read the sentence, which contains the measured values. Then commit a new build. If the code is not the
    cause, run `twgen retry` (`twgen resume` if the policy pauses the ramp)."""
    WAITING_FOR_REGISTRATION = "WaitingForRegistration", Until.READINESS
    """No worker of the target has polled yet.

    Nothing at first. After some minutes, see [why a version does not
    register](workers.md#why-a-version-does-not-register)."""
    NOT_SERVING = "NotServing", Until.READINESS
    """The target cannot take traffic.

    Check the target's pods. The sentence says why the pods are not polling."""
    ROLLBACK = "Rollback", Until.NOTHING
    """The target was current until recently, so it becomes current again immediately.

    Nothing. If a rollback should also go through the gate and the steps, set a shorter `rollbackWindow`."""
    UPDATE_IN_PROGRESS = "UpdateInProgress", Until.READINESS
    """The last routing change has not reached every task queue yet.

    Nothing. twgen waits for two minutes at most. If every step waits that long, Temporal has [missed that a
    change is complete](https://github.com/temporalio/temporal/issues/11842), as release 1.32 sometimes
    does. The waits end when the version that got traffic in the missed change is deleted."""
    REPLAY_FAILED = "ReplayFailed", Until.ANOTHER_INTENT
    """Some histories could not be replayed on the target, or the replay did not finish.

    Read the log of the Job that the sentence names. Commit a new build that can continue the open workflows.
    If the code is not the cause, run `twgen retry` to replay again. `twgen promote --skip-gate` continues
    without a replay."""
    REPLAY_MISSING = "ReplayMissing", Until.READINESS
    """The target needs a replay before it takes traffic, but no Job runs the replay.

    Nothing for five minutes. After that, the rollout is Blocked. Set `rollout.image` in the OperatorConfig,
    and apply the output of `twgen render` again. If the sentence says that Jobs cannot be read, grant the
    permission to read Jobs. If the replay Job is suspended, find out why. `twgen promote --skip-gate`
    continues without a replay."""
    REPLAY_RUNNING = "ReplayRunning", Until.READINESS
    """The target must replay histories before it takes traffic, and the replay is still running.

    Nothing. The replay ends within an hour, or within `replay.within` if the policy sets it."""
    STEP_GATE_FAILED = "StepGateFailed", Until.NOTHING
    """The gate before a step ended without completing, so the ramp is taken back or paused.

    Find out why the gate workflow failed. Then commit a new build. If the code is not the cause, run `twgen
    retry` (`twgen resume` if the policy's `analysis.onFailure` is Pause) to restart the gate."""
    GATE_FAILED = "GateFailed", Until.ANOTHER_INTENT
    """A gate workflow ended without completing.

    Find out why the gate workflow failed. Then commit a new build. If the code is not the cause, run `twgen
    retry` to restart the gate."""
    GATE_RUNNING = "GateRunning", Until.READINESS
    """The gate has not completed on every workflow task queue.

    Nothing at first: `twgen rollout` starts the gate and waits for it. If all workflow tasks of the gate
    fail, the rollout is Blocked. In this case, the workers may not have registered the workflow type. Correct
    the workflow type in the spec, or commit a build that can run the gate workflow. `twgen retry` terminates
    the running gate workflow. The rollout is also Blocked if no worker has polled for workflows after five
    minutes. Deploy a worker that polls for workflows, or remove the gate."""
    MISSING_TASK_QUEUE = "MissingTaskQueue", Until.READINESS
    """The target does not poll a task queue that has or may get tasks, and that the current version polls.

    Deploy code that polls the task queue, or wait until the work on the task queue has ended. If no later
    version will poll the task queue, add it to `spec.ignoreMissingTaskQueues` in a RolloutPolicy. After that,
    no versioned worker takes new tasks from the task queue."""
    NO_TASK_QUEUES = "NoTaskQueues", Until.READINESS
    """There is no current version, and the task queues of the target are not known yet.

    Nothing at first. twgen waits up to a minute for the first workflow task queue. If there is still no task
    queue after some minutes, check whether the target's workers register a workflow or an activity."""
    FIRST_VERSION = "FirstVersion", Until.NOTHING
    """There is no current version, and no unversioned worker polls the target's workflow task queues.

    Nothing. The target becomes current immediately."""
    ALL_AT_ONCE = "AllAtOnce", Until.NOTHING
    """The rollout strategy has no steps.

    Nothing. The target becomes current immediately."""
    FIRST_STEP = "FirstStep", Until.NOTHING
    """The target has no share of the traffic yet.

    Nothing. The target gets the first step's share."""
    OFF_STEP = "OffStep", Until.NOTHING
    """The target's share is between two steps.

    Nothing. The rollout continues from the next lower step."""
    RAMP_PAUSED = "RampPaused", Until.TIME
    """The step's pause is not over. If the target's share is below the first step, the pause of the first
    step applies.

    Nothing. The sentence says when the pause ends. If Temporal does not report when the pause began, the
    rollout is Blocked: run `twgen promote`."""
    UNTIL_PROMOTED = "UntilPromoted", Until.SOMEBODY
    """The step's pause is over. Because of the policy, only a person can end this step.

    Run `twgen promote` to continue with the next step, or run `twgen abort`."""
    ANALYSIS_UNDECIDED = "AnalysisUndecided", Until.READINESS
    """The step's pause is over, but the metrics do not show yet whether the target is healthy.

    Nothing at first. The sentence says which data is missing. `twgen promote` continues without this data."""
    NEXT_STEP = "NextStep", Until.NOTHING
    """The step's pause is over.

    Nothing. The target gets the next step's share, or becomes current after the last step."""
    MANUAL = "Manual", Until.SOMEBODY
    """The strategy is Manual, so a person must start the routing change.

    Run `twgen promote` when you are ready for the change."""


class VersionReason(StrEnum):
    """The reason for the action on a version's Deployment."""

    TARGET = "Target"
    """The spec describes this version.

    Nothing."""
    TEMPLATE_CHANGED = "TemplateChanged"
    """The target's pod template changed, but its custom build ID did not.

    Make sure that the new code can replay the version's open workflows, or change `unsafeCustomBuildID`."""
    EDITED_BY_HAND = "EditedByHand"
    """The version's pod template was edited manually. twgen restores the template.

    Nothing, if you do not need the edit. To keep the edit, add it to the spec, or to `patches` in a
    RolloutPolicy."""
    PATCHED = "Patched"
    """The policy patches the version's pods, or a removed patch is undone. Both cause a rolling update.

    Nothing. A patched image must be able to replay the open workflows: use the same code on another base
    image."""
    CONNECTION_CHANGED = "ConnectionChanged"
    """The version's connection changed, and the policy applies the change to this version.

    Nothing. The version's pods restart. To avoid the restart, set `connectionChanges` to
    `NewVersionsOnly`."""
    LIVES_ELSEWHERE = "LivesElsewhere"
    """The version's pods use a different Temporal server, namespace or Worker Deployment than the spec.

    First, check the version there: run `twgen status` with the old spec. Then delete the version's Deployment
    yourself."""
    OF_OTHERS = "OfOthers"
    """The version's build ID, such as `1.4.0+build7`, is not a valid label value. twgen therefore cannot have
    created the version, and renders nothing for it.

    Keep the workers that you deployed for the version until it has drained."""
    SERVERLESS = "Serverless"
    """Temporal starts the version's workers on serverless compute. The version has no pods, and twgen renders
    nothing for it.

    Nothing. The compute provider runs the version until it has drained."""
    IN_USE = "InUse"
    """The version is current or ramping, so new workflows go to it.

    Nothing."""
    MAY_BE_NEEDED = "MayBeNeeded"
    """The version is draining, or Temporal reports no drainage status. Workflows may still need the version.

    Nothing. The version drains as its workflows end. `twgen drain` lists the workflows that keep it
    running."""
    WORKER_UNKNOWN = "WorkerUnknown"
    """Temporal does not know the worker, so it is unknown whether the worker's versions can be removed.

    Nothing if the worker is new. Otherwise, check the address, the Temporal namespace and the worker's name
    in the spec."""
    OPEN_WORKFLOWS = "OpenWorkflows"
    """According to its status, the version is idle, but twgen has counted open workflows on it.

    Nothing. twgen keeps the version until these workflows end. `twgen drain` lists the workflows."""
    RUNS_ANOTHER_BUILD = "RunsAnotherBuild"
    """No workflow needs the version, but its pods poll with another build ID, which was set manually.

    Deploy the other build ID with its own spec. Then delete this version's Deployment yourself."""
    MAY_BE_ANOTHER = "MayBeAnother"
    """Temporal does not know the version. However, Temporal knows a version without a Deployment whose
    Deployment would have the same name. For example, `V1` and `v1` have the same Deployment name.

    Check which build ID the pods poll with. If Temporal does not know this build ID, delete the Deployment
    yourself."""
    NEVER_ACTIVE = "NeverActive"
    """The version was never current or ramping, and is not the target.

    Nothing."""
    NEVER_ACTIVE_FOR_LONG = "NeverActiveForLong"
    """The version was never active, has zero replicas, and has passed both sunset delays, so it is no longer
    rendered. If the cluster was not read, the version is rendered with zero replicas and without prune
    protection as long as Temporal lists the version.

    Nothing."""
    DRAINED = "Drained"
    """The version is drained, but `scaledownDelay` has not passed yet.

    Nothing."""
    DRAINED_PAST_SCALEDOWN = "DrainedPastScaledown"
    """The version has been drained for longer than `scaledownDelay`.

    Nothing."""
    DRAINED_PAST_BOTH_DELAYS = "DrainedPastBothDelays"
    """The version has zero replicas and has been drained for longer than both sunset delays together, so it
    is no longer rendered. If the cluster was not read, the version is rendered with zero replicas and without
    prune protection as long as Temporal lists the version.

    Nothing."""
    AWAITS_REGISTRATION = "AwaitsRegistration"
    """Temporal does not know the version yet, and the version's Deployment is new or is being deleted.

    Nothing for ten minutes."""
    UNREGISTERED = "Unregistered"
    """Temporal does not know the version, and the version's Deployment is more than 10 minutes old.

    If you still need the version, see [why a version does not
    register](workers.md#why-a-version-does-not-register). Otherwise, do nothing: twgen removes the
    version."""
    UNREGISTERED_AT_ZERO = "UnregisteredAtZero"
    """Temporal does not know the version, and the version's Deployment is old and has zero replicas.

    Nothing."""
    NOT_NEEDED = "NotNeeded"
    """The version has no Deployment and no work, so it is not listed.

    Nothing."""
    MANIFEST_LOST = "ManifestLost"
    """Workflows may need the version, but no source contains the version's manifest.

    Create a branch at the commit that deployed the version, run `twgen lock .`, commit, and merge the branch.
    If the ledger has a merge conflict, keep the lines of both branches. If twgen can read the Git history,
    twgen searches for the manifest there, and the plan says why no manifest was found. Until you restore the
    manifest, twgen keeps the running pods."""
    VERSION_CAP_REACHED = "VersionCapReached"
    """The target is not created, because the number of deployed versions has reached `maxVersions`.

    Wait until old versions have drained, end the workflows that keep them running, or raise `maxVersions`."""
