"""Runs range queries through a Prometheus server's API."""

import asyncio
import re
from base64 import b64encode
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from threading import get_ident
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode

from twgen.clients.deadline import Deadline, in_thread
from twgen.clients.http import TOKEN, HttpAnswer, HttpRequest, answer_to, pool_trusting
from twgen.errors import StateUnavailable, TwgenError
from twgen.model.operator import PrometheusServer, prometheus_called
from twgen.versioning.names import PROMETHEUS_CA, PROMETHEUS_PASSWORD, PROMETHEUS_TOKEN, PROMETHEUS_USER
from twgen.yaml.source import DEFAULT, Budget

MOST_BYTES = 2**20
"""The maximum size of a response in bytes. A thousand data points take about fifty thousand bytes."""
_LONGEST_WAIT = 10.0
"""twgen waits at most this many seconds for one response, even if the deadline is later, because twgen must
also read other metrics and workers."""
_AT_ONCE = 4
_MOST_UNANSWERED = 8
_LONGEST_MESSAGE = 200
_PASSWORD = re.compile("[^\\x00-\\x1f\\x7f]+")
_SOMETHING_ELSE = "did not answer like Prometheus: is the address right?"


class RangeQuery(NamedTuple):
    """A query for a time range. `first` and `last` are seconds since 1970, and `step` is in seconds."""

    query: str
    first: float
    last: float
    step: float


class _OfQuery(Deadline):
    """The deadline of one query. A missed deadline raises StateUnavailable, which does not end the run."""

    def missed(self, subject: str) -> TwgenError:
        return StateUnavailable(
            f"{subject} did not answer within {_LONGEST_WAIT:g} s: is the query too slow?"
        )


@dataclass(slots=True)
class PrometheusServers:
    """The Prometheus servers that a run may query. This object belongs to one event loop."""

    usable: tuple[PrometheusServer, ...]
    remedy: str
    """Advice if no server has the requested name, worded as the end of a sentence."""
    _unanswered: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """The threads that are still waiting for a response, by server. Headers that arrive slowly can block a
    thread for a long time."""
    _free: defaultdict[str, asyncio.Semaphore] = field(
        default_factory=lambda: defaultdict(lambda: asyncio.Semaphore(_AT_ONCE))
    )
    """Limits the requests to each server separately, so that a slow server does not delay other servers."""

    def among(self, names: Collection[str]) -> Self:
        """Only the servers with these names. The result shares the request limits of this object."""
        return replace(self, usable=tuple(server for server in self.usable if server.name in names))

    def called(self, name: str) -> PrometheusServer:
        """The server with this name, or the only server if `name` is empty.

        Raises StateUnavailable if there is no such server.
        """
        server, why_none = prometheus_called(name, self.usable, self.remedy)
        if not server:
            raise StateUnavailable(why_none)
        return server

    async def series(self, server: PrometheusServer, query: RangeQuery, deadline: Deadline) -> list[Any]:
        """The series that a query returns, in Prometheus's JSON form.

        Raises StateUnavailable if the server rejects the query, cannot be reached, or returns too much data,
        and OutOfTime after the deadline.
        """
        deadline, unanswered = deadline.for_answer(), self._unanswered[server.name]
        subject, free = f"Prometheus {server.name} at {server.url}", self._free[server.name]
        if len(unanswered) >= _MOST_UNANSWERED:
            raise StateUnavailable(f"{subject} did not answer {len(unanswered)} queries")

        def post(one: Deadline) -> HttpAnswer:
            unanswered.add(thread := get_ident())
            try:
                return _post(subject, server, query, one)
            finally:
                unanswered.discard(thread)

        async def answer() -> HttpAnswer:
            await deadline.turn(free.acquire())
            try:
                one = _OfQuery(max(0.1, min(_LONGEST_WAIT, deadline.remaining)))
                return await one.bound(subject, in_thread(lambda: post(one)))
            finally:
                free.release()

        return _series(server, await deadline.bound(subject, answer()))


def _series(server: PrometheusServer, answer: HttpAnswer) -> list[Any]:
    subject, status, document = answer.request.subject, answer.status, answer.document(Budget(DEFAULT))
    message = answer.message(document, "error")[:_LONGEST_MESSAGE]
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        credentials_place = "in its Secret" if server.secret_folder else "in the operator's file"
        why = f"does not accept the credentials {credentials_place} ({status}: {message})"
    elif status != HTTPStatus.OK:
        why = f"{'rejects the query' if document else _SOMETHING_ELSE} ({status}: {message})"
    elif not document or "status" not in document:
        why = _SOMETHING_ELSE
    elif document["status"] != "success":
        why = f"cannot answer: {message}"
    else:
        match document.get("data"):
            case {"resultType": "matrix", "result": [*series]}:
                return series
            case {"resultType": str(kind)} if kind != "matrix":
                kind = answer.request.safe(kind)[:_LONGEST_MESSAGE]
                why = f"returned a {kind}; a range query returns a matrix"
            case _:
                why = _SOMETHING_ELSE
    raise StateUnavailable(f"{subject} {why}")


def _authorization(server: PrometheusServer) -> dict[str, str]:
    """The Authorization header. The files are read each time, because credentials are renewed."""
    folder, user = server.secret_folder, server.username
    token_file, password_file = server.bearer_token_file, server.password_file
    if folder:
        token_file, password_file = f"{folder}/{PROMETHEUS_TOKEN}", f"{folder}/{PROMETHEUS_PASSWORD}"
    if token := _content(token_file, TOKEN, may_be_absent=bool(folder)):
        return {"Authorization": f"Bearer {token}"}
    if not (password := _content(password_file, _PASSWORD, may_be_absent=bool(folder))):
        return {}
    if folder:
        user = _content(f"{folder}/{PROMETHEUS_USER}", _PASSWORD, may_be_absent=True)
    return {"Authorization": f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"}


def _content(file: str, form: re.Pattern[str], *, may_be_absent: bool) -> str:
    """The content of a file without surrounding spaces, or empty if there is no file."""
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
        raise StateUnavailable(f"{file} does not contain a valid credential")
    return text


def _post(subject: str, server: PrometheusServer, query: RangeQuery, deadline: Deadline) -> HttpAnswer:
    form = {
        "query": query.query,
        "start": f"{query.first:.3f}",
        # Prometheus rounds to milliseconds, so a millisecond is added to keep the last point
        "end": f"{query.last + 0.001:.3f}",
        "step": f"{query.step:.3f}",
        "timeout": f"{deadline.timeout:.3f}",
    }
    own_headers = {"Content-Type": "application/x-www-form-urlencoded", **_authorization(server)}
    request = HttpRequest(
        subject=subject,
        method="POST",
        url=f"{server.url.rstrip('/')}/api/v1/query_range",
        headers={**server.headers, **own_headers},
        body=urlencode(form).encode(),
        deadline=deadline,
        most_bytes=MOST_BYTES,
        to_shorten_it=": aggregate the query",
    )
    authorities = server.ca_file
    if server.secret_folder:
        file = f"{server.secret_folder}/{PROMETHEUS_CA}"
        authorities = file if Path(file).exists() else ""
    with pool_trusting(server.url, authorities) as pool:
        return answer_to(request, pool)
