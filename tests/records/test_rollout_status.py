"""How a rollout goes, as its cluster keeps it."""

import json
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.schemas.documents import STATUS
from tests.schemas.printed import reported
from tests.strategies import NOW
from twgen.errors import InvalidInput
from twgen.model.plan import Phase
from twgen.model.status import RolloutStatus
from twgen.records.rollout_status import STATUS as SHAPE
from twgen.records.rollout_status import parse_rollout_status, write_rollout_status
from twgen.reporting.status.lines import fleet_status
from twgen.yaml.source import Budget, Limits

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "status.json").read_text())
REPORT = reported(worker="shop/pay")
REPORTED: Any = {**STATUS, "workers": [{**STATUS["workers"][0], "worker": "shop/pay"}]}
texts = st.text(st.characters(exclude_categories=("Cs",)))
statuses = st.builds(
    RolloutStatus,
    worker=st.just("shop/pay"),
    phase=st.sampled_from(Phase),
    reason=texts,
    message=texts,
    target=texts,
    current=texts,
    percentage=st.integers(0, 1000).map(lambda tenths: tenths / 10),
    since=st.integers(0, 10**6).map(lambda seconds: NOW - timedelta(seconds=seconds)),
    report=st.sampled_from((None, REPORT)),
    intent=texts,
)


def config_map(data: Any) -> dict[str, Any]:
    return {"metadata": {"name": "pay-rollout-status", "namespace": "shop"}, "data": data}


@given(statuses)
def test_status_is_read_back_as_it_was_written(status: RolloutStatus) -> None:
    assert parse_rollout_status(config_map(write_rollout_status(status))) == status


@given(statuses)
def test_only_an_intent_that_is_settled_is_told_as_settled(status: RolloutStatus) -> None:
    settled = write_rollout_status(status)["settled"]
    assert settled == (status.intent if status.phase is Phase.SETTLED else "")


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("phase", "Fine"),
        ("since", "yesterday"),
        ("percentage", "half"),
        ("percentage", "nan"),
        ("percentage", "-5"),
        ("status.json", "{"),
        ("status.json", '{"workers": [{"versions": [{"status": NaN}]}]}'),
        ("status.json", "[" * 100_000),
        ("worker", "mail/pay"),
        ("worker", "shop/mail"),
        ("worker", "pay"),
        ("worker", "shop/pay;"),
        ("worker", None),
    ],
)
def test_status_that_somebody_broke_is_named(key: str, text: str | None) -> None:
    whole = write_rollout_status(
        RolloutStatus("shop/pay", Phase.SETTLED, "Settled", "", "v1", "v1", 100, NOW, None)
    )
    broken = {**whole, key: text} if text is not None else {k: v for k, v in whole.items() if k != key}
    with pytest.raises(InvalidInput, match="ConfigMap shop/pay-rollout-status does not contain the status"):
        parse_rollout_status(config_map(broken))


def at(path: str, value: object) -> Any:
    """The reported document with another value at this path."""
    document = deepcopy(REPORTED)
    *places, last = path.split(".")
    inner: Any = document
    for place in places:
        inner = inner[int(place) if place.isdecimal() else place]
    inner[last] = value
    return document


@pytest.mark.parametrize(
    "document",
    [
        *([], 5, {"workers": []}, {"a": [1]}),
        at("workers", 5),
        at("workers", [None]),
        at("workers", [*REPORTED["workers"], *REPORTED["workers"]]),
        at("workers.0.worker", "mail/pay"),
        at("workers.0.phase", "Fine"),
        at("workers.0.waitsUntil", 5),
        at("workers.0.steps", "abc"),
        at("workers.0.versionCount", [1]),
        at("workers.0.versionCount.deployed", -1),
        at("workers.0.versionCount.deployed", 10**400),
        at("workers.0.versionCount.known", 3),
        at("workers.0.versions", ["Current"]),
        at("workers.0.versions.0.percentage", "x"),
        at("workers.0.versions.0.since", "yesterday"),
        at("workers.0.versions.0.attached", [{}]),
    ],
)
def test_status_whose_details_are_not_as_declared_is_told_without_them(document: object) -> None:
    whole = RolloutStatus("shop/pay", Phase.SETTLED, "Settled", "it is current", "v1", "v1", 100, NOW, None)
    manifest = config_map({**write_rollout_status(whole), "status.json": json.dumps(document)})
    told = "it is current; the version data in its status cannot be read"
    status = parse_rollout_status(manifest)
    assert status == replace(whole, message=told)
    jsonschema.validate(SHAPE.write(fleet_status([status], NOW)), SCHEMA)


def test_status_for_which_no_memory_is_left_is_not_to_be_deleted() -> None:
    status = RolloutStatus("shop/pay", Phase.SETTLED, "Settled", "", "v1", "v1", 100, NOW, REPORT)
    manifest = config_map(write_rollout_status(status))
    with pytest.raises(
        InvalidInput, match=r"pay-rollout-status: .*more than 1 keys and list items in all: wait"
    ):
        parse_rollout_status(manifest, Budget(Limits(nodes=1, remedy="wait")))
