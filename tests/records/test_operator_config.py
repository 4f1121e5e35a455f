import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.json_schemas import REGISTRY, SCHEMAS
from twgen.model.operator import (
    NEVER_ATTACHED,
    Application,
    AttachedKinds,
    CaBundle,
    ClusterOfApplications,
    GroupKind,
    Operator,
    ProfileGrant,
    PrometheusServer,
    RolloutPod,
    TemporalProfiles,
)
from twgen.model.problem import quoted
from twgen.model.rollout import Driver, Verb
from twgen.records.operator_config import (
    OPERATOR_CONFIG,
    parse_operator,
    parse_servers,
    server_of_intent,
    write_servers,
)

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
    "rollout": {
        "image": "registry.example.com/twgen@sha256:0123",
        "labels": {"team": "platform"},
        "annotations": {"sidecar.istio.io/inject": "false"},
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "batch", "operator": "Exists"}],
        "imagePullSecrets": [{"name": "registry"}],
        "resources": {"limits": {"memory": "256Mi"}},
        "caBundle": {"configMap": "temporal-ca"},
        "requests": ["Promote", "Retry"],
    },
    "attached": {"kinds": [{"group": "monitoring.coreos.com", "kind": "PodMonitor"}, {"kind": "Service"}]},
    "prometheus": [
        {
            "name": "shared",
            "url": "https://prometheus.example.com/base",
            "projects": ["payments", "team-*"],
            "bearerTokenFile": "/etc/twgen/prometheus/token",
            "caFile": "/etc/twgen/prometheus/ca.crt",
            "headers": {"X-Scope-OrgID": "payments"},
            "secretName": "prometheus",
        },
        {"name": "own", "url": "http://own:9090", "username": "twgen", "passwordFile": "/etc/password"},
    ],
}


SCHEMA = Draft202012Validator(SCHEMAS["operatorconfig"], registry=REGISTRY)


def problems(**changes: Any) -> list[str]:
    _, findings = parse_operator({**WHOLE, **changes})
    return [f"{finding.path}: {finding.message}" for finding in findings]


def test_every_field_is_read() -> None:
    operator, findings = parse_operator(WHOLE)
    assert findings == []
    assert SCHEMA.is_valid(WHOLE)
    assert operator == Operator(
        instance="prod-eu",
        temporal=TemporalProfiles(
            "/etc/twgen/temporal.toml", (ProfileGrant("payments", ("payments", "team-*")),)
        ),
        clusters=(
            ClusterOfApplications("payments", "pay-eu", "/etc/twgen/eu", "eu"),
            ClusterOfApplications("*", in_cluster=True),
        ),
        rollout=RolloutPod(
            image="registry.example.com/twgen@sha256:0123",
            labels={"team": "platform"},
            annotations={"sidecar.istio.io/inject": "false"},
            node_selector={"kubernetes.io/os": "linux"},
            tolerations=({"key": "batch", "operator": "Exists"},),
            image_pull_secrets=({"name": "registry"},),
            resources={"limits": {"memory": "256Mi"}},
            ca_bundle=CaBundle("temporal-ca", "ca.crt"),
            requests=(Verb.PROMOTE, Verb.RETRY),
        ),
        attached=AttachedKinds((GroupKind("monitoring.coreos.com", "PodMonitor"), GroupKind("", "Service"))),
        prometheus=(
            PrometheusServer(
                "shared",
                "https://prometheus.example.com/base",
                projects=("payments", "team-*"),
                bearer_token_file="/etc/twgen/prometheus/token",  # noqa: S106 - the name of a file
                ca_file="/etc/twgen/prometheus/ca.crt",
                headers={"X-Scope-OrgID": "payments"},
                secret_name="prometheus",  # noqa: S106 - its name
            ),
            PrometheusServer(
                "own",
                "http://own:9090",
                username="twgen",
                password_file="/etc/password",  # noqa: S106 - its name
            ),
        ),
    )


names = st.text(min_size=1, max_size=5)
# Hypothesis also draws words that it finds in the code, such as the kinds that are refused
allowed_kinds = st.from_regex(r"[A-Za-z][-A-Za-z0-9]*", fullmatch=True).filter(
    lambda kind: kind not in NEVER_ATTACHED
)
groups = st.just("") | st.from_regex(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?", fullmatch=True)
paths = names.filter(lambda name: ":" not in name).map(lambda name: f"/{name}")
texts = st.dictionaries(names, names)
operators = st.builds(
    Operator,
    instance=st.sampled_from(("", "prod-eu", "a/b.c_d")),
    temporal=st.builds(
        TemporalProfiles,
        st.just("") | paths,
        st.lists(st.builds(ProfileGrant, names, st.lists(st.text(max_size=5)).map(tuple))).map(tuple),
    ),
    clusters=st.lists(
        st.builds(ClusterOfApplications, names, st.text(max_size=5), paths, names, st.just(value=False))
        | st.builds(
            ClusterOfApplications, names, st.text(max_size=5), st.just(""), st.just(""), st.just(value=True)
        )
    ).map(tuple),
    rollout=st.builds(
        RolloutPod,
        driver=st.sampled_from((Driver.AUTO, Driver.JOB, Driver.TICK)),
        image=st.sampled_from(("", "registry.example.com/twgen:1.0")),
        labels=texts,
        annotations=texts,
        node_selector=texts,
        image_pull_secrets=st.lists(st.fixed_dictionaries({"name": names})).map(tuple),
        tolerations=st.lists(st.fixed_dictionaries({"key": names})).map(tuple),
        resources=st.just({}) | st.just({"requests": {"cpu": "1"}}),
        ca_bundle=st.none() | st.just(CaBundle("temporal-ca", "tls.pem")),
        requests=st.lists(st.sampled_from((Verb.PROMOTE, Verb.RETRY))).map(tuple),
    ),
    attached=st.builds(AttachedKinds, st.lists(st.builds(GroupKind, groups, allowed_kinds)).map(tuple)),
    prometheus=st.lists(
        st.builds(
            PrometheusServer,
            name=st.from_regex(r"[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True),
            url=st.sampled_from(("http://a:9090", "https://[::1]/b/", "https://a.example.com:8443/c.d/%20")),
            projects=st.lists(st.text(max_size=5)).map(tuple),
            bearer_token_file=paths,
            headers=st.dictionaries(st.sampled_from(("X-A", "THANOS-TENANT")), st.just("a b"), min_size=1),
            username=st.just(""),
            password_file=st.just(""),
            ca_file=paths,
            secret_name=st.just("prometheus"),
            secret_folder=st.just(""),
        ),
        unique_by=lambda server: server.name,
    ).map(tuple),
)


@given(operators)
def test_configuration_is_read_as_it_was_written(operator: Operator) -> None:
    document = OPERATOR_CONFIG.write(operator)
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


def test_kind_without_a_namespace_is_refused() -> None:
    attached = {"kinds": [{"group": "scheduling.k8s.io", "kind": "PriorityClass"}]}
    why = "scheduling.k8s.io/PriorityClass is cluster-scoped, so no version can have its own"
    assert problems(attached=attached) == [f"attached.kinds[0].kind: {why}: remove it"]


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
        *(
            ({"instance": name}, f"instance: {name!r} is not the name of an Argo CD")
            for name in (
                "${ENV}",
                "{{ .Values.env }}",
                "<instance>",
                "/",
                "prod ",
                "twgen/prod",
                "a//b",
                "a/",
            )
        ),
        ({"temporal": {"profiles": [{"projects": ["a"]}]}}, "temporal.profiles[0].name: is required"),
        (
            {"temporal": {"profiles": [{"name": "a", "project": "b"}]}},
            "temporal.profiles[0].project: no",
        ),
        ({"clusters": [{"inCluster": True}]}, "clusters[0].project: is required"),
        ({"clusters": [{"project": "a"}]}, "clusters[0]: needs either kubeconfig or `inCluster: true`"),
        ({"clusters": [{"project": "a", "kubeconfig": "/f"}]}, "clusters[0].context: must be set"),
        (
            {"clusters": [{"project": "a", "inCluster": True, "context": "c"}]},
            "clusters[0].context: must be set if kubeconfig is set, and only then",
        ),
        ({"temporal": {"configFile": "t.toml"}}, "temporal.configFile: 't.toml' is not an absolute path"),
        (
            {"clusters": [{"project": "a", "kubeconfig": "/f:g", "context": "c"}]},
            "clusters[0].kubeconfig: '/f:g' is not an absolute path",
        ),
        ({"rollout": {"toleration": []}}, "rollout.toleration: no such field; did you mean tolerations?"),
        ({"rollout": {"resources": {"limits": {"memory": "much"}}}}, "rollout.resources.limits.memory: "),
        ({"rollout": {"nodeSelector": {"a": True}}}, "rollout.nodeSelector.a: must be a string"),
        ({"rollout": {"caBundle": {"configMap": "A"}}}, "rollout.caBundle.configMap: 'A' is not the name of"),
        (
            {"attached": {"kinds": ["apps/Job"]}},
            "attached.kinds[0]: must be a mapping such as {group: monitoring.coreos.com,",
        ),
        (
            {"attached": {"kinds": [{"group": "apps/v1", "kind": "A"}]}},
            "attached.kinds[0].group: 'apps/v1' is",
        ),
        ({"attached": {"kinds": [{"kind": "a b"}]}}, "attached.kinds[0].kind: 'a b' is not a kind, such as"),
        ({"rollout": {"image": "twgen: 1"}}, "rollout.image: 'twgen: 1' is not an image, such as"),
        (
            {"clusters": [{"project": "a", "kubeconfig": "/f", "context": "c", "inCluster": True}]},
            "clusters[0]: needs either kubeconfig or `inCluster: true`, not both",
        ),
    ],
)
def test_mistake_is_told_at_its_path(changes: dict[str, Any], problem: str) -> None:
    assert any(found.startswith(problem) for found in problems(**changes)), problems(**changes)
    assert not SCHEMA.is_valid({**WHOLE, **changes})


def test_field_that_no_pod_has_is_told_where_a_schema_does_not_know_it() -> None:
    assert problems(rollout={"tolerations": [{"kee": "a"}]}) == [
        "rollout.tolerations[0].kee: is not a field of a pod template; did you mean key?"
    ]


def test_document_that_is_no_mapping_is_a_problem() -> None:
    assert parse_operator(["a"])[1]


def test_prometheus_is_used_by_projects_that_are_granted_it() -> None:
    operator = whole()
    shared, _ = operator.prometheus
    assert operator.prometheus_of(Application("any", "payments")) == (shared,)
    assert operator.prometheus_of(Application("any", "team-a")) == (shared,)
    assert operator.prometheus_of(Application("payments", "shop")) == ()


def a_prometheus(**fields: Any) -> dict[str, Any]:
    return {"prometheus": [{"name": "a", "url": "http://a:9090", **fields}]}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        *(
            ({"url": url}, f"prometheus[0].url: {quoted(url)} is not an address such as https")
            for url in (
                "ftp://a",
                "a:9090",
                "http://user:pass@a",
                "http://a?tenant=b",
                "http://a/b#c",
                "http://a\nb",
                "http://a b",
                "http://",
                "HTTP://a",
            )
        ),
        ({"url": None}, "prometheus[0].url: is required"),
        ({"name": "A"}, "prometheus[0].name: 'A' is not a name such as shared"),
        ({"name": "../a"}, "prometheus[0].name: '../a' is not a name such as shared"),
        ({"name": "a" * 64}, "prometheus[0].name: "),
        ({"bearerTokenFile": "token"}, "prometheus[0].bearerTokenFile: 'token' is not an absolute path"),
        ({"caFile": "../ca.crt"}, "prometheus[0].caFile: '../ca.crt' is not an absolute path"),
        ({"passwordFile": "p", "username": "u"}, "prometheus[0].passwordFile: 'p' is not an absolute path"),
        ({"username": "u"}, "prometheus[0]: needs both username and passwordFile, or neither"),
        ({"passwordFile": "/p"}, "prometheus[0]: needs both username and passwordFile, or neither"),
        (
            {"bearerTokenFile": "/t", "username": "u", "passwordFile": "/p"},
            "prometheus[0]: has bearerTokenFile and username: set only one of them",
        ),
        ({"username": "a:b", "passwordFile": "/p"}, "prometheus[0].username: 'a:b' is not a user name"),
        *(
            ({"headers": {name: "a"}}, f"prometheus[0].headers.{name}: {name!r} is not an allowed header")
            for name in ("Authorization", "AUTHORIZATION", "cookie", "Proxy-Authorization")
        ),
        ({"headers": {"X-A": "a\r\nB: c"}}, "prometheus[0].headers.X-A: 'a\\r\\nB: c' is not a header value"),
        ({"headers": {"X-A: b": "a"}}, "prometheus[0].headers"),
        ({"headers": {"X-A": 1}}, "prometheus[0].headers.X-A: must be a string"),
        ({"headers": ["X-A"]}, "prometheus[0].headers: must be a mapping, not a list"),
        ({"secretName": "A"}, "prometheus[0].secretName: 'A' is not the name of a Secret"),
        ({"token": "secret"}, "prometheus[0].token: no such field"),
    ],
)
def test_prometheus_that_could_not_be_asked_safely_is_refused(fields: dict[str, Any], problem: str) -> None:
    changes = a_prometheus(**fields)
    assert any(found.startswith(problem) for found in problems(**changes)), problems(**changes)
    assert not SCHEMA.is_valid({**WHOLE, **changes})


def test_name_of_a_prometheus_is_given_once() -> None:
    [one] = a_prometheus()["prometheus"]
    assert problems(prometheus=[one, one]) == ["prometheus[1]: Prometheus a appears twice, first at [0]"]


def test_intent_has_no_project_and_no_file_of_where_it_was_rendered() -> None:
    shared, own = whole().prometheus
    lines = write_servers(map(server_of_intent, (shared, own)))
    assert [json.loads(line) for line in lines] == [
        {"name": "shared", "url": shared.url, "headers": shared.headers, "secretName": "prometheus"},
        {"name": "own", "url": "http://own:9090"},
    ]
    told = {"headers": shared.headers, "secret_name": "prometheus"}
    assert parse_servers(lines) == (
        PrometheusServer("shared", shared.url, **told),
        PrometheusServer("own", own.url),
    )


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "must be a mapping, not a list"),
        ('{"name": "a"}', "url: is required"),
        ('{"name": "../a", "url": "http://a"}', "name: '../a' is not a name such as"),
        ('{"name": "a", "url": "file:///etc/passwd"}', "url: 'file:///etc/passwd' is not an address"),
        (
            '{"name": "a", "url": "http://a", "bearerTokenFile": "/etc/token"}',
            "bearerTokenFile: no such field",
        ),
        ('{"name": "a", "url": "http://a", "headers": {"Authorization": "b"}}', "headers.Authorization: "),
    ],
)
def test_server_of_an_intent_is_checked_as_the_operators_is(line: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        parse_servers([line])


def test_intent_with_servers_without_end_is_refused() -> None:
    line = '{"name": "a", "url": "http://a"}'
    assert len(parse_servers([line] * 20)) == 20
    with pytest.raises(ValueError, match=r"^has more than 20 lines$"):
        parse_servers([line] * 21)
