"""What `twgen diff` asks of kubectl, and how it ends; test_applying.py has a real one."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Ended, Run

WORLD = ("--snapshot", "snapshot.json")
DIFF = ("diff", "specs", *WORLD)


class Kubectl:
    """A program in the place of kubectl that writes down what it is given, and ends as it is told to."""

    def __init__(self, run: Run, folder: Path) -> None:
        self._run, self._folder = run, folder
        self.ends("exit 0")

    def ends(self, how: str) -> None:
        program = self._folder / "bin" / "kubectl"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {self._folder}/asked\ncat > given\n{how}\n')
        program.chmod(0o755)

    def run(self, *command: str) -> Ended:
        return self._run(*command, env={"PATH": f"{self._folder}/bin:/usr/bin:/bin"})

    @property
    def arguments(self) -> list[str]:
        return (self._folder / "asked").read_text().splitlines()

    @property
    def was_run(self) -> bool:
        return (self._folder / "asked").exists()


@pytest.fixture
def kubectl(run: Run, story: Path) -> Kubectl:
    return Kubectl(run, story)


def test_kubectl_compares_what_render_prints(kubectl: Kubectl, run: Run, story: Path) -> None:
    assert kubectl.run(*DIFF).returncode == 0
    assert (story / "given").read_text() == run("render", "specs", *WORLD).stdout
    server_side = ["--server-side", "--force-conflicts", "--field-manager=kubectl"]
    assert kubectl.arguments == ["diff", *server_side, "--filename=-"]


def test_cluster_and_manager_of_the_options_are_those_of_kubectl(kubectl: Kubectl) -> None:
    options = ("--kubeconfig", "file", "--context", "prod", "--field-manager", "ci")
    kubectl.run(*DIFF, *options)
    assert {"--kubeconfig=file", "--context=prod", "--field-manager=ci"} < set(kubectl.arguments)


def test_namespace_is_for_documents_that_name_none(kubectl: Kubectl, story: Path) -> None:
    kubectl.run(*DIFF, "-n", "default")
    assert "--namespace=default" not in kubectl.arguments, "every object names one"
    gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "pay"}}
    (story / "specs" / "gadget.json").write_text(json.dumps(gadget))
    kubectl.run(*DIFF, "-n", "default")
    assert "--namespace=default" in kubectl.arguments, "it may be cluster-scoped"


@pytest.mark.parametrize(
    ("how", "code"), [("exit 0", 0), ("exit 1", 1), ("exit 3", 3), ("kill -TERM $$", 143)]
)
def test_it_ends_as_kubectl_does(kubectl: Kubectl, how: str, code: int) -> None:
    kubectl.ends(f"echo shown\n{how}")
    ended = kubectl.run(*DIFF)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "shown\n", "")


@pytest.mark.parametrize(
    "wrong", [("diff", "nowhere"), ("diff", "--bogus"), ("diff", "specs", "--snapshot", "nowhere")]
)
def test_failed_render_runs_no_kubectl_and_never_ends_as_a_difference(
    kubectl: Kubectl, wrong: tuple[str, ...]
) -> None:
    ended = kubectl.run(*wrong)
    assert ended.returncode > 1
    assert ended.stdout == ""
    assert not kubectl.was_run


@pytest.mark.usefixtures("story")
def test_missing_kubectl_is_one_line(run: Run) -> None:
    ended = run(*DIFF, env={"PATH": "/nowhere"})
    told = "twgen: kubectl is not on PATH: install it, because it compares the manifests\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "", told)


def test_kubectl_that_cannot_run_is_one_line(kubectl: Kubectl, story: Path) -> None:
    (story / "bin" / "kubectl").write_bytes(b"\x7fELF")
    ended = kubectl.run(*DIFF)
    assert (ended.returncode, ended.stderr) == (
        3,
        f"twgen: cannot run {story}/bin/kubectl: Exec format error\n",
    )


@pytest.mark.usefixtures("story")
def test_plugin_of_argocd_only_renders(run: Run) -> None:
    ended = run(*DIFF, env={"ARGOCD_APP_NAME": "pay", "PATH": "/bin"})
    assert (ended.returncode, ended.stdout) == (2, "")
