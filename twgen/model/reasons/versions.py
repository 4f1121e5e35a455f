"""Why a version's Deployment becomes what it becomes."""

from enum import StrEnum


class VersionReason(StrEnum):
    """Why a version's Deployment becomes what it becomes."""

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
