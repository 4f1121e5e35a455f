"""What a version's status really is, when Temporal's own fields disagree."""

from twgen.model.world import Routing, Version, VersionStatus, WorkerDeployment

_ROUTED = {VersionStatus.CURRENT, VersionStatus.RAMPING}
_MAY_BE_STALE = {VersionStatus.INACTIVE, VersionStatus.UNSPECIFIED, *_ROUTED}


def status_of(build_id: str, temporal: WorkerDeployment | None) -> VersionStatus:
    """The status of a version; Draining where what Temporal says of it disagrees, for it may have work."""
    if not temporal:
        return VersionStatus.NOT_REGISTERED
    routing = temporal.routing
    if routing.current and routing.current.build_id == build_id:
        return VersionStatus.CURRENT
    if routing.ramping and routing.ramping.build_id == build_id:
        return VersionStatus.RAMPING
    version = next((version for version in temporal.versions if version.build_id == build_id), None)
    return _out_of_routing(version) if version else VersionStatus.NOT_REGISTERED


def routed_build_ids(temporal: WorkerDeployment | None) -> set[str]:
    """The versions that new workflows go to."""
    routing = temporal.routing if temporal else Routing()
    ends = (routing.current, routing.ramping)
    return {end.build_id for end in ends if end and end.build_id}


def _out_of_routing(version: Version) -> VersionStatus:
    if version.status in _ROUTED or (version.status in _MAY_BE_STALE and ever_active(version)):
        return VersionStatus.DRAINING
    if version.drainage and version.drainage.status is VersionStatus.DRAINING:
        return VersionStatus.DRAINING
    if version.status is VersionStatus.DRAINED and _is_unspecified(version):
        return VersionStatus.DRAINING
    return version.status


def ever_active(version: Version) -> bool:
    """The version has been current or ramping, so workflows may run on it."""
    return any((version.first_activated_at, version.last_current_at, version.last_deactivated_at))


def _is_unspecified(version: Version) -> bool:
    return version.drainage is not None and version.drainage.status is VersionStatus.UNSPECIFIED
