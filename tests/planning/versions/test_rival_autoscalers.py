"""Two autoscalers of one Deployment are warned of, whoever made them."""

from dataclasses import replace

from tests.planning.situations import RAMPS, live, planned, routing, situation, temporal, version
from tests.strategies import AUTOSCALER, SIZED_BY_HPA
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import VersionStatus
from twgen.model.world import Autoscaler
from twgen.records.snapshot import parse_snapshot, write_snapshot
from twgen.versioning.names import attached_resource_name

SCALED = replace(RAMPS, attached=(AUTOSCALER,), replicas=None)
HPA, SCALED_OBJECT = "HorizontalPodAutoscaler", "ScaledObject"
NAME = attached_resource_name("payments", "cpu", "v3")
OURS = Autoscaler(HPA, NAME, "payments-v3")
OTHER = replace(AUTOSCALER, name="other")
NEW = Autoscaler(HPA, attached_resource_name("payments", "other", "v3"), "payments-v3")
THEIRS = Autoscaler(SCALED_OBJECT, "by-hand", "payments-v3")


def warnings(
    *autoscalers: Autoscaler, spec: WorkerSpec = SCALED, attached: str = f"{HPA}/{NAME}"
) -> list[str]:
    manifest = live("v3", managedFields=SIZED_BY_HPA)
    manifest["metadata"]["annotations"]["twgen.io/attached"] = attached
    says = temporal(version(status=VersionStatus.CURRENT), traffic=routing("v3"))
    world = situation(says, [manifest], autoscalers=autoscalers)
    found, problems = parse_snapshot(write_snapshot(world))
    assert found, problems
    return [text for text in planned(found, spec).versions.warnings if "scale the same" in text]


def test_autoscaler_beside_that_of_a_template_is_warned_of_and_the_other_one_is_to_be_kept() -> None:
    [warning] = warnings(OURS, THEIRS)
    assert warning == (
        f"v3: {HPA} {NAME} and {SCALED_OBJECT} by-hand scale the same Deployment and undo each"
        f" other's decisions: keep only {HPA} {NAME}"
    )


def test_two_that_templates_make_or_no_template_makes_are_warned_of() -> None:
    [warning] = warnings(OURS, NEW, spec=replace(SCALED, attached=(AUTOSCALER, OTHER)))
    assert warning.endswith(": keep only one of them")
    plain = replace(RAMPS, attached=())
    [warning] = warnings(THEIRS, replace(THEIRS, name="another"), spec=plain, attached="")
    assert warning.endswith(": keep only one of them")


def test_one_that_the_rollout_is_about_to_delete_is_warned_of_as_such() -> None:
    [warning] = warnings(OURS, NEW, spec=replace(SCALED, attached=(OTHER,)))
    assert warning.endswith(f": keep only {HPA} {NEW.name}; its rollout deletes {HPA} {NAME}")


def test_one_autoscaler_for_each_deployment_is_fine() -> None:
    assert warnings(OURS, replace(THEIRS, deployment="payments-v1")) == []
    assert warnings(OURS) == []
