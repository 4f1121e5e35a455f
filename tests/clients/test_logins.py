"""What a kubeconfig can say about proving who asks, and whom to trust, against a real TLS server."""

import json
import shutil
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from urllib3.exceptions import InsecureRequestWarning, SSLError

from testing.credentials import SERVER_NAME, Authority
from tests.clients.tls_server import Served, ask, kubeconfig, serving, session, session_of
from twgen.clients import logins
from twgen.errors import StateUnavailable

V1 = "client.authentication.k8s.io/v1"


def encoded(file: Path) -> str:
    return b64encode(file.read_bytes()).decode()


def trusted(served: Served) -> dict[str, Any]:
    """The fields of a cluster that trust its authority."""
    assert served.authority
    return {"server": f"{served.address}/", "certificate-authority-data": encoded(served.authority.file)}


def program(folder: Path, script: str, **more: object) -> dict[str, Any]:
    """A user who logs in with a script next to the kubeconfig."""
    file = folder / "login"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o700)
    return {"exec": {"apiVersion": V1, "command": "./login", "interactiveMode": "Never", **more}}


def credential(status: dict[str, str]) -> str:
    return json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status})


@pytest.mark.parametrize(
    ("user", "sent"),
    [
        ({"token": "a-token"}, "Bearer a-token"),
        ({"username": "ana", "password": "pässword"}, f"Basic {b64encode('ana:pässword'.encode()).decode()}"),
        ({}, ""),
        (None, ""),
    ],
)
def test_token_or_password_is_sent(tmp_path: Path, user: dict[str, str] | None, sent: str) -> None:
    with serving(tmp_path) as served:
        assert ask(session_of(tmp_path, trusted(served), user)) == 200
    assert served.authorizations == [sent]


def test_token_of_a_file_is_read_again_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("one\n")
    with serving(tmp_path) as served:
        user = {"tokenFile": "token", "token": "older"}
        opened = session_of(tmp_path, trusted(served), user)
        ask(opened)
        (tmp_path / "token").write_text("two\n")
        ask(opened)
        now = logins.time.monotonic()
        monkeypatch.setattr(logins.time, "monotonic", lambda: now + 61)
        ask(opened)
        for later, (content, why) in enumerate(((b"\n", ".*token is empty"), (b"\xff", "it is not text")), 2):
            (tmp_path / "token").write_bytes(content)
            monkeypatch.setattr(logins.time, "monotonic", lambda later=later: now + 61 * later)
            with pytest.raises(StateUnavailable, match=f"cannot be renewed: {why}"):
                ask(opened)
    assert served.authorizations == ["Bearer one", "Bearer one", "Bearer two"]


@pytest.mark.parametrize("is_in_files", [True, False])
def test_certificate_of_the_user_is_shown(tmp_path: Path, *, is_in_files: bool) -> None:
    with serving(tmp_path, asks_for_certificates=True) as served:
        assert served.authority
        own = served.authority.client()
        fields = {"client-certificate": own.certificate, "client-key": own.key}
        user = {
            (name if is_in_files else f"{name}-data"): (file.name if is_in_files else encoded(file))
            for name, file in fields.items()
        }
        private = tmp_path / "private"
        private.mkdir()
        assert ask(session(kubeconfig(tmp_path / "config", trusted(served), user), private)) == 200
        assert {file.stat().st_mode & 0o077 for file in private.iterdir()} == {0}


def test_login_program_is_asked_again_when_its_token_ends(tmp_path: Path) -> None:
    ended = credential({"token": "t$(wc -l < runs)", "expirationTimestamp": "2020-01-01T00:00:00Z"})
    script = f"echo >> runs; cat <<END\n{ended}\nEND"
    with serving(tmp_path) as served:
        user = program(tmp_path, f"cd {tmp_path}; {script}")
        opened = session_of(tmp_path, trusted(served), user)
        ask(opened)
        ask(opened)
    assert [sent.split() for sent in served.authorizations] == [["Bearer", "t2"], ["Bearer", "t3"]]


def test_token_that_does_not_end_is_asked_for_once(tmp_path: Path) -> None:
    script = f"echo >> {tmp_path}/runs; echo '{credential({'token': 't'})}'"
    with serving(tmp_path) as served:
        opened = session_of(tmp_path, trusted(served), program(tmp_path, script))
        ask(opened)
        ask(opened)
    assert served.authorizations == ["Bearer t", "Bearer t"]
    assert (tmp_path / "runs").read_text() == "\n"


def test_certificate_from_a_login_program_is_shown(tmp_path: Path) -> None:
    with serving(tmp_path, asks_for_certificates=True) as served:
        assert served.authority
        own = served.authority.client()
        texts = {"clientCertificateData": own.certificate.read_text(), "clientKeyData": own.key.read_text()}
        (tmp_path / "credential").write_text(credential(texts))
        user = program(tmp_path, f"cat {tmp_path}/credential")
        assert ask(session_of(tmp_path, trusted(served), user)) == 200


def test_login_program_gets_its_arguments_its_variables_and_the_cluster(tmp_path: Path) -> None:
    script = f"""echo "$1 $REGION" > {tmp_path}/seen; echo "$KUBERNETES_EXEC_INFO" > {tmp_path}/info
echo '{credential({"token": "t"})}'"""
    more = {"args": ["get-token"], "env": [{"name": "REGION", "value": "eu"}], "provideClusterInfo": True}
    extension = {"name": V1.rpartition("/")[0] + "/exec", "extension": {"audience": "prod"}}
    with serving(tmp_path) as served:
        assert served.authority
        cluster = {"server": served.address, "certificate-authority": str(served.authority.file)}
        user = program(tmp_path, script, **more)
        file = kubeconfig(tmp_path / "config", {**cluster, "extensions": [extension]}, user)
        assert ask(session(file, tmp_path)) == 200
        asked = json.loads((tmp_path / "info").read_text())["spec"]
        assert asked["cluster"] == {
            "server": served.address,
            "certificate-authority-data": encoded(served.authority.file),
            "config": {"audience": "prod"},
        }
    assert ((tmp_path / "seen").read_text(), asked["interactive"]) == ("get-token eu\n", False)


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo no >&2; exit 7", r"its login failed \(exec: process returned 7\. no\)"),
        ("echo nothing", r"its login failed \(Expecting value"),
        (f"echo '{credential({})}'", "returned no token, and no certificate"),
        ('echo \'{"apiVersion": "client.authentication.k8s.io/v9"}\'', "it answers as .*v9, not as .*v1"),
        (f"echo '{credential({'token': 't', 'expirationTimestamp': 'soon'})}'", "its login failed"),
    ],
)
def test_login_program_that_gives_no_credential_is_an_error(tmp_path: Path, script: str, told: str) -> None:
    with pytest.raises(StateUnavailable, match=rf"is not configured: .*{told}"):
        session_of(tmp_path, {"server": "https://127.0.0.1:1"}, program(tmp_path, script))


@pytest.mark.parametrize(
    ("hint", "why"),
    [({"installHint": "install it from the shop"}, "install it from the shop"), ({}, ".*absent")],
)
def test_login_program_that_is_not_installed_comes_with_its_hint_or_its_name(
    tmp_path: Path, hint: dict[str, str], why: str
) -> None:
    user = {"exec": {"apiVersion": V1, "command": "absent-login", **hint}}
    with pytest.raises(StateUnavailable, match=rf"is not configured: its login failed \({why}"):
        session_of(tmp_path, {"server": "https://127.0.0.1:1"}, user)


def test_server_of_another_authority_is_not_trusted_unless_the_kubeconfig_says_so(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = encoded(Authority(tmp_path / "other", "ca").file)
    with serving(tmp_path) as served:
        wrong = {"server": served.address, "certificate-authority-data": other}
        for cluster in (wrong, {"server": served.address}):
            opened = session_of(tmp_path, cluster, {"token": "t"})
            with pytest.raises(SSLError, match="certificate verify failed"):
                ask(opened)
        assert served.authorizations == [], "no token goes to it"
        open_to_all = {"server": served.address, "insecure-skip-tls-verify": True}
        with pytest.warns(InsecureRequestWarning):
            assert ask(session_of(tmp_path, open_to_all)) == 200


def test_certificate_of_the_server_may_be_for_another_name(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        cluster = trusted(served)
        for name, is_right in ((SERVER_NAME, True), ("other.example", False)):
            opened = session_of(tmp_path, {**cluster, "tls-server-name": name})
            if is_right:
                assert ask(opened) == 200
            else:
                with pytest.raises(SSLError, match="certificate verify failed"):
                    ask(opened)


def test_account_of_a_pod_is_used_with_its_authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    account = tmp_path / "account"
    account.mkdir()
    monkeypatch.setattr("twgen.clients.kubeconfig._ACCOUNT", account)
    with serving(tmp_path) as served:
        assert served.authority
        _, host, port = served.address.replace("//", "").split(":")
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
        with pytest.raises(StateUnavailable, match=r"the cluster of this Pod\) is not configured: .*token"):
            session("", tmp_path)
        (account / "token").write_text("of-the-pod")
        shutil.copy(served.authority.file, account / "ca.crt")
        assert ask(session("", tmp_path)) == 200
    assert served.authorizations == ["Bearer of-the-pod"]


@pytest.mark.parametrize(
    ("cluster", "user", "told"),
    [
        ({}, {}, "its cluster has no server"),
        ({"server": "https://a", "certificate-authority": "absent"}, {}, "absent"),
        ({"server": "https://a", "certificate-authority-data": "the-secret!"}, {}, "not a kubeconfig"),
        (
            {"server": "https://a"},
            {"auth-provider": {"name": "gcp"}},
            "'gcp' is not supported: use a login program",
        ),
        ({"server": "https://a"}, {"tokenFile": "absent"}, "absent"),
        ({"server": "https://a"}, {"client-certificate-data": "YQ==", "client-key-data": "YQ=="}, "PEM"),
    ],
)
def test_kubeconfig_that_cannot_be_used_is_one_line(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], told: str
) -> None:
    with pytest.raises(StateUnavailable, match=f"is not configured: .*{told}") as failed:
        session_of(tmp_path, cluster, user)
    assert "the-secret" not in str(failed.value)
