"""Whatever the world holds, an API server takes all that is rendered: one refused object ends the sync."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from tests.rendering.test_promises import rendered
from tests.strategies import BY_OTHERS, a_spec, specs, world, worlds
from twgen.model.operator import GroupKind
from twgen.model.problem import Finding
from twgen.model.spec import WorkerSpec
from twgen.model.world import World
from twgen.specs.attached import KINDS
from twgen.specs.validation.checks import LABEL_VALUE, SUBDOMAIN
from twgen.specs.validation.walk import refusals
from twgen.versioning.stored_form import POD_TEMPLATE, stored_struct

LONGEST_DEPLOYMENT = 63
"""The name of a Deployment begins those of its pods, and is a part of their host names."""


def refused(manifest: dict[str, Any]) -> list[str | Finding]:
    """What of a rendered object an API server refuses."""
    metadata, spec = manifest["metadata"], manifest["spec"]
    marks = {name: metadata[name] for name in ("labels", "annotations")}
    found: list[str | Finding] = [SUBDOMAIN(metadata["name"]), *refusals(marks, "ObjectMeta", "metadata")]
    if manifest["kind"] == "Deployment":
        found += refusals_of(spec["template"], POD_TEMPLATE)
        found += map(LABEL_VALUE, spec["selector"]["matchLabels"].values())
        assert len(metadata["name"]) <= LONGEST_DEPLOYMENT
        assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    else:
        structs = KINDS[GroupKind.of(manifest)].structs
        found += refusals_of(spec, structs[manifest["apiVersion"].rpartition("/")[2]])
    return [wrong for wrong in found if wrong]


def refusals_of(value: dict[str, Any], struct: str) -> list[Finding]:
    stored = stored_struct(value, struct, "spec", "an object", 10)
    assert not (*stored.problems, *stored.unknown)
    return refusals(stored.value, struct, "spec")


@given(specs, worlds())
def test_everything_that_is_rendered_passes_the_checks_of_an_api_server(
    spec: WorkerSpec, found: World
) -> None:
    for manifest in rendered(spec, found):
        assert refused(manifest) == []


@pytest.mark.parametrize("build_id", BY_OTHERS[:3])
def test_such_a_version_would_be_refused(build_id: str) -> None:
    [manifest] = rendered(replace(a_spec(), build_id=build_id), world(None, []))
    assert refused(manifest)
