"""Older versions that run are recorded so that another render of them restarts no pod."""

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from twgen.cluster.deployments import live_deployment
from twgen.cluster.server_defaults import Comparison, compare
from twgen.model.plan import VersionPlan
from twgen.model.problem import Document
from twgen.model.spec import WorkerSpec
from twgen.records.ledger import LedgerEntry, why_unreadable
from twgen.rendering.deployments import (
    deployment_to_record,
    is_of_worker,
    target_deployment,
    versions_to_record,
)
from twgen.specs.parse import parse_specs
from twgen.specs.spec_document import NamespaceRule

CASES = json.loads((Path(__file__).parents[1] / "fixtures" / "vectors" / "versions.json").read_text())
NAMED = {case["name"]: case for case in CASES}
OF_A_SERVER = {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30}


def spec_of(case: dict[str, Any], **container: Any) -> WorkerSpec:
    """The worker today: its target is another version than that of the case."""
    worker = copy.deepcopy(case["worker"])
    worker["spec"]["workerOptions"]["unsafeCustomBuildID"] = "today"
    if container:
        worker["spec"]["template"]["spec"]["containers"][0] |= container
    documents = [Document("", 0, worker), Document("", 1, case["connection"])]
    specs = parse_specs(documents, NamespaceRule("default"))
    assert specs.problems == ()
    [spec] = specs.workers
    return spec


def deployed(case: dict[str, Any], **container: Any) -> dict[str, Any]:
    """What the controller made of a version, as an API server returns it."""
    live = {"apiVersion": "apps/v1", "kind": "Deployment", **copy.deepcopy(case["expect"]["deployment"])}
    live["spec"]["template"]["spec"] = OF_A_SERVER | live["spec"]["template"]["spec"]
    for one in live["spec"]["template"]["spec"]["containers"]:
        one.setdefault("terminationMessagePath", "/dev/termination-log")
        one.update(container)
    return live


def recordable(
    case: dict[str, Any], live: dict[str, Any], spec: WorkerSpec | None = None
) -> tuple[list[VersionPlan], list[str]]:
    found = live_deployment(live)
    assert found
    spec = spec or spec_of(case)
    assert is_of_worker(found, spec)
    return versions_to_record(spec, [found], [])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_version_of_the_controller_is_recorded_and_rendered_again_with_the_same_pods(
    case: dict[str, Any],
) -> None:
    live, spec = deployed(case), spec_of(case)
    [version], told = recordable(case, live, spec)
    assert told == []
    entry = LedgerEntry(spec.worker_deployment, version.build_id, deployment_to_record(spec, version))
    assert why_unreadable(entry) == ""
    assert compare(entry.deployment["spec"]["template"], live["spec"]["template"]) == Comparison()
    assert entry.deployment["metadata"]["name"] == live["metadata"]["name"]


@pytest.mark.parametrize("is_written_today", [True, False])
def test_default_that_the_spec_writes_out_is_taken_to_have_been_written_before(
    *, is_written_today: bool
) -> None:
    case = NAMED["plain"]
    written = {"imagePullPolicy": "IfNotPresent", "terminationMessagePolicy": "File"}
    live = target_deployment(spec_of(case, image="hello:v1", **written))
    today = replace(spec_of(case, image="hello:v2", **(written if is_written_today else {})), build_id="v2")
    versions, told = recordable(case, live, today)
    assert (len(versions), len(told)) == ((1, 0) if is_written_today else (0, 1))


def test_version_that_was_edited_by_hand_is_told_and_not_recorded() -> None:
    case = CASES[0]
    live = deployed(case, image="another:1")
    versions, [told] = recordable(case, live)
    assert versions == []
    assert f"Deployment {live['metadata']['name']} is not recorded: no hash proves that" in told


def test_target_and_what_is_recorded_already_are_left_to_spec_and_ledger() -> None:
    case = CASES[0]
    live = live_deployment(deployed(case))
    assert live
    spec = spec_of(case)
    assert versions_to_record(spec, [live], [live.build_id]) == ([], [])
    assert versions_to_record(replace(spec, build_id=live.build_id), [live], []) == ([], [])


def test_deployment_of_another_name_or_whose_pods_are_another_version_is_told() -> None:
    case = CASES[0]
    live = deployed(case)
    live["metadata"]["name"] = "renamed"
    versions, [told] = recordable(case, live)
    assert versions == []
    assert "Deployment renamed is not recorded: it does not belong to the version in its labels" in told
