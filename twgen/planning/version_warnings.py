"""What a person should know about a version besides what becomes of it."""

from collections.abc import Iterator

from twgen.model.plan import VersionPlan
from twgen.model.policy import ConnectionChanges
from twgen.model.world import VersionStatus
from twgen.planning.facts import Facts
from twgen.planning.version_table import Row

_IN_ROUTING = {VersionStatus.CURRENT, VersionStatus.RAMPING}


def version_warnings(version: Facts, row: Row, plan: VersionPlan) -> Iterator[str]:
    """The warnings about one version, each a sentence that names it."""
    if row.warning:
        yield f"{version.build_id}: {plan.because}"
    if version.status in _IN_ROUTING and plan.replicas == 0:
        yield f"{version.build_id} is {version.status.value.lower()} and its spec says zero replicas"
    if version.is_target and version.live and version.lives_elsewhere and not plan.new_connection:
        yield from _moved_target(version)
    if version.is_target and version.template_differs and not version.spec.has_custom_build_id:
        yield (
            f"{version.build_id} is already the build ID of another pod template: this one will NOT be"
            " deployed; change the image tag, or set spec.workerOptions.unsafeCustomBuildID"
        )


def _moved_target(version: Facts) -> Iterator[str]:
    if version.spec.policy.connection_changes is ConnectionChanges.ALL_VERSIONS:
        return
    yield (
        f"{version.build_id} keeps the connection that it has: a changed"
        " address or Temporal namespace reaches new versions only; change the image tag as well"
    )
