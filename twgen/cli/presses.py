"""The buttons of `twgen dashboard`: who may press which, and what becomes of a press."""

import json
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NoAnswer
from contextlib import suppress
from queue import Empty, Queue
from typing import NamedTuple

from twgen.cli.by_name import refused_or_sent, request_by
from twgen.cli.live import Connections, Servers
from twgen.cli.serving import Answer, Request
from twgen.cli.settings import Settings
from twgen.cli.worker_name import Named
from twgen.clients.deadline import monotonic
from twgen.errors import NegativeAnswer, TwgenError
from twgen.model.diagnosis import Account, Need, Right, Severity
from twgen.model.requests import Verb
from twgen.model.status import RolloutStatus
from twgen.planning.requests import offered, same_that_waits
from twgen.reading.installation.api_server import refused_needs
from twgen.reporting.printable import printable
from twgen.reporting.status.lines import when_answered
from twgen.versioning.names import rollout_status_name

_PATIENCE = 30.0
"""Seconds that a press waits for the API server."""
_RIGHTS_LAST = 300.0
"""Seconds until it is asked again what the account may."""


class Press(NamedTuple):
    """A press of a button."""

    worker: str
    verb: Verb
    target: str
    """The build ID that the page showed."""
    reason: str
    """The reason that the page showed."""


class Presses:
    """Takes presses in the threads that serve the page, and carries them out in the one that reads."""

    def __init__(self, settings: Settings, servers: Servers) -> None:
        self._settings, self._servers = settings, servers
        self._waiting: Queue[tuple[Press, Future[str]]] = Queue()
        self._known: dict[str, tuple[bool, float]] = {}
        """Whether the account may request something of a worker, and until when that counts."""

    def offers(self, status: RolloutStatus) -> Collection[Verb]:
        """The buttons of a worker; none without the right to request something of it."""
        may, _ = self._known.get(status.worker, (False, 0.0))
        return offered(status) if may else ()

    def ask_rights(self, statuses: Sequence[RolloutStatus]) -> None:
        """Ask the API server what the account may do to the rollouts that have something to offer."""
        now = monotonic()
        asked = {
            status.worker
            for status in statuses
            if offered(status) and self._known.get(status.worker, (False, 0.0))[1] <= now
        }
        needs = {worker: _need(worker) for worker in sorted(asked)}
        if not needs:
            return

        async def ask(opened: Connections) -> tuple[Need, ...]:
            client = opened.cluster_for("dashboard")
            return await refused_needs(client, needs.values(), opened.deadline(), of_caller=True)

        with suppress(TwgenError):  # then there are no buttons, and the page is as before
            refused = set(self._servers.run((), ask))
            self._known |= {
                worker: (need not in refused, now + _RIGHTS_LAST) for worker, need in needs.items()
            }

    def answer(self, request: Request) -> Answer:
        """The answer to a press; it waits for the thread that carries it out."""
        if request.get("CONTENT_TYPE") != "application/json":
            return _text("415 Unsupported Media Type", "a press is JSON")
        try:
            value = json.loads(request["wsgi.input"].read())
            press = Press(
                str(value["worker"]), Verb(value["verb"]), str(value["target"]), str(value.get("reason", ""))
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            return _text("400 Bad Request", "a press has a worker, a verb and a target")
        done: Future[str] = Future()
        self._waiting.put((press, done))
        try:
            return _text("200 OK", done.result(_PATIENCE))
        except NoAnswer:
            return _text(
                "504 Gateway Timeout", "the API server has not answered yet: see the row of the worker"
            )
        except TwgenError as error:
            return _text("409 Conflict", str(error))

    def carry_out(self, seconds: float, statuses: Callable[[], Sequence[RolloutStatus]]) -> None:
        """Wait for a press for so long, and carry it out."""
        with suppress(Empty):
            press, done = self._waiting.get(timeout=seconds)
            try:
                done.set_result(self._request(press, statuses()))
            except TwgenError as error:
                done.set_exception(error)

    def _request(self, press: Press, statuses: Sequence[RolloutStatus]) -> str:
        status = next((status for status in statuses if status.worker == press.worker), None)
        if not status or status.target != press.target or press.verb not in self.offers(status):
            raise NegativeAnswer(
                f"{press.worker}: its state has changed, and {press.verb} makes no sense now"
            )
        wanted = request_by(self._settings, press.verb, status)._replace(reason=press.reason)
        if same := same_that_waits(status, wanted):
            return f"{status.worker}: {same} waits already: {when_answered(status, press.verb)}"
        named = Named(*status.worker.split("/", 1))
        if why := self._servers.run((), lambda opened: refused_or_sent(opened, named, wanted, status)):
            raise NegativeAnswer(f"{press.verb} of {status.worker} was not requested: {why}")
        return f"requested {press.verb} of {status.worker}: {when_answered(status, press.verb)}"


def _need(worker: str) -> Need:
    namespace, _, name = worker.partition("/")
    right = Right("patch", "", "configmaps", rollout_status_name(name))
    return Need(Account(""), namespace, right, "", Severity.ADVICE)


def _text(status: str, text: str) -> Answer:
    return Answer(status, "text/plain; charset=utf-8", f"{printable(text)}\n".encode())
