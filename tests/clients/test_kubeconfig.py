"""Which cluster and which user the files of a kubeconfig, or a Pod, name."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.clients.tls_server import kubeconfig
from twgen.clients.kubeconfig import Unusable, context_of_files, context_of_pod

V1 = "client.authentication.k8s.io/v1"
PROGRAM = {"apiVersion": V1, "command": "login", "interactiveMode": "Never"}
SERVER = {"server": "https://api.example.com:6443"}
TOKEN = {"token": "the-secret"}


def test_first_file_that_has_an_entry_decides_and_a_missing_or_empty_file_is_left_out(tmp_path: Path) -> None:
    first = kubeconfig(tmp_path / "first" / "config", {"server": "https://first"}, {"token": "1"})
    second = kubeconfig(tmp_path / "second" / "config", {"server": "https://second"}, {"token": "2"})
    document = json.loads(second.read_text())
    document["contexts"].append({"name": "there", "context": {"cluster": "c2", "user": "u"}})
    document["clusters"].append({"name": "c2", "cluster": {"server": "https://there"}})
    document["current-context"] = "there"
    second.write_text(json.dumps(document))
    (tmp_path / "empty").write_text("# nothing yet\n")
    paths = f"{tmp_path}/absent:{tmp_path}/empty:{first}:{second}"
    here, there = context_of_files(paths, ""), context_of_files(paths, "there")
    assert (here.name, here.server, here.user.text("token")) == ("here", "https://first", "1")
    assert (there.server, there.user.text("token")) == ("https://there", "1")


def test_relative_file_is_relative_to_the_kubeconfig_that_names_it(tmp_path: Path) -> None:
    file = kubeconfig(
        tmp_path / "a" / "config", SERVER | {"certificate-authority": "ca.crt"}, {"tokenFile": "/t"}
    )
    (tmp_path / "a" / "ca.crt").write_text("PEM")
    found = context_of_files(str(file), "here")
    assert found.cluster.content("certificate-authority") == b"PEM"
    assert found.user.path("tokenFile") == Path("/t")
    assert found.user.content("absent") == b""


@pytest.mark.parametrize(
    ("cluster", "server"),
    [
        ({"server": "https://api/path/"}, "https://api/path"),
        ({"server": "127.0.0.1:8001"}, "http://127.0.0.1:8001"),
        ({"server": "api:6443", "insecure-skip-tls-verify": True}, "http://api:6443"),
        ({"server": "api:6443", "certificate-authority": "/ca"}, "http://api:6443"),
        ({"server": "https://exämple.invalid"}, "https://exämple.invalid"),
        ({"server": "HTTPS://API"}, "https://API"),
    ],
)
def test_address_without_a_scheme_has_that_which_kubectl_takes(
    tmp_path: Path, cluster: dict[str, Any], server: str
) -> None:
    assert context_of_files(str(kubeconfig(tmp_path / "config", cluster)), "").server == server


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"current-context": ""}, "it has no current-context: give --context"),
        ({"current-context": 1}, "current-context: must be a string, not a whole number; put it in quotes"),
        ({"contexts": []}, "no context has the name 'here'"),
        ({"clusters": None}, "no cluster has the name 'c'"),
        ({"users": []}, "no user has the name 'u'"),
        ({"users": [{"name": "u"}, {"name": "u"}]}, r"users\[1\]: user u appears twice, first at \[0\]"),
        ({"kind": "Pod"}, "kind: must be Config"),
        ({"contexts": [{}]}, r"contexts\[0\]\.name: is required"),
        ({"contexts": "here"}, "contexts: must be a list, not a string"),
        ({"users": [{"token": "the-secret"}]}, r"users\[0\]\.name: is required"),
        (
            {"users": [{"name": "u", "user": {"token": 16}}]},
            r"users\[0\]\.user\.token: must be a string, not",
        ),
        ({"users": [{"name": "u", "user": {"exec": "x"}}]}, r"user\.exec: must be a mapping, not a string"),
        ({"users": [{"name": "u", "user": {"auth-provider": "x"}}]}, r"auth-provider: must be a mapping"),
        ({"clusters": [{"name": "c", "cluster": {"extensions": 5}}]}, r"extensions: must be a list, not"),
    ],
)
def test_file_that_does_not_lead_to_a_cluster_is_named_with_its_field(
    tmp_path: Path, change: dict[str, object], told: str
) -> None:
    file = kubeconfig(tmp_path / "config", SERVER, TOKEN)
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(Unusable, match=told) as failed:
        context_of_files(str(file), "")
    assert "the-secret" not in str(failed.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"a: [the-secret", "not YAML at line 1"),
        (b"the-secret", "it: must be a mapping, not a string"),
        (b"a: the-secret\na: b", "the key .* appears twice at line 2"),
        (b"- the-secret", "it: must be a mapping, not a list"),
        (b"token: \xff", "not YAML at line 1"),
        (b"[" * 300, "not YAML"),
    ],
)
def test_file_that_is_no_kubeconfig_is_never_quoted(tmp_path: Path, content: bytes, told: str) -> None:
    file = tmp_path / "config"
    file.write_bytes(content)
    with pytest.raises(Unusable, match=f"config: {told}") as failed:
        context_of_files(str(file), "")
    assert "the-secret" not in str(failed.value)


@pytest.mark.parametrize("path", ["~nouser123/config", "~/absent", "absent"])
def test_file_that_is_not_there_is_an_error_and_a_tilde_is_not_expanded(path: str) -> None:
    with pytest.raises(Unusable, match="no such file" + ("; ~ is not expanded" if "~" in path else "$")):
        context_of_files(path, "")


WRONG_SERVER = "cluster 'c': server is not an address such as"
BOTH = {"client-certificate-data": "YQ==", "client-key-data": "YQ=="}


@pytest.mark.parametrize(
    ("cluster", "user", "told"),
    [
        ({}, {}, "cluster 'c': it has no server"),
        *(
            ({"server": server}, {}, WRONG_SERVER)
            for server in (
                "https://[::1",
                "https://127.0.0.1:99999",
                "https://exa mple:1",
                "https://",
                "ftp://api",
                "https://api/a?b=c",
                "https://ana:the-secret@api",
            )
        ),
        (SERVER | {"tls-server-name": "a\nb"}, {}, "tls-server-name is not a valid host name"),
        (SERVER | {"proxy-url": "ftp://ana:the-secret@p"}, {}, "cluster 'c': proxy-url begins with ftp://"),
        (SERVER | {"proxy-url": "proxy:3128"}, {}, "cluster 'c': proxy-url is not a URL such as"),
        (SERVER | {"proxy-url": "http://proxy:99999"}, {}, "proxy-url is not a URL such as"),
        (SERVER | {"proxy-url": "http://%zz:1"}, {}, "proxy-url is not a URL such as"),
        (
            SERVER | {"certificate-authority": "ca", "insecure-skip-tls-verify": True},
            {},
            "insecure-skip-tls-verify conflicts with certificate-authority",
        ),
        (
            SERVER | {"certificate-authority": "ca", "certificate-authority-data": "YQ=="},
            {},
            "certificate-authority conflicts with certificate-authority-data",
        ),
        (SERVER, TOKEN | {"username": "ana", "password": "the-secret"}, "it has a token and a password"),
        (SERVER, {"tokenFile": "t", "username": "ana"}, "it has a token and a password"),
        (SERVER, {"password": "the-secret"}, "it has a password without a username"),
        (SERVER, {"client-certificate": "c"}, "it needs both client-certificate and client-key"),
        (SERVER, {"client-key-data": "YQ=="}, "it needs both client-certificate and client-key"),
        (SERVER, BOTH | {"client-key": "k"}, "client-key conflicts with client-key-data"),
        (SERVER, TOKEN | {"as-groups": ["g"]}, "also need the field 'as'"),
        (SERVER, TOKEN | {"as": " "}, "as is blank"),
        ({"server": "http://api"}, TOKEN | {"as": "ana"}, "the field 'as' needs a server with https://"),
        (SERVER, {"exec": PROGRAM, "auth-provider": {"name": "oidc"}}, "exec conflicts with auth-provider"),
        (SERVER, {"exec": PROGRAM | {"command": ""}}, "exec has no command"),
        (SERVER, {"exec": PROGRAM | {"apiVersion": f"{V1}alpha1"}}, "apiVersion of exec is not"),
        (SERVER, {"exec": PROGRAM | {"interactiveMode": "Often"}}, "interactiveMode of exec is not one of"),
        (SERVER, {"exec": {"apiVersion": V1, "command": "a"}}, "interactiveMode of exec is not one of"),
    ],
)
def test_combination_that_kubectl_refuses_is_refused_with_its_field(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], told: str
) -> None:
    with pytest.raises(Unusable, match=told) as failed:
        context_of_files(str(kubeconfig(tmp_path / "config", cluster, user)), "")
    assert "the-secret" not in str(failed.value)


def test_old_version_of_a_credential_plugin_needs_no_interactive_mode(tmp_path: Path) -> None:
    program = {"apiVersion": f"{V1}beta1", "command": "a"}
    assert context_of_files(str(kubeconfig(tmp_path / "config", SERVER, {"exec": program})), "").is_secure


@pytest.mark.parametrize(
    ("host", "server"), [("10.0.0.1", "https://10.0.0.1:443"), ("fd00::1", "https://[fd00::1]:443")]
)
def test_pod_has_its_account_where_kubernetes_puts_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, host: str, server: str
) -> None:
    monkeypatch.setattr("twgen.clients.kubeconfig.ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    found = context_of_pod()
    assert found.server == server
    assert found.cluster.path("certificate-authority") == tmp_path / "ca.crt"
    assert found.user.path("tokenFile") == tmp_path / "token"
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    with pytest.raises(Unusable, match="this is not a Pod"):
        context_of_pod()
