"""The answer that a person waits for who names a worker."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.planning.test_requests import MOVING
from tests.strategies import NOW
from twgen.cli import by_name
from twgen.errors import NegativeAnswer
from twgen.model.requests import Answer, AnswerState, PendingRequest, Request, Verb

MINE = Request("r1", Verb.ABORT, "v2", NOW, "ana")
OTHERS = Request("r2", Verb.RESUME, "v2", NOW, "ben")


@pytest.mark.parametrize(
    ("pending", "answer", "message"),
    [
        (None, None, "somebody took the request back"),
        (None, Answer(OTHERS._replace(id="r0"), AnswerState.DONE, "done"), "somebody took the request back"),
        (None, Answer(OTHERS, AnswerState.DONE, "done"), "what came of it is unknown: Resume of v2"),
        (PendingRequest(OTHERS, "", None, "7"), None, "what came of it is unknown: Resume of v2"),
    ],
)
def test_request_after_which_another_came_is_not_called_taken_back(
    monkeypatch: pytest.MonkeyPatch, pending: PendingRequest | None, answer: Answer | None, message: str
) -> None:
    async def status(*_: Any) -> Any:
        return replace(MOVING, pending=pending, answer=answer)

    monkeypatch.setattr(by_name, "_status", status)
    monkeypatch.setattr(by_name, "_BETWEEN_LOOKS", 0)
    unused: Any = None
    waits = by_name._answer(unused, by_name.Named("shop", "pay"), unused, by_name._Sent(MINE, "r0", ""))  # noqa: SLF001
    with pytest.raises(NegativeAnswer, match=message):
        asyncio.run(waits)
