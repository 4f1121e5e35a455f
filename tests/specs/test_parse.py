"""What a document says, in its old and its new words, and what it leaves to its defaults."""

from typing import Any

import pytest

from tests.specs.parsing import CONNECTION, budget, parsed, policy, scaler, told, worker
from tests.strategies import a_spec
from twgen.errors import InvalidInput
from twgen.model.operator import Caller
from twgen.model.spec import Encoding, Gate, GateInput
from twgen.specs.spec_document import NamespaceRule


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


def test_policy_of_the_namespace_is_for_those_without_their_own() -> None:
    own = policy(workerRef={"name": "payments"}, identity="payments")
    other = worker()
    other["metadata"] = {"name": "refunds", "namespace": "shop"}
    payments, refunds = parsed(worker(), other, CONNECTION, policy(identity="everybody"), own).workers
    assert (payments.policy.identity, refunds.policy.identity) == ("payments", "everybody")


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
        "'shop' is not 'other', the application's own namespace",
    )


def test_defaults_of_a_worker() -> None:
    found = a_spec()
    assert found.pace == {"progressDeadlineSeconds": 600}
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


@pytest.mark.parametrize(
    ("after", "wrong"),
    [
        ("1m", "spec.unserved.after: 1m is shorter than 120s"),
        ("6m", "spec.unserved.after: is longer than 5m: Temporal lists a silent poller for only 5 minutes"),
    ],
)
def test_time_in_which_nothing_can_be_told_of_pollers_is_refused(after: str, wrong: str) -> None:
    assert told(parsed(worker(), CONNECTION, policy(unserved={"after": after})).problems) == [wrong]
    found = parsed(worker(), CONNECTION, policy(unserved={"after": "5m", "action": "Pause"}))
    assert (found.problems, found.warnings) == ((), ())


@pytest.mark.parametrize("written", ["twgen/", "/prod", "shop//prod", "shop/"])
def test_identity_with_an_empty_part_is_refused(written: str) -> None:
    [problem] = parsed(worker(), CONNECTION, policy(identity=written)).problems
    assert (problem.path, "one line without empty parts" in problem.message) == ("spec.identity", True)


def test_pattern_among_the_identities_to_take_over_from_is_warned_of() -> None:
    [warning] = parsed(worker(), CONNECTION, policy(adoptFrom=["twgen/*"])).warnings
    assert (warning.path, "not a pattern" in warning.message) == ("spec.adoptFrom[0]", True)


@pytest.mark.parametrize("field", ["history", "workerRef", "identity", "holdFor"])
def test_field_that_is_left_empty_is_absent(field: str) -> None:
    assert parsed(worker(), CONNECTION, policy(**{field: None})).unknown_fields == ()


@pytest.mark.parametrize("written", ["\u201cshop\u201d", "\u2018shop\u2019", "shop\u201d"])
def test_typographic_quotes_around_a_name_are_refused(written: str) -> None:
    options = {"connectionRef": {"name": "temporal"}, "temporalNamespace": written}
    [problem] = parsed(worker(workerOptions=options), CONNECTION).problems
    assert "without spaces or typographic quotes at its ends" in problem.message


@pytest.mark.parametrize("replicas", [0, 3])
def test_replicas_beside_an_autoscaler_are_warned_of(replicas: int) -> None:
    spec = {"scaleTargetRef": {}, "minReplicas": 1, "maxReplicas": 5}
    scaler = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": spec}
    [warning] = parsed(worker(replicas=replicas), CONNECTION, budget(template=scaler)).warnings
    assert (warning.path, warning.message) == (
        "spec.replicas",
        f"{replicas} has no effect: attached template budget sets the replicas; remove one of the two",
    )
    alone = told(parsed(worker(replicas=replicas), CONNECTION, budget()).warnings)
    at_zero = "spec.replicas: is 0: no pods run, even for versions that have traffic or workflows"
    assert alone == ([] if replicas else [at_zero])


@pytest.mark.parametrize(("most", "warned"), [(1, True), (2, False)])
def test_cap_that_leaves_no_room_for_a_new_version_is_warned_of(most: int, *, warned: bool) -> None:
    said = "spec.maxVersions: 1 leaves no room for a new version next to the current one: write 2 or more"
    found = parsed(worker(), CONNECTION, policy(maxVersions=most))
    assert told(found.warnings) == ([said] if warned else [])


def stepwise(pause: str) -> dict[str, Any]:
    return {"strategy": "Progressive", "steps": [{"rampPercentage": 5, "pauseDuration": pause}]}


@pytest.mark.parametrize(
    ("rollout", "driver", "warned"),
    [
        ({"strategy": "Manual"}, "Hook", True),
        (stepwise("1m"), "Hook", True),
        (stepwise("59s"), "Hook", False),
        ({"strategy": "Manual"}, "Job", False),
    ],
)
def test_rollout_that_outlasts_its_hook_is_warned_of(rollout: object, driver: str, *, warned: bool) -> None:
    found = parsed(worker(rollout=rollout), CONNECTION, policy(driver=driver, holdFor="1m"))
    said = (
        "spec.rollout: can take longer than its RolloutPolicy's holdFor, and then only another sync"
        " continues it: driver Job has no such limit"
    )
    assert told(found.warnings) == ([said] if warned else [])


@pytest.mark.parametrize("written", ["shop/ci", "twgen/shop/ci"])
def test_identity_is_one_with_and_without_its_prefix(written: str) -> None:
    found = parsed(worker(), CONNECTION, policy(identity=written))
    assert found.warnings == ()
    [spec] = found.workers
    assert Caller().of(spec.policy) == "twgen/shop/ci"


MESSAGE = {"encoding": "json/protobuf", "messageType": "a.b_1.C"}
FROM = {"inputFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
FROM_MAP = {"inputFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}


@pytest.mark.parametrize(
    ("written", "gate"),
    [
        ({"input": {"order": 1}}, Gate("Check", {"order": 1})),
        (FROM, Gate("Check", None, GateInput("Secret", "s", "k"))),
        (FROM_MAP, Gate("Check", None, GateInput("ConfigMap", "c", "k"))),
        ({"input": 1, "encoding": "json/plain"}, Gate("Check", 1)),
        ({"input": 1, "encoding": "json/protobuf"}, Gate("Check", 1, encoding=Encoding.JSON_MESSAGE)),
        ({"input": 1, **MESSAGE}, Gate("Check", 1, None, Encoding.JSON_MESSAGE, "a.b_1.C")),
        (
            {**FROM, "encoding": "binary/plain"},
            Gate("Check", None, GateInput("Secret", "s", "k"), Encoding.BYTES),
        ),
        ({"input": 1, "messageType": ""}, Gate("Check", 1)),
    ],
)
def test_gate_has_its_input_from_the_spec_a_config_map_or_a_secret(
    written: dict[str, Any], gate: Gate
) -> None:
    rollout = {"strategy": "AllAtOnce", "gate": {"workflowType": "Check", **written}}
    found = parsed(worker(rollout=rollout), CONNECTION)
    assert (found.warnings, found.workers[0].rollout.gate) == ((), gate)


NO_TYPE = "is only for protobuf messages: write encoding json/protobuf or binary/protobuf, or leave it out"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"input": 1, "messageType": "a.B"}, f"messageType: {NO_TYPE}"),
        ({"input": 1, "encoding": "json/plain", "messageType": "a.B"}, f"messageType: {NO_TYPE}"),
        ({**FROM, "encoding": "binary/plain", "messageType": "a.B"}, f"messageType: {NO_TYPE}"),
        ({**FROM, "encoding": "binary/protobuf", "messageType": ""}, "messageType: must not be empty"),
        (
            {**FROM, "encoding": "binary/protobuf", "messageType": ".a.B"},
            "messageType: '.a.B' is not the full name of a protobuf message, such as shop.v1.Order",
        ),
        (
            {"encoding": "binary/protobuf", "messageType": "a.B"},
            "encoding: binary/protobuf needs bytes, which a spec cannot contain: write inputFrom",
        ),
        (
            {**FROM, "encoding": "binary/null", "messageType": "a.B"},
            f"encoding: 'binary/null' is not one of {', '.join(Encoding)}; did you mean binary/plain?",
        ),
    ],
)
def test_what_a_gate_says_of_its_input_must_be_true_of_it(written: dict[str, Any], said: str) -> None:
    rollout = {"strategy": "AllAtOnce", "gate": {"workflowType": "Check", **written}}
    assert told(parsed(worker(rollout=rollout), CONNECTION).problems) == [f"spec.rollout.gate.{said}"]


def test_encoding_of_no_input_is_warned_of() -> None:
    gate = {"workflowType": "Check", "encoding": "json/protobuf"}
    found = parsed(worker(rollout={"strategy": "AllAtOnce", "gate": gate}), CONNECTION)
    said = "spec.rollout.gate.encoding: has no effect: the gate has neither input nor inputFrom"
    assert (told(found.warnings), found.problems) == ([said], ())


@pytest.mark.parametrize(
    ("strategy", "warning", "count"),
    [
        ("Manual", "are used only by `twgen promote`: strategy Manual moves no traffic automatically", 1),
        ("AllAtOnce", "have no effect: strategy AllAtOnce has no steps", 0),
    ],
)
def test_steps_that_no_rollout_makes_are_warned_of(strategy: str, warning: str, count: int) -> None:
    rollout = {"strategy": strategy, "steps": [{"rampPercentage": 5, "pauseDuration": "1m"}]}
    found = parsed(worker(rollout=rollout), CONNECTION)
    assert told(found.warnings) == [f"spec.rollout.steps: {warning}"]
    assert len(found.workers[0].rollout.steps) == count


@pytest.mark.parametrize("namespace", ["Shop", "a.b", "x" * 64, "a\n"])
def test_default_namespace_is_checked_as_kubernetes_does(namespace: str) -> None:
    with pytest.raises(InvalidInput, match="is not a valid Kubernetes namespace"):
        NamespaceRule(namespace)


def test_only_keda_brings_pods_back_from_zero() -> None:
    hpa = scaler("cpu", "HorizontalPodAutoscaler", "autoscaling/v2", maxReplicas=5)
    keda = scaler("backlog", "ScaledObject", "keda.sh/v1alpha1", triggers=[])
    for document, scales_from_zero in ((hpa, False), (keda, True)):
        [attached] = parsed(worker(), CONNECTION, document).workers[0].attached
        assert (attached.autoscales, attached.scales_from_zero) == (True, scales_from_zero)


def test_rollout_is_checked_by_itself_also_after_one_that_is_equal() -> None:
    def rollout(percentage: object) -> dict[str, Any]:
        steps = [{"rampPercentage": percentage, "pauseDuration": "30s"}]
        return worker(rollout={"strategy": "Progressive", "steps": steps})

    for percentage in (1, True, 1, 1.5, 1.5):
        found = parsed(rollout(percentage), CONNECTION)
        assert bool(found.problems) == (percentage is True)
        assert bool(found.warnings) == (percentage == 1.5)
        assert found.problems or [step.percentage for step in found.workers[0].rollout.steps] == [percentage]
