"""A pod template is patched, and back as it was."""

import copy
import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.strategies import ENV_PATCH, IMAGE_PATCH, WHOLE_PATCH, a_spec, live_manifest, patched
from twgen.cluster.deployments import live_deployment
from twgen.cluster.patches import patched_template, without_patch
from twgen.model.world import LiveDeployment

names = st.sampled_from(("worker", "proxy", "LEVEL", "KEY"))
by_value = st.fixed_dictionaries({"name": names, "value": st.sampled_from(("a", "b"))})
by_reference = st.fixed_dictionaries(
    {"name": names, "valueFrom": st.just({"fieldRef": {"fieldPath": "metadata.name"}})}
)


def of_names(items: st.SearchStrategy[Any], least: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(items, min_size=least, max_size=3, unique_by=lambda item: str(item["name"]))


container = st.fixed_dictionaries(
    {"name": names},
    optional={
        "image": st.sampled_from(("payments:v1", "payments:latest", "payments")),
        "resources": st.sampled_from(({}, {"limits": {"cpu": "1"}})),
        "env": of_names(by_value | by_reference, 1),
    },
)


DEEP = 900 * '{"a":' + "1" + 900 * "}"


def read(manifest: dict[str, Any]) -> LiveDeployment:
    found = live_deployment(manifest)
    assert found
    return found


def a_deployment() -> dict[str, Any]:
    return live_manifest(a_spec(), "v1", 2)


@given(of_names(container, 1), of_names(container, 0), of_names(container, 0))
def test_template_is_back_as_it_was_once_its_patch_is_taken_away(
    own: list[dict[str, Any]], init: list[dict[str, Any]], patch: list[dict[str, Any]]
) -> None:
    assume(not {item["name"] for item in own} & {item["name"] for item in init})  # as an API server does
    pod = {"containers": own, **({"initContainers": init} if init else {})}
    template = {"metadata": {}, "spec": pod}
    before = copy.deepcopy((template, patch))
    manifest = {"metadata": {"annotations": {}}, "spec": {"template": template}}
    after = patched(manifest, *patch)
    annotation = after["metadata"]["annotations"]["twgen.io/patched"]
    back, told = without_patch(after["spec"]["template"], annotation)
    assert back == template
    assert told
    assert (told.template, list(told.containers), told.edits) == (after["spec"]["template"], patch, ())
    assert (template, patch) == before


@pytest.mark.parametrize("containers_patched", [IMAGE_PATCH, ENV_PATCH, WHOLE_PATCH])
def test_patched_deployment_is_known_as_it_was_before(containers_patched: dict[str, Any]) -> None:
    plain, live = read(a_deployment()), read(patched(a_deployment(), containers_patched))
    template = plain.recorded.manifest["spec"]["template"]
    assert live.recorded.manifest["spec"]["template"] == template
    assert live.patch
    assert live.patch.containers == (containers_patched,)
    assert live.manifest["spec"]["template"] == patched_template(template, [containers_patched]).template


def test_policy_that_a_server_filled_in_for_the_image_of_the_patch_goes_with_it() -> None:
    manifest = patched(a_deployment(), {"name": "worker", "image": "payments:latest"})
    manifest["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] = "Always"
    [container] = read(manifest).recorded.manifest["spec"]["template"]["spec"]["containers"]
    assert "imagePullPolicy" not in container


@pytest.mark.parametrize(
    ("change", "edit"),
    [
        ({"image": "payments:by-hand"}, "spec.containers[worker].image"),
        ({"resources": {"requests": {"cpu": "2"}}}, "spec.containers[worker].resources.requests.cpu"),
        (
            {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
            "spec.containers[worker].resources.requests.memory",
        ),
        ({"env": []}, "spec.containers[worker].env[LEVEL]"),
    ],
)
def test_what_was_edited_where_a_patch_speaks_is_told(change: dict[str, Any], edit: str) -> None:
    manifest = patched(a_deployment(), WHOLE_PATCH)
    manifest["spec"]["template"]["spec"]["containers"][0] |= change
    live = read(manifest)
    assert live.patch
    assert live.patch.edits[0] == edit


def test_what_a_server_fills_in_is_no_edit() -> None:
    manifest = patched(a_deployment(), WHOLE_PATCH)
    container = manifest["spec"]["template"]["spec"]["containers"][0]
    container |= {"imagePullPolicy": "IfNotPresent", "terminationMessagePath": "/dev/termination-log"}
    variables = copy.deepcopy(container["env"])
    variables[-1]["valueFrom"]["fieldRef"]["apiVersion"] = "v1"
    container["env"] = variables
    live = read(manifest)
    assert live.patch
    assert live.patch.edits == ()


@pytest.mark.parametrize(
    "told",
    [
        "",
        "{",
        "null",
        "[]",
        "[" * 100_000,
        '{"containers": [], "replaced": {}}',
        '{"containers": [{}], "replaced": []}',
        '{"containers": [{"name": "worker", "image": "a:\\ud800"}], "replaced": []}',
        '{"containers": [], "replaced": [{"name": "worker", "env": [], "added": ["\\udfff"]}]}',
        '{"containers": [], "replaced": [{"name": "worker", "resources": {"limits": {"cpu": NaN}}}]}',
        '{"containers": [], "replaced": [{"name": "worker", "resources": {"limits": {"cpu": 1e999}}}]}',
        '{"containers": [], "replaced": [{"name": "worker", "image": 5}]}',
        '{"containers": [], "replaced": [{"name": "worker", "env": [{"name": 1}]}]}',
        '{"containers": [{"name": "worker", "env": [{"name": "A", "value": 1}]}], "replaced": []}',
        '{"containers": [], "replaced": [{"name": "worker", "env": [], "added": [[]]}]}',
        '{"containers": [], "replaced": [{"name": "worker", "resources": []}]}',
        f'{{"containers": [], "replaced": [{{"name": "worker", "resources": {DEEP}}}]}}',
        f'{{"containers": [{{"name": "w", "env": [{{"name": "A", "valueFrom": {DEEP}}}]}}], "replaced": []}}',
    ],
)
def test_annotation_that_nobody_wrote_so_tells_of_no_patch(told: str) -> None:
    manifest = a_deployment()
    manifest["metadata"]["annotations"]["twgen.io/patched"] = told
    live = read(manifest)
    assert live.patch is None
    assert live.recorded.manifest is manifest or live.recorded.manifest["spec"] == manifest["spec"]


def test_annotation_names_what_was_replaced_and_what_is_new() -> None:
    manifest = patched(a_deployment(), WHOLE_PATCH)
    told = json.loads(manifest["metadata"]["annotations"]["twgen.io/patched"])
    [replaced] = told["replaced"]
    assert replaced == {
        "name": "worker",
        "image": "payments:v3",
        "resources": {},
        "env": [],
        "added": ["LEVEL", "KEY"],
    }
