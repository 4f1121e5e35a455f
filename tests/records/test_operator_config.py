import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from twgen.model.operator import (
    NEVER_ATTACHED,
    Application,
    ClusterOfApplications,
    GroupKind,
    Operator,
    ProfileGrant,
)
from twgen.records.operator_config import parse_operator, write_operator

WHOLE = {
    "apiVersion": "twgen.io/v1alpha1",
    "kind": "OperatorConfig",
    "instance": "prod-eu",
    "temporal": {
        "configFile": "/etc/twgen/temporal.toml",
        "profiles": [{"name": "payments", "projects": ["payments", "team-*"]}],
    },
    "clusters": [
        {"project": "payments", "application": "pay-eu", "kubeconfig": "/etc/twgen/eu", "context": "eu"},
        {"project": "*", "inCluster": True},
    ],
    "rollout": {"image": "registry.example.com/twgen@sha256:0123"},
    "attached": {"kinds": [{"group": "monitoring.coreos.com", "kind": "PodMonitor"}, {"kind": "Service"}]},
}


SCHEMA = Draft202012Validator(
    json.loads((Path(__file__).parents[2] / "schemas" / "operatorconfig.json").read_text())
)


def problems(**changes: Any) -> list[str]:
    _, findings = parse_operator({**WHOLE, **changes})
    return [f"{finding.path}: {finding.message}" for finding in findings]


def test_every_field_is_read() -> None:
    operator, findings = parse_operator(WHOLE)
    assert findings == []
    assert SCHEMA.is_valid(WHOLE)
    assert operator == Operator(
        instance="prod-eu",
        temporal_config_file="/etc/twgen/temporal.toml",
        grants=(ProfileGrant("payments", ("payments", "team-*")),),
        clusters=(
            ClusterOfApplications("payments", "pay-eu", "/etc/twgen/eu", "eu"),
            ClusterOfApplications("*", "*", "", ""),
        ),
        rollout_image="registry.example.com/twgen@sha256:0123",
        attached_kinds=(GroupKind("monitoring.coreos.com", "PodMonitor"), GroupKind("", "Service")),
    )


names = st.text(min_size=1, max_size=5)
# Hypothesis also draws words that it finds in the code, such as the kinds that are refused
allowed_kinds = names.filter(lambda kind: kind not in NEVER_ATTACHED)
operators = st.builds(
    Operator,
    instance=st.text(max_size=5),
    temporal_config_file=st.text(max_size=5),
    grants=st.lists(st.builds(ProfileGrant, names, st.lists(st.text(max_size=5)).map(tuple))).map(tuple),
    clusters=st.lists(
        st.builds(ClusterOfApplications, names, st.text(max_size=5), names, names)
        | st.builds(ClusterOfApplications, names, st.text(max_size=5))
    ).map(tuple),
    attached_kinds=st.lists(st.builds(GroupKind, st.text(max_size=5), allowed_kinds)).map(tuple),
)


@given(operators)
def test_configuration_is_read_back_as_it_was_written(operator: Operator) -> None:
    document = write_operator(operator)
    assert SCHEMA.is_valid(document)
    assert parse_operator(document) == (operator, [])


def whole() -> Operator:
    operator, findings = parse_operator(WHOLE)
    assert operator, findings
    return operator


@pytest.mark.parametrize("kind", sorted(NEVER_ATTACHED))
def test_kind_that_can_never_be_attached_is_refused(kind: str) -> None:
    attached = {"kinds": [{"group": "apps", "kind": kind}]}
    assert problems(attached=attached) == [
        f"attached.kinds[0].kind: {kind} can never be attached to a version: remove it"
    ]
    assert not SCHEMA.is_valid(WHOLE | {"attached": attached})


def test_first_cluster_that_matches_project_and_application_is_theirs() -> None:
    operator = whole()
    assert operator.cluster_of(Application("pay-eu", "payments")) == operator.clusters[0]
    assert operator.cluster_of(Application("pay-us", "payments")) == operator.clusters[1]
    assert Operator().cluster_of(Application("pay-eu", "payments")) is None


@pytest.mark.parametrize(
    ("profile", "project", "may"),
    [
        ("payments", "payments", True),
        ("payments", "team-a", True),
        ("payments", "shop", False),
        ("shop", "payments", False),
    ],
)
def test_profile_is_used_by_projects_that_are_granted_it(profile: str, project: str, *, may: bool) -> None:
    operator = whole()
    assert operator.may_use(profile, Application("any", project)) is may


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"kind": "Config"}, "kind: must be OperatorConfig"),
        ({"instanse": "a"}, "instanse: no such field; did you mean instance?"),
        ({"temporal": {"profiles": [{"projects": ["a"]}]}}, "temporal.profiles[0].name: is required"),
        (
            {"temporal": {"profiles": [{"name": "a", "project": "b"}]}},
            "temporal.profiles[0].project: no",
        ),
        ({"clusters": [{"inCluster": True}]}, "clusters[0].project: is required"),
        ({"clusters": [{"project": "a"}]}, "clusters[0]: needs kubeconfig or `inCluster: true`"),
        ({"clusters": [{"project": "a", "kubeconfig": "f"}]}, "clusters[0].context: is required"),
        (
            {"clusters": [{"project": "a", "inCluster": True, "context": "c"}]},
            "clusters[0].context: is required beside kubeconfig, and only there",
        ),
        ({"attached": {"kinds": ["Job"]}}, "attached.kinds[0]: must be a mapping, not 'Job'"),
        (
            {"clusters": [{"project": "a", "kubeconfig": "f", "context": "c", "inCluster": True}]},
            "clusters[0]: needs kubeconfig or `inCluster: true`, and not both",
        ),
    ],
)
def test_mistake_is_told_at_its_path(changes: dict[str, Any], problem: str) -> None:
    assert any(found.startswith(problem) for found in problems(**changes)), problems(**changes)
    assert not SCHEMA.is_valid({**WHOLE, **changes})


def test_document_that_is_no_mapping_is_a_problem() -> None:
    assert parse_operator(["a"])[1]
