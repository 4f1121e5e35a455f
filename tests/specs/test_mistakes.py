"""A mistake is told once, where it is, and in words that help."""

from itertools import count
from typing import Any

import pytest

from tests.specs.parsing import CONNECTION, budget, parsed, policy, scaler, told, worker
from twgen.model.problem import MOST_REPORTED, did_you_mean
from twgen.specs.connections import local_addresses
from twgen.specs.parse import Specs
from twgen.specs.spec_document import NamespaceRule

MANY = range(20_000)
PORTS = [{"containerPort": 0} for _ in MANY]
CONTAINER = {"name": "w", "image": "i:v1"}
UNKNOWN = {f"u{number}": 1 for number in MANY}


def with_image(image: str) -> Specs:
    return parsed(worker(template={"spec": {"containers": [CONTAINER | {"image": image}]}}), CONNECTION)


@pytest.mark.parametrize("missing", [{"spec": None}, {"spec": "absent"}])
def test_policy_without_a_spec_is_no_policy_of_all_workers(missing: dict[str, Any]) -> None:
    document = {name: item for name, item in {**policy(), **missing}.items() if item != "absent"}
    assert told(parsed(worker(), CONNECTION, document).problems) == ["spec: is required"]
    assert parsed(worker(), CONNECTION, policy()).problems == ()


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


def test_old_spelling_never_hides_a_reference_of_the_wrong_type() -> None:
    options = {"connection": "temporal", "connectionRef": "temporal", "temporalNamespace": "default"}
    found = told(parsed(worker(workerOptions=options), CONNECTION).problems)
    assert any("means the same as spec.workerOptions.connectionRef.name" in text for text in found)
    assert "spec.workerOptions.connectionRef: must be a mapping, not a string" in found


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
    assert MOST_REPORTED < len(doubts) <= 2 * MOST_REPORTED
    assert sum(problem.message.startswith("there are more") for problem in doubts) == 1


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
        ("payments:${TAG}", "contains a variable that was not filled in"),
        ("payments:$(TAG)", "contains a variable that was not filled in"),
        ("payments:{{ .Values.tag }}", "contains a variable that was not filled in"),
        ("payments:v1\x07", "is not an image"),
        ("payments:v1\u202e", "is not an image"),
        (" payments:v1", "is not an image"),
    ],
)
@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_image_that_no_node_can_find_is_refused(field: str, image: str, wrong: str) -> None:
    pod = {"containers": [CONTAINER], field: [{"name": "x", "image": image}]}
    found = parsed(worker(template={"spec": pod}), CONNECTION)
    (message,) = told(found.problems)
    assert message.startswith(f"spec.template.spec.{field}[0].image: ")
    assert wrong in message


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
    refunds = {**worker(), "metadata": {"name": "refunds", "namespace": "shop"}}
    assert parsed(worker(), CONNECTION, keda, other, refunds).problems == ()


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        ("Canary", "'Canary' is not one of Manual, AllAtOnce, Progressive; only Progressive has steps"),
        ("progressive", "is not one of Manual, AllAtOnce, Progressive; did you mean Progressive?"),
    ],
)
def test_unknown_strategy_is_the_only_mistake_told(strategy: str, message: str) -> None:
    steps = [{"rampPercentage": 5, "pauseDuration": "30s"}]
    found = parsed(worker(rollout={"strategy": strategy, "steps": steps}), CONNECTION)
    assert len(found.problems) == 1
    assert message in found.problems[0].message
    assert found.warnings == ()


def test_cluster_connection_that_is_not_there_is_not_taken_for_one_of_a_namespace() -> None:
    cluster_wide = {"name": "temporal", "kind": "ClusterConnection"}
    options = {"connectionRef": cluster_wide, "temporalNamespace": "default"}
    [text] = told(parsed(worker(workerOptions=options), CONNECTION).problems)
    assert text.endswith(
        "there is no ClusterConnection 'temporal' among the documents: pass its file too, or put the file"
        " next to the spec"
    )


def test_document_of_a_worker_of_another_namespace_says_where_that_is() -> None:
    message = "there is no worker 'payments' in namespace 'shopp' among the documents"
    for orphan, field in (
        (budget(), "workerDeploymentRef"),
        (policy(workerRef={"name": "payments"}), "workerRef"),
    ):
        elsewhere = {**orphan, "metadata": {"name": "b", "namespace": "shopp"}}
        found = parsed(worker(), CONNECTION, elsewhere)
        assert told(found.problems) == [
            f"spec.{field}.name: {message}; there is a worker with this name in namespace 'shop'"
        ]
        assert found.warnings == ()


def test_documents_without_any_worker_are_checked_with_a_warning() -> None:
    """A single file that CI checks, or what is left when the last worker was removed."""
    found = parsed(CONNECTION, budget(), policy(workerRef={"name": "payments"}))
    assert found.problems == ()
    remedy = "write the name of an existing worker, pass the worker's file too, or remove this document"
    message = f"there is no worker 'payments' in namespace 'shop' among the documents: {remedy}"
    assert told(found.warnings) == [
        f"spec.workerDeploymentRef.name: {message}",
        f"spec.workerRef.name: {message}",
    ]


def test_connection_with_an_unnamed_field_refers_to_no_worker() -> None:
    unnamed = {**CONNECTION, "spec": {**CONNECTION["spec"], "": {"name": "orders"}}}
    found = parsed(worker(), unnamed)
    assert found.problems == ()


def test_document_of_a_worker_whose_own_name_is_wrong_is_not_told_of_as_well() -> None:
    misnamed = {**worker(), "metadata": {"name": "Payments", "namespace": "shop"}}
    [problem] = told(parsed(misnamed, CONNECTION, budget()).problems)
    assert problem.startswith("metadata.name: ")


def test_same_worker_and_template_in_two_files_are_told_once_each() -> None:
    again = [worker(), budget(), worker(), budget(), CONNECTION]
    assert [item.path for item in parsed(*again).problems] == ["metadata.name", "metadata.name"]


def test_policy_of_a_namespace_without_workers_has_no_effect_and_says_so() -> None:
    elsewhere = {**policy(), "metadata": {"name": "policy", "namespace": "shopp"}}
    [warning] = parsed(worker(), CONNECTION, elsewhere).warnings
    assert warning.path == "metadata.namespace"
    assert (
        warning.message
        == "there is no worker in namespace 'shopp', so this has no effect; did you mean shop?"
    )
    assert parsed(worker(), CONNECTION, policy()).warnings == parsed(elsewhere).warnings == ()


@pytest.mark.parametrize(
    ("value", "hint"), [("5%", "; remove the %"), ("5", "; remove the quotes"), ("five", "")]
)
def test_number_in_quotes_or_with_its_sign_is_told_how_to_be_written(value: str, hint: str) -> None:
    rollout = {"strategy": "Progressive", "steps": [{"rampPercentage": value, "pauseDuration": "1m"}]}
    [found] = told(parsed(worker(rollout=rollout), CONNECTION).problems)
    assert found == f"spec.rollout.steps[0].rampPercentage: must be a number, not a string{hint}"


def test_two_budgets_of_one_worker_are_refused_since_no_pod_of_both_can_be_evicted() -> None:
    second = {**budget(), "metadata": {"name": "another", "namespace": "shop"}}
    [problem] = told(parsed(worker(), CONNECTION, budget(), second).problems)
    assert problem.startswith("spec.template: another and budget would both protect the pods of payments")


UNFILLED = (
    "${GIT_SHA}",
    "$GIT_SHA",
    "$(GIT_SHA)",
    "{{ .Values.tag }}",
    "${{ github.sha }}",
    "#{Build.BuildId}#",
)


@pytest.mark.parametrize("written", UNFILLED)
def test_build_id_that_nothing_has_filled_in_is_refused(written: str) -> None:
    """Cleaned, it would be one build ID for every image."""
    options = worker()["spec"]["workerOptions"] | {"unsafeCustomBuildID": written}
    [problem] = told(parsed(worker(workerOptions=options), CONNECTION).problems)
    assert problem.startswith("spec.workerOptions.unsafeCustomBuildID: ")
    assert problem.endswith(
        (
            "contains a variable that was not filled in: render the file first",
            "is a Helm template: run `helm template` first",
        )
    )


@pytest.mark.parametrize("written", ["$NS", "${NS}", "$(NS)", "payments-${STAGE}"])
def test_temporal_namespace_that_nothing_has_filled_in_is_refused(written: str) -> None:
    options = worker()["spec"]["workerOptions"] | {"temporalNamespace": written}
    [problem] = told(parsed(worker(workerOptions=options), CONNECTION).problems)
    assert "contains a variable that was not filled in" in problem


def test_type_of_a_gate_may_be_a_class_inside_another() -> None:
    rollout = {"strategy": "AllAtOnce", "gate": {"workflowType": "Gates$Smoke"}}
    assert parsed(worker(rollout=rollout), CONNECTION).problems == ()


def deployed(template: dict[str, Any] | None = None, **deployment: Any) -> dict[str, Any]:
    """A worker whose template stands in its `spec.deployment`."""
    value = worker()
    own = value["spec"].pop("template")
    value["spec"]["deployment"] = {"template": template or own, **deployment}
    return value


@pytest.mark.parametrize(
    ("documents", "place", "none"),
    [
        ([worker(sunset={"deleteDelay": None})], "spec.sunset.deleteDelay", "0"),
        ([worker(), policy(rollbackWindow=None)], "spec.rollbackWindow", "0"),
        ([worker(), policy(driver=None)], "spec.driver", "None"),
        ([worker(), policy(ownerReferences=None)], "spec.ownerReferences", "None"),
    ],
)
def test_null_by_which_somebody_may_mean_none_and_gets_a_default_is_warned_of(
    documents: list[Any], place: str, none: str
) -> None:
    found = parsed(*documents, CONNECTION)
    why = "is null, so the default applies"
    told_of = f"{place}: {why}: write {none} if you mean none, or remove it"
    assert (found.problems, told(found.warnings)) == ((), [told_of])


@pytest.mark.parametrize(
    "documents",
    [
        [worker(replicas=None)],
        [worker(minReadySeconds=None)],
        [deployed(strategy=None)],
        [worker(), policy(drainingReplicas=None, analysis=None, replay=None, workerRef=None)],
    ],
)
def test_null_that_means_what_it_says_is_in_order(documents: list[Any]) -> None:
    found = parsed(*documents, CONNECTION)
    assert found.problems == found.warnings == ()


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ({"template": None}, "spec.template"),
        ({"rollout": None}, "spec.rollout"),
        (
            {"rollout": {"strategy": "Progressive", "steps": [{"rampPercentage": 5, "pauseDuration": None}]}},
            "spec.rollout.steps[0].pauseDuration",
        ),
    ],
)
def test_null_of_what_is_required_is_told_of_once(wrong: dict[str, Any], place: str) -> None:
    found = parsed(worker(**wrong), CONNECTION)
    [problem] = told(found.problems)
    assert problem.startswith(f"{place}: is required")
    assert found.warnings == ()


def test_null_that_a_manifest_has_on_purpose_is_in_order() -> None:
    whole = worker()
    strategy = {"type": "Recreate", "rollingUpdate": None}
    template = {"metadata": {"creationTimestamp": None}, **whole["spec"]["template"]}
    found = parsed(deployed(template, strategy=strategy), CONNECTION)
    metadata = {**whole["metadata"], "labels": None, "annotations": None, "creationTimestamp": None}
    also = parsed({**whole, "metadata": metadata, "status": None}, CONNECTION)
    assert found.problems == found.warnings == also.problems == also.warnings == ()


def test_task_queue_beside_the_options_is_told_to_be_one_of_them() -> None:
    [problem] = told(parsed(worker(taskQueue="payments"), CONNECTION).problems)
    assert problem == "spec.taskQueue: is not read: write spec.workerOptions.taskQueue"


def test_pause_of_less_than_a_second_is_told_once() -> None:
    rollout = {"strategy": "Progressive", "steps": [{"rampPercentage": 5, "pauseDuration": "10ms"}]}
    found = parsed(worker(rollout=rollout), CONNECTION)
    assert told([*found.problems, *found.warnings]) == [
        "spec.rollout.steps[0].pauseDuration: 10ms is shorter than 30s"
    ]


def test_template_of_a_group_of_workers_is_refused() -> None:
    assert told(parsed(worker(), CONNECTION, budget(workerGroup="parse")).problems) == [
        "spec.workerGroup: is not read: a version has one Deployment"
    ]


@pytest.mark.parametrize(
    ("written", "hint"),
    [("5ms", ": write 5m for minutes"), ("500us", ": write 500m for minutes"), ("0.5s", ""), ("1.5ms", "")],
)
@pytest.mark.parametrize("field", ["scaledownDelay", "deleteDelay"])
def test_delay_of_less_than_a_second_is_warned_of(field: str, written: str, hint: str) -> None:
    found = parsed(worker(sunset={field: written}), CONNECTION)
    assert found.problems == ()
    assert told(found.warnings) == [f"spec.sunset.{field}: {written} is less than a second{hint}"]


@pytest.mark.parametrize("written", ["0", "0s", "1s", "90s"])
def test_delay_of_none_or_of_seconds_is_not(written: str) -> None:
    assert parsed(worker(sunset={"scaledownDelay": written}), CONNECTION).warnings == ()


def test_empty_history_is_warned_of() -> None:
    assert told(parsed(policy(history=[])).warnings) == [
        (
            "spec.history: is empty: older versions cannot be rendered, and only prune"
            " protection keeps their Deployments; leave it out for Ledger, Cluster and Git"
        )
    ]


def test_history_that_is_misspelt_is_not_told_to_be_empty() -> None:
    found = parsed(policy(history=["ledger"]))
    assert (len(found.problems), found.warnings) == (1, ())


def test_mark_of_a_pause_on_a_spec_says_where_it_belongs() -> None:
    mark = {"annotations": {"twgen.io/paused": "true"}}
    paused = worker()
    paused["metadata"] |= mark
    place = "metadata.annotations['twgen.io/paused']"
    why = "has no effect on a spec: run `twgen pause`, or annotate"
    assert told(parsed(paused, CONNECTION).warnings) == [
        f"{place}: {why} ConfigMap payments-rollout in the cluster"
    ]
    template = worker()["spec"]["template"] | {"metadata": mark}
    assert told(parsed(worker(template=template), CONNECTION).warnings) == [
        (
            f"spec.template.{place}: has no effect on pods: run `twgen pause`, or annotate ConfigMap"
            " payments-rollout in the cluster"
        )
    ]
    not_a_text = {**paused, "metadata": {**paused["metadata"], "annotations": {"twgen.io/paused": True}}}
    found = parsed(not_a_text, CONNECTION)
    assert (len(found.problems), found.warnings) == (1, ())
    on_policy = policy()
    on_policy["metadata"] |= mark
    assert told(parsed(on_policy).warnings) == [f"{place}: {why} the intent of its rollout"]


@pytest.mark.parametrize(
    "host", ["us-west-2.aws.api.temporal.io", "shop.a1b2c.tmprl.cloud", "a.B.TMPRL.cloud"]
)
def test_address_of_temporal_cloud_asks_for_credentials(host: str) -> None:
    spec: dict[str, Any] = {"hostPort": f"{host}:7233"}
    assert told(parsed({**CONNECTION, "spec": spec}).warnings) == [
        (
            "spec.hostPort: is Temporal Cloud, which requires an API key or a certificate: write"
            " apiKeySecretRef or mutualTLSSecretRef"
        )
    ]
    for credentials in (
        {"mutualTLSSecretRef": {"name": "c"}},
        {"apiKeySecretRef": {"name": "s", "key": "k"}},
    ):
        assert parsed({**CONNECTION, "spec": {**spec, **credentials}}).warnings == ()
    assert parsed({**CONNECTION, "spec": {"hostPort": "tmprl.cloud.example.com:7233"}}).warnings == ()


@pytest.mark.parametrize(
    "image", ["registry/Shop/payments:v1", "Payments:v1", "r.example/Shop@sha256:" + "0" * 64]
)
def test_image_that_no_node_reads_for_its_capital_letters_is_refused(image: str) -> None:
    [found] = told(with_image(image).problems)
    assert found.endswith("is not an image: only its registry and its tag can have capital letters")


@pytest.mark.parametrize(
    "image", ["a:v1+meta", "a:<TAG>", "a:-v1", f"a:{'v' * 129}", "a:feature/foo", "a@sha256:0123"]
)
def test_image_that_no_node_can_read_is_warned_of(image: str) -> None:
    """The controller takes it, and hashes it; `--strict` refuses it."""
    found = with_image(image)
    assert found.problems == ()
    assert any("is not an image that a node can pull" in item for item in told(found.warnings))


@pytest.mark.parametrize(
    "image",
    [
        "Registry.example.com/shop/payments:V1-Final",
        "payments:RC1",
        f"[::1]:5000/a_b/c.d-e:V1.0@sha256:{'a' * 64}",
    ],
)
def test_registry_with_a_port_and_tag_may_have_capital_letters(image: str) -> None:
    assert with_image(image).problems == ()


def test_image_that_is_to_be_filled_in_is_told_once() -> None:
    found = with_image("${IMAGE}")
    assert (len(found.problems), found.warnings) == (1, ())


def test_connection_of_two_workers_is_told_of_once_and_by_its_own_document() -> None:
    local = {**CONNECTION, "spec": {"hostPort": "127.0.0.1:7233"}}
    second = {**worker(), "metadata": {"name": "refunds", "namespace": "shop"}}
    [warning] = local_addresses(parsed(worker(), second, local).workers)
    assert (warning.document.index, warning.path) == (2, "spec.hostPort")
    assert list(local_addresses(parsed(worker(), CONNECTION).workers)) == []


MANY_PODS = "pods are more than one worker needs: check the number"


@pytest.mark.parametrize("number", [4999, 5000, 3_000_000])
def test_number_of_pods_that_nobody_means_is_warned_of(number: int) -> None:
    hpa = scaler("a", "HorizontalPodAutoscaler", "autoscaling/v2", maxReplicas=number)
    keda = scaler("a", "ScaledObject", "keda.sh/v1alpha1", maxReplicaCount=number, minReplicaCount=1)
    keda["spec"]["template"]["spec"]["triggers"] = [{"type": "cron", "metadata": {}}]
    for documents, place in (
        ([worker(replicas=number)], "spec.replicas"),
        ([worker(), policy(drainingReplicas=number)], "spec.drainingReplicas"),
        ([worker(), policy(patches=[{"buildID": "v1", "replicas": number}])], "spec.patches[0].replicas"),
        ([worker(), hpa], "spec.template.spec.maxReplicas"),
        ([worker(), keda], "spec.template.spec.maxReplicaCount"),
    ):
        found = parsed(*documents, CONNECTION)
        assert found.problems == ()
        assert told(found.warnings) == ([f"{place}: {number} {MANY_PODS}"] if number >= 5000 else [])


@pytest.mark.parametrize(
    ("sunset", "doubt"),
    [("17519h", ""), ("17520h", "2 years"), ("87600h", "10 years"), ("8760h", ""), ("0", "")],
)
def test_delay_of_years_is_warned_of(sunset: str, doubt: str) -> None:
    found = told(parsed(worker(sunset={"deleteDelay": sunset}), CONNECTION).warnings)
    said = f"spec.sunset.deleteDelay: {sunset} is {doubt}: check the unit"
    assert found == ([said] if doubt else [])


def test_seconds_of_days_are_warned_of() -> None:
    ready = worker(minReadySeconds=172_800, progressDeadlineSeconds=200_000)
    assert told(parsed(ready, CONNECTION).warnings) == [
        (
            "spec.minReadySeconds: 172800 keeps a rollout waiting for a day or more: check the"
            " number of seconds"
        )
    ]
    for seconds, days in ((30_000_000, 347), (86_400, 0)):
        pod = {"containers": [CONTAINER], "terminationGracePeriodSeconds": seconds}
        found = told(parsed(worker(template={"spec": pod}), CONNECTION).warnings)
        place = "spec.template.spec.terminationGracePeriodSeconds"
        why = f"a node waits {days} days for such a pod to end: check the number of seconds"
        assert found == ([f"{place}: {why}"] if days else [])
