"""What is sent to prove the account, and whom a connection trusts, against a real TLS server."""

import asyncio
import json
import os
import shutil
import ssl
import tempfile
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Callable
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import patch

import pytest
from urllib3 import PoolManager

from testing.credentials import SERVER_NAME, Authority
from tests.clients.tls_server import Served, ask, authority, encoded, kubeconfig, serving
from twgen.clients import credential_plugins, logins
from twgen.clients.deadline import Deadline
from twgen.clients.kubeconfig import ClusterAccess
from twgen.clients.kubernetes import KubernetesClient
from twgen.errors import StateUnavailable

PAST, FUTURE = 1_500_000_000, 4_100_000_000
Later = Callable[[float], None]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Later:
    """Lets the clock of the client be so many seconds further from now on."""
    real, passed = logins.monotonic, 0.0

    def pass_(seconds: float) -> None:
        nonlocal passed
        passed += seconds

    for module in (logins, credential_plugins):
        monkeypatch.setattr(module, "monotonic", lambda: real() + passed)
    return pass_


def closed_by(closed: list[PoolManager]) -> Callable[[PoolManager], None]:
    """As PoolManager.clear, which also notes whose connections it closes."""
    clear = PoolManager.clear

    def clear_and_note(pool: PoolManager) -> None:
        closed.append(pool)
        clear(pool)

    return clear_and_note


def id_token(**claims: Any) -> str:
    parts = ({"alg": "none"}, claims)
    encoded_parts = (urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode() for each in parts)
    return f"{'.'.join(encoded_parts)}.s"


def of_provider(**claims: Any) -> dict[str, Any]:
    config = {"id-token": id_token(**claims), "refresh-token": "the-secret"}
    return {"auth-provider": {"name": "oidc", "config": config}}


def config(folder: Path, served: Served, user: dict[str, Any] | None, **cluster: object) -> Path:
    return kubeconfig(folder / "config", served.cluster | cluster, user)


NOT_PEM = b64encode(b"-----BEGIN the-secret-----").decode()
LASTING = of_provider(exp=FUTURE)


@pytest.mark.parametrize(
    ("user", "sent"),
    [
        ({"token": "a-token"}, "Bearer a-token"),
        ({"token": " a-token\n"}, "Bearer a-token"),
        ({"username": "ana", "password": "pässword"}, f"Basic {b64encode('ana:pässword'.encode()).decode()}"),
        ({"username": "ana"}, f"Basic {b64encode(b'ana:').decode()}"),
        (LASTING, f"Bearer {id_token(exp=FUTURE)}"),
        (of_provider(), f"Bearer {id_token()}"),
        (of_provider(exp=1e30), f"Bearer {id_token(exp=1e30)}"),
        (LASTING | {"token": "a-token"}, "Bearer a-token"),
    ],
)
def test_token_or_password_is_sent(tmp_path: Path, user: dict[str, Any], sent: str) -> None:
    with serving() as served:
        assert ask(config(tmp_path, served, user)) == [200]
    assert served.authorizations == [sent]


@pytest.mark.parametrize(
    "user", [{"token": "the-secret"}, {"username": "ana", "password": "the-secret"}, of_provider(exp=PAST)]
)
def test_no_credential_goes_to_a_server_without_tls(tmp_path: Path, user: dict[str, Any]) -> None:
    with serving(plain=True) as served:
        assert ask(kubeconfig(tmp_path / "config", {"server": served.address}, user)) == [200]
    assert served.authorizations == [""]


def test_account_that_the_user_acts_for_is_sent_whole(tmp_path: Path) -> None:
    extra = {"reason/why": ["on call", "späť"], "scopes": ["a"]}
    user = {"token": "t", "as": "ana", "as-uid": "7", "as-groups": ["g 1", "g2"], "as-user-extra": extra}
    with serving() as served:
        assert ask(config(tmp_path, served, user)) == [200]
    assert sorted(served.asked[0].impersonated) == [
        ("Impersonate-Extra-reason%2Fwhy", "on call"),
        ("Impersonate-Extra-reason%2Fwhy", "späť".encode().decode("latin-1")),
        ("Impersonate-Extra-scopes", "a"),
        ("Impersonate-Group", "g 1"),
        ("Impersonate-Group", "g2"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-User", "ana"),
    ]


def test_token_of_a_file_is_read_again_in_time(tmp_path: Path, later: Later) -> None:
    token = tmp_path / "token"
    contents = ["one\n", "two\n", "two\n"]

    def before(turn: int) -> None:
        token.write_text(contents[turn])
        later(61 if turn == 2 else 0)

    with serving() as served:
        user = {"tokenFile": "token", "token": "older"}
        assert ask(config(tmp_path, served, user), 3, before=before) == [200] * 3
    assert served.authorizations == ["Bearer one", "Bearer one", "Bearer two"]


@pytest.mark.parametrize("content", [b"\n", b"\xff", None])
def test_last_token_is_kept_until_the_server_refuses_it_while_its_file_cannot_be_read(
    tmp_path: Path, later: Later, content: bytes | None
) -> None:
    token = tmp_path / "token"
    token.write_text("one")

    def before(turn: int) -> None:
        if turn:
            token.unlink(missing_ok=True)
            if content is not None:
                token.write_bytes(content)
            later(61)

    with serving() as served:
        served.statuses = [200, 200, 401]
        path = config(tmp_path, served, {"tokenFile": "token"})
        with pytest.raises(StateUnavailable, match=r"cannot be used: .*tokenFile"):
            ask(path, 3, before=before)
    assert served.authorizations == ["Bearer one"] * 3


def test_token_beside_a_file_that_is_not_there_is_used(tmp_path: Path) -> None:
    with serving() as served:
        assert ask(config(tmp_path, served, {"tokenFile": "absent", "token": "t"})) == [200]
    assert served.authorizations == ["Bearer t"]


def test_kubeconfig_is_read_again_after_a_refusal(tmp_path: Path) -> None:
    with serving() as served:
        path = config(tmp_path, served, {"token": "one"})

        def before(turn: int) -> None:
            if turn:
                path.write_text(path.read_text().replace('"one"', '"two"'))

        served.statuses = [200, 401]
        assert ask(path, 2, before=before) == [200, 200]
    assert served.authorizations == ["Bearer one", "Bearer one", "Bearer two"]


def test_refusal_of_a_token_that_nobody_has_changed_is_an_answer(tmp_path: Path) -> None:
    with serving() as served:
        served.statuses = [401]
        assert ask(config(tmp_path, served, {"token": "one"})) == [401]
    assert len(served.asked) == 1


def test_kubeconfig_that_comes_to_name_another_server_ends_the_run(tmp_path: Path) -> None:
    with serving() as served:
        path = config(tmp_path, served, {"token": "one"})
        other = path.read_text().replace("127.0.0.1", "127.0.0.2")
        served.statuses = [200, 401]
        with pytest.raises(StateUnavailable, match="context 'here' now names another server"):
            ask(path, 2, before=lambda turn: path.write_text(other) if turn else None)


def test_next_client_of_a_run_does_not_reach_another_server(tmp_path: Path) -> None:
    with serving() as served:
        path = config(tmp_path, served, {"token": "one"})
        with closing(KubernetesClient(ClusterAccess(str(path)))) as client:
            asyncio.run(client.ask("GET", "/api", Deadline(60)))
            reached = client.reached
        path.write_text(path.read_text().replace("127.0.0.1", "127.0.0.2"))
        with (
            closing(KubernetesClient(reached)) as client,
            pytest.raises(StateUnavailable, match="context 'here' now names another server"),
        ):
            asyncio.run(client.ask("GET", "/api", Deadline(60)))


@pytest.mark.parametrize(("name", "sent"), [(" ana\t", "ana"), ("\u00a0ana", "\u00a0ana"), ("ana\n", None)])
def test_name_of_the_account_loses_only_what_surrounds_it_in_a_header(
    tmp_path: Path, name: str, sent: str | None
) -> None:
    with serving() as served:
        path = config(tmp_path, served, {"token": "t", "as": name})
        if sent is None:
            with pytest.raises(
                StateUnavailable, match="contains a character that is not allowed in an HTTP header"
            ):
                ask(path)
            return
        assert ask(path) == [200]
    assert served.asked[0].impersonated == [("Impersonate-User", sent.encode().decode("latin-1"))]


def test_other_current_context_does_not_change_the_cluster_of_a_run(tmp_path: Path, later: Later) -> None:
    (tmp_path / "token").write_text("one")
    with serving() as served:
        path = config(tmp_path, served, {"tokenFile": "token"})
        document = json.loads(path.read_text())
        document["contexts"].append({"name": "there", "context": {"cluster": "absent"}})

        def before(turn: int) -> None:
            if turn:
                path.write_text(json.dumps(document | {"current-context": "there"}))
                later(61)

        assert ask(path, 2, before=before) == [200, 200]


@pytest.mark.parametrize("is_in_files", [True, False])
def test_certificate_of_the_user_is_shown_and_its_key_stays_in_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_in_files: bool
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    own = authority().client()
    fields = {"client-certificate": own.certificate, "client-key": own.key}
    user = {
        (name if is_in_files else f"{name}-data"): (str(file) if is_in_files else encoded(file))
        for name, file in fields.items()
    }
    left = []
    with serving() as served:
        path = config(tmp_path, served, {**user, "token": "t"})
        ask(path, 2, before=lambda _: left.append(list(temporary.iterdir())))
    assert [(bool(one.certificate), one.authorization) for one in served.asked] == [(True, "Bearer t")] * 2
    assert left == [[], []]


def test_certificate_that_is_being_written_does_not_replace_the_last_one(
    tmp_path: Path, later: Later
) -> None:
    own = authority().client()
    (tmp_path / "tls.key").write_bytes(own.key.read_bytes())
    contents = [own.certificate.read_bytes(), b"", own.certificate.read_bytes()[:99]]

    def before(turn: int) -> None:
        (tmp_path / "tls.crt").write_bytes(contents[turn])
        later(61)

    with serving() as served:
        path = config(tmp_path, served, {"client-certificate": "tls.crt", "client-key": "tls.key"})
        assert ask(path, 3, before=before) == [200] * 3
    assert all(one.certificate for one in served.asked)


def test_certificates_in_files_are_read_again_and_connections_with_the_old_ones_are_closed(
    tmp_path: Path, later: Later
) -> None:
    closed: list[PoolManager] = []

    def replace() -> None:
        own = authority().client()
        shutil.copy(own.certificate, tmp_path / "tls.crt")
        shutil.copy(own.key, tmp_path / "tls.key")

    def before(turn: int) -> None:
        if turn != 1:
            replace()
        later(61)

    with serving() as served, patch.object(PoolManager, "clear", closed_by(closed)):
        path = config(tmp_path, served, {"client-certificate": "tls.crt", "client-key": "tls.key"})
        assert ask(path, 3, before=before) == [200] * 3
    assert len({*closed}) == 2, "the one that was replaced, and the last one"
    shown = [one.certificate for one in served.asked]
    assert shown[0] == shown[1] != shown[2]
    assert all(shown)


@pytest.mark.parametrize(
    ("user", "told"),
    [
        (of_provider(exp=PAST), "its OIDC token has expired: run kubectl once, which renews"),
        ({"auth-provider": {"name": "oidc"}}, "its OIDC token has expired: run kubectl once"),
        ({"auth-provider": {"name": "oidc", "config": {"id-token": "a.b"}}}, "is not a JSON Web Token"),
        ({"auth-provider": {}}, "auth-provider None is not supported"),
        ({}, "user 'u': it has no token, password, certificate or credential plugin"),
        (None, "context 'here' without a user: it has no token"),
        ({"tokenFile": "a\0b"}, "tokenFile: its file cannot be read .it contains a null character"),
        ({"tokenFile": "the-secret"}, "tokenFile: its file cannot be read"),
        ({"client-certificate": "empty", "client-key": "empty"}, "client-certificate has no PEM data"),
        (
            {"client-certificate-data": "IA==", "client-key-data": "IA=="},
            "client-certificate has no PEM data",
        ),
        ({"auth-provider": {"name": "gcp"}}, "'gcp' is not supported: use a credential plugin"),
        ({"tokenFile": "./absent"}, "user 'u': tokenFile: ./absent cannot be read"),
        ({"tokenFile": "~/absent"}, "~ is not expanded"),
        (
            {"token": "the-secret\nX: 1"},
            "its token contains a character that is not allowed in an HTTP header",
        ),
        ({"token": "the-secreté"}, "its token contains a character that is not allowed in an HTTP header"),
        ({"token": "t", "as": "a\nb"}, "contains a character that is not allowed in an HTTP header"),
        (
            {"client-certificate-data": NOT_PEM, "client-key-data": NOT_PEM},
            "user 'u': its client certificate and key cannot be used",
        ),
        (
            {"client-certificate-data": "the-secret", "client-key-data": "YQ=="},
            "user 'u': client-certificate-data is not base64",
        ),
    ],
)
def test_login_that_cannot_be_used_is_one_line_without_it(
    tmp_path: Path, user: dict[str, Any] | None, told: str
) -> None:
    (tmp_path / "empty").touch()
    with serving() as served:
        with pytest.raises(StateUnavailable, match=f"cannot be used: .*{told}") as failed:
            ask(config(tmp_path, served, user))
        assert served.asked == []
    assert "the-secret" not in str(failed.value)
    assert "\n" not in str(failed.value)


def test_id_token_that_kubectl_has_renewed_is_read_again(tmp_path: Path, later: Later) -> None:
    with serving() as served:
        path = config(tmp_path, served, of_provider(exp=FUTURE))

        def before(turn: int) -> None:
            if turn:
                path.write_text(path.read_text().replace(id_token(exp=FUTURE), id_token(exp=2 * FUTURE)))
                later(FUTURE)

        assert ask(path, 2, before=before) == [200, 200]
    assert served.authorizations == [f"Bearer {id_token(exp=end)}" for end in (FUTURE, 2 * FUTURE)]


def test_proxy_that_returns_its_password_does_not_get_it_shown(tmp_path: Path) -> None:
    class Proxy(BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            sent = self.headers["Proxy-Authorization"]
            self.send_response(407, f"cannot log in with {sent} {b64decode(sent.split()[1]).decode()}")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with serving() as served, HTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        Thread(target=proxy.serve_forever, daemon=True).start()
        url = f"http://ana:secret%40Word@127.0.0.1:{proxy.server_port}"
        path = config(tmp_path, served, {"token": "t"}, **{"proxy-url": url})
        with pytest.raises(StateUnavailable, match="407") as refused:
            ask(path)
        proxy.shutdown()
    assert "secret" not in str(refused.value)
    assert b64encode(b"ana:secret@Word").decode() not in str(refused.value)


def test_server_of_another_authority_is_not_trusted_unless_the_kubeconfig_says_so(tmp_path: Path) -> None:
    other = encoded(Authority(tmp_path, "other").file)
    with serving() as served:
        wrong = {"server": served.address, "certificate-authority-data": other}
        for cluster in (wrong, {"server": served.address}):
            with pytest.raises(StateUnavailable, match="certificate verify failed"):
                ask(kubeconfig(tmp_path / "config", cluster, {"token": "a-token"}))
        assert served.asked == [], "no token goes to it"
        open_to_all = {"server": served.address, "insecure-skip-tls-verify": True}
        assert ask(kubeconfig(tmp_path / "config", open_to_all, {"token": "a-token"})) == [200]


def test_certificate_of_the_server_may_be_for_another_name(tmp_path: Path) -> None:
    with serving() as served:
        user = {"token": "a-token"}
        assert ask(config(tmp_path, served, user, **{"tls-server-name": SERVER_NAME})) == [200]
        with pytest.raises(StateUnavailable, match="certificate verify failed"):
            ask(config(tmp_path, served, user, **{"tls-server-name": "other.example"}))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("# NetLock Arany (Class Gold) Főtanúsítvány\nCERTIFICATES", ""),
        ("nothing", "certificate-authority has no PEM certificate"),
        (
            "-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----",
            "certificate-authority has a certificate that cannot be read",
        ),
    ],
)
def test_authority_may_have_a_comment_in_any_language(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "ca.crt").write_text(content.replace("CERTIFICATES", authority().file.read_text()))
    with serving() as served:
        cluster = {"server": served.address, "certificate-authority": "ca.crt"}
        path = kubeconfig(tmp_path / "config", cluster, {"token": "a-token"})
        if told:
            with pytest.raises(StateUnavailable, match=told):
                ask(path)
        else:
            assert ask(path) == [200]


@pytest.mark.parametrize("is_of_server", [True, False])
def test_authority_may_be_the_certificate_of_the_server_itself(tmp_path: Path, *, is_of_server: bool) -> None:
    with serving() as served:
        found = ssl.get_server_certificate(("127.0.0.1", int(served.address.rpartition(":")[2])))
        (tmp_path / "ca.crt").write_text(
            found if is_of_server else authority().server().certificate.read_text()
        )
        cluster = {"server": served.address, "certificate-authority": "ca.crt"}
        path = kubeconfig(tmp_path / "config", cluster, {"token": "a-token"})
        if is_of_server:
            assert ask(path) == [200]
        else:
            with pytest.raises(StateUnavailable, match="certificate verify failed"):
                ask(path)


def test_file_that_blocks_is_cut_by_the_deadline(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "token")
    with serving() as served:
        path = config(tmp_path, served, {"tokenFile": "token"})
        with pytest.raises(StateUnavailable, match="its files cannot be read within"):
            ask(path, seconds=0.5)


def test_account_of_a_pod_is_used_with_its_authority_and_both_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: Later
) -> None:
    monkeypatch.setattr("twgen.clients.kubeconfig.ACCOUNT", tmp_path)
    other = Authority(tmp_path, "other").file

    def before(turn: int) -> None:
        (tmp_path / "token").write_text(f"of-the-pod-{turn}\n")
        (tmp_path / "ca.crt").write_bytes((other if turn == 2 else authority().file).read_bytes())
        later(61)

    with serving() as served:
        _, host, port = served.address.replace("//", "").split(":")
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
        with pytest.raises(StateUnavailable, match=r"this Pod's cluster\) cannot be used: .*token"):
            ask("")
        assert ask("", 2, before=before) == [200, 200]
        with pytest.raises(StateUnavailable, match="certificate verify failed"):
            ask("", 3, before=before)
    assert served.authorizations == ["Bearer of-the-pod-0", "Bearer of-the-pod-1"] * 2
