"""Requests that are judged by a status that has changed since."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.executing.api_server import STATUS, ApiServer
from tests.planning.test_requests import MOVING, asked
from tests.strategies import NOW
from twgen.cli import by_name
from twgen.cli.by_name import Named, refused_or_sent
from twgen.clients.deadline import Deadline
from twgen.model.plan import Phase
from twgen.model.rollout import Answer, AnswerState, Request, Verb
from twgen.model.status import RolloutStatus
from twgen.records.rollout_status import (
    ANSWER_ENTRIES,
    annotation_of,
    parse_pending,
    parse_rollout_status,
    write_answer,
    write_request,
    write_rollout_status,
)
from twgen.versioning.names import ABORT_REQUEST, REQUEST

NAMED = Named("shop", "payments")
THEIRS = Request("theirs", Verb.ABORT, "v2", NOW, "ben")


class Cluster:
    """An API server with the status of one rollout, which people see before it changes."""

    def __init__(self) -> None:
        self.api = ApiServer()
        self.write(replace(MOVING, worker="shop/payments"))
        self.seen = self.status

    @property
    def status(self) -> RolloutStatus:
        return parse_rollout_status(self.api.objects[STATUS])

    def write(self, status: RolloutStatus) -> None:
        metadata = {"name": "payments-rollout-status", "namespace": "shop"}
        self.api.put(STATUS, {"metadata": metadata, "data": write_rollout_status(status)})

    def request(self, request: Request, annotation: str = "") -> None:
        """Another person makes a request."""
        self.api.annotate(STATUS, **{annotation or annotation_of(request.verb): write_request(request)})

    def send(self, request: Request) -> str:
        """Why a request of the person who saw the first status is refused."""
        opened: Any = SimpleNamespace(cluster_for=lambda _: self.api, deadline=lambda: Deadline(9))
        return asyncio.run(refused_or_sent(opened, NAMED, request, self.seen))

    @property
    def pending(self) -> list[str]:
        return [each.request.id for each in parse_pending(self.api.objects[STATUS]) if each.request]


@pytest.mark.parametrize("annotation", [ABORT_REQUEST, REQUEST])
@pytest.mark.parametrize("verb", sorted(set(Verb) - {Verb.ABORT}))
def test_request_that_was_judged_before_an_abort_is_refused_and_replaces_nothing(
    verb: Verb, annotation: str
) -> None:
    cluster = Cluster()
    cluster.request(THEIRS, annotation)
    why = cluster.send(asked(verb, id="mine"))
    assert why.startswith("Abort of v2, requested by ben waits for its answer")
    assert cluster.pending == ["theirs"]


def test_request_is_judged_again_by_a_status_that_has_changed_and_then_sent() -> None:
    cluster = Cluster()
    cluster.write(replace(cluster.seen, percentage=50))
    assert cluster.send(asked(Verb.PROMOTE, id="mine")) == ""
    assert cluster.pending == ["mine"]


def test_request_for_a_rollout_that_has_settled_meanwhile_is_refused() -> None:
    cluster = Cluster()
    cluster.write(replace(cluster.seen, phase=Phase.SETTLED))
    assert "is settled" in cluster.send(asked(Verb.PROMOTE, id="mine"))
    cluster.write(replace(cluster.seen, target="v3"))
    assert cluster.send(asked(Verb.PROMOTE, id="mine")) == "its target is v3 now"
    assert cluster.pending == []


def test_abort_is_sent_whatever_waits_and_leaves_that_for_its_answer() -> None:
    cluster = Cluster()
    cluster.request(asked(Verb.PROMOTE, id="theirs"))
    assert cluster.send(asked(Verb.ABORT, id="mine")) == ""
    assert cluster.pending == ["mine", "theirs"]


def test_two_people_who_press_abort_hear_of_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    assert cluster.send(asked(Verb.ABORT, id="mine")) == ""
    cluster.request(THEIRS)
    statuses = iter([cluster.status, cluster.status])

    async def status(*_: Any) -> RolloutStatus:
        return next(statuses, None) or answered()

    def answered() -> RolloutStatus:
        found = cluster.api.objects[STATUS]
        entry = {ANSWER_ENTRIES[ABORT_REQUEST]: write_answer(Answer(THEIRS, AnswerState.DONE, "it ended"))}
        cluster.api.put(STATUS, {**found, "data": {**found["data"], **entry}})
        cluster.api.annotate(STATUS, **{ABORT_REQUEST: None})
        return cluster.status

    monkeypatch.setattr(by_name, "_status", status)
    monkeypatch.setattr(by_name, "_BETWEEN_LOOKS", 0)
    unused: Any = None
    mine = asked(Verb.ABORT, id="mine")
    answer = asyncio.run(by_name._answer(unused, NAMED, mine, set(), ""))  # noqa: SLF001
    assert (answer.request.id, answer.message) == ("theirs", "it ended")
