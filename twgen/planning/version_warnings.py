"""What a person should know about a version besides what becomes of it."""

from collections.abc import Iterator

from twgen.model.plan import VersionAction, VersionPlan
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
    if _leaves_its_place(version, plan):
        yield _of_moved_target(version, plan)
    if version.is_target and version.template_differs and not version.spec.has_custom_build_id:
        yield (
            f"{version.build_id} is already the build ID of another pod template: this one will NOT be"
            " deployed; change the image tag, or set spec.workerOptions.unsafeCustomBuildID"
        )


def _leaves_its_place(version: Facts, plan: VersionPlan) -> bool:
    # with the cluster unread, only the ledger tells where the target was
    may_be_live = version.live is not None or version.world.deployments is None
    return version.is_target and may_be_live and version.lives_elsewhere and not plan.new_connection


def _of_moved_target(version: Facts, plan: VersionPlan) -> str:
    if plan.action is VersionAction.KEEP:
        return (
            f"{version.build_id} keeps the connection that it has: a changed"
            " address or Temporal namespace reaches new versions only; change the image tag as well"
        )
    recorded = version.recorded
    place = f"{recorded.address} {recorded.temporal_namespace}" if recorded else ""
    return (
        f"{version.build_id} leaves {place}, and its workflows there lose their worker:"
        f" change {_what_makes_another(version)} with the address or Temporal namespace"
    )


def _what_makes_another(version: Facts) -> str:
    custom = version.spec.has_custom_build_id
    return "spec.workerOptions.unsafeCustomBuildID" if custom else "the image tag"
