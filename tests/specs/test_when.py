"""The annotation that says which versions get a copy of an attached template."""

from typing import Any

import pytest

from tests.specs.parsing import CONNECTION, attach, parsed, policy, scaler, told, worker
from twgen.model.spec import AttachedWhile
from twgen.records.intent import intent_of

WORDS = "Target, Current, Ramping, Draining, Drained"


def when(words: Any, name: str = "scaler") -> dict[str, Any]:
    document = scaler(name, "HorizontalPodAutoscaler", "autoscaling/v2", maxReplicas=9)
    annotations = {"twgen.io/when": words, "example.com/owner": "team"}
    return {**document, "metadata": {**document["metadata"], "annotations": annotations}}


def test_words_are_read_in_any_order_and_with_blanks() -> None:
    specs = parsed(worker(), CONNECTION, when(" Ramping,Target , Current"))
    assert specs.problems == ()
    [resource] = specs.workers[0].attached
    assert resource.when == {AttachedWhile.TARGET, AttachedWhile.CURRENT, AttachedWhile.RAMPING}


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        ("current", f"'current' is not one of {WORDS}; did you mean Current?"),
        ("Current,Drainning", f"'Drainning' is not one of {WORDS}; did you mean Draining?"),
        ("Current;Draining", f"'Current;Draining' is not one of {WORDS}; did you mean Draining?"),
        ("Inactive", f"'Inactive' is not one of {WORDS}"),
        ("Current,", f"has an extra comma: write one or more of {WORDS}, or remove it"),
        ("", f"is empty: write one or more of {WORDS}, or remove it"),
    ],
)
def test_wrong_word_is_told_with_the_right_ones(words: str, wrong: str) -> None:
    assert told(parsed(worker(), CONNECTION, when(words)).problems) == [
        f"metadata.annotations['twgen.io/when']: {wrong}"
    ]


IDLE = (
    "spec.drainingReplicas: has no effect: attached template scaler sets the replicas of draining versions"
    " too; remove one of the two, or annotate the template with twgen.io/when"
)


@pytest.mark.parametrize("of", [{}, {"workerRef": {"name": "payments"}}], ids=["all", "one"])
@pytest.mark.parametrize(
    ("words", "warned"),
    [(WORDS, [IDLE]), ("Draining,Drained", [IDLE]), ("Target,Current,Ramping", []), ("Drained", [])],
)
def test_replicas_of_draining_versions_beside_their_autoscaler_are_warned_of(
    words: str, warned: list[str], of: dict[str, Any]
) -> None:
    one = policy(drainingReplicas=1, **of)
    assert told(parsed(worker(), CONNECTION, when(words), one).warnings) == warned


def test_replicas_of_draining_versions_that_one_worker_of_the_policy_goes_by_are_right() -> None:
    other = {**worker(), "metadata": {"name": "orders", "namespace": "shop"}}
    documents = (worker(), other, CONNECTION, when("Draining"))
    assert told(parsed(*documents, policy(drainingReplicas=1)).warnings) == []


def test_other_type_is_told_once() -> None:
    assert told(parsed(worker(), CONNECTION, when(["Current"])).problems) == [
        "metadata.annotations['twgen.io/when']: must be a string, not a list"
    ]


@pytest.mark.parametrize(
    ("field", "name", "hint"),
    [
        ("annotations", "twgen.io/whem", "; did you mean twgen.io/when?"),
        ("annotations", "twgen.io/When", "; did you mean twgen.io/when?"),
        ("labels", "twgen.io/when", ": WorkerResourceTemplate has no such label"),
    ],
)
def test_mark_of_ours_that_says_nothing_is_warned_of(field: str, name: str, hint: str) -> None:
    """An autoscaler that is for draining versions would be that of all."""
    document = when("Current")
    document["metadata"][field] = {name: "Draining"}
    found = parsed(worker(), CONNECTION, document)
    assert told(found.warnings) == [f"metadata.{field}['{name}']: has no effect{hint}"]


def test_mark_of_an_attached_template_is_none_of_a_worker() -> None:
    document = {**worker(), "metadata": {**worker()["metadata"], "annotations": {"twgen.io/when": "Current"}}}
    [warning] = told(parsed(document, CONNECTION).warnings)
    assert warning.endswith("has no effect: WorkerDeployment has no such annotation")


@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_mark_of_ours_in_a_pod_template_is_refused(field: str) -> None:
    """A Deployment has the annotations of its pods: one would be taken for what a render wrote."""
    document = worker()
    document["spec"]["template"]["metadata"] = {field: {"twgen.io/patched": "x"}}
    [problem] = told(parsed(document, CONNECTION).problems)
    assert problem == f"spec.template.metadata.{field}['twgen.io/patched']: is set by twgen: remove it"


def test_annotation_in_the_template_itself_is_sent_to_its_place() -> None:
    template = attach(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"annotations": {"twgen.io/when": "Current"}},
            "spec": {"selector": {"matchLabels": {}}, "maxUnavailable": 1},
        }
    )
    [problem] = parsed(worker(), CONNECTION, template).problems
    assert problem.path == "spec.template.metadata.annotations['twgen.io/when']"
    assert problem.message == "belongs in metadata.annotations of the WorkerResourceTemplate"


@pytest.mark.parametrize(
    ("one", "other", "may_meet"),
    [
        ("Target,Current,Ramping", "Draining,Drained", False),
        ("Current", "Ramping,Draining", False),
        ("Target", "Draining", False),
        ("Current", "Current,Draining", True),
        ("Target", "Current", True),
        ("Ramping", "Target", True),
    ],
)
def test_two_autoscalers_are_refused_where_one_version_may_get_both(
    one: str,
    other: str,
    may_meet: bool,  # noqa: FBT001
) -> None:
    problems = parsed(worker(), CONNECTION, when(one, "a"), when(other, "b")).problems
    assert bool(problems) is may_meet
    assert not may_meet or "would both set the replicas of payments: keep one" in problems[0].message


def test_autoscaler_for_all_versions_meets_any_other() -> None:
    always = scaler("always", "HorizontalPodAutoscaler", "autoscaling/v2", maxReplicas=9)
    assert parsed(worker(), CONNECTION, when("Draining"), always).problems


def test_replicas_beside_an_autoscaler_of_some_versions_are_those_of_the_others() -> None:
    assert told(parsed(worker(replicas=3), CONNECTION, when("Draining")).warnings) == []
    assert told(parsed(worker(replicas=0), CONNECTION, when("Target,Current")).warnings) == []
    zero = parsed(worker(replicas=0), CONNECTION, when("Draining")).warnings
    assert told(zero) == [
        "spec.replicas: is 0: no pods run, even for versions that have traffic or workflows"
    ]
    always = scaler("always", "HorizontalPodAutoscaler", "autoscaling/v2", maxReplicas=9)
    assert len(told(parsed(worker(replicas=3), CONNECTION, always).warnings)) == 1


def test_intent_of_a_rollout_keeps_the_words_and_no_other_annotation() -> None:
    specs = parsed(worker(), CONNECTION, when("Target,Current"))
    documents = intent_of(specs.workers[0], "twgen/me").documents
    [kept] = [item["metadata"] for item in documents if item["kind"] == "WorkerResourceTemplate"]
    assert kept["annotations"] == {"twgen.io/when": "Target,Current"}
    [resource] = parsed(*documents).workers[0].attached
    assert resource.when == {AttachedWhile.TARGET, AttachedWhile.CURRENT}
