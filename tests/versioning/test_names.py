from typing import Any

import pytest

from tests.versioning.vectors import vectors
from twgen.versioning.names import (
    attached_resource_name,
    generated_name,
    resource_of_kind,
    selector_labels,
    truncated,
    versioned_deployment_name,
)


@pytest.mark.parametrize("case", vectors("names.json"), ids=lambda case: case["attachedResourceName"])
def test_names_are_what_the_controller_computes(case: dict[str, Any]) -> None:
    worker, resource, build_id = case["worker"], case["resource"], case["buildID"]
    assert case == {
        "worker": worker,
        "resource": resource,
        "buildID": build_id,
        "versionedDeploymentName": versioned_deployment_name(worker, build_id),
        "attachedResourceName": attached_resource_name(worker, resource, build_id),
        "selectorLabels": selector_labels(worker, build_id),
    }


def test_name_of_47_characters_stays_and_one_more_is_hashed() -> None:
    assert generated_name("w" * 40, "b" * 6) == f"{'w' * 40}-{'b' * 6}"
    assert generated_name("w" * 40, "b" * 7) == "wwwwwwwwww-bbbbbbb-2bd3838af1"


def test_three_long_parts_fit_a_generated_name() -> None:
    assert len(generated_name("a" * 63, "b" * 63, "c" * 63)) <= 47


def test_long_names_that_begin_alike_differ() -> None:
    assert generated_name("a" * 63, "one") != generated_name("a" * 63, "two")


def test_cutting_counts_bytes_and_leaves_no_half_character() -> None:
    assert truncated("aé日", 2) == "a\ufffd"
    assert truncated("aé日", 3) == "aé"
    assert truncated("aé日", 9) == "aé日"


@pytest.mark.parametrize(
    ("kind", "resource"),
    [
        ("HorizontalPodAutoscaler", "horizontalpodautoscalers"),
        ("QueueWatch", "queuewatches"),
        ("NetworkPolicy", "networkpolicies"),
        ("Gateway", "gateways"),
        ("Prometheus", "prometheuses"),
        ("Sandbox", "sandboxes"),
    ],
)
def test_resource_of_a_kind_is_its_english_plural(kind: str, resource: str) -> None:
    assert resource_of_kind(kind) == resource
