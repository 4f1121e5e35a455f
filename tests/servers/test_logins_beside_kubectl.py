"""One kubeconfig by the real kubectl and by twgen: both send the same, or twgen refuses more."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from testing.credentials import SERVER_NAME
from testing.install import installed
from testing.recipes import KUBECTL
from tests.clients.tls_server import PLACE, Asked, Served, ask, authority, serving
from twgen.errors import StateUnavailable

pytestmark = pytest.mark.server

V1 = "client.authentication.k8s.io/v1"
Fields = dict[str, Any]
TOKEN: Fields = {"token": "a-token"}
PASSWORD: Fields = {"username": "ana", "password": "a-password"}
DOWN = "http://127.0.0.1:9"


def program(script: str, version: str = V1, **more: object) -> Fields:
    return {
        "exec": {
            "apiVersion": version,
            "command": "sh",
            "args": ["-c", script],
            "interactiveMode": "Never",
            **more,
        }
    }


def printing(status: Fields) -> Fields:
    printed = json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status})
    return program(f"printf %s '{printed}'")


FOUND: Fields = {"token": "from-program"}
FROM_PROGRAM = printing(FOUND)


def certificate(*, key: bool = True) -> Fields:
    own = authority().client()
    found = {"client-certificate": str(own.certificate)}
    return found | ({"client-key": str(own.key)} if key else {})


def both_from_program() -> Fields:
    own = authority().client()
    files = {"clientCertificateData": own.certificate.read_text(), "clientKeyData": own.key.read_text()}
    return printing(FOUND | files)


SAME: Mapping[str, Callable[[], tuple[Fields, Fields]]] = {
    "token": lambda: ({}, TOKEN),
    "password": lambda: ({}, PASSWORD),
    "password in another script": lambda: ({}, {"username": "ana", "password": "пароль"}),
    "username alone": lambda: ({}, {"username": "ana"}),
    "impersonation": lambda: ({}, TOKEN | {"as": "ana", "as-groups": ["g", "h"], "as-uid": "7"}),
    "impersonation with extra": lambda: ({}, TOKEN | {"as": "ä", "as-user-extra": {"a/b c": ["x", "ü"]}}),
    "token and its file": lambda: ({}, TOKEN | {"tokenFile": "token-file"}),
    "token and a file that is absent": lambda: ({}, TOKEN | {"tokenFile": "absent"}),
    "token and a program": lambda: ({}, TOKEN | FROM_PROGRAM),
    "password and a program": lambda: ({}, PASSWORD | FROM_PROGRAM),
    "certificate and a program": lambda: ({}, certificate() | FROM_PROGRAM),
    "program": lambda: ({}, FROM_PROGRAM),
    "program with token and certificate": lambda: ({}, both_from_program()),
    "certificate": lambda: ({}, certificate()),
    "certificate and token": lambda: ({}, certificate() | TOKEN),
    "name of the server": lambda: ({"tls-server-name": SERVER_NAME}, TOKEN),
    "authority with a comment": lambda: (
        {"certificate-authority": "ca.pem", "certificate-authority-data": None},
        TOKEN,
    ),
}
REFUSED: Mapping[str, Callable[[], tuple[Fields, Fields]]] = {
    "token and password": lambda: ({}, TOKEN | PASSWORD),
    "insecure and an authority": lambda: ({"insecure-skip-tls-verify": True}, TOKEN),
    "certificate without a key": lambda: ({}, certificate(key=False)),
    "certificate with another key": lambda: (
        {},
        certificate() | {"client-key": str(authority().server().key)},
    ),
    "groups without a user": lambda: ({}, TOKEN | {"as-groups": ["g"]}),
    "token that is a number": lambda: ({}, {"token": 16}),
    "token with a newline": lambda: ({}, {"token": "a-token\nX-Evil: 1"}),
    "program without a mode": lambda: ({}, {"exec": {"apiVersion": V1, "command": "true"}}),
    "program that needs a terminal": lambda: ({}, program("true", interactiveMode="Always")),
    "program of another version": lambda: ({}, {"exec": FROM_PROGRAM["exec"] | {"apiVersion": f"{V1}beta1"}}),
    "program that fails": lambda: ({}, program("exit 3")),
    "program that prints nothing": lambda: ({}, program("true")),
    "program that prints an object": lambda: ({}, program("echo '{}'")),
    "program without a credential": lambda: ({}, printing({})),
    "provider that nobody knows": lambda: ({}, {"auth-provider": {"name": "gcp"}}),
    "proxy without a scheme": lambda: ({"proxy-url": "127.0.0.1:9"}, TOKEN),
    "proxy of another kind": lambda: ({"proxy-url": "ftp://127.0.0.1:9"}, TOKEN),
    "proxy that is down": lambda: ({"proxy-url": DOWN}, TOKEN),
    "port above 65535": lambda: ({"server": "https://127.0.0.1:99999"}, TOKEN),
}


def written(folder: Path, served: Served, case: tuple[Fields, Fields], **changes: object) -> Path:
    cluster, user = case
    fields = {name: value for name, value in (served.cluster | cluster).items() if value is not None}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": fields}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "here",
        "users": [{"name": "u", "user": user}],
        **changes,
    }
    (folder / "token-file").write_text("from-file\n")
    (folder / "ca.pem").write_text(f"# Főtanúsítvány\n{authority().file.read_text()}")
    (file := folder / f"config-{len(list(folder.iterdir()))}").write_text(json.dumps(document))
    return file


def by_kubectl(paths: str, served: Served, home: Path, **variables: str) -> tuple[bool, list[Asked]]:
    """Whether it got an answer, and what it sent last: it may first ask what the server serves."""
    served.asked.clear()
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": paths, **variables}  # noqa: TID251
    command = [str(installed(KUBECTL)), "get", "--raw", PLACE, "--request-timeout=20s"]
    ended = subprocess.run(
        command, capture_output=True, env=environment, stdin=subprocess.DEVNULL, check=False
    )
    return ended.returncode == 0, served.asked[-1:]


def by_twgen(paths: str, served: Served) -> tuple[bool, list[Asked]]:
    served.asked.clear()
    try:
        statuses = ask(paths)
    except StateUnavailable:
        return False, served.asked[-1:]
    return statuses == [200], served.asked[-1:]


def sent(asked: list[Asked]) -> list[tuple[str, list[tuple[str, str]], bool]]:
    return [
        # Go writes the first letter of each word of a name as a capital
        (
            one.authorization,
            sorted((name.lower(), text) for name, text in one.impersonated),
            bool(one.certificate),
        )
        for one in asked
    ]


@pytest.mark.parametrize("name", SAME)
def test_same_is_sent_as_by_kubectl(name: str, tmp_path: Path) -> None:
    with serving() as served:
        path = str(written(tmp_path, served, SAME[name]()))
        answered, asked = by_kubectl(path, served, tmp_path)
        theirs = sent(asked)
        assert (answered, bool(theirs)) == (True, True)
        answered, asked = by_twgen(path, served)
        assert (answered, sent(asked)) == (True, theirs)


@pytest.mark.parametrize("name", REFUSED)
def test_what_kubectl_refuses_is_refused(name: str, tmp_path: Path) -> None:
    with serving() as served:
        path = str(written(tmp_path, served, REFUSED[name]()))
        assert by_kubectl(path, served, tmp_path) == (False, [])
        assert by_twgen(path, served) == (False, [])


@pytest.mark.parametrize(
    "variables",
    [{"HTTPS_PROXY": DOWN}, {"ALL_PROXY": DOWN}, {"HTTPS_PROXY": DOWN, "NO_PROXY": "example.com"}],
)
def test_server_on_this_machine_is_asked_without_a_proxy_of_the_environment(
    variables: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with serving() as served:
        path = str(written(tmp_path, served, ({}, TOKEN)))
        assert by_kubectl(path, served, tmp_path, **variables)[0]
        assert by_twgen(path, served)[0]


@pytest.mark.parametrize(
    ("user", "scheme"),
    [(TOKEN, "http://"), (PASSWORD, "http://"), (program("exit 3"), "http://"), (TOKEN, "")],
)
def test_nothing_is_sent_without_tls(user: Fields, scheme: str, tmp_path: Path) -> None:
    with serving(plain=True) as served:
        server = served.address.replace("http://", scheme)
        cluster = {"server": server, "certificate-authority-data": None}
        path = str(written(tmp_path, served, (cluster, user)))
        for answered, asked in (by_kubectl(path, served, tmp_path), by_twgen(path, served)):
            assert (answered, sent(asked)) == (True, [("", [], False)])


def test_first_current_context_of_several_files_wins(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    with serving() as served:
        first = written(tmp_path, served, ({}, {"token": "first"}))
        second = written(tmp_path, served, ({}, {"token": "second"}), **{"current-context": "other"})
        paths = f"{tmp_path}/absent:{tmp_path}/empty:{first}:{second}"
        for answered, asked in (by_kubectl(paths, served, tmp_path), by_twgen(paths, served)):
            assert (answered, asked[0].authorization) == (True, "Bearer first")


def test_certificate_authority_of_this_test_is_not_trusted_by_the_system(tmp_path: Path) -> None:
    with serving() as served:
        path = str(written(tmp_path, served, ({"certificate-authority-data": None}, TOKEN)))
        assert by_kubectl(path, served, tmp_path) == (False, [])
        assert by_twgen(path, served) == (False, [])
