"""When what was rendered is no longer what would be rendered now, though Git says the same."""

from hashlib import sha256

from twgen.model.plan import VersionAction, WorkerVersions
from twgen.model.spec import OwnerReferences


def plan_hash(worker: WorkerVersions) -> str:
    """Changes when the world makes the worker's manifests other ones: a SHA-256 in hex digits.

    What a version is rendered from stays out, since Git and what is live already say the same of it; so does
    what no manifest tells, such as why it is kept. The UID of a Deployment counts where an attached object
    holds it.
    """
    owns = worker.spec.policy.owner_references is OwnerReferences.RENDER
    told = [
        (
            version.build_id,
            version.is_rendered,
            version.replicas,
            version.protected,
            version.action is VersionAction.SCALE_DOWN,
            version.live.uid if owns and version.attached and version.live else "",
        )
        for version in worker.versions
        if version.is_rendered or version.attached
    ]
    return sha256(repr(told).encode()).hexdigest()
