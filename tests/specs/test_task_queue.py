"""The task queue of a spec is part of its pod template: another one is another version."""

from typing import Any

import pytest

from tests.specs.parsing import CONNECTION, parsed, told, worker
from twgen.model.spec import WorkerSpec
from twgen.rendering.deployments import target_deployment
from twgen.versioning.pod_templates import content_of, described_template, fits_hash, injected_names

PROXY = {"name": "proxy", "image": "proxy:v1"}


def spec_with(task_queue: Any, *env: dict[str, str], **options: str) -> WorkerSpec:
    found = documents(task_queue, *env, **options)
    assert told(found.problems) == told(found.unknown_fields) == told(found.warnings) == []
    (spec,) = found.workers
    return spec


def documents(task_queue: Any, *env: dict[str, str], **options: str) -> Any:
    container = {"name": "w", "image": "payments:v3", "env": list(env)}
    told_options = {
        "connectionRef": {"name": "temporal"},
        "temporalNamespace": "default",
        **({} if task_queue is None else {"taskQueue": task_queue}),
        **options,
    }
    pod = {"initContainers": [{"name": "i", "image": "i:v1"}], "containers": [container, PROXY]}
    return parsed(worker(workerOptions=told_options, template={"spec": pod}), CONNECTION)


def variables(spec: WorkerSpec) -> list[list[str]]:
    """Of each container of the target, init containers last."""
    pod = described_template(spec)["spec"]
    containers = (*pod["containers"], *pod["initContainers"])
    return [[item["name"] for item in container.get("env", ())] for container in containers]


def test_every_container_is_told_the_task_queue() -> None:
    spec = spec_with("payments", {"name": "MODE", "value": "fast"})
    first, second, init = variables(spec)
    assert first[:2] == ["MODE", "TEMPORAL_TASK_QUEUE"]
    assert second[0] == "TEMPORAL_TASK_QUEUE"
    assert init == []
    containers = described_template(spec)["spec"]["containers"]
    values = [{item["name"]: item["value"] for item in container["env"]} for container in containers]
    assert [found["TEMPORAL_TASK_QUEUE"] for found in values] == ["payments", "payments"]


@pytest.mark.parametrize("absent", [None, ""])
def test_absent_task_queue_changes_nothing(absent: str | None) -> None:
    spec = spec_with(absent)
    plain = parsed(worker(template=documents_template()), CONNECTION).workers[0]
    assert (spec.build_id, spec.template) == (plain.build_id, plain.template)
    assert "TEMPORAL_TASK_QUEUE" not in str(described_template(spec))


def documents_template() -> dict[str, Any]:
    pod = {
        "initContainers": [{"name": "i", "image": "i:v1"}],
        "containers": [{"name": "w", "image": "payments:v3"}, PROXY],
    }
    return {"spec": pod}


def test_another_task_queue_is_another_version() -> None:
    """It reaches new pods only by a new version: whoever is deployed keeps the template that is recorded."""
    build_ids = {spec_with(queue).build_id for queue in (None, "payments", "refunds")}
    assert len(build_ids) == 3
    custom = [spec_with(queue, unsafeCustomBuildID="billing-7") for queue in ("payments", "refunds")]
    assert {spec.build_id for spec in custom} == {"billing-7"}
    assert len({spec.template.hash for spec in custom}) == 2


def test_task_queue_is_what_the_same_variable_in_the_template_is() -> None:
    variable = {"name": "TEMPORAL_TASK_QUEUE", "value": "payments"}
    by_hand = documents_template()
    by_hand["spec"]["containers"] = [{**item, "env": [variable]} for item in by_hand["spec"]["containers"]]
    written = parsed(worker(template=by_hand), CONNECTION).workers[0]
    assert spec_with("payments").template == written.template


def test_task_queue_stays_where_what_was_injected_is_taken_away() -> None:
    """The ledger's entry keeps it whatever connection comes, and fits the hash that it records."""
    manifest = target_deployment(spec_with("payments"))
    injected = injected_names(manifest)
    assert injected
    assert "TEMPORAL_TASK_QUEUE" not in injected
    assert "TEMPORAL_TASK_QUEUE" in str(content_of(manifest["spec"]["template"], injected))
    assert fits_hash(manifest["spec"]["template"], injected)


def test_variable_of_the_team_s_own_stays_allowed_without_a_task_queue() -> None:
    first, *_ = variables(spec_with(None, {"name": "TEMPORAL_TASK_QUEUE", "value": "payments"}))
    assert first[0] == "TEMPORAL_TASK_QUEUE"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("$QUEUE", "contains a variable that was not filled in"),
        ("${QUEUE}", "contains a variable that was not filled in"),
        ("payments ", "must be one line, without spaces"),
        (7, "must be a string, not a whole number; put it in quotes"),
        (["payments"], "must be a string, not a list"),
    ],
)
def test_task_queue_that_nobody_can_poll_is_refused(written: Any, message: str) -> None:
    [problem] = told(documents(written).problems)
    assert problem.startswith("spec.workerOptions.taskQueue: ")
    assert message in problem
