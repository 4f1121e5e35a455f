"""The page is sent only when something changed, and compressed for clients that accept that."""

import gzip
import json
import socket
import time
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from math import inf
from unittest.mock import patch

import pytest
from urllib3 import request

from tests.schemas.printed import reported
from tests.strategies import NOW
from twgen.cli.serving import Board, Exposed, Response, serving
from twgen.model.operator import Links
from twgen.model.plan import Phase
from twgen.model.rollout import PendingRequest, Verb
from twgen.model.rollout import Request as Asked
from twgen.model.status import RolloutStatus
from twgen.versioning.names import ABORT_REQUEST

SECOND = timedelta(seconds=1)
SETTLED = RolloutStatus("shop/a", Phase.SETTLED, "Settled", "it is current", "v2", "v2", 100, NOW, None)
PART = {"PATH_INFO": "/", "HTTP_ACCEPT": "application/json"}
ZIPPED = {"HTTP_ACCEPT_ENCODING": "gzip, deflate, br"}


def shown(board: Board, **asked: str) -> tuple[int, str, str, bytes]:
    """The number of the answer to a request for the part, its tag, the time of the read, and the body."""
    answer = board.answer({**PART, **asked})
    headers = dict(answer.headers)
    return int(answer.status[:3]), headers["ETag"], headers["As-Of"], answer.body


@pytest.fixture
def board() -> Board:
    board = Board(5)
    board.show([SETTLED], NOW)
    return board


def test_nothing_is_sent_again_until_something_changes(board: Board) -> None:
    _, tag, as_of, _ = shown(board)
    assert as_of == "2026-11-21 12:00:00 UTC"
    board.show([replace(SETTLED)], NOW + 5 * SECOND)
    assert shown(board, HTTP_IF_NONE_MATCH=tag) == (304, tag, "2026-11-21 12:00:05 UTC", b"")
    assert shown(board, HTTP_IF_NONE_MATCH=f'"other",{tag}')[0] == 304
    assert shown(board, HTTP_IF_NONE_MATCH='"other"')[0] == 200
    board.show([replace(SETTLED, message="it was current")], NOW + 6 * SECOND)
    number, other, _, body = shown(board, HTTP_IF_NONE_MATCH=tag)
    assert (number, other != tag, b"it was current" in body) == (200, True, True)


def test_times_in_rows_are_at_most_a_minute_old(board: Board) -> None:
    _, tag, _, _ = shown(board)
    board.show([SETTLED], NOW + 60 * SECOND)
    number, _, _, body = shown(board, HTTP_IF_NONE_MATCH=tag)
    assert (number, ">1m<" in json.loads(body)["fleet"]) == (200, True)


def test_request_of_a_person_is_news(board: Board) -> None:
    _, tag, _, _ = shown(board)
    pending = PendingRequest(ABORT_REQUEST, Asked("r1", Verb.ABORT, "v2", NOW, "ana"), "", None, "7")
    board.show([replace(SETTLED, pending=(pending,))], NOW + SECOND)
    number, _, _, body = shown(board, HTTP_IF_NONE_MATCH=tag)
    assert (number, b"requested by ana" in body) == (200, True)


def test_right_to_press_is_news() -> None:
    granted: list[Verb] = []
    board = Board(5, offers=lambda _: granted)
    board.show([SETTLED], NOW)
    _, tag, _, _ = shown(board)
    granted.append(Verb.PAUSE)
    board.show([SETTLED], NOW + SECOND)
    number, _, _, body = shown(board, HTTP_IF_NONE_MATCH=tag)
    assert (number, b"data-verb" in body) == (200, True)


def test_failure_is_news_and_so_is_its_end(board: Board) -> None:
    _, tag, _, _ = shown(board)
    board.failure = "the cluster is away"
    number, failing, as_of, body = shown(board, HTTP_IF_NONE_MATCH=tag)
    assert (number, json.loads(body)["failure"], as_of) == (200, board.failure, "2026-11-21 12:00:00 UTC")
    board.show([SETTLED], NOW + SECOND)
    assert shown(board, HTTP_IF_NONE_MATCH=failing)[:2] == (200, tag)


def test_failures_in_other_words_keep_no_bodies_of_before(board: Board) -> None:
    for number in range(20):
        board.failure = f"the cluster is away, attempt {number}"
        assert json.loads(shown(board)[3])["failure"] == board.failure
    assert len(board._rendered) == 1  # noqa: SLF001


def test_page_and_part_lead_where_the_operator_says() -> None:
    board = Board(5, links=Links("https://temporal.example.com"))
    board.show([replace(SETTLED, report=reported())], NOW)
    for asked in ({"PATH_INFO": "/"}, PART):
        assert b"https://temporal.example.com/namespaces/t/" in board.answer(asked).body


def test_page_and_part_have_tags_of_their_own(board: Board) -> None:
    headers = dict(board.answer({"PATH_INFO": "/"}).headers)
    assert headers["ETag"] != shown(board)[1]
    assert headers["Cache-Control"] == "no-store"
    assert headers["Vary"] == "Accept, Accept-Encoding"


@pytest.mark.parametrize(
    ("accepts", "is_zipped"),
    [
        ("gzip, deflate, br", True),
        ("br;q=1.0, GZIP; q=0.5", True),
        ("*", True),
        ("", False),
        ("identity", False),
        ("gzip;q=0", False),
        ("gzip;q=0.000, br", False),
        ("*, gzip;q=0", False),
        ("*;q=0, gzip", True),
        ("br, x-gzip;q=1, *;q=0", False),
    ],
)
def test_body_is_compressed_if_the_client_accepts_that(
    board: Board, accepts: str, *, is_zipped: bool
) -> None:
    plain = board.answer(PART)
    answer = board.answer({**PART, "HTTP_ACCEPT_ENCODING": accepts})
    assert (dict(answer.headers).get("Content-Encoding") == "gzip") is is_zipped
    assert (gzip.decompress(answer.body) if is_zipped else answer.body) == plain.body


def test_body_is_rendered_and_compressed_once_for_all_viewers(board: Board) -> None:
    with patch("twgen.cli.serving.gzip.compress", wraps=gzip.compress) as compress:
        for second in range(3):
            board.show([SETTLED], NOW + second * SECOND)
            assert board.answer({**PART, **ZIPPED}).body == board.answer({**PART, **ZIPPED}).body
    assert compress.call_count == 1


def test_server_sends_a_304_without_a_body() -> None:
    exposed = Exposed(Board(5))
    exposed.board.show([SETTLED], NOW)
    with serving("--metrics", "127.0.0.1:0", exposed.answer) as port:
        url = f"http://127.0.0.1:{port}/"
        first = request("GET", url, headers={"Accept-Encoding": "gzip"}, retries=False, timeout=30)
        assert (first.headers["Content-Encoding"], b"shop/a" in first.data) == ("gzip", True)
        again = {"If-None-Match": first.headers["ETag"]}
        answer = request("GET", url, headers=again, retries=False, timeout=30)
        assert (answer.status, answer.data, answer.headers["ETag"]) == (304, b"", first.headers["ETag"])


def test_head_is_answered_without_a_body() -> None:
    exposed = Exposed(Board(5))
    exposed.board.show([SETTLED], NOW)
    with serving("--metrics", "127.0.0.1:0", exposed.answer) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            client.sendall(b"HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = client.makefile("rb").read()
        head, _, body = answer.partition(b"\r\n\r\n")
        length = f"Content-Length: {len(exposed.answer({'PATH_INFO': '/'}).body)}"
        assert (length.encode() in head, body) == (True, b"")


def test_body_of_more_than_a_press_is_refused_before_it_is_read() -> None:
    exposed = Exposed(Board(5))
    with (
        serving("--metrics", "127.0.0.1:0", exposed.answer) as port,
        socket.create_connection(("127.0.0.1", port), timeout=30) as client,
    ):
        client.sendall(b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n")
        assert client.makefile("rb").readline() == b"HTTP/1.1 413 Request Entity Too Large\r\n"


def test_clients_that_send_nothing_keep_nobody_out() -> None:
    exposed = Exposed(Board(5), healthy_until=inf)
    with serving("--metrics", "127.0.0.1:0", exposed.answer) as port, ExitStack() as opened:
        for _ in range(300):
            client = opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
            client.sendall(b"G")
        health = request("GET", f"http://127.0.0.1:{port}/healthz", retries=False, timeout=5)
        assert health.status == 200


def test_clients_that_read_no_answer_keep_nobody_out() -> None:
    large = Response("200 OK", "text/plain", b"x" * 1_000_000)
    with serving("--metrics", "127.0.0.1:0", lambda _: large) as port, ExitStack() as opened:
        for _ in range(8):
            client = opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
            client.sendall(b"GET / HTTP/1.1\r\n\r\n" * 400)
        for _ in range(100):
            assert request("GET", f"http://127.0.0.1:{port}/", retries=False, timeout=30).status == 200


def test_client_that_sends_its_request_slowly_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twgen.cli.serving._PATIENCE", 1)
    exposed = Exposed(Board(5))
    with (
        serving("--metrics", "127.0.0.1:0", exposed.answer) as port,
        socket.create_connection(("127.0.0.1", port), timeout=0.1) as client,
    ):
        answer, ends = None, time.monotonic() + 30
        while answer is None and time.monotonic() < ends:
            try:
                client.sendall(b"G")
                answer = client.recv(1)
            except TimeoutError:
                continue
            except ConnectionError:
                answer = b""
        assert answer == b""
