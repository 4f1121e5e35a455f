"""Which versions a changed connection reaches, by policy."""

from dataclasses import replace

import pytest

from tests.planning.situations import SPEC, live, planned, routing, situation, temporal, version
from twgen.model.plan import VersionAction, VersionPlan, WorkerPlan
from twgen.model.policy import ConnectionChanges
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import VersionStatus

KEEP, UPDATE = VersionAction.KEEP, VersionAction.UPDATE
NEW_SECRET = replace(SPEC.connection, mutual_tls_secret="renewed")  # noqa: S106 - the name of a Secret
NEW_ADDRESS = replace(SPEC.connection, host_port="elsewhere.example.com:7233")
DEPLOYED = [live("v1"), live("v3")]


def changed(policy: ConnectionChanges, **facts: object) -> WorkerSpec:
    return replace(SPEC, policy=replace(SPEC.policy, connection_changes=policy), **facts)  # type: ignore[arg-type]


def plan(spec: WorkerSpec) -> WorkerPlan:
    says = temporal(
        version("v1", VersionStatus.DRAINING), version("v3", VersionStatus.CURRENT), traffic=routing("v3")
    )
    return planned(situation(says, DEPLOYED, namespace=spec.temporal_namespace), spec)


def versions(worker: WorkerPlan) -> tuple[VersionPlan, VersionPlan]:
    old, target = worker.versions.versions
    return old, target


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (ConnectionChanges.TARGET, (KEEP, UPDATE)),
        (ConnectionChanges.ALL_VERSIONS, (UPDATE, UPDATE)),
        (ConnectionChanges.NEW_VERSIONS_ONLY, (KEEP, KEEP)),
    ],
)
def test_new_secret_reaches(policy: ConnectionChanges, expected: tuple[VersionAction, VersionAction]) -> None:
    old, target = versions(plan(changed(policy, connection=NEW_SECRET)))
    assert (old.action, target.action) == expected
    changed_ones = [item.replaced_injection is not None for item in (old, target)]
    assert changed_ones == [action is UPDATE for action in expected]
    assert all(item.live and item.recorded is item.live.recorded for item in (old, target))


@pytest.mark.parametrize("policy", [ConnectionChanges.TARGET, ConnectionChanges.NEW_VERSIONS_ONLY])
@pytest.mark.parametrize(
    "facts", [{"connection": NEW_ADDRESS}, {"temporal_namespace": "another"}], ids=["address", "namespace"]
)
def test_new_address_or_namespace_reaches_no_deployed_version(
    policy: ConnectionChanges, facts: dict[str, object]
) -> None:
    worker = plan(changed(policy, **facts))
    old, target = versions(worker)
    assert (old.action, target.action) == (KEEP, KEEP)
    about_old, about_target = worker.versions.warnings
    assert about_old.startswith("v1 stays as it is, whatever Temporal reports about it here: delete it by")
    assert about_target.startswith("v3 keeps its connection: a changed address or Temporal")


def test_new_address_reaches_all_when_the_policy_says_so() -> None:
    worker = plan(changed(ConnectionChanges.ALL_VERSIONS, connection=NEW_ADDRESS))
    assert [item.action for item in versions(worker)] == [UPDATE, UPDATE]
    assert not any("keeps its connection" in text for text in worker.versions.warnings)


def test_new_address_that_comes_with_a_changed_template_under_a_custom_build_id_is_warned_of() -> None:
    template = replace(SPEC.template, hash="another hash")
    spec = changed(
        ConnectionChanges.TARGET, connection=NEW_ADDRESS, template=template, has_custom_build_id=True
    )
    worker = plan(spec)
    assert versions(worker)[1].action is UPDATE
    assert worker.versions.warnings[-2] == (
        "v3 moves away from temporal.example.com:7233 default, so no worker will run its workflows there."
        " Change spec.workerOptions.unsafeCustomBuildID together with the address or Temporal namespace"
    )


def test_target_that_leaves_its_address_is_warned_of_by_the_ledger_when_the_cluster_is_unread() -> None:
    spec = changed(ConnectionChanges.TARGET, connection=NEW_ADDRESS)
    found = situation(temporal(version("v3")), None, ledger={"v3": live("v3")})
    [warning] = planned(found, spec).versions.warnings
    assert warning == (
        "v3 moves away from temporal.example.com:7233 default, so no worker will run its workflows there."
        " Change the image tag together with the address or Temporal namespace"
    )


def test_version_that_lives_elsewhere_is_left_alone_whatever_this_server_says_of_it() -> None:
    spec = changed(ConnectionChanges.TARGET, connection=NEW_ADDRESS)
    says = temporal(version("v1"), version("v3", VersionStatus.CURRENT), traffic=routing("v3"))
    found = situation(says, [live("v1", 5), live("v3")])
    old = planned(found, spec).versions.versions[0]
    assert (old.status, old.action, old.replicas, old.protected) == (VersionStatus.INACTIVE, KEEP, 5, True)


@pytest.mark.parametrize(
    ("current", "status"), [("v1", VersionStatus.CURRENT), ("v3", VersionStatus.DRAINING)]
)
def test_version_that_lives_elsewhere_keeps_its_replicas_though_it_has_work_here(
    current: str, status: VersionStatus
) -> None:
    """It was deployed for the other place, so the spec does not say how many pods it needs there."""
    spec = changed(ConnectionChanges.TARGET, connection=NEW_ADDRESS)
    says = temporal(version("v1", status), version("v3"), traffic=routing(current))
    old = planned(situation(says, [live("v1", 0), live("v3")]), spec).versions.versions[0]
    assert (old.reason, old.action, old.replicas) == ("LivesElsewhere", KEEP, 0)


def test_version_of_another_worker_deployment_is_left_alone() -> None:
    foreign = live("v1", 5)
    (container,) = foreign["spec"]["template"]["spec"]["containers"]
    container["env"] = [{"name": "TEMPORAL_DEPLOYMENT_NAME", "value": "shop/orders"}]
    old = planned(situation(temporal(version("v1")), [foreign, live("v3")])).versions.versions[0]
    assert (old.action, old.replicas) == (KEEP, 5)
    assert old.because.startswith("its pods connect to an unknown place as shop/orders, which twgen")


def test_connection_that_was_not_recorded_is_not_changed() -> None:
    unmarked = live("v3")
    del unmarked["spec"]["template"]["metadata"]["annotations"]["temporal.io/connection-spec-hash"]
    spec = changed(ConnectionChanges.TARGET, connection=NEW_SECRET)
    (target,) = planned(situation(temporal(version("v3")), [unmarked]), spec).versions.versions
    assert target.action is KEEP
