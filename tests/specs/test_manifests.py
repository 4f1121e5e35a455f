"""The Pods of rollouts are checked as strictly as those of workers."""

from typing import Any

import pytest

from twgen.model.operator import Operator, RolloutPod
from twgen.specs.manifests import refusals_of_pod


def refused(**pod: Any) -> list[str]:
    found = refusals_of_pod(Operator(rollout=RolloutPod(**pod)))
    return [f"{item.path}: {item.message}" for item in found]


def test_pod_of_which_nothing_is_said_is_right() -> None:
    assert refused() == []


@pytest.mark.parametrize(
    ("pod", "path"),
    [
        ({"labels": {"a b": "c"}}, "rollout.labels"),
        ({"annotations": {"a b": "c"}}, "rollout.annotations"),
        ({"labels": {"twgen.io/rollout": "mine"}}, "rollout.labels['twgen.io/rollout']: is set by twgen"),
        (
            {"labels": {"temporal.io/build-id": "v1"}},
            "rollout.labels['temporal.io/build-id']: is reserved for the pods",
        ),
        ({"node_selector": {"a": "b c"}}, "rollout.nodeSelector"),
        ({"tolerations": ({"key": "a", "operator": "Is"},)}, "rollout.tolerations[0].operator"),
        ({"tolerations": ({"operator": "Exists", "value": "a"},)}, "rollout.tolerations[0]"),
        ({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}, "rollout.resources."),
    ],
)
def test_what_an_api_server_would_refuse_is_told_at_its_path(pod: dict[str, Any], path: str) -> None:
    [told] = refused(**pod)
    assert told.startswith(path)


@pytest.mark.parametrize(
    "image", ["${REGISTRY}/twgen:1", "{{ .Values.image }}", "registry.example.com/Tools/Twgen:1"]
)
def test_image_that_no_node_finds_is_refused(image: str) -> None:
    [told] = refusals_of_pod(Operator(rollout=RolloutPod(image=image)))
    assert (told.path, image in told.message) == ("rollout.image", True)
