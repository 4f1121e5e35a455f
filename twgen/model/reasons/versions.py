"""Why a version's Deployment becomes what it becomes."""

from enum import StrEnum


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

    Nothing. It drains as its workflows end; `twgen drain` shows which hold it.
    """
    WORKER_UNKNOWN = "WorkerUnknown"
    """Temporal has never heard of the worker, so nothing speaks against its versions.

    Nothing. If it has been there before, check address, Temporal namespace and name in the spec.
    """
    OPEN_WORKFLOWS = "OpenWorkflows"
    """Its status says that it is idle, and yet open workflows were counted on it.

    Nothing. It stays until they end; `twgen drain` shows them.
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
    """It was never active, is at zero, and both sunset delays are over: it is no longer rendered. If the
    cluster was not read, it stays rendered at zero, unprotected, as long as Temporal lists it.

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
    """It is at zero, and has been drained for longer than `scaledownDelay` and `deleteDelay` together:
    it is no longer rendered. If the cluster was not read, it stays rendered at zero, unprotected, as long as
    Temporal lists it.

    Nothing.
    """
    AWAITS_REGISTRATION = "AwaitsRegistration"
    """Temporal does not know it yet, and its Deployment is young, or is being deleted.

    Nothing, for ten minutes.
    """
    UNREGISTERED = "Unregistered"
    """Temporal does not know it, and its Deployment is more than 10 minutes old.

    Nothing, when it is one that was given up. Else see [why a version does not
    register](workers.md#why-a-version-does-not-register).
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
