from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest

from tests.strategies import a_spec
from twgen.errors import InvalidInput
from twgen.model.problem import MOST_TOLD, Document, Problem, did_you_mean
from twgen.model.spec import Gate, GateInput
from twgen.specs.kinds import without_lists
from twgen.specs.parse import Specs, parse_specs
from twgen.specs.spec_document import NamespaceRule

CONNECTION = {
    "apiVersion": "temporal.io/v1alpha1",
    "kind": "Connection",
    "metadata": {"name": "temporal", "namespace": "shop"},
    "spec": {"hostPort": "temporal.example.com:7233"},
}


def worker(**changes: Any) -> dict[str, Any]:
    return {
        "apiVersion": "temporal.io/v1alpha1",
        "kind": "WorkerDeployment",
        "metadata": {"name": "payments", "namespace": "shop"},
        "spec": {
            "workerOptions": {"connectionRef": {"name": "temporal"}, "temporalNamespace": "default"},
            "rollout": {"strategy": "AllAtOnce"},
            "template": {"spec": {"containers": [{"name": "w", "image": "payments:v3"}]}},
            **changes,
        },
    }


def budget(**spec: Any) -> dict[str, Any]:
    limits = {"maxUnavailable": 1, "selector": {"matchLabels": {}}}
    template = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": limits}
    return {
        "apiVersion": "temporal.io/v1alpha1",
        "kind": "WorkerResourceTemplate",
        "metadata": {"name": "budget", "namespace": "shop"},
        "spec": {"workerDeploymentRef": {"name": "payments"}, "template": template} | spec,
    }


def told(problems: Sequence[Problem]) -> list[str]:
    return [f"{problem.path}: {problem.message}" if problem.path else problem.message for problem in problems]


def parsed(*values: Any, rule: NamespaceRule | None = None) -> Specs:
    documents = [Document("f.yaml", index, value) for index, value in enumerate(values)]
    return parse_specs(documents, rule or NamespaceRule())


@pytest.mark.parametrize("kind", ["TemporalWorkerDeployment", "TemporalWorker"])
def test_old_kind_of_a_worker_is_read(kind: str) -> None:
    found = parsed({**worker(), "kind": kind}, CONNECTION)
    assert (found.workers, found.problems) == (parsed(worker(), CONNECTION).workers, ())
    assert told(found.deprecations) == [f"kind: {kind} is now WorkerDeployment"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"rollout": None, "cutover": {"strategy": "AllAtOnce"}}, "spec.cutover: is now spec.rollout"),
        (
            {"workerOptions": {"connection": "temporal", "temporalNamespace": "default"}},
            "spec.workerOptions.connection: is now spec.workerOptions.connectionRef.name",
        ),
    ],
)
def test_old_spelling_means_the_same(old: dict[str, Any], new: str) -> None:
    found = parsed(worker(**old), CONNECTION)
    assert (found.workers, found.problems) == (parsed(worker(), CONNECTION).workers, ())
    assert told(found.deprecations) == [new]


@pytest.mark.parametrize("field", ["customBuildID", "buildID"])
def test_old_spelling_of_a_custom_build_id_is_read(field: str) -> None:
    options = worker()["spec"]["workerOptions"] | {field: "billing-7"}
    (found,) = parsed(worker(workerOptions=options), CONNECTION).workers
    assert (found.build_id, found.has_custom_build_id) == ("billing-7", True)


@pytest.mark.parametrize("kind", ["Connection", "TemporalConnection"])
def test_connection_is_that_of_the_namespace(kind: str) -> None:
    (found,) = parsed(worker(), {**CONNECTION, "kind": kind}).workers
    assert found.connection.host_port == "temporal.example.com:7233"


def test_cluster_connection_serves_every_namespace() -> None:
    cluster = {**CONNECTION, "kind": "ClusterConnection", "metadata": {"name": "temporal"}}
    (found,) = parsed(worker(), cluster).workers
    assert found.connection.host_port == "temporal.example.com:7233"


@pytest.mark.parametrize("reference", ["workerDeploymentRef", "temporalWorkerDeploymentRef", "workerRef"])
def test_attached_resource_belongs_to_its_worker(reference: str) -> None:
    resource = budget()
    resource["spec"][reference] = resource["spec"].pop("workerDeploymentRef")
    (found,) = parsed(worker(), CONNECTION, resource).workers
    assert [attached.name for attached in found.attached] == ["budget"]


def test_old_spelling_of_an_attached_template_is_read() -> None:
    resource = budget()
    resource["spec"]["object"] = resource["spec"].pop("template")
    (found,) = parsed(worker(), CONNECTION, {**resource, "kind": "TemporalWorkerOwnedResource"}).workers
    assert found.attached[0].template["kind"] == "PodDisruptionBudget"


def test_attached_resource_of_nobody_is_a_warning() -> None:
    (warning,) = parsed(worker(), CONNECTION, budget(workerDeploymentRef={"name": "refunds"})).warnings
    assert "refunds" in warning.message


def test_policy_of_the_namespace_is_for_those_without_their_own() -> None:
    policy = {
        "apiVersion": "twgen.io/v1alpha1",
        "kind": "RolloutPolicy",
        "metadata": {"name": "all", "namespace": "shop"},
        "spec": {"identity": "everybody"},
    }
    own = {
        **policy,
        "metadata": {"name": "own", "namespace": "shop"},
        "spec": {"workerRef": {"name": "payments"}, "identity": "payments"},
    }
    other = worker()
    other["metadata"] = {"name": "refunds", "namespace": "shop"}
    payments, refunds = parsed(worker(), other, CONNECTION, policy, own).workers
    assert (payments.policy.identity, refunds.policy.identity) == ("payments", "everybody")


def test_documents_of_others_pass_through_in_their_order() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}}
    found = parsed(service, worker(), role, CONNECTION)
    assert [document.value for document in found.passthrough] == [service, role]


@pytest.mark.parametrize("kind", ["Snapshot", "Ledger", "Plan", "Status", "RolloutPolicy", "Whatever"])
def test_kind_of_twgen_never_passes_through(kind: str) -> None:
    found = parsed(
        {"apiVersion": "twgen.io/v1alpha1", "kind": kind, "metadata": {"name": "x", "namespace": "n"}}
    )
    assert found.passthrough == ()


def test_document_without_kind_is_left_out_with_a_warning() -> None:
    found = parsed({"replicas": 3})
    assert found.passthrough == ()
    assert [warning.message for warning in found.warnings] == ["has no apiVersion and kind: left out"]


def test_namespace_is_that_of_the_document_or_the_default() -> None:
    bare = worker()
    del bare["metadata"]["namespace"]
    assert parsed(bare, CONNECTION, rule=NamespaceRule("shop")).workers[0].namespace == "shop"
    assert parsed(worker(), CONNECTION, rule=NamespaceRule("other")).workers[0].namespace == "shop"
    assert parsed(bare, CONNECTION).problems


def test_another_namespace_than_the_applications_is_refused() -> None:
    (problem, *_) = parsed(worker(), CONNECTION, rule=NamespaceRule("other", only=True)).problems
    assert (problem.path, problem.message) == (
        "metadata.namespace",
        "'shop' is not 'other', the application's own",
    )


def test_name_that_temporal_refuses_is_refused() -> None:
    dotted = worker()
    dotted["metadata"]["name"] = "payments.eu"
    assert told(parsed(dotted, CONNECTION).problems) == [
        "metadata.name: Temporal refuses a dot in the name of a worker: write 'payments-eu'"
    ]


def test_defaults_of_a_worker() -> None:
    found = a_spec()
    assert found.progress_deadline_seconds == 600
    assert found.sunset.scaledown_delay.total_seconds() == 3600
    assert found.sunset.delete_delay.total_seconds() == 86400


@pytest.mark.parametrize("image", ["payments", "payments:latest", "registry:5000/payments"])
def test_image_that_can_change_under_its_build_id_is_a_warning(image: str) -> None:
    template = {"spec": {"containers": [{"name": "w", "image": image}]}}
    (warning,) = parsed(worker(template=template), CONNECTION).warnings
    assert warning.path == "spec.template.spec.containers[0].image"


@pytest.mark.parametrize("image", ["payments:v3", "payments@sha256:" + "a" * 64])
def test_image_that_cannot_change_is_none(image: str) -> None:
    template = {"spec": {"containers": [{"name": "w", "image": image}]}}
    assert parsed(worker(template=template), CONNECTION).warnings == ()


def policy(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "twgen.io/v1alpha1",
        "kind": "RolloutPolicy",
        "metadata": {"name": "policy", "namespace": "shop"},
        "spec": spec,
    }


def test_credentials_of_rollouts_without_a_connection_that_needs_any_are_warned_of() -> None:
    reference = policy(controlPlaneSecretRef={"name": "temporal"})
    (warning,) = parsed(worker(), CONNECTION, reference).warnings
    assert (warning.path, "no effect" in warning.message) == ("spec.workerOptions.connectionRef", True)


def test_policy_whose_every_field_is_used_is_not_warned_of() -> None:
    used = policy(
        driver="Hook",
        holdFor="1m",
        serviceAccountName="ours",
        identity="shop",
        history=["Cluster"],
        maxVersions=9,
        adoptFrom=["a", "b"],
    )
    found = parsed(used)
    assert (found.problems, found.warnings) == ((), ())


def test_identity_that_brings_its_own_prefix_is_warned_of() -> None:
    assert told(parsed(policy(identity="twgen/shop")).warnings) == [
        "spec.identity: twgen/ is put before it: the manager is twgen/twgen/shop"
    ]


@pytest.mark.parametrize(
    ("written", "gate"),
    [
        ({"input": {"order": 1}}, Gate("Check", {"order": 1})),
        (
            {"inputFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            Gate("Check", None, GateInput("Secret", "s", "k")),
        ),
        (
            {"inputFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
            Gate("Check", None, GateInput("ConfigMap", "c", "k")),
        ),
    ],
)
def test_gate_has_its_input_from_the_spec_a_config_map_or_a_secret(
    written: dict[str, Any], gate: Gate
) -> None:
    rollout = {"strategy": "AllAtOnce", "gate": {"workflowType": "Check", **written}}
    found = parsed(worker(rollout=rollout), CONNECTION)
    assert (found.warnings, found.workers[0].rollout.gate) == ((), gate)


@pytest.mark.parametrize("strategy", ["Manual", "AllAtOnce"])
def test_steps_of_a_strategy_that_has_none_are_warned_of(strategy: str) -> None:
    rollout = {"strategy": strategy, "steps": [{"rampPercentage": 5, "pauseDuration": "1m"}]}
    assert told(parsed(worker(rollout=rollout), CONNECTION).warnings) == [
        f"spec.rollout.steps: have no effect: strategy {strategy} has no steps"
    ]


@pytest.mark.parametrize("missing", [{"spec": None}, {"spec": []}, {"spec": {}}, {"metadata": None}])
@pytest.mark.parametrize("document", [worker(), CONNECTION, budget()])
def test_what_is_missing_is_told_where_it_is_missing_and_nowhere_else(
    document: dict[str, Any], missing: dict[str, Any]
) -> None:
    others = [other for other in (worker(), CONNECTION, budget()) if other["kind"] != document["kind"]]
    found = parsed({**document, **missing}, *others)
    assert {problem.document.index for problem in found.problems} == {0}
    paths = [problem.path for problem in found.problems]
    assert not any(longer.startswith(f"{path}.") for path in paths for longer in paths)


def test_item_of_a_list_is_a_document_and_its_problems_name_its_place() -> None:
    broken = worker(replicas="2")
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    whole = {"apiVersion": "v1", "kind": "List", "items": [service, CONNECTION, broken, None]}
    found = parse_specs(list(without_lists(Document("f.yaml", 0, whole))), NamespaceRule())
    assert [document.value for document in found.passthrough] == [service]
    assert told(found.problems) == ["items[2].spec.replicas: must be a whole number, not a string"]
    assert told(found.warnings) == ["items[3]: has no apiVersion and kind: left out"]


def test_items_of_a_list_of_one_kind_are_of_that_kind() -> None:
    bare = {"metadata": {"name": "s"}}
    whole = {"apiVersion": "v1", "kind": "ServiceList", "items": [bare]}
    nested = {"apiVersion": "v1", "kind": "List", "items": [whole]}
    (item,) = without_lists(Document("f.yaml", 0, nested))
    assert item.value == {"apiVersion": "v1", "kind": "Service", **bare}
    assert item.path == "items[0].items[0]"


def test_list_without_items_is_refused() -> None:
    found = parsed({"apiVersion": "v1", "kind": "List"})
    assert (told(found.problems), found.passthrough) == (["items: must be a list"], ())


@pytest.mark.parametrize(
    ("api", "kind", "place", "right"),
    [
        ("temporal.io/v1alpha1", "WorkerDeploymnt", "kind", "; did you mean WorkerDeployment?"),
        ("temporal.io/v1alpha1", "connection", "kind", "; did you mean Connection?"),
        ("temporal.io/v1alpha1", "Zebra", "kind", "temporal.io/v1alpha1 has no kind 'Zebra'"),
        ("temporal.io/v1", "WorkerDeployment", "apiVersion", ": write temporal.io/v1alpha1"),
        ("temporal.io", "Connection", "apiVersion", ": write temporal.io/v1alpha1"),
        ("temporal.io/v1alpha1", "RolloutPolicy", "apiVersion", ": write twgen.io/v1alpha1"),
        ("twgen.io/v1alpha1", "RolloutPolicies", "kind", "; did you mean RolloutPolicy?"),
        ("twgen.io/v2", "Snapshot", "apiVersion", ": write twgen.io/v1alpha1"),
        ("temporalio/v1alpha1", "WorkerDeployment", "apiVersion", ": write temporal.io/v1alpha1"),
        ("Temporal.io/v1alpha1", "WorkerDeployment", "apiVersion", ": write temporal.io/v1alpha1"),
        ("apps/v1", "WorkerDeployment", "apiVersion", ": write temporal.io/v1alpha1"),
    ],
)
def test_kind_or_version_that_is_none_of_ours_is_refused_with_the_right_one(
    api: str, kind: str, place: str, right: str
) -> None:
    found = parsed({"apiVersion": api, "kind": kind, "metadata": {"name": "a", "namespace": "b"}, "spec": {}})
    (problem,) = found.problems
    assert (problem.path, found.passthrough) == (place, ())
    assert problem.message.endswith(right)


NUMBER = "must be a string, not a whole number; put it in quotes"
APIVERSION = "temporal.io/v1alpha1; did you mean apiVersion where it says 'apiversion'?"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"apiVersion": "temporal.io/v1alpha1", "knid": "Connection"}, "kind: is required"),
        (
            {"apiVersion": "temporal.io/v1alpha1", "kinds": "Connection"},
            "kind: is required; did you mean kind where it says 'kinds'?",
        ),
        (
            {"apiversion": "temporal.io/v1alpha1", "kind": "Connection"},
            f"apiVersion: is required: {APIVERSION}",
        ),
        (
            {"apiVersion": 1, "kind": "Service"},
            "apiVersion: must be a string, not a whole number; put it in quotes",
        ),
        (
            {"apiVersion": True, "kind": "List"},
            "apiVersion: must be a string, not true or false; put it in quotes",
        ),
        ({"apiVersion": "v1", "kind": ["Service"]}, "kind: must be a string, not a list"),
    ],
)
def test_mistyped_mark_of_a_document_is_refused(document: dict[str, Any], message: str) -> None:
    found = parsed(document)
    assert (told(found.problems), found.passthrough, found.warnings) == ([message], (), ())


def test_mistyped_mark_of_anybodys_document_is_warned_of() -> None:
    assert told(parsed({"apiversion": "v1", "kind": "Service"}).warnings) == [
        "has no apiVersion: left out; did you mean apiVersion where it says 'apiversion'?"
    ]


@pytest.mark.parametrize(
    ("api", "kind"),
    [
        ("temporal.io/v1beta1", "TemporalCluster"),  # another project's, in the same group
        ("example.com/v1", "Connection"),
        ("upgrade.cattle.io/v1", "Plan"),
        ("apps/v1", "Deployment"),
    ],
)
def test_kind_of_somebody_else_passes_through(api: str, kind: str) -> None:
    found = parsed({"apiVersion": api, "kind": kind, "metadata": {"name": "a"}})
    assert (len(found.passthrough), found.problems) == (1, ())


def test_mistyped_top_level_key_is_told_with_a_suggestion() -> None:
    mistyped = {**CONNECTION, "spce": {}, "meta": {}}
    assert told(parsed(mistyped).unknown_fields) == [
        "spce: no such field; did you mean spec?",
        "meta: no such field; did you mean metadata?",
    ]


@pytest.mark.parametrize(
    ("file", "document", "message"),
    [
        ("a/Chart.yaml", {"apiVersion": "v2"}, "is a chart of Helm: run `helm template a | twgen render -`"),
        ("kustomization.yaml", {}, "is for kustomize: run `kustomize build . | twgen render -`"),
        (
            "my app/k.yaml",
            {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"},
            "is for kustomize: run `kustomize build 'my app' | twgen render -`",
        ),
    ],
)  # fmt: skip
def test_input_of_another_tool_says_which_command_to_run_first(
    file: str, document: dict[str, Any], message: str
) -> None:
    found = parse_specs([Document(file, 0, document)], NamespaceRule())
    assert (told(found.problems), found.passthrough) == ([message], ())


def test_kustomization_of_flux_is_an_object_of_the_cluster() -> None:
    found = parsed({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {}})
    assert len(found.passthrough) == 1


def test_values_beside_a_chart_are_not_told_again() -> None:
    chart = Document("app/Chart.yaml", 0, {"apiVersion": "v2", "name": "pay"})
    values = Document("app/values.yaml", 0, {"replicas": 2})
    assert parse_specs([chart, values], NamespaceRule()).warnings == ()
    assert told(parse_specs([values], NamespaceRule()).warnings) == [
        "has no apiVersion and kind: left out; values of Helm are for `helm template`"
    ]


@pytest.mark.parametrize("namespace", ["Shop", "a.b", "x" * 64, "a\n"])
def test_default_namespace_is_checked_as_kubernetes_does(namespace: str) -> None:
    with pytest.raises(InvalidInput, match="is no Kubernetes namespace"):
        NamespaceRule(namespace)


def test_old_spelling_never_hides_a_reference_of_the_wrong_type() -> None:
    options = {"connection": "temporal", "connectionRef": "temporal", "temporalNamespace": "default"}
    found = told(parsed(worker(workerOptions=options), CONNECTION).problems)
    assert any("means the same as spec.workerOptions.connectionRef.name" in text for text in found)
    assert "spec.workerOptions.connectionRef: must be a mapping, not a string" in found


def test_rollout_is_checked_by_itself_also_after_one_that_is_equal() -> None:
    def rollout(percentage: object) -> dict[str, Any]:
        steps = [{"rampPercentage": percentage, "pauseDuration": "30s"}]
        return worker(rollout={"strategy": "Progressive", "steps": steps})

    for percentage in (1, True, 1, 1.5, 1.5):
        found = parsed(rollout(percentage), CONNECTION)
        assert bool(found.problems) == (percentage is True)
        assert bool(found.warnings) == (percentage == 1.5)
        assert found.problems or [step.percentage for step in found.workers[0].rollout.steps] == [percentage]


MANY = range(20_000)
PORTS = [{"containerPort": 0} for _ in MANY]
CONTAINER = {"name": "w", "image": "i:v1"}
UNKNOWN = {f"u{number}": 1 for number in MANY}


@pytest.mark.parametrize(
    "documents",
    [
        [worker(template={"spec": {"containers": [CONTAINER], **UNKNOWN}}), CONNECTION],
        [
            worker(template={"spec": {"containers": [{"name": "w", "image": "i:v1", "ports": PORTS}]}}),
            CONNECTION,
        ],
        [worker(rollout={"strategy": "Progressive", "steps": [], **UNKNOWN}), CONNECTION],
        [worker(), CONNECTION | UNKNOWN],
        [worker(), CONNECTION | {"spec": CONNECTION["spec"] | UNKNOWN}],
        [worker(metadata=1), {**CONNECTION, "metadata": {"name": "c", "labels": UNKNOWN}}],
    ],
    ids=["pod template", "ports", "rollout", "top level", "spec", "labels"],
)
def test_of_many_mistakes_in_one_document_the_first_are_told_and_that_there_are_more(
    documents: list[dict[str, Any]],
) -> None:
    found = parsed(*documents)
    doubts = [*found.problems, *found.unknown_fields]
    assert MOST_TOLD < len(doubts) <= 2 * MOST_TOLD
    assert sum(problem.message.startswith("and more from here on") for problem in doubts) == 1


def test_mistakes_in_many_documents_share_what_is_told() -> None:
    wrong = [
        {**CONNECTION, "metadata": {"name": f"c{number}"}, **dict.fromkeys("abcdefgh", 1)}
        for number in range(2000)
    ]
    found = parsed(*wrong, rule=NamespaceRule("shop"))
    assert len(wrong) < len(found.unknown_fields) <= 12_000


def test_a_similar_name_is_looked_for_among_few() -> None:
    assert did_you_mean("replica", (f"{number}" for number in count())) == ""


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        ({"hostPort": "https://user:hunter2@host"}, "'...@host'"),
        ({"hostPort": f"user:hunter2{'x' * 200}@host:7233"}, "'...@host:7233'"),
        ({"hostPort": "a:7233", "tls": {"serverName": "hunter2@x@host"}}, "'...@host'"),
        ({"hostPort": "a:7233", "apiKeySecretRef": {"name": "hunter2 is it", "key": "k"}}, "is not a name"),
        ({"hostPort": "a:7233", "apiKeySecretRef": {"name": "s", "key": "hunter2/="}}, "is not a key"),
        ({"hostPort": "a:7233", "mutualTLSSecretRef": {"name": "hunter2" * 200}}, "longer than 253"),
    ],
)
def test_credentials_in_a_wrong_place_are_never_printed(spec: dict[str, Any], shown: str) -> None:
    (message,) = told(parsed({**CONNECTION, "spec": spec}).problems)
    assert shown in message
    assert "hunter2" not in message


@pytest.mark.parametrize(
    ("image", "wrong"),
    [
        ("payments:${TAG}", "holds a variable that nothing has filled in"),
        ("payments:$(TAG)", "holds a variable that nothing has filled in"),
        ("payments:{{ .Values.tag }}", "holds a variable that nothing has filled in"),
        ("payments:v1\x07", "is no image"),
        ("payments:v1\u202e", "is no image"),
        (" payments:v1", "is no image"),
    ],
)
@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_image_that_no_node_can_find_is_refused(field: str, image: str, wrong: str) -> None:
    pod = {"containers": [CONTAINER], field: [{"name": "x", "image": image}]}
    found = parsed(worker(template={"spec": pod}), CONNECTION)
    (message,) = told(found.problems)
    assert message.startswith(f"spec.template.spec.{field}[0].image: ")
    assert wrong in message


def test_image_with_a_registry_a_port_and_a_digest_is_one() -> None:
    image = f"[::1]:5000/A_b/c.d-e:v1.0@sha256:{'a' * 64}"
    template = {"spec": {"containers": [{"name": "x", "image": image}]}}
    assert parsed(worker(template=template), CONNECTION).problems == ()


@pytest.mark.parametrize(
    ("pod", "place"),
    [
        ({"containers": []}, "containers"),
        ({"containers": [{"name": "w", "image": ""}]}, "containers[0].image"),
    ],
)
def test_what_is_there_and_empty_is_told_to_be_empty(pod: dict[str, Any], place: str) -> None:
    found = parsed(worker(template={"spec": pod}), CONNECTION)
    assert told([*found.problems, *found.unknown_fields]) == [
        f"spec.template.spec.{place}: must not be empty"
    ]


def scaler(name: str, kind: str, api: str, **spec: Any) -> dict[str, Any]:
    template = {"apiVersion": api, "kind": kind, "spec": {"scaleTargetRef": {}, **spec}}
    return {**budget(template=template), "metadata": {"name": name, "namespace": "shop"}}


def test_two_autoscalers_of_one_worker_are_refused_with_both_places() -> None:
    hpa = scaler("cpu", "HorizontalPodAutoscaler", "autoscaling/v2", maxReplicas=5)
    trigger = {"type": "cpu", "metadata": {"value": "50"}, "metricType": "Utilization"}
    keda = scaler("backlog", "ScaledObject", "keda.sh/v1alpha1", triggers=[trigger])
    for both in ([hpa, keda], [keda, {**hpa, "spec": {**hpa["spec"]}}]):
        found = parsed(worker(), CONNECTION, *both)
        (problem,) = found.problems
        first, second = (item["metadata"]["name"] for item in both)
        assert problem.message.startswith(f"{second} and {first} would both set the replicas of payments")
        assert (problem.document.index, problem.path) == (3, "spec.template")
        assert problem.other
        assert (problem.other.document.index, problem.other.path) == (2, "spec.template")
    other = {**hpa, "spec": {**hpa["spec"], "workerDeploymentRef": {"name": "refunds"}}}
    assert parsed(worker(), CONNECTION, keda, other).problems == ()


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        ("Canary", "'Canary' is not one of Manual, AllAtOnce, Progressive; steps are of Progressive"),
        ("progressive", "is not one of Manual, AllAtOnce, Progressive; did you mean Progressive?"),
    ],
)
def test_unknown_strategy_is_the_only_mistake_told(strategy: str, message: str) -> None:
    steps = [{"rampPercentage": 5, "pauseDuration": "30s"}]
    found = parsed(worker(rollout={"strategy": strategy, "steps": steps}), CONNECTION)
    assert len(found.problems) == 1
    assert message in found.problems[0].message
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [("Snapshot", "--snapshot"), ("OperatorConfig", "--operator-config"), ("Plan", "is no spec")],
)
def test_record_in_place_of_specs_says_what_it_is_and_where_it_belongs(kind: str, remedy: str) -> None:
    record = {"apiVersion": "twgen.io/v1alpha1", "kind": kind}
    (warning,) = told(parsed(record).warnings)
    assert warning.startswith(f"kind: a {kind} is no spec")
    assert remedy in warning
    assert parsed(record, worker(), CONNECTION).warnings == ()


def test_only_keda_brings_pods_back_from_zero() -> None:
    hpa = scaler("cpu", "HorizontalPodAutoscaler", "autoscaling/v2", maxReplicas=5)
    keda = scaler("backlog", "ScaledObject", "keda.sh/v1alpha1", triggers=[])
    for document, scales_from_zero in ((hpa, False), (keda, True)):
        [attached] = parsed(worker(), CONNECTION, document).workers[0].attached
        assert (attached.autoscales, attached.scales_from_zero) == (True, scales_from_zero)
