"""What a version's status really is, when Temporal's own fields disagree."""

from twgen.model.world import Routing, Version, VersionStatus

_OUT_OF_ROUTING = {VersionStatus.CURRENT, VersionStatus.RAMPING}
_MAY_BE_STALE = {VersionStatus.INACTIVE, VersionStatus.UNSPECIFIED, *_OUT_OF_ROUTING}


def status_of(version: Version, routing: Routing) -> VersionStatus:
    """The version's status; where status, routing and drainage disagree it may still have work: Draining."""
    if routing.current and routing.current.build_id == version.build_id:
        return VersionStatus.CURRENT
    if routing.ramping and routing.ramping.build_id == version.build_id:
        return VersionStatus.RAMPING
    if version.status in _OUT_OF_ROUTING or (version.status in _MAY_BE_STALE and ever_active(version)):
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
