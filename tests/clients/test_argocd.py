"""An Argo CD that is asked for an application, and one that does not answer as it should."""

import asyncio
import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testing.processes import free_ports
from tests.executing.argocd import Served, serving
from twgen.clients.argocd import ArgoCD, asked_since
from twgen.clients.deadline import Deadline
from twgen.errors import InvalidInput, OutOfTime, StateUnavailable, TwgenError
from twgen.model.times import format_time
from twgen.yaml.source import WORLD


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(Served({"pay": {}})) as server:
        yield server


def ask(argocd: ArgoCD, name: str = "pay", timeout: float = 60, *, hard: bool = False) -> str:
    answer = asyncio.run(argocd.application(name, Deadline(timeout), hard_refresh=hard))
    return str(answer["metadata"]["name"])


def test_application_is_asked_for_by_what_its_objects_are_tracked_as(served: Served) -> None:
    argocd = ArgoCD(served.address + "/", served.token)
    assert ask(argocd) == ask(argocd, "team-a_pay", hard=True) == "pay"
    plain, hard = served.asked
    assert plain == "/api/v1/applications/pay"
    assert hard == "/api/v1/applications/pay?appNamespace=team-a&refresh=hard"


def test_token_is_read_anew_for_every_request(served: Served, tmp_path: Path) -> None:
    path = tmp_path / "token"
    argocd = ArgoCD(served.address, "another", str(path))
    with pytest.raises(StateUnavailable, match=r"token cannot be read \(No such file"):
        ask(argocd)
    path.write_text("expired")
    with pytest.raises(StateUnavailable, match="rejects the token"):
        ask(argocd)
    path.write_text(f"{served.token}\n")
    assert ask(argocd) == "pay"


def test_token_may_end_its_line_and_nothing_that_is_none_is_sent_or_told(
    served: Served, tmp_path: Path
) -> None:
    assert ask(ArgoCD(served.address, f"{served.token}\n")) == "pay"
    path = tmp_path / "token"
    for content in (b"", b"\n", b"first\nsecond", b"\xff\xfe", "sécret".encode()):
        path.write_bytes(content)
        with pytest.raises(StateUnavailable, match=r"token does not contain a token of Argo CD$"):
            ask(ArgoCD(served.address, "", str(path)))
    assert len(served.asked) == 1


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (403, b'{"message": "permission denied"}', "needs `applications, get` (403: permission denied)"),
        (404, b"<html>", "is it the right Argo CD? (404: <html>)"),
        (400, b"{}", "rejects the request: check that it is Argo CD 2.14 or newer (400: )"),
        (401, b'{"message": "expired"}', "rejects the token: is it still valid? (401: expired)"),
        (429, b"slow down", "the next check tries again; increase --every (429: slow down)"),
        (520, b"", "the next check tries again; check the argocd-server log (520: )"),
        (502, b"\xff", "the next check tries again; check the argocd-server log (502: \ufffd)"),
        (200, b"[" * 100_000, "the answer is not from Argo CD: is the address right?"),
        (200, b"<html>", "the answer is not from Argo CD: is the address right?"),
        (200, b"[]", "the answer is not from Argo CD: is the address right?"),
    ],
)
def test_refusal_is_one_line_without_the_token(served: Served, status: int, body: bytes, told: str) -> None:
    served.status, served.body = status, body
    with pytest.raises(StateUnavailable) as refused:
        ask(ArgoCD(served.address, served.token))
    assert str(refused.value).startswith(f"Argo CD at {served.address}, application pay: ")
    assert str(refused.value).endswith(told)
    assert served.token not in repr((refused.value, ArgoCD(served.address, served.token)))
    assert "\n" not in str(refused.value)
    assert served.asked == ["/api/v1/applications/pay"]


@pytest.mark.parametrize("status", [200, 401, 500])
def test_token_that_argocd_repeats_is_told_without(served: Served, status: int) -> None:
    sent = f"Authorization: Bearer {served.token}"
    packed = b64encode(sent.encode()).decode()
    served.status, served.body = status, json.dumps({"message": f"{sent}\n({packed})"}).encode()
    with pytest.raises(StateUnavailable) as refused:
        ask(ArgoCD(served.address, served.token))
    assert served.token not in str(refused.value)
    assert packed not in str(refused.value)


def test_answer_of_argocd_that_is_too_large_is_refused(served: Served) -> None:
    served.status, served.body = 200, b" " * (WORLD.bytes + 1)
    with pytest.raises(StateUnavailable, match="answers with more than 54525952 bytes"):
        ask(ArgoCD(served.address, served.token))


@pytest.mark.parametrize(
    "answer",
    [
        {"metadata": {"name": "another"}},
        {"metadata": {"name": "pay"}, "kind": "AppProject"},
        {"metadata": {"name": ["pay"]}},
        {"metadata": ["pay"]},
    ],
)
def test_application_that_was_not_asked_for_is_told(served: Served, answer: object) -> None:
    served.status, served.body = 200, json.dumps(answer).encode()
    with pytest.raises(StateUnavailable, match="the answer is not from Argo CD: is the address right"):
        ask(ArgoCD(served.address, served.token))


@pytest.mark.parametrize(
    "body",
    [
        b'{"items": 1}',
        b'{"items": [1]}',
        b'{"items": [{"targetState": "{"}]}',
        b'{"items": [{"targetState": 1}]}',
        b'{"items": [{"targetState": "{\\"kind\\": \\"Secret\\"}"}]}',
    ],
)
def test_render_that_cannot_be_read_is_told(served: Served, body: bytes) -> None:
    served.status, served.body = 200, body
    argocd = ArgoCD(served.address, served.token)
    with pytest.raises(StateUnavailable, match="application pay: the answer is not from Argo CD"):
        asyncio.run(argocd.config_maps("pay", Deadline(60)))
    served.body = b'{"items": null}'
    assert asyncio.run(argocd.config_maps("team-a_pay", Deadline(60))) == []
    path = "/api/v1/applications/pay/managed-resources?appNamespace=team-a&kind=ConfigMap"
    assert served.asked[-1] == path


def test_argocd_that_is_not_there_or_never_answers_is_cut(served: Served) -> None:
    with pytest.raises(StateUnavailable, match=r"cannot be reached \(.*refused"):
        ask(ArgoCD(f"http://127.0.0.1:{free_ports(1)[0]}", "t"))
    served.takes = 2
    with pytest.raises(TwgenError) as late:
        ask(ArgoCD(served.address, served.token), timeout=0.3)
    assert isinstance(late.value, OutOfTime | StateUnavailable)


@pytest.mark.parametrize(
    "address", ["argocd.example.com", "http://", "https://:443", "https://a b", "ftp://a"]
)
def test_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(InvalidInput, match=f"'{address}' is not an address such as https://argocd"):
        ArgoCD(address, "t")


EARLY, LATE, LATER = (f"2026-11-26T12:{minute}:00Z" for minute in ("00", "10", "20"))


def asked_by(manager: str, time: Any) -> dict[str, Any]:
    fields = {"f:metadata": {"f:annotations": {".": {}, "f:argocd.argoproj.io/refresh": {}}}}
    return {"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields}


def application(*entries: Any, looked: Any = EARLY, annotations: Any = None) -> dict[str, Any]:
    if annotations is None:
        annotations = {"argocd.argoproj.io/refresh": "normal"}
    metadata = {"name": "shop", "annotations": annotations, "managedFields": list(entries)}
    return {"metadata": metadata, "status": {"reconciledAt": looked}}


STATUS = {"manager": "argocd-application-controller", "time": LATER, "fieldsV1": {"f:status": {}}}


@pytest.mark.parametrize(
    ("found", "since"),
    [
        (application(STATUS, asked_by("argocd-server", LATE)), LATE),
        (application(asked_by("kubectl-annotate", LATE), asked_by("argocd-server", LATER)), LATER),
        (application(asked_by("argocd-server", LATE), looked=None), LATE),
        (application(asked_by("argocd-server", LATE), looked=LATER), LATER),
    ],
    ids=["asked after it looked", "asked twice", "never looked", "looked and was asked anew meanwhile"],
)
def test_application_waits_since_it_was_asked_for_or_looked_at_last(found: Any, since: str) -> None:
    assert (told := asked_since(found))
    assert format_time(told) == since


@pytest.mark.parametrize(
    "found",
    [
        application(asked_by("argocd-server", LATE), annotations={}),
        application(STATUS),
        application(asked_by("argocd-server", "some day")),
        application(asked_by("argocd-server", None), "?"),
        {
            "metadata": {"annotations": {"argocd.argoproj.io/refresh": "hard"}, "managedFields": 1},
            "status": [],
        },
        {},
    ],
    ids=["not asked", "nobody tells when", "no time", "no entry", "no list", "nothing"],
)
def test_application_of_which_nobody_tells_since_when_it_waits_does_not(found: Any) -> None:
    assert asked_since(found) is None
