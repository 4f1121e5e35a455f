"""Variables that refer to each other: what programs get of them, before and after an import."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.specs.parsing import CONNECTION, parsed, told, worker
from twgen.specs.imported_pods import imported_pods
from twgen.versioning.injection import Injection, with_injection, with_task_queue

NAMES = ["A", "B", "TEMPORAL_ADDRESS", "TEMPORAL_TASK_QUEUE", "TEMPORAL_TLS"]
PARTS = ["x", "$", "$()", *(f"{dollars}({name})" for name in NAMES for dollars in ("$", "$$"))]
TEXTS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=2).map("".join)


def variables(*items: tuple[str, str]) -> list[dict[str, Any]]:
    return [{"name": name, "value": text} for name, text in items]


def as_kubernetes_fills_in(env: list[dict[str, Any]]) -> dict[str, str]:
    """What a program gets, letter by letter as a kubelet reads it."""
    values: dict[str, str] = {}
    for variable in env:
        rest, text = variable["value"], ""
        while rest:
            end = rest.find(")")
            if rest.startswith("$$"):
                text, rest = f"{text}$", rest[2:]
            elif rest.startswith("$(") and end > 0:
                name = rest[2:end]
                text, rest = text + values.get(name, rest[: end + 1]), rest[end + 1 :]
            else:
                text, rest = text + rest[0], rest[1:]
        values[variable["name"]] = text
    return values


@given(
    env=st.tuples(st.permutations(NAMES), st.lists(TEXTS, min_size=len(NAMES), max_size=len(NAMES))).map(
        lambda drawn: variables(*zip(*drawn, strict=True))
    )
)
@example(variables(("A", "x"), ("TEMPORAL_ADDRESS", "$$(A)"), ("B", "$(TEMPORAL_ADDRESS)")))
@example(variables(("TEMPORAL_TASK_QUEUE", "x"), ("A", "$(TEMPORAL_TASK_QUEUE)")))
@example(variables(("A", "$(TEMPORAL_ADDRESS)"), ("TEMPORAL_ADDRESS", "x")))
def test_import_changes_no_variable_of_the_pods_own_without_a_note(env: list[dict[str, Any]]) -> None:
    before = as_kubernetes_fills_in(env)
    found = imported_pods({"containers": [{"name": "worker", "env": env}]}, {})
    template: dict[str, Any] = {"spec": found.spec}
    if found.task_queue:
        template = with_task_queue(template, found.task_queue)
    added = Injection(tuple(variables(("TEMPORAL_ADDRESS", found.address.value))))
    [container] = with_injection(template["spec"], added)["containers"]
    after = as_kubernetes_fills_in(container["env"])
    told_of = {name for note in found.notes for name in note.split()}
    for variable in env:  # what refers to one that is told of follows from that
        if any(f"$({name})" in variable["value"] for name in told_of):
            told_of.add(variable["name"])
    for name, text in before.items():
        # a text that is neither an address nor a task queue is refused when the specs are read
        is_refused = "$" in text and name in {"TEMPORAL_ADDRESS", "TEMPORAL_TASK_QUEUE"}
        if name not in told_of and not is_refused:
            assert (name, after.get(name)) == (name, text)


@pytest.mark.parametrize(
    ("env", "late"),
    [
        ([("A", "$(TEMPORAL_ADDRESS)")], {0: "twgen sets TEMPORAL_ADDRESS"}),
        ([("A", "at $(TEMPORAL_WORKER_BUILD_ID)!")], {0: "twgen sets TEMPORAL_WORKER_BUILD_ID"}),
        ([("A", "$(B)"), ("B", "b")], {0: "B is set"}),
        ([("A", "$(C)"), ("C", "$(B)"), ("B", "b")], {0: "C is set", 1: "B is set"}),
        ([("B", "b"), ("A", "$(B)")], {}),
        ([("TEMPORAL_TASK_QUEUE", "q"), ("A", "$(TEMPORAL_TASK_QUEUE)")], {}),
        ([("A", "$$(TEMPORAL_ADDRESS) $(SERVICE_HOST) $(A) $TEMPORAL_ADDRESS $(")], {}),
    ],
)
def test_reference_to_what_comes_later_is_warned_of(env: list[tuple[str, str]], late: dict[int, str]) -> None:
    container = {"name": "w", "image": "w:1", "env": variables(*env)}
    found = parsed(worker(template={"spec": {"containers": [container]}}), CONNECTION).warnings
    warned = {problem.path: problem.message for problem in found}
    for index, who in late.items():
        message = warned.pop(f"spec.template.spec.containers[0].env[{index}].value")
        assert f"is not replaced: {who} after it, so the program gets this text unchanged" in message
    assert warned == {}


def test_reference_that_something_else_may_fill_in_is_fine() -> None:
    own: dict[str, Any] = {"env": variables(("A", "$(TEMPORAL_ADDRESS)"))}
    own["envFrom"] = [{"configMapRef": {"name": "c"}}]
    container, prepared = {"name": "w", "image": "w:1", **own}, {"name": "i", "image": "i:1", **own}
    template = {"spec": {"initContainers": [prepared], "containers": [container]}}
    assert parsed(worker(template=template), CONNECTION).warnings == ()


@pytest.mark.parametrize(
    "name",
    ["TEMPORAL_ADRESS", "TEMPORAL_HOST_PORT", "TEMPORAL_API_KEY", "TEMPORAL_TASK_QUEUE", "WORKER_BUILD_ID"],
)
@pytest.mark.parametrize("field", ["args", "command", "env"])
def test_reference_to_a_variable_of_temporals_that_is_not_there_is_warned_of(field: str, name: str) -> None:
    text = f"x $({name})"
    container = {"name": "w", "image": "w:1", field: variables(("A", text)) if field == "env" else [text]}
    found = told(parsed(worker(template={"spec": {"containers": [container]}}), CONNECTION).warnings)
    place = f"spec.template.spec.containers[0].{field}[0]{'.value' if field == 'env' else ''}"
    why = "is not replaced: no variable has this name, so the program gets this text unchanged"
    assert found == [f"{place}: $({name}) {why}"]


@pytest.mark.parametrize(
    "text",
    [
        "$(TEMPORAL_ADDRESS) $$(TEMPORAL_ADRESS) $(hostname) $(DATABASE)",
        "$(TEMPORAL_FRONTEND_SERVICE_HOST):$(TEMPORAL_FRONTEND_SERVICE_PORT)",
        "$(TEMPORAL_FRONTEND_PORT_7233_TCP_ADDR)",
        "$(TEMPORAL_LOG)",
    ],
)
def test_reference_to_what_is_there_or_may_be_meant_for_a_shell_is_fine(text: str) -> None:
    container = {"name": "w", "image": "w:1", "args": [text], "env": variables(("TEMPORAL_LOG", "info"))}
    assert parsed(worker(template={"spec": {"containers": [container]}}), CONNECTION).warnings == ()


def test_task_queue_of_the_spec_comes_after_the_variables_of_the_pods() -> None:
    container = {"name": "w", "image": "w:1", "env": variables(("A", "$(TEMPORAL_TASK_QUEUE)"))}
    value = worker(template={"spec": {"containers": [container]}})
    value["spec"]["workerOptions"]["taskQueue"] = "q"
    [warning] = told(parsed(value, CONNECTION).warnings)
    assert "containers[0].env[0].value: $(TEMPORAL_TASK_QUEUE) is not replaced" in warning


def test_worker_of_several_containers_is_the_one_that_polls_else_one_that_knows_temporal() -> None:
    plain, knowing, polling = (
        {"name": name, "image": f"{name}:1", "env": [{"name": variable, "value": "x"}]}
        for name, variable in (
            ("plain", "A"),
            ("knowing", "TEMPORAL_ADDRESS"),
            ("polling", "TEMPORAL_TASK_QUEUE"),
        )
    )
    for least, most in pairwise((plain, knowing, polling)):
        for containers in ([least, most], [most, least]):
            found = imported_pods({"containers": containers}, {})
            assert found.worker == found.spec["containers"][0]["name"] == most["name"]
    assert imported_pods({"containers": [plain]}, {}).worker == ""
    assert imported_pods({"containers": [plain, {**plain, "name": "other"}]}, {}).worker == "plain"
