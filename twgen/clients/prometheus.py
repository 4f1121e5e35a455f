"""Asks a Prometheus for the numbers of a query, over its API, inside the deadline."""

import asyncio
import re
import time
from base64 import b64encode
from collections import defaultdict
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from threading import get_ident
from typing import Any, NamedTuple
from urllib.parse import urlencode

from twgen.clients.deadline import Deadline, in_thread
from twgen.clients.http import Answer, Request, answer_to
from twgen.errors import StateUnavailable
from twgen.model.operator import PrometheusServer, prometheus_called
from twgen.versioning.names import PROMETHEUS_CA, PROMETHEUS_PASSWORD, PROMETHEUS_TOKEN, PROMETHEUS_USER
from twgen.yaml.limits import DEFAULT, Budget

MOST_BYTES = 2**20
"""Of an answer: a thousand points have some fifty thousand."""
_LONGEST_WAIT = 10.0
"""Seconds for one answer, however long the deadline is: other metrics and workers are asked after it."""
_AT_ONCE = 4
_MOST_UNANSWERED = 8
_LONGEST_MESSAGE = 200
_TOKEN = re.compile("[!-~]+")
_PASSWORD = re.compile("[^\\x00-\\x1f\\x7f]+")
_SOMETHING_ELSE = "did not answer like Prometheus: is the address right?"


class RangeQuery(NamedTuple):
    """A query for many moments: from the first to the last, by steps, in seconds since 1970."""

    query: str
    first: float
    last: float
    step: float


@dataclass(slots=True)
class PrometheusServers:
    """Those that a run may ask; they belong to one event loop."""

    usable: tuple[PrometheusServer, ...]
    remedy: str
    """What to do where there is none of that name: the end of a sentence."""
    _unanswered: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """The threads that still wait for an answer of each server."""
    _free: defaultdict[str, asyncio.Semaphore] = field(
        default_factory=lambda: defaultdict(lambda: asyncio.Semaphore(_AT_ONCE))
    )
    """Of each server: one that is slow must not hold up another."""

    def called(self, name: str) -> PrometheusServer:
        """The one of that name, or the only one; raises StateUnavailable when there is none, or several."""
        found, why_none = prometheus_called(name, self.usable, self.remedy)
        if not found:
            raise StateUnavailable(why_none)
        return found

    async def series(self, server: PrometheusServer, asked: RangeQuery, deadline: Deadline) -> list[Any]:
        """The series that the query has there, as Prometheus writes them.

        Raises StateUnavailable when it refuses, cannot be reached or says too much, OutOfTime after the
        deadline.
        """
        deadline, who = deadline.for_answer(), _who(server)
        if (unanswered := len(self._unanswered[server.name])) >= _MOST_UNANSWERED:
            raise StateUnavailable(f"{who} did not answer {unanswered} queries")

        async def answer() -> Answer:
            await deadline.turn(self._turn(server))
            try:
                seconds = max(0.1, min(_LONGEST_WAIT, deadline.remaining))
                async with asyncio.timeout(_LONGEST_WAIT):
                    return await in_thread(lambda: self._post(server, asked, seconds))
            except TimeoutError:
                raise _too_slow(server) from None
            finally:
                self._free[server.name].release()

        answered = await deadline.bound(who, answer())
        document = answered.document(Budget(DEFAULT))
        if answered.status != HTTPStatus.OK:
            raise StateUnavailable(f"{who} {_refusal(server, answered, document)}")
        return _series(answered, document)

    def _post(self, server: PrometheusServer, asked: RangeQuery, seconds: float) -> Answer:
        # headers that trickle in keep a thread for longer than anybody waits for it
        self._unanswered[server.name].add(thread := get_ident())
        try:
            return _post(server, asked, seconds)
        finally:
            self._unanswered[server.name].discard(thread)

    async def _turn(self, server: PrometheusServer) -> None:
        await self._free[server.name].acquire()


def _series(answer: Answer, document: Any) -> list[Any]:
    who = answer.request.who
    if not isinstance(document, dict) or "status" not in document:
        raise StateUnavailable(f"{who} {_SOMETHING_ELSE}")
    if document["status"] != "success":
        raise StateUnavailable(f"{who} cannot answer: {answer.told(document, 'error')[:_LONGEST_MESSAGE]}")
    match document.get("data"):
        case {"resultType": "matrix", "result": [*series]}:
            return series
        case {"resultType": str(kind)} if kind != "matrix":
            told = answer.request.said(kind)[:_LONGEST_MESSAGE]
            raise StateUnavailable(f"{who} answers with a {told}, not with numbers over time")
    raise StateUnavailable(f"{who} {_SOMETHING_ELSE}")


def _who(server: PrometheusServer) -> str:
    return f"Prometheus {server.name} at {server.url}"


def _too_slow(server: PrometheusServer) -> StateUnavailable:
    return StateUnavailable(
        f"{_who(server)} did not answer within {_LONGEST_WAIT:g} s: is the query too slow?"
    )


def _refusal(server: PrometheusServer, answer: Answer, document: Any) -> str:
    status, said = answer.status, answer.told(document, "error")[:_LONGEST_MESSAGE]
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        where = "in its Secret" if server.secret_folder else "in the operator's file"
        return f"requires other credentials than the ones {where} ({status}: {said})"
    if document:
        return f"refuses the query ({status}: {said})"
    return f"{_SOMETHING_ELSE} ({status}: {said})"


def _authorization(server: PrometheusServer) -> dict[str, str]:
    """The header that says who asks, by the files as they are now; raises StateUnavailable."""
    folder = server.secret_folder
    token_file, password_file = server.bearer_token_file, server.password_file
    if folder:
        token_file, password_file = f"{folder}/{PROMETHEUS_TOKEN}", f"{folder}/{PROMETHEUS_PASSWORD}"
    may_be_absent = bool(folder)
    if token := _content(token_file, _TOKEN, may_be_absent=may_be_absent):
        return {"Authorization": f"Bearer {token}"}
    if not (password := _content(password_file, _PASSWORD, may_be_absent=may_be_absent)):
        return {}
    user = server.username
    if folder:
        user = _content(f"{folder}/{PROMETHEUS_USER}", _PASSWORD, may_be_absent=may_be_absent)
    return {"Authorization": f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"}


def _content(file: str, form: re.Pattern[str], *, may_be_absent: bool) -> str:
    """What a file holds, less blanks around it; empty: there is none."""
    if not file:
        return ""
    try:
        text = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        if may_be_absent and isinstance(error, FileNotFoundError):
            return ""
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise StateUnavailable(f"{file} cannot be read ({why})") from None
    if not form.fullmatch(text):
        raise StateUnavailable(f"{file} contains nothing that could be sent to Prometheus as a credential")
    return text


def _trusted(server: PrometheusServer) -> str | None:
    file = f"{server.secret_folder}/{PROMETHEUS_CA}" if server.secret_folder else server.ca_file
    if not file or (server.secret_folder and not Path(file).exists()):
        return None
    if not Path(file).is_file():
        raise StateUnavailable(f"{file}: cannot read the trusted certificates")
    return file


def _post(server: PrometheusServer, asked: RangeQuery, seconds: float) -> Answer:
    """One answer."""
    from urllib3 import PoolManager

    ends = time.monotonic() + seconds
    form = {
        "query": asked.query,
        "start": f"{asked.first:.3f}",
        # it counts in milliseconds: the last moment must not be cut off by a rounded one
        "end": f"{asked.last + 0.001:.3f}",
        "step": f"{asked.step:.3f}",
        "timeout": f"{seconds:.3f}",
    }
    request = Request(
        who=_who(server),
        method="POST",
        url=f"{server.url.rstrip('/')}/api/v1/query_range",
        headers={
            **server.headers,
            "Content-Type": "application/x-www-form-urlencoded",
            **_authorization(server),
        },
        body=urlencode(form).encode(),
        ends=ends,
        late=_too_slow(server),
        most_bytes=MOST_BYTES,
        to_shorten_it=": aggregate the query",
    )
    with PoolManager(ca_certs=_trusted(server)) as pool:
        return answer_to(request, pool)
