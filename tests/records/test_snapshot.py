import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from tests.strategies import worlds
from twgen.model.world import WorkerWorld, World
from twgen.records.snapshot import parse_snapshot, write_snapshot
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

CASES = Path(__file__).parents[1] / "fixtures" / "vectors" / "plans.json"
TIMELESS = "must be a time from 1970 to 2199 such as 2026-11-21T12:00:00Z, not"
WORKER = "workers[0].temporal"


def snapshot() -> dict[str, Any]:
    cases = json.loads(CASES.read_text())
    found: dict[str, Any] = next(case for case in cases if case["name"] == "advances-step")["snapshot"]
    return found


def read(document: Any) -> World:
    world, findings = parse_snapshot(document)
    assert world, findings
    return world


def wrong(change: Callable[[dict[str, Any]], object]) -> list[str]:
    """What is found wrong with a snapshot after this change of its document."""
    document = snapshot()
    change(document)
    world, findings = parse_snapshot(document)
    assert bool(world) is not bool(findings)
    return [f"{finding.path}: {finding.message}" for finding in findings]


def with_value(path: tuple[str | int, ...], value: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        place: Any = document
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return change


@given(worlds())
def test_snapshot_is_read_back_as_the_world_that_it_was(found: World) -> None:
    (document,) = read_documents(write_documents([write_snapshot(found)]))
    # the ledger is Git's, not the snapshot's
    assert read(document) == found.remembering({})


def test_what_status_counts_and_why_pods_wait_are_kept() -> None:
    world = read(snapshot())
    [(key, worker)] = world.workers.items()
    assert worker.temporal
    version = replace(worker.temporal.versions[0], auto_upgrade_workflows=4)
    temporal = replace(worker.temporal, versions=(version,))
    waiting = replace(worker, temporal=temporal, pod_problems={version.build_id: "ImagePullBackOff"})
    document = write_snapshot(replace(world, workers={key: waiting}))
    assert document["workers"][0]["temporal"]["versions"][0]["openAutoUpgradeWorkflows"] == 4
    assert document["workers"][0]["podProblems"] == {version.build_id: "ImagePullBackOff"}
    assert read(document).workers == {key: waiting}


def test_what_was_not_read_is_told_from_what_is_not_there() -> None:
    document = snapshot()
    worker = document["workers"][0]
    worker["temporal"]["versions"][0]["taskQueues"] = []
    del worker["temporal"]["versions"][1:]
    found = read(document).workers["default/helloworld", "default"]
    assert found.temporal
    assert found.temporal.versions[0].task_queues == ()
    assert found.temporal.versions[0].open_workflows is None
    assert found.deployments
    worker["temporal"] = None
    del worker["deployments"]
    found = read(document).workers["default/helloworld", "default"]
    assert (found.temporal, found.temporal_was_read, found.deployments) == (None, True, None)
    del worker["temporal"]
    found = read(document).workers["default/helloworld", "default"]
    assert (found.temporal, found.temporal_was_read) == (None, False)


def test_deployment_of_no_version_is_left_out() -> None:
    document = snapshot()
    web = {"metadata": {"name": "web"}, "spec": {"template": {"spec": {"containers": [{"name": "web"}]}}}}
    before = read(document).workers
    document["workers"][0]["deployments"].append(web)
    assert read(document).workers == before


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("workers",), {}, "workers: must be a list, not a mapping"),
        (("workers",), "", "workers: must be a list, not a string"),
        (("takenAt",), "yesterday", f"takenAt: {TIMELESS} 'yesterday'"),
        (("takenAt",), "2026-11-21T12:00:00", f"takenAt: {TIMELESS} '2026-11-21T12:00:00'"),
        (("takenAt",), "2026-02-30T12:00:00Z", f"takenAt: {TIMELESS} '2026-02-30T12:00:00Z'"),
        (("takenAt",), "9999-12-31T23:59:59Z", f"takenAt: {TIMELESS} '9999-12-31T23:59:59Z'"),
        (("takenAt",), 7, f"takenAt: {TIMELESS} a whole number"),
        (("takenAt",), None, "takenAt: is required"),
        (("workers", 0, "name"), ["x"], "workers[0].name: must be a string, not a list"),
        (("workers", 0, "deployments"), "", "workers[0].deployments: must be a list, not a string"),
        (("workers", 0, "temporal"), [], "workers[0].temporal: must be a mapping, not a list"),
        (("workers", 0, "temporal", "versions"), None, f"{WORKER}.versions: is required"),
        (("workers", 0, "temporal", "versions", 0, "buildID"), 7, "must be a string, not a whole number"),
        (
            ("workers", 0, "temporal", "versions", 0, "status"),
            "Sleeping",
            "is not one of Created, Inactive, Ramping, Current, Draining, Drained, Unspecified",
        ),
        (("workers", 0, "temporal", "versions", 0, "openWorkflows"), -1, "openWorkflows: -1 is below 0"),
        (("workers", 0, "temporal", "versions", 0, "openWorkflows"), True, "not true or false"),
        (("workers", 0, "temporal", "routing", "ramping", "percentage"), -5, "-5 is not from 0 to 100"),
        (("workers", 0, "temporal", "routing", "ramping", "percentage"), 1e9, "is not from 0 to 100"),
        (("workers", 0, "temporal", "routing", "ramping", "percentage"), float("nan"), "nan is not from 0"),
        (
            ("workers", 0, "temporal", "routing", "ramping", "percentage"),
            "5",
            "must be a number, not a string; remove the quotes",
        ),
        (("workers", 0, "temporal", "routing", "ramping", "buildID"), "old", "'old' is current, so"),
        (
            ("workers", 0, "temporal", "rooting"),
            {},
            f"{WORKER}.rooting: no such field; did you mean routing?",
        ),
        (("workers", 0, "temporal", "conflictToken"), "?!", "'?!' is not base64"),
        (("workres",), [], "workres: no such field; did you mean workers?"),
        (("kind",), "Ledger", ": is not a Snapshot: make one with `twgen snapshot`"),
        (
            ("apiVersion",),
            "twgen.io/v2",
            ": has apiVersion 'twgen.io/v2', but this twgen reads twgen.io/v1alpha1: upgrade",
        ),
    ],
)
def test_impossible_value_is_refused_at_its_path(
    path: tuple[str | int, ...], value: Any, message: str
) -> None:
    found = wrong(with_value(path, value))
    assert any(message in line for line in found), found


def test_document_that_is_no_mapping_is_no_snapshot() -> None:
    for value in (None, [], "Snapshot", 7):
        assert parse_snapshot(value)[1][0].message.startswith("is not a Snapshot")


def twice(*path: str | int) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        place: Any = document
        for step in path:
            place = place[step]
        place.append(place[0])

    return change


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (("workers",), "workers[1]: worker default/helloworld default appears twice, first at [0]"),
        (("workers", 0, "temporal", "versions"), "appears twice, first at [0] (default/helloworld"),
        (("workers", 0, "deployments"), "appears twice, first at [0] (default/helloworld"),
    ],
)
def test_two_of_one_name_are_refused_with_both_places(path: tuple[str | int, ...], message: str) -> None:
    found = wrong(twice(*path))
    assert len(found) == 1
    assert message in found[0]


def test_deployments_of_one_name_in_two_namespaces_are_two() -> None:
    document = snapshot()
    [worker] = document["workers"]
    live = worker["deployments"]
    live.append({**live[0], "metadata": {**live[0]["metadata"], "namespace": "elsewhere"}})
    [finding] = parse_snapshot(document)[1]
    assert finding.path == "workers[0].deployments[2].metadata.namespace"
    assert finding.message.startswith("is 'elsewhere', but the worker's namespace is 'default'")

    # of a worker that no spec names, only the variables of its pods tell the name
    del worker["temporal"]
    assert parse_snapshot(document)[1] == []


def test_what_is_no_deployment_is_refused_as_one() -> None:
    [line] = wrong(lambda found: found["workers"][0]["deployments"][0].update(kind="Secret"))
    assert line.startswith("workers[0].deployments[0].kind: must be Deployment")


def test_time_that_had_not_come_is_refused_unless_clocks_explain_it() -> None:
    taken_at = datetime.fromisoformat(snapshot()["takenAt"])
    version = ("workers", 0, "temporal", "versions", 0)
    ramping = ("workers", 0, "temporal", "routing", "ramping")
    times = [
        *(
            (*version, name)
            for name in ("createdAt", "firstActivatedAt", "lastCurrentAt", "lastDeactivatedAt")
        ),
        *((*ramping, name) for name in ("since", "percentageChangedAt")),
        ("workers", 0, "temporal", "routing", "current", "since"),
        ("workers", 0, "temporal", "routing", "changedAt"),
    ]
    for path in times:
        for ahead, is_refused in ((timedelta(hours=23), False), (timedelta(hours=25), True)):
            found = wrong(with_value(path, (taken_at + ahead).isoformat()))
            assert [line for line in found if "is more than a day after takenAt" in line] == found
            assert bool(found) is is_refused, path


def test_odd_deployment_is_told_with_its_worker_its_build_id_and_the_path() -> None:
    def change(document: dict[str, Any]) -> None:
        document["workers"][0]["deployments"][0]["spec"]["replicas"] = "3"

    document = snapshot()
    build_id = document["workers"][0]["deployments"][0]["metadata"]["labels"]["temporal.io/build-id"]
    told = (
        f"must be a whole number, not a string; remove the quotes (default/helloworld, build ID {build_id})"
    )
    assert wrong(change) == [f"workers[0].deployments[0].spec.replicas: {told}"]


def test_every_problem_is_told() -> None:
    def change(document: dict[str, Any]) -> None:
        document["takenAt"] = "now"
        document["workers"][0]["temporal"]["versions"][0] |= {"openWorkflows": -1, "status": "Gone"}

    assert len(wrong(change)) == 3


def test_worker_whose_pods_are_fine_says_nothing_of_them() -> None:
    worker = WorkerWorld("a/b", "c")
    world = replace(read(snapshot()), workers={worker.key: worker})
    assert write_snapshot(world)["workers"] == [{"name": "a/b", "temporalNamespace": "c", "temporal": None}]
