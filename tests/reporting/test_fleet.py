"""Many rollouts at a glance."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.reporting.statuses import of_story
from tests.schemas.printed import reported
from tests.strategies import NOW
from twgen.model.plan import Phase
from twgen.model.rollout import Answer, AnswerState, PendingRequest, Request, Verb
from twgen.model.status import AttachedState, AttachedView, RolloutStatus
from twgen.planning.worker_status import rollout_status
from twgen.records.rollout_status import STATUS, parse_rollout_status, write_rollout_status
from twgen.reporting.page.pages import fleet_page
from twgen.reporting.status.lines import (
    fleet_status,
    lines_without_details,
    orphan_lines,
    request_phrase,
    status_lines,
    when_answered,
)
from twgen.reporting.status.trees import Layout, status_text
from twgen.versioning.names import ABORT_REQUEST, REQUEST

RAMPS = RolloutStatus(
    worker="shop/pay",
    phase=Phase.WAITING,
    reason="RampPaused",
    message="it stays at 25%\x1b[2J",
    target="v2",
    current="v1",
    percentage=25,
    since=NOW,
    report=reported(
        [],
        worker="shop/pay",
        targetBuildID="v2",
        unversionedPercentage=None,
        **{name: [] for name in ("gates", "analysis", "draining")},
        **dict.fromkeys(("next", "waitsUntil")),
    ),
)
FIRST = RolloutStatus("shop/new", Phase.BLOCKED, "GateFailed", "it failed", "v1", "", 0, NOW, None)


def lines_of(*statuses: RolloutStatus, now: datetime = NOW) -> list[str]:
    return [line.text for line in status_lines(fleet_status(statuses, now))]


def document_of(*statuses: RolloutStatus, warnings: Sequence[str] = ()) -> Any:
    return STATUS.write(fleet_status(statuses, NOW, warnings))


def test_line_says_where_a_rollout_stands_for_how_long_and_why() -> None:
    assert lines_of(RAMPS, FIRST, now=NOW + timedelta(minutes=12)) == [
        "shop/pay: Waiting for 12m, target v2; RampPaused: it stays at 25%\\x1b[2J; manager: no manager",
        "shop/new: Blocked for 12m, target v1; GateFailed: it failed",
    ]


def test_deployments_that_no_intent_names_any_more_are_told_of() -> None:
    [line] = orphan_lines({"shop/gone": ["gone-v1", "gone-v2"]})
    assert line.startswith("shop/gone: gone-v1 and gone-v2 are no longer rendered")
    assert "kubectl delete deployments,hpa,pdb -n shop -l temporal.io/deployment-name=gone" in line
    assert document_of(warnings=[line])["warnings"] == [line]


def test_documents_of_all_rollouts_are_one_status() -> None:
    document = document_of(RAMPS, FIRST)
    assert document["kind"] == "Status"
    assert document["workers"][0] == {**STATUS.write(RAMPS.report)["workers"][0], "request": None}


ASKED = Request("r1", Verb.ABORT, "v2", NOW - timedelta(seconds=3), "ana")


@pytest.mark.parametrize(
    ("answer", "state", "phrase"),
    [
        (None, "Pending", "Abort of v2, requested by ana 3s ago: its rollout usually answers within seconds"),
        (AnswerState.TAKEN, "Taken", "Abort of v2, requested by ana 3s ago: it is being carried out"),
        (AnswerState.DONE, "Done", "Abort of v2, requested by ana: Done: why"),
        (AnswerState.REFUSED, "Refused", "Abort of v2, requested by ana: Refused: why"),
    ],
)
def test_request_is_shown_from_the_press_to_an_hour_after_its_answer(
    answer: AnswerState | None, state: str, phrase: str
) -> None:
    answered = Answer(ASKED, answer, "why") if answer else None
    is_open = answer in {None, AnswerState.TAKEN}
    pending = PendingRequest(ABORT_REQUEST, ASKED, "", answered, "7")
    status = replace(RAMPS, pending=(pending,) if is_open else (), answers=(answered,) if answered else ())
    assert request_phrase(status, NOW) == phrase
    assert phrase in lines_of(status)[0]
    [worker] = document_of(status)["workers"]
    assert (worker["request"]["state"], worker["request"]["by"]) == (state, "ana")
    in_future = ASKED._replace(at=NOW + timedelta(9))
    ahead = replace(status, answers=(answered._replace(request=in_future),) if answered else ())
    assert bool(request_phrase(ahead, NOW)) == is_open
    later = NOW + timedelta(hours=2)
    assert bool(request_phrase(status, later)) == is_open
    layout = Layout(colour=False, width=200, ascii_only=False)
    assert phrase in status_text(fleet_status([status], NOW), layout)
    assert phrase in fleet_page([status], NOW)


ENDED = "its rollout has ended: `twgen tick` answers the request, or run `twgen abort worker/pay -n shop`"


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        ("RampPaused", "its rollout usually answers within seconds"),
        ("RolloutNotBegun", "its rollout answers once it has begun"),
        ("GateFailed", ENDED),
        ("RolloutEnded", ENDED),
    ],
)
def test_request_that_waits_says_what_it_waits_for(reason: str, says: str) -> None:
    pending = PendingRequest(ABORT_REQUEST, ASKED, "", None, "7")
    status = replace(RAMPS, reason=reason, pending=(pending,))
    assert request_phrase(status, NOW) == f"Abort of v2, requested by ana 3s ago: {says}"
    assert when_answered(status, Verb.ABORT) == says
    taken = pending._replace(answer=Answer(ASKED, AnswerState.TAKEN, "do it"))
    assert request_phrase(replace(status, pending=(taken,)), NOW).endswith("it is being carried out")


def test_annotation_that_is_no_request_is_shown_as_what_it_is() -> None:
    wrong = "its annotation twgen.io/request cannot be read: it must be JSON"
    status = replace(RAMPS, pending=(PendingRequest(REQUEST, None, wrong, None, "7"),))
    assert request_phrase(status, NOW) == wrong


def test_document_has_a_rollout_that_has_left_nothing_but_where_it_stands() -> None:
    document = document_of(FIRST, warnings=lines_without_details([FIRST, RAMPS]))
    schema = json.loads((Path(__file__).parents[2] / "schemas" / "status.json").read_text())
    Draft202012Validator(schema).validate(document)
    [worker] = document["workers"]
    told = {"worker": "shop/new", "targetBuildID": "v1", "phase": "Blocked", "reason": "GateFailed"}
    assert worker | told == worker
    assert (worker["because"], worker["versions"], worker["versionCount"]) == ("it failed", [], None)
    assert document["warnings"] == ["shop/new: Blocked: it failed"]


def trees(*statuses: RolloutStatus, width: int = 80, rows: int | None = None) -> list[str]:
    layout = Layout(colour=False, width=width, ascii_only=False, rows=rows)
    return status_text(fleet_status(statuses, NOW + timedelta(minutes=12)), layout).splitlines()


def test_tree_of_a_rollout_is_drawn_by_the_document_that_it_left() -> None:
    left = rollout_status(of_story("mid-ramp-waits"), NOW, "")
    assert trees(left) == [
        "… shop/payments  Waiting for 12m  Temporal namespace default",
        "  target   v2.0.1-c656: it stays at 25% for 18m more (at 12:00:00 UTC; until",
        "           12:18:00 UTC)",
        "  next     send 75% of new workflows to v2.0.1-c656 in 6m (12:18:00 UTC)",
        "  manager  twgen/payments/prod-eu (ours)",
        "├── v2.0.1-c656  25%  Ramping for 24m     3/3 pods  ◀ target",
        "└── v1.4.2-6964  75%  Current for 24h12m  3/3 pods",
    ]


def test_tree_says_what_is_wrong_with_pods_and_attached_objects() -> None:
    left = rollout_status(of_story("mid-ramp-waits"), NOW, "")
    assert left.details
    target, current = left.details.versions
    assert target.pods
    pods = replace(target.pods, available=0, stalled="too slow", problem="waits (ImagePullBackOff)")
    missing = AttachedView("HorizontalPodAutoscaler", "cpu", AttachedState.MISSING, "gone")
    target = replace(target, pods=pods, attached=(missing,))
    told = trees(left.with_details(versions=(target, current)))
    assert [line.strip("│ ") for line in told[6:9]] == [
        "its Deployment cannot progress: too slow",
        "its newest Pod waits (ImagePullBackOff)",
        "HorizontalPodAutoscaler cpu is missing: gone",
    ]


def test_status_that_somebody_wrote_otherwise_hides_no_other() -> None:
    entries = {**write_rollout_status(RAMPS), "status.json": '{"workers": [{"versions": [{"buildID": 1}]}]}'}
    metadata = {"namespace": "shop", "name": "pay-rollout-status"}
    told = trees(parse_rollout_status({"metadata": metadata, "data": entries}), FIRST)
    assert told == [
        "2 workers: 1 Blocked, 1 Waiting",
        "",
        "✗ shop/new  Blocked (GateFailed) for 12m",
        "  target   v1: it failed",
        "",
        "… shop/pay  Waiting for 12m",
        "  target   v2: it stays at 25%\\x1b[2J; the version data in its status cannot be",
        "           read",
    ]


def test_rollouts_that_do_not_fit_a_terminal_are_told_worst_first() -> None:
    settled = replace(FIRST, phase=Phase.SETTLED)
    many = [replace(settled, worker=f"shop/{number}") for number in range(9)]
    told = trees(*many, FIRST, rows=6)
    assert told[2:4] == ["✗ shop/new  Blocked (GateFailed) for 12m", "  target   v1: it failed"]
    assert told[4].startswith("✓ 9 Settled: shop/0, shop/1")
