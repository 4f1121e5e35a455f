"""`twgen dashboard`: serves the page with the buttons that the account may use, and handles presses."""

import gc
import json
import secrets
import webbrowser
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NoAnswer
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path
from queue import Empty, Queue
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import click

from twgen.cli.by_name import refused_or_sent, request_by
from twgen.cli.fleet import namespace_of, read_fleet
from twgen.cli.live import Connections, Servers
from twgen.cli.options import Grouped, options
from twgen.cli.output import warn, write
from twgen.cli.serving import Board, Request, Response, serving
from twgen.cli.settings import Named, Settings, clock, settings_of
from twgen.clients.deadline import monotonic
from twgen.errors import NegativeAnswer, OutOfTime, StateUnavailable, TwgenError
from twgen.model.diagnosis import Account, Need, Right, Severity
from twgen.model.rollout import Verb
from twgen.model.status import RolloutStatus
from twgen.planning.requests import offered, same_that_waits
from twgen.reading.installation.cluster import refused_needs
from twgen.reporting.printable import printable
from twgen.reporting.status.lines import when_answered
from twgen.versioning.names import rollout_status_name

_LOOPBACK = "127.0.0.1:0"
_NAMES_OF_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_USUAL_PORT = 80
_EVERYWHERE = {"", "0.0.0.0", "[::]"}  # noqa: S104 - the user asks for it with --listen
_PATIENCE = 30.0
"""The time limit, in seconds, for the API server's response to a button press."""
_RIGHTS_LAST = 300.0
"""The account's permissions are checked again after this many seconds."""


@click.command(cls=Grouped)
@options(
    *(
        "all_namespaces",
        "namespace",
        "interval",
        "listen",
        "title",
        "no_browser",
        "timeout",
        "kubeconfig",
        "context",
    ),
    *("operator_config", "quiet"),
    all_namespaces="Show the rollouts of every namespace.",
    namespace="Show the rollouts of this namespace.",
    interval="Read the cluster at this interval.",
    operator_config="Use the `links` of this OperatorConfig.",
)
def command(interval: float, listen: str | None, no_browser: bool, **params: Any) -> None:  # noqa: FBT001
    """Open a page that shows every rollout of a cluster, with buttons to pause, abort and retry rollouts.

    Like `twgen status --from-cluster`, the page shows the statuses that rollouts wrote in the cluster. The
    dashboard reads neither Git nor Temporal. A worker has buttons only if your account is allowed to patch
    the worker's status ConfigMap (`payments-rollout-status`). Each button sends the same request as the
    matching command, such as `twgen abort worker/NAME`.

    The printed URL contains a token, and only this machine can open the page. If --listen names another
    address, other machines can open the page too, but the page is read-only.

    \b
    twgen dashboard -A
    twgen dashboard -n shop --no-browser
    """
    gc.enable()  # the command may run for days
    settings = settings_of(params)
    namespace = namespace_of(settings, everywhere=params["all_namespaces"])
    servers, token = Servers(settings), secrets.token_urlsafe(16)
    presses = Presses(settings, servers)
    host = (listen or _LOOPBACK).rpartition(":")[0]
    # on another address, buttons would let anyone who knows the URL act as this account
    has_buttons = host in _NAMES_OF_LOOPBACK
    board = Board(interval, links=settings.operator.links)
    if has_buttons:
        board.offers = presses.offers
    guard = _Guard(board.answer, presses.answer, token)
    methods = ("GET", "HEAD", *(("POST",) if has_buttons else ()))
    with servers, serving("--listen", listen or _LOOPBACK, guard.answer, methods) as port:
        guard.hosts, warned = _hosts(host, port), set[str]()

        async def read(opened: Connections) -> Sequence[RolloutStatus]:
            return await read_fleet(opened.cluster_for("dashboard"), settings, namespace, warned)

        def show() -> None:
            statuses = servers.run((), read)
            presses.ask_rights(statuses)
            board.title = settings.page_title(servers.context)
            board.show(statuses, clock())

        show()
        url = f"http://{'127.0.0.1' if host in _EVERYWHERE else host}:{port}/?token={token}"
        write(f"{url}\n")
        with _leading_to(url) as path:
            if not no_browser:
                webbrowser.open(path.as_uri())
            while True:
                presses.carry_out(interval, lambda: board.statuses)
                try:
                    show()
                except (StateUnavailable, OutOfTime) as error:
                    if board.failure != str(error):
                        warn([f"{error}; trying again"])
                    board.failure = str(error)
                    servers.close()  # a certificate may have been renewed since twgen read it


@contextmanager
def _leading_to(url: str) -> Iterator[Path]:
    """A file that redirects a browser to the URL. Only this user can read the file.

    The browser opens the file instead of the URL, because other users can see a process's arguments.
    """
    with TemporaryDirectory(prefix="twgen-") as folder:
        path = Path(folder, "dashboard.html")
        path.write_text(f'<meta http-equiv="refresh" content="0; url={escape(url)}">', "utf-8")
        yield path


class _Guard:
    """Rejects requests without the token, and cross-site requests."""

    def __init__(
        self, answer: Callable[[Request], Response], press: Callable[[Request], Response], token: str
    ) -> None:
        self._answer = answer
        self._press = press
        self._token = token
        self.hosts: Collection[str] = ()
        """The accepted Host headers. If it is empty, every Host header is accepted."""

    def answer(self, request: Request) -> Response:
        """The response to a request: the page, the result of a button press, or an error."""
        host, origin = str(request.get("HTTP_HOST", "")).lower(), request.get("HTTP_ORIGIN")
        token = parse_qs(request.get("QUERY_STRING", "")).get("token", [""])[0]
        # a browser sends an Origin header with every POST, but not when it follows a link
        is_press = request["REQUEST_METHOD"] == "POST"
        origins = {f"http://{host}"} if is_press else {None, f"http://{host}"}
        is_allowed = (not self.hosts or host in self.hosts) and origin in origins
        if not is_allowed or not secrets.compare_digest(token.encode(), self._token.encode()):
            why = b"open the URL that `twgen dashboard` printed: it contains the token\n"
            return Response("403 Forbidden", "text/plain", why)
        if request["PATH_INFO"] != "/":
            return Response("404 Not Found", "text/plain", b"the only page is /\n")
        return self._press(request) if is_press else self._answer(request)


def _hosts(host: str, port: int) -> Collection[str]:
    """The accepted Host headers, or empty to accept any because the server listens on every address."""
    if host in _EVERYWHERE:
        return ()
    names = _NAMES_OF_LOOPBACK if host in _NAMES_OF_LOOPBACK else (host.lower(),)
    # browsers omit the default port from the Host header
    return {f"{name}:{port}" for name in names} | (set(names) if port == _USUAL_PORT else set())


class Press(NamedTuple):
    """A button press on the page."""

    worker: str
    verb: Verb
    target: str
    """The build ID that was shown on the page."""
    reason: str
    """The status reason that was shown on the page."""


class Presses:
    """Queues button presses from the threads that serve the page, for the thread that reads the cluster."""

    def __init__(self, settings: Settings, servers: Servers) -> None:
        self._settings, self._servers = settings, servers
        self._waiting: Queue[tuple[Press, Future[str]]] = Queue()
        self._known: dict[str, tuple[bool, float]] = {}
        """For each worker, whether the account may send requests to it, and when to check that again."""

    def offers(self, status: RolloutStatus) -> Collection[Verb]:
        """The buttons of a worker, or none if the account is not allowed to send requests to it."""
        may, _ = self._known.get(status.worker, (False, 0.0))
        return offered(status) if may else ()

    def ask_rights(self, statuses: Sequence[RolloutStatus]) -> None:
        """Ask the API server which rollouts the account is allowed to send requests to."""
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

        with suppress(TwgenError):  # if the check fails, the page has no buttons
            refused = set(self._servers.run((), ask))
            self._known |= {
                worker: (need not in refused, now + _RIGHTS_LAST) for worker, need in needs.items()
            }

    def answer(self, request: Request) -> Response:
        """Queue a button press, wait until it has been carried out, and return the response."""
        if request.get("CONTENT_TYPE") != "application/json":
            return _text("415 Unsupported Media Type", "the content type must be application/json")
        try:
            value = json.loads(request["wsgi.input"].read())
            worker, verb, target = str(value["worker"]), Verb(value["verb"]), str(value["target"])
            press = Press(worker, verb, target, str(value.get("reason", "")))
        except (ValueError, KeyError, TypeError, RecursionError):
            return _text("400 Bad Request", "the JSON must contain a worker, a verb and a target")
        done: Future[str] = Future()
        self._waiting.put((press, done))
        try:
            return _text("200 OK", done.result(_PATIENCE))
        except NoAnswer:
            why = "the API server has not answered yet: check the worker's row"
            return _text("504 Gateway Timeout", why)
        except TwgenError as error:
            return _text("409 Conflict", str(error))

    def carry_out(self, seconds: float, statuses: Callable[[], Sequence[RolloutStatus]]) -> None:
        """Wait at most this many seconds for a button press, and carry it out."""
        with suppress(Empty):
            press, done = self._waiting.get(timeout=seconds)
            try:
                done.set_result(self._request(press, statuses()))
            except TwgenError as error:
                done.set_exception(error)

    def _request(self, press: Press, statuses: Sequence[RolloutStatus]) -> str:
        status = next((status for status in statuses if status.worker == press.worker), None)
        if not status or status.target != press.target or press.verb not in self.offers(status):
            why = f"its state has changed, and {press.verb} no longer applies"
            raise NegativeAnswer(f"{press.worker}: {why}")
        wanted = request_by(self._settings, press.verb, status)._replace(reason=press.reason)
        if same := same_that_waits(status, wanted):
            return f"{status.worker}: {same} is already waiting: {when_answered(status, press.verb)}"
        named = Named(*status.worker.split("/", 1))
        if why := self._servers.run((), lambda opened: refused_or_sent(opened, named, wanted, status)):
            raise NegativeAnswer(f"{press.verb} of {status.worker} was not requested: {why}")
        return f"requested {press.verb} of {status.worker}: {when_answered(status, press.verb)}"


def _need(worker: str) -> Need:
    namespace, _, name = worker.partition("/")
    right = Right("patch", "", "configmaps", rollout_status_name(name))
    return Need(Account(""), namespace, right, "", Severity.ADVICE)


def _text(status: str, text: str) -> Response:
    return Response(status, "text/plain; charset=utf-8", f"{printable(text)}\n".encode())
