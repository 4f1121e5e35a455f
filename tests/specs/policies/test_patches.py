"""What a RolloutPolicy may patch of a live version, and what is told of what it may not."""

from datetime import timedelta
from typing import Any

import pytest

from tests.specs.parsing import CONNECTION, parsed, policy, told, worker
from twgen.model.policy import VersionPatch
from twgen.records.intent import intent_of

IMAGE = {"name": "w", "image": "payments:v1-1"}


def patches(*entries: Any) -> dict[str, Any]:
    return policy(patches=list(entries))


def patch(**fields: Any) -> dict[str, Any]:
    return {"buildID": "v1", **fields}


def read(*entries: Any) -> tuple[VersionPatch, ...]:
    specs = parsed(worker(), CONNECTION, patches(*entries))
    assert specs.problems == specs.unknown_fields == specs.warnings == ()
    return specs.workers[0].policy.patches


def of_container(**fields: Any) -> dict[str, Any]:
    return patch(containers=[{"name": "w", **fields}])


def test_patch_is_read_as_an_api_server_stores_it() -> None:
    container = {
        "name": "w",
        "image": "payments:v1-1",
        "resources": {"requests": {"cpu": 0.5, "memory": "1024Mi"}},
        "env": [{"name": "LEVEL", "value": "debug"}, {"name": "EMPTY", "value": ""}],
    }
    sunset = {"scaledownDelay": "48h"}
    [found] = read(patch(containers=[container], replicas=2, sunset=sunset))
    assert (found.build_id, found.replicas) == ("v1", 2)
    assert (found.scaledown_delay, found.delete_delay) == (timedelta(hours=48), None)
    assert found.containers == (
        {
            "name": "w",
            "image": "payments:v1-1",
            "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
            "env": [{"name": "LEVEL", "value": "debug"}, {"name": "EMPTY"}],
        },
    )


def test_field_that_is_not_written_is_not_patched() -> None:
    [found] = read(of_container(image="payments:v1-1"))
    assert found.containers == (IMAGE,)


@pytest.mark.parametrize(
    ("entry", "path", "wrong"),
    [
        ({"replicas": 1}, "buildID", "is required"),
        (patch(buildID="2026-11-21T05:24:15Z", replicas=1), "buildID", "is not a valid build ID: letters"),
        (of_container(image="Payments:v1"), "containers[0].image", "only its registry and its tag can have"),
        (of_container(image="payments:${TAG}"), "containers[0].image", "a variable that was not filled in"),
        (patch(containers=[IMAGE, IMAGE]), "containers[1].name", "'w' appears twice: merge the two entries"),
        (
            of_container(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]),
            "containers[0].env[1].name",
            "'A' appears twice",
        ),
    ],
)
def test_what_is_wrong_with_a_patch_is_told_where_it_stands(
    entry: dict[str, Any], path: str, wrong: str
) -> None:
    [problem] = parsed(worker(), CONNECTION, patches(entry)).problems
    assert problem.path == f"spec.patches[0].{path}"
    assert wrong in problem.message


@pytest.mark.parametrize(
    "name",
    [
        *("TEMPORAL_ADDRESS", "TEMPORAL_HOST_PORT", "TEMPORAL_NAMESPACE", "TEMPORAL_DEPLOYMENT_NAME"),
        *("TEMPORAL_WORKER_BUILD_ID", "WORKER_BUILD_ID", "TEMPORAL_TASK_QUEUE", "TEMPORAL_API_KEY"),
        "TEMPORAL_TLS_CLIENT_KEY_PATH",
    ],
)
def test_injected_variable_cannot_be_patched(name: str) -> None:
    specs = parsed(worker(), CONNECTION, patches(of_container(env=[{"name": name, "value": "x"}])))
    assert told(specs.problems) == [
        (
            f"spec.patches[0].containers[0].env[0].name: twgen sets {name}: a patch cannot"
            " change the connection or the identity of a version"
        )
    ]


def test_variable_that_only_looks_like_one_can_be_patched() -> None:
    read(of_container(env=[{"name": "TEMPORAL_MAX_POLLERS", "value": "5"}]))


@pytest.mark.parametrize(
    ("entry", "doubt"),
    [
        (patch(), "spec.patches[0]: changes nothing: write containers, replicas or sunset, or remove it"),
        (
            patch(containers=[{"name": "w"}]),
            "spec.patches[0].containers[0]: changes nothing: write image, resources or env, or remove it",
        ),
        (
            of_container(image="payments:latest"),
            (
                "spec.patches[0].containers[0].image: its tag can move, but running pods never get"
                " the changed image"
            ),
        ),
    ],
)
def test_what_has_no_effect_is_warned_of(entry: dict[str, Any], doubt: str) -> None:
    specs = parsed(worker(), CONNECTION, patches(entry))
    assert (told(specs.problems), told(specs.warnings)) == ([], [doubt])


def test_resources_of_a_mistaken_unit_and_hidden_characters_are_warned_of_as_in_a_pod() -> None:
    mistaken = of_container(
        resources={"requests": {"cpu": 500, "memory": "512Mi"}},
        env=[{"name": "LEVEL", "value": "de\u200bbug"}],
    )
    assert told(parsed(worker(), CONNECTION, patches(mistaken)).warnings) == [
        (
            "spec.patches[0].containers[0].resources.requests.cpu: is 500 whole cores: write"
            " 500m for millicores"
        ),
        (
            "spec.patches[0].containers[0].env[0].value:"
            " 'de\\u200bbug' (character 3 is zero width space, U+200B)"
            " contains an invisible character: retype it"
        ),
    ]


def test_field_of_a_container_beside_the_build_id_is_told_where_it_belongs() -> None:
    specs = parsed(worker(), CONNECTION, patches(patch(image="payments:v1-1")))
    assert told(specs.problems) == [
        (
            "spec.patches[0].image: belongs to one container: write it in containers, next to the"
            " container's name"
        )
    ]
    assert (specs.warnings, specs.unknown_fields) == ((), ())


def test_unknown_field_of_an_entry_is_told_with_the_right_one() -> None:
    specs = parsed(worker(), CONNECTION, patches(patch(replica=1, replicas=1)))
    assert told(specs.unknown_fields) == ["spec.patches[0].replica: no such field; did you mean replicas?"]


def test_what_an_api_server_refuses_of_a_container_is_told_there() -> None:
    resources = {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}
    specs = parsed(worker(), CONNECTION, patches(of_container(resources=resources)))
    [problem] = told(specs.unknown_fields)
    assert problem.startswith("spec.patches[0].containers[0].resources.requests.cpu")


def test_rollout_of_a_worker_knows_its_patches() -> None:
    specs = parsed(worker(), CONNECTION, patches(patch(replicas=2, containers=[IMAGE])))
    again = parsed(*intent_of(specs.workers[0], "twgen/me").documents)
    assert again.workers[0].policy.patches == specs.workers[0].policy.patches
