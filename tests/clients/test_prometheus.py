"""A Prometheus that is asked for numbers, and one that does not answer as it should."""

import asyncio
import gzip
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread
from time import monotonic, sleep
from typing import Any

import pytest

from testing.processes import free_ports
from tests.clients.prometheus import ASKED, Served, serving
from twgen.clients import prometheus
from twgen.clients.deadline import Deadline
from twgen.clients.prometheus import MOST_BYTES, PrometheusServers
from twgen.errors import OutOfTime, StateUnavailable
from twgen.model.operator import PrometheusServer

SECRET = "a-token-of-prometheus"  # noqa: S105
OTHER_CREDENTIALS = "does not accept the credentials in the operator's file"
SOMETHING_ELSE = "did not answer like Prometheus: is the address right?"


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(Served()) as server:
        server.answers([[1000.25, "1"]])
        yield server


def ask(served: Served, timeout: float = 60, **how: Any) -> list[Any]:
    async def story() -> list[Any]:
        server = PrometheusServer("shared", served.address, **how)
        return await PrometheusServers((server,), "").series(server, ASKED, Deadline(timeout))

    return asyncio.run(story())


def refused(served: Served, **how: Any) -> str:
    with pytest.raises(StateUnavailable) as error:
        ask(served, **how)
    said = str(error.value)
    assert said.startswith(f"Prometheus shared at {served.address} ")
    assert said.isprintable()
    assert len(said) < 400
    return said.removeprefix(f"Prometheus shared at {served.address} ")


def test_query_is_asked_for_all_moments_at_once_in_the_body_of_a_post(served: Served) -> None:
    [series] = ask(served, headers={"X-Scope-OrgID": "payments", "accept-encoding": "gzip"})
    assert series["values"] == [[1000.25, "1"]]
    assert served.paths == ["/api/v1/query_range"]
    [form] = served.forms
    timeout = form.pop("timeout")
    assert form == {"query": "sum(a)", "start": "1000.250", "end": "1060.251", "step": "30.000"}
    assert 0 < float(timeout) <= 10
    [headers] = served.asked_with
    assert headers["content-type"] == "application/x-www-form-urlencoded"
    assert headers["x-scope-orgid"] == "payments"
    assert headers["accept-encoding"] == "identity"
    assert "authorization" not in headers


def test_address_may_have_a_path_and_end_in_a_slash(served: Served) -> None:
    served.address += "/prom/"
    ask(served)
    assert served.paths == ["/prom/api/v1/query_range"]


def test_token_is_read_anew_for_every_request(served: Served, tmp_path: Path) -> None:
    token = tmp_path / "token"
    with pytest.raises(StateUnavailable, match=r"token cannot be read \(No such file"):
        ask(served, bearer_token_file=str(token))
    for text in ("first", "second\n"):
        token.write_text(text)
        ask(served, bearer_token_file=str(token))
    assert [asked["authorization"] for asked in served.asked_with] == ["Bearer first", "Bearer second"]


def test_user_and_password_are_sent_as_http_has_them(served: Served, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("pass word: ä\n", encoding="utf-8")
    ask(served, username="me", password_file=str(password))
    assert served.asked_with[0]["authorization"] == "Basic bWU6cGFzcyB3b3JkOiDDpA=="


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"first\nsecond", b"a\r\nX-Evil: b", b"\xff\xfe", "sécret".encode()]
)
def test_what_is_no_token_is_neither_sent_nor_told(served: Served, tmp_path: Path, content: bytes) -> None:
    token = tmp_path / "token"
    token.write_bytes(content)
    with pytest.raises(
        StateUnavailable, match=r"token (does not contain a valid credential|cannot be read)"
    ) as told:
        ask(served, bearer_token_file=str(token))
    assert str(told.value).isascii()
    assert not served.paths


@pytest.mark.parametrize(
    ("keys", "authorization"),
    [
        ({}, None),
        ({"token": "t"}, "Bearer t"),
        ({"username": "me", "password": "p"}, "Basic bWU6cA=="),
        ({"token": "t", "username": "me", "password": "p"}, "Bearer t"),
        ({"username": "me"}, None),
    ],
)
def test_pod_of_a_rollout_has_what_its_secret_holds(
    served: Served, tmp_path: Path, keys: dict[str, str], authorization: str | None
) -> None:
    for name, text in keys.items():
        (tmp_path / name).write_text(text)
    ask(served, secret_folder=str(tmp_path))
    assert served.asked_with[0].get("authorization") == authorization
    ask(served, secret_folder=str(tmp_path / "absent"))


def test_redirect_is_not_followed_and_the_token_goes_nowhere_else(served: Served, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(SECRET)
    with serving(Served()) as other:
        other.answers([[1000.25, "1"]])
        for status in (301, 302, 303, 307, 308):
            served.status, served.headers = status, {"Location": f"{other.address}/api/v1/query_range"}
            said = refused(served, bearer_token_file=str(tmp_path / "token"))
            assert said == (
                f"redirects to another address, and twgen does not follow redirects: set the address"
                f" that it redirects to ({status})"
            )
        assert not other.paths
    assert len(served.paths) == 5


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (401, b"no \x1b[2Jtoken", f"{OTHER_CREDENTIALS} (401: no \\x1b[2Jtoken)"),
        (403, b"", f"{OTHER_CREDENTIALS} (403: )"),
        (
            400,
            b'{"status": "error", "error": "parse error:\\n1:3"}',
            "rejects the query (400: parse error: 1:3)",
        ),
        (422, b'{"status": "error", "error": "%s"}' % (b"x" * 9000), f"rejects the query (422: {'x' * 200})"),
        (503, b'{"status": "error", "error": "query timed out"}', "rejects the query (503: query timed out)"),
        (404, b"404 page not found", f"{SOMETHING_ELSE} (404: 404 page not found)"),
        (502, b"\xff<html>", f"{SOMETHING_ELSE} (502: \ufffd<html>)"),
        (200, b"<html>", SOMETHING_ELSE),
        (200, b"[" * 100_000, SOMETHING_ELSE),
        (200, b"[]", SOMETHING_ELSE),
        (200, b'{"status": "success", "data": []}', SOMETHING_ELSE),
        (200, b'{"status": "error", "error": "a\\u202eb"}', "cannot answer: a\\u202eb"),
        (
            200,
            b'{"status": "success", "data": {"resultType": "vector", "result": []}}',
            "returned a vector; a range query returns a matrix",
        ),
    ],
)
def test_refusal_is_one_line_for_people(served: Served, status: int, body: bytes, told: str) -> None:
    served.status, served.body = status, body
    assert refused(served) == told


def test_refusal_that_shows_what_was_sent_shows_no_credential(served: Served, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET)
    served.status, served.body = 400, f"Authorization: Bearer {SECRET}".encode()
    assert SECRET not in refused(served, bearer_token_file=str(tmp_path / "secret"))
    served.body = b"Authorization: Basic bWU6YS10b2tlbi1vZi1wcm9tZXRoZXVz"
    said = refused(served, username="me", password_file=str(tmp_path / "secret"))
    assert said.endswith("(400: Authorization: Basic ...)")
    assert SECRET not in repr(PrometheusServers((), ""))


@pytest.mark.parametrize("password", [SECRET, "two  blanks", 'a "quoted" one', "before " + "x" * 300])
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, b"was sent %s"),
        (400, b"%s" % (b"." * 190) + b"%s"),
        (400, b'{"status": "error", "error": %j}'),
        (200, b'{"status": "error", "error": %j}'),
        (200, b'{"status": "success", "data": {"resultType": %j, "result": []}}'),
    ],
)
def test_answer_that_shows_a_password_is_told_without(
    served: Served, tmp_path: Path, status: int, body: bytes, password: str
) -> None:
    (tmp_path / "secret").write_text(password)
    in_json = json.dumps(f"was sent {password}")
    served.status = status
    served.body = body.replace(b"%s", password.encode()).replace(b"%j", in_json.encode())
    said = refused(served, username="me", password_file=str(tmp_path / "secret"))
    assert "..." in said
    assert not any(part in said for part in (password, password[:20], " ".join(password.split())))


class Trickles(BaseRequestHandler):
    """An answer whose headers never end."""

    def handle(self) -> None:
        with suppress(OSError):
            self.request.sendall(b"HTTP/1.1 200 OK\r\nX-Header: ")
            while True:
                self.request.sendall(b"x")
                sleep(0.05)


def test_headers_that_trickle_in_keep_no_more_than_a_few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "_LONGEST_WAIT", 0.2)
    monkeypatch.setattr(prometheus, "_MOST_UNANSWERED", 2)

    async def story(address: str) -> list[str]:
        server, said = PrometheusServer("shared", address), []
        servers = PrometheusServers((server,), "")
        for _ in range(3):
            with pytest.raises(StateUnavailable) as error:
                await servers.series(server, ASKED, Deadline(60))
            said.append(str(error.value))
        return said

    with ThreadingTCPServer(("127.0.0.1", 0), Trickles) as listening:
        listening.daemon_threads = True
        Thread(target=listening.serve_forever, daemon=True).start()
        *slow, last = asyncio.run(story(f"http://127.0.0.1:{listening.server_address[1]}"))
        listening.shutdown()
    assert all("did not answer within 0.2 s" in said for said in slow)
    assert last.endswith("did not answer 2 queries")


@pytest.mark.parametrize("length", [{}, {"Content-Length": str(2 * MOST_BYTES)}])
def test_answer_that_is_too_large_is_not_read_to_its_end(served: Served, length: dict[str, str]) -> None:
    served.body, served.headers = b" " * (2 * MOST_BYTES), length
    assert refused(served) == f"answers with more than {MOST_BYTES} bytes: aggregate the query"


def test_answer_may_have_its_megabyte(served: Served) -> None:
    served.body += b" " * (MOST_BYTES - len(served.body))
    assert len(ask(served)) == 1


def test_packed_answer_is_refused_and_not_unpacked(served: Served) -> None:
    served.body = gzip.compress(b" " * 64 * 2**20)
    served.headers = {"Content-Encoding": "gzip"}
    assert len(served.body) < MOST_BYTES
    assert refused(served) == "sent a compressed answer, although twgen asked for an uncompressed one"


def test_answer_that_breaks_off_is_told(served: Served) -> None:
    served.headers = {"Content-Length": str(len(served.body) + 1)}
    assert refused(served).startswith("cannot be reached (")


def test_prometheus_that_is_away_is_told() -> None:
    assert "refused" in refused(Served(address=f"http://127.0.0.1:{free_ports(1)[0]}"))


def test_answer_that_trickles_in_ends_in_time_and_with_its_thread(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus, "_LONGEST_WAIT", 0.5)
    served.stops, began = 0.1, monotonic()
    assert refused(served) == "did not answer within 0.5 s: is the query too slow?"
    assert monotonic() - began < 20


def test_deadline_of_the_reading_goes_before(served: Served) -> None:
    served.stops = 0.5
    with pytest.raises((OutOfTime, StateUnavailable)):
        ask(served, timeout=0.3)


def test_certificates_that_are_not_there_are_told_by_their_file(served: Served, tmp_path: Path) -> None:
    with pytest.raises(StateUnavailable, match=r"/ca\.crt: cannot read the trusted certificates"):
        ask(served, ca_file=str(tmp_path / "ca.crt"))


def test_only_prometheus_need_not_be_named_and_one_of_several_must_be() -> None:
    one, two = (PrometheusServer(name, f"http://{name}") for name in ("one", "two"))
    assert PrometheusServers((one,), "").called("") == one
    assert PrometheusServers((one, two), "").called("two") == two
    for usable, name, told in (
        ((one, two), "", r"there are several Prometheus servers \(one, two\): select one with `server`"),
        ((), "", "no Prometheus is available here: ask the operator"),
        ((one, two), "three", "no Prometheus 'three' is available here: ask the operator"),
    ):
        with pytest.raises(StateUnavailable, match=f"^{told}$"):
            PrometheusServers(usable, "ask the operator").called(name)
