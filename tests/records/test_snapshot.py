import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from tests.strategies import worlds
from twgen.errors import StateUnavailable
from twgen.model.world import World
from twgen.records.snapshot_reader import read_snapshot
from twgen.records.snapshot_writer import write_snapshot
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

CASES = Path(__file__).parents[1] / "fixtures" / "vectors" / "plans.json"


def snapshot() -> dict[str, Any]:
    cases = json.loads(CASES.read_text())
    found: dict[str, Any] = next(case for case in cases if case["name"] == "advances-step")["snapshot"]
    return found


@given(worlds())
def test_snapshot_is_read_back_as_the_world_that_it_was(found: World) -> None:
    (document,) = read_documents(write_documents([write_snapshot(found)]))
    # the ledger is Git's, not the snapshot's
    assert read_snapshot(document, "snapshot.yaml") == found.remembering({})


def test_what_was_not_read_is_told_from_what_is_not_there() -> None:
    document = snapshot()
    worker = document["workers"][0]
    worker["temporal"]["versions"][0]["taskQueues"] = []
    del worker["temporal"]["versions"][1:]
    found = read_snapshot(document, "s").workers["default/helloworld", "default"]
    assert found.temporal
    assert found.temporal.versions[0].task_queues == ()
    assert found.temporal.versions[0].open_workflows is None
    assert found.deployments
    worker["temporal"] = None
    del worker["deployments"]
    found = read_snapshot(document, "s").workers["default/helloworld", "default"]
    assert (found.temporal, found.deployments) == (None, None)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("workers",), {}),
        (("workers",), ""),
        (("takenAt",), "yesterday"),
        (("takenAt",), 7),
        (("workers", 0, "name"), ["default/helloworld"]),
        (("workers", 0, "deployments"), ""),
        (("workers", 0, "deployments"), {}),
        (("workers", 0, "temporal"), []),
        (("workers", 0, "temporal", "versions"), {}),
        (("workers", 0, "temporal", "versions"), ""),
        (("workers", 0, "temporal", "versions"), None),
        (("workers", 0, "temporal", "versions", 0, "buildID"), 7),
        (("workers", 0, "temporal", "versions", 0, "status"), "Sleeping"),
        (("workers", 0, "temporal", "versions", 0, "openWorkflows"), -1),
        (("workers", 0, "temporal", "versions", 0, "openWorkflows"), True),
        (("workers", 0, "temporal", "versions", 0, "taskQueues"), {}),
        (("workers", 0, "temporal", "versions", 0, "createdAt"), "2026-11-21T12:00:00"),
        (("workers", 0, "temporal", "routing", "ramping", "percentage"), "5"),
    ],
)
def test_snapshot_that_is_not_whole_is_refused(path: tuple[str | int, ...], value: Any) -> None:
    document = snapshot()
    place: Any = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(StateUnavailable, match="not a complete Snapshot"):
        read_snapshot(document, "snapshot.yaml")
