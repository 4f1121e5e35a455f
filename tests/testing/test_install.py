"""What `make servers` says on machines that lack something; nothing is installed here."""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from testing.recipes import ARGO_CD, ARGO_CD_3_2, SERVERS, VERSIONED, Source

MODULES = Path(__file__).parents[2] / "testing"


def install(**variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "testing.install"],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )


@pytest.fixture
def machine(tmp_path: Path) -> Mapping[str, str]:
    """The environment of a machine on which no program is."""
    (tmp_path / "bin").mkdir()
    return {"PATH": str(tmp_path / "bin"), "XDG_CACHE_HOME": str(tmp_path / "cache")}


def make_program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o755)
    return path


def test_machine_without_debian_packages_is_told_what_to_install(machine: Mapping[str, str]) -> None:
    ended = install(**machine)
    assert ended.returncode == 1
    missing, estimate, step, advice = ended.stderr.splitlines()
    assert all(server.program in missing for server in SERVERS)
    assert re.match(
        r"installing them into .*, once for all clones, takes about \d+ minutes with \d+ core", estimate
    )
    steps = 1 + sum(server.source is not Source.DEBIAN for server in SERVERS)
    assert step.startswith(f"[1/{steps}] Debian's packages; about ")
    assert advice.endswith("with this system's package manager")
    assert all(server.package in advice for server in SERVERS if server.source is Source.DEBIAN)


def test_nothing_is_installed_when_every_program_is_there(machine: Mapping[str, str]) -> None:
    for server in SERVERS:
        if server in VERSIONED:
            folder = Path(machine["XDG_CACHE_HOME"]) / "twgen" / f"{server.name}-{server.version}"
            make_program(folder / server.program)
        else:
            make_program(Path(machine["PATH"]) / server.program)
    ended = install(**machine)
    assert ended.returncode == 0
    assert [line.split(": ")[0] for line in ended.stderr.splitlines()] == [server.name for server in SERVERS]


def test_variable_that_names_no_program_is_said(machine: Mapping[str, str]) -> None:
    ended = install(**machine, TEMPORAL_CLI="/no/such/temporal")
    assert ended.returncode == 1
    assert "TEMPORAL_CLI names /no/such/temporal, which is not a program" in ended.stderr


def test_assets_of_envtest_are_used(machine: Mapping[str, str], tmp_path: Path) -> None:
    assets = tmp_path / "assets"
    for program in ("etcd", "kube-apiserver", "kubectl"):
        make_program(assets / program)
    missing = install(**machine, KUBEBUILDER_ASSETS=str(assets)).stderr.splitlines()[0]
    assert "kube-controller-manager" in missing
    assert not any(program in missing for program in ("etcd", "kube-apiserver", "kubectl"))


def test_go_modules_are_of_the_versions_that_are_named() -> None:
    versions = {server.version for server in SERVERS if server.source is Source.KUBERNETES}
    assert versions == {"1.36.1"}
    for server, series in ((ARGO_CD, "3.6"), (ARGO_CD_3_2, "3.2")):
        argo = (MODULES / "argocd" / "servers" / series / "go.mod").read_text()
        assert f"github.com/argoproj/argo-cd/v3 v{server.version}" in argo
    module = (MODULES / "kubernetes" / "servers" / "go.mod").read_text()
    assert "k8s.io/kubernetes v1.36.1" in module
    replaced = [line.split("=>")[1].split() for line in module.splitlines() if "=>" in line]
    assert {version for _, version in replaced} == {"v0.36.1"}
