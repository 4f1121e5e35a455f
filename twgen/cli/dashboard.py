"""`twgen dashboard`."""

import gc
import secrets
import webbrowser
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import parse_qs

import click

from twgen.cli.fleet import namespace_of, read_fleet
from twgen.cli.live import Servers
from twgen.cli.options import Grouped, options
from twgen.cli.output import warn, write
from twgen.cli.presses import Presses
from twgen.cli.serving import Answer, Board, Request, serving
from twgen.cli.settings import clock, settings_of
from twgen.errors import OutOfTime, StateUnavailable

_LOOPBACK = "127.0.0.1:0"
_NAMES_OF_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_USUAL_PORT = 80
_EVERYWHERE = {"", "0.0.0.0", "[::]"}  # noqa: S104 - the user asks for it with --listen


@click.command(cls=Grouped)
@options(
    "all_namespaces", "namespace", "interval", "listen", "no_browser", "timeout", "kubeconfig", "context"
)
@options(
    "operator_config",
    "quiet",
    all_namespaces="Show the rollouts of every namespace.",
    namespace="Show the rollouts of this namespace.",
    interval="Time between two reads of the cluster.",
    operator_config="OperatorConfig file. Only its `links` are used.",
)
def command(interval: float, listen: str | None, no_browser: bool, **params: Any) -> None:  # noqa: FBT001
    """Show the state of every rollout of a cluster in a browser, with buttons that pause, abort and retry.

    It reads the statuses that rollouts wrote in the cluster, as `twgen status --from-cluster` does, without
    Git and Temporal. A worker has buttons if your account may patch its status; they make the same requests
    as `twgen abort worker/NAME`. The URL that it prints contains a token. It can be opened only on this
    machine, unless you give --listen; then it has no buttons.

    \b
    twgen dashboard -A
    twgen dashboard -n shop --no-browser
    """
    gc.enable()  # it may be open for days
    settings = settings_of(params)
    namespace = namespace_of(settings, everywhere=params["all_namespaces"])
    servers, token = Servers(settings), secrets.token_urlsafe(16)
    presses = Presses(settings, servers)
    host = (listen or _LOOPBACK).rpartition(":")[0]
    # elsewhere, anyone who learns the URL would act with this account
    has_buttons = host in _NAMES_OF_LOOPBACK
    board = Board(interval, links=settings.operator.links)
    if has_buttons:
        board.offers = presses.offers
    guard = _Guard(board.answer, presses.answer, token)
    methods = ("GET", "HEAD", *(("POST",) if has_buttons else ()))
    with servers, serving("--listen", listen or _LOOPBACK, guard.answer, methods) as port:
        read = partial(read_fleet, servers, settings, namespace, set())
        guard.hosts = _hosts(host, port)

        def show() -> None:
            statuses = read()
            presses.ask_rights(statuses)
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
                    servers.close()  # a certificate may have been renewed since it was read


@contextmanager
def _leading_to(url: str) -> Iterator[Path]:
    """A file, which only this user can read, from which a browser goes to the URL.

    Everyone on the machine can read the arguments with which a browser starts.
    """
    with TemporaryDirectory(prefix="twgen-") as folder:
        path = Path(folder, "dashboard.html")
        path.write_text(f'<meta http-equiv="refresh" content="0; url={escape(url)}">', "utf-8")
        yield path


class _Guard:
    """Shows the page only to requests with the token, and to no other site in a visitor's browser."""

    def __init__(
        self, answer: Callable[[Request], Answer], press: Callable[[Request], Answer], token: str
    ) -> None:
        self._answer = answer
        self._press = press
        self._token = token
        self.hosts: Collection[str] = ()
        """The Host headers that mean this server; empty: any."""

    def answer(self, request: Request) -> Answer:
        """The answer, if the request may have it."""
        host, origin = str(request.get("HTTP_HOST", "")).lower(), request.get("HTTP_ORIGIN")
        token = parse_qs(request.get("QUERY_STRING", "")).get("token", [""])[0]
        # a browser names the site of every POST, and of no link
        is_press = request["REQUEST_METHOD"] == "POST"
        origins = {f"http://{host}"} if is_press else {None, f"http://{host}"}
        is_allowed = (not self.hosts or host in self.hosts) and origin in origins
        if not is_allowed or not secrets.compare_digest(token.encode(), self._token.encode()):
            why = b"open the URL that `twgen dashboard` printed: it contains the token\n"
            return Answer("403 Forbidden", "text/plain", why)
        if request["PATH_INFO"] != "/":
            return Answer("404 Not Found", "text/plain", b"there is only the page /\n")
        return self._press(request) if is_press else self._answer(request)


def _hosts(host: str, port: int) -> Collection[str]:
    """The Host headers that mean the server; empty, for any, if it listens on every address."""
    if host in _EVERYWHERE:
        return ()
    names = _NAMES_OF_LOOPBACK if host in _NAMES_OF_LOOPBACK else (host.lower(),)
    # browsers leave out the usual port
    return {f"{name}:{port}" for name in names} | (set(names) if port == _USUAL_PORT else set())
