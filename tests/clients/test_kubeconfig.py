"""Which cluster and which user the files of a kubeconfig, or a Pod, name."""

import json
from pathlib import Path

import pytest

from tests.clients.tls_server import kubeconfig
from twgen.clients.kubeconfig import Unusable, context_of_files, context_of_pod


def test_first_file_that_has_an_entry_decides_and_a_missing_file_is_left_out(tmp_path: Path) -> None:
    first = kubeconfig(tmp_path / "first" / "config", {"server": "https://first"}, {"token": "1"})
    second = kubeconfig(tmp_path / "second" / "config", {"server": "https://second"}, {"token": "2"})
    document = json.loads(second.read_text())
    document["contexts"].append({"name": "there", "context": {"cluster": "c2", "user": "u"}})
    document["clusters"].append({"name": "c2", "cluster": {"server": "https://there"}})
    document["current-context"] = "there"
    second.write_text(json.dumps(document))
    paths = f"{tmp_path}/absent:{first}:{second}"
    here, there = context_of_files(paths, ""), context_of_files(paths, "there")
    assert (here.cluster.fields["server"], here.user.fields["token"]) == ("https://first", "1")
    assert (there.cluster.fields["server"], there.user.fields["token"]) == ("https://there", "1")


def test_relative_file_is_relative_to_the_kubeconfig_that_names_it(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "a" / "config", {"certificate-authority": "ca.crt"}, {"tokenFile": "/t"})
    (tmp_path / "a" / "ca.crt").write_text("PEM")
    found = context_of_files(str(file), "here")
    assert found.cluster.content("certificate-authority") == b"PEM"
    assert found.user.path("tokenFile") == Path("/t")
    assert (found.user.path("absent"), found.user.content("absent")) == (None, b"")


def test_context_without_a_user_that_there_is_asks_as_nobody(tmp_path: Path) -> None:
    found = context_of_files(str(kubeconfig(tmp_path / "config", {"server": "https://a"})), "")
    assert found.user.fields == {}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"current-context": ""}, "it has no current-context"),
        ({"contexts": []}, "no context has the name here"),
        ({"clusters": None}, "no cluster has the name c"),
        ({"contexts": [{}]}, "not a kubeconfig"),
        ({"contexts": "here"}, "not a kubeconfig"),
        ({"users": [{"token": "the-token"}]}, "not a kubeconfig"),
    ],
)
def test_file_that_does_not_lead_to_a_cluster_is_an_error(
    tmp_path: Path, change: dict[str, object], told: str
) -> None:
    file = kubeconfig(tmp_path / "config", {"server": "https://a"}, {"token": "the-token"})
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(Unusable, match=told) as failed:
        context_of_files(str(file), "")
    assert "the-token" not in str(failed.value)


@pytest.mark.parametrize(
    ("host", "server"), [("10.0.0.1", "https://10.0.0.1:443"), ("fd00::1", "https://[fd00::1]:443")]
)
def test_pod_has_its_account_where_kubernetes_puts_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, host: str, server: str
) -> None:
    monkeypatch.setattr("twgen.clients.kubeconfig._ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    found = context_of_pod()
    assert found.cluster.fields["server"] == server
    assert found.cluster.path("certificate-authority") == tmp_path / "ca.crt"
    assert found.user.path("tokenFile") == tmp_path / "token"
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    with pytest.raises(Unusable, match="this is not a Pod"):
        context_of_pod()
