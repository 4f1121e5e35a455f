"""What `--input` takes, without the programs that it runs."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from testing.processes import ENVIRONMENT
from tests.cli.conftest import TWGEN, Run
from twgen.model.problem import quoted


@pytest.mark.parametrize("kind", ["Helm", "Kustomize"])
def test_program_that_is_not_there_is_told_with_what_to_do(run: Run, story: Path, kind: str) -> None:
    ended = run("render", "specs", "--input", kind, env={**ENVIRONMENT, "PATH": str(story)})
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"{kind.lower()}, which --input {kind} runs, is not on PATH" in ended.stderr
    assert "deploy/templating" in ended.stderr


def test_directory_is_what_is_read_without_the_option(run: Run, story: Path) -> None:  # noqa: ARG001
    asked = ("render", "specs", "--snapshot", "snapshot.json")
    assert run(*asked, "--input", "Directory").stdout == run(*asked).stdout != ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("specs", "--values", "a: b"), "--values works only with --input Helm, but the input is Directory"),
        (("specs", "--input", "Kustomize", "--release", "a"), "--release works only with --input Helm"),
        (("specs", "--input", "helm"), "'helm' is not one of Directory, Kustomize, Helm"),
        (("-", "--input", "Helm"), "--input Helm renders one folder"),
        (("specs", "specs", "--input", "Kustomize"), "--input Kustomize renders one folder"),
        (("nothere", "--input", "Helm"), "nothere: no such file or folder"),
        (("specs", "--input", "Helm", "--release", "--a"), "is not a valid release name"),
        (("specs", "--input", "Helm", "--value-files", "a,,b"), "one name is empty"),
        (("specs", "--input", "Helm", "--values", "prod.yaml"), "must be a YAML mapping such as"),
        (
            ("specs", "--input", "Helm", "-f", "a"),
            "as arguments; with --input Helm, did you mean --value-files?",
        ),
        (("specs", "--input", "Helm", "--set", "a=b"), "'--set'; with --input Helm, did you mean --values?"),
    ],
)
def test_mistaken_input_is_told(run: Run, story: Path, arguments: tuple[str, ...], said: str) -> None:  # noqa: ARG001
    ended = run("render", *arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr


def test_ledger_of_a_chart_needs_to_know_the_release_except_in_argocd(run: Run, story: Path) -> None:
    asked = ("lock", "specs", "--input", "Helm")
    without = {**ENVIRONMENT, "PATH": str(story)}
    ended = run(*asked, env=without)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "give --release NAME" in ended.stderr
    for named in (("--release", "payments"), {}), ((), {"ARGOCD_APP_NAME": "payments"}):
        ended = run(*asked, *named[0], env=without | named[1])
        assert "helm, which --input Helm runs, is not on PATH" in ended.stderr


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        (
            [{"name": "input", "string": "Kustomize"}, {"name": "release", "string": "a"}],
            "twgen: plugin parameter 'release' works only with input Helm, but the input is Kustomize\n",
        ),
        (
            [{"name": "input", "string": "Helm"}],
            "at most 53 lower-case letters, digits, - and .; set plugin parameter 'release'",
        ),
        (
            [{"name": "valuesObject", "map": {"replicas": "2"}}],
            "plugin parameter 'valuesObject': no such setting; did you mean values? an application may set ",
        ),
        (
            [{"name": "helm-parameters", "array": ["a=b"]}],
            "plugin parameter 'helm-parameters': no such setting; an application may set ",
        ),
    ],
)
def test_mistaken_input_of_an_application_is_told(
    run: Run, story: Path, parameters: list[dict[str, object]], said: str
) -> None:
    variables = {"ARGOCD_APP_NAME": "a" * 54, "ARGOCD_APP_PARAMETERS": json.dumps(parameters)}
    ended = run("render", "specs", env={**ENVIRONMENT, "PATH": str(story), **variables})
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr


def a_program(folder: Path, name: str) -> dict[str, str]:
    """The environment with a program of that name, which prints nothing."""
    (folder / "bin").mkdir()
    (folder / "bin" / name).symlink_to(shutil.which("true") or "")
    return {**ENVIRONMENT, "PATH": f"{folder / 'bin'}{os.pathsep}{ENVIRONMENT['PATH']}"}


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ((3 * 2**30,), "value-files: 'values0.yaml' is longer than 16 MiB"),
        ((2**24,) * 4, "value-files: more than 48 MiB in total: use fewer files"),
        ((2**24 + 1, 2**24), "value-files: 'values0.yaml' is longer than 16 MiB"),
    ],
)
def test_value_files_are_limited_each_and_all_together(
    run: Run, story: Path, sizes: tuple[int, ...], said: str
) -> None:
    for number, size in enumerate(sizes):
        with (story / "specs" / f"values{number}.yaml").open("wb") as file:
            file.truncate(size)
    names = ",".join(f"values{number}.yaml" for number in range(len(sizes)))
    ended = run("render", "specs", "--input", "Helm", "--value-files", names, env=a_program(story, "helm"))
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", f"twgen: {said}\n")


@pytest.mark.parametrize(
    "name",
    ["/values.yaml", "$values/prod.yaml", " values.yaml", "", "?values.yaml", "nothere/", "a://b", "../../a"],
)
def test_optional_value_file_has_the_form_of_a_required_one(run: Run, story: Path, name: str) -> None:
    (story / "specs" / "values.yaml").touch()
    parameter = {"name": "valueFiles", "array": [f"?{name}"]}
    in_argocd = {"ARGOCD_APP_PARAMETERS": json.dumps([{"name": "input", "string": "Helm"}, parameter])}
    variables, asked = a_program(story, "helm"), ("render", "specs")
    for ended in (
        run(*asked, "--input", "Helm", "--value-files", f"?{name}", env=variables),
        run(*asked, env={**variables, "ARGOCD_APP_NAME": "payments", **in_argocd}),
    ):
        assert (ended.returncode, ended.stdout) == (2, "")
        assert f"value-files: {quoted(f'?{name}')} is not a file of the checkout: " in ended.stderr


@pytest.mark.parametrize("optional", ["", "?"])
@pytest.mark.parametrize("name", [".", "folder", "broken.yaml"])
def test_folder_or_broken_link_is_not_a_missing_value_file(
    run: Run, story: Path, name: str, optional: str
) -> None:
    (story / "specs" / "folder").mkdir()
    (story / "specs" / "broken.yaml").symlink_to("nothere.yaml")
    asked = ("--input", "Helm", "--value-files", f"{optional}{name}")
    ended = run("render", "specs", *asked, env=a_program(story, "helm"))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"value-files: '{name}' is a folder or a broken link: name a file" in ended.stderr


def test_lower_limits_of_the_system_lower_those_of_kustomize(story: Path) -> None:
    def rendered(limit: str) -> subprocess.CompletedProcess[str]:
        command = f"ulimit {limit}; exec {TWGEN} render specs --input Kustomize"
        return subprocess.run(
            ["bash", "-c", command], cwd=story, env=environment, capture_output=True, text=True, check=False
        )

    environment = a_program(story, "kustomize")
    told = rendered("-f unlimited").stderr
    for limit in ("-f 2000", "-t 20", "-d 500000"):
        assert rendered(limit).stderr == told
    ended = rendered("-f 0")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert ended.stderr.startswith("twgen: kustomize cannot be run here (")
