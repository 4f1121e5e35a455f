"""The commands as people use them."""

import json
import subprocess
from pathlib import Path

import pytest

from testing.processes import ENVIRONMENT
from tests.cli.conftest import TWGEN, Run, edited, write_operator, write_policy
from twgen.yaml.reader import read_documents

WORLD = ("--snapshot", "snapshot.json", "--now", "2026-11-21T12:00:00Z")


@pytest.mark.usefixtures("story")
def test_json_of_a_render_is_one_list_of_what_its_yaml_says(run: Run) -> None:
    ended = run("render", "specs", *WORLD, "-o", "json")
    manifests = json.loads(ended.stdout)
    assert (manifests["apiVersion"], manifests["kind"]) == ("v1", "List")
    assert [item["kind"] for item in manifests["items"]] == ["Deployment", "Deployment"]
    assert read_documents(run("render", "specs", *WORLD).stdout) == manifests["items"]


def test_specs_come_from_stdin(run: Run, story: Path) -> None:
    text = "\n---\n".join(path.read_text() for path in (story / "specs").iterdir())
    assert run("render", "-", *WORLD, given=text).stdout == run("render", "specs", *WORLD).stdout


@pytest.mark.usefixtures("story")
def test_options_come_from_the_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run("plan", "specs", *WORLD, "--identity", "twc", "-o", "json").stdout
    monkeypatch.setenv("TWGEN_SNAPSHOT", "snapshot.json")
    monkeypatch.setenv("TWGEN_NOW", "2026-11-21T12:00:00Z")
    monkeypatch.setenv("TWGEN_IDENTITY", "twc")
    monkeypatch.setenv("TWGEN_OUTPUT", "json")
    assert run("plan", "specs").stdout == expected


@pytest.mark.usefixtures("story")
def test_snapshot_is_planned_as_of_its_own_time(run: Run) -> None:
    own = run("plan", "specs", "--snapshot", "snapshot.json", "--identity", "twc", "-o", "json")
    assert json.loads(own.stdout)["now"] == "2026-11-21T12:00:00Z"


@pytest.mark.usefixtures("story")
def test_time_before_the_snapshot_is_warned_of(run: Run) -> None:
    command = ("render", "specs", "--snapshot", "snapshot.json", "--now")
    said = "warning: --now is earlier than snapshot.json, which was written at 2026-11-21T12:00:00Z"
    assert said in run(*command, "2026-11-21T11:59:59Z").stderr.splitlines()
    assert said not in run(*command, "2026-11-21T12:00:00Z").stderr
    assert run(*command, "2026-11-21T11:59:59Z", "-q").stderr == ""


@pytest.mark.usefixtures("story")
def test_pending_change_is_exit_1_on_demand(run: Run) -> None:
    plan = ("plan", "specs", *WORLD, "--identity", "twc")
    assert run(*plan).returncode == 0
    assert run(*plan, "--exit-code").returncode == 1


@pytest.mark.usefixtures("story")
@pytest.mark.parametrize(("color", "coloured"), [("always", True), ("never", False), ("auto", False)])
def test_colour_is_for_terminals_or_on_demand(run: Run, color: str, *, coloured: bool) -> None:
    assert ("\x1b[" in run("plan", "specs", *WORLD, "--color", color).stdout) is coloured


def test_identity_of_the_option_wins_and_has_the_prefix_of_that_of_a_policy(run: Run, story: Path) -> None:
    write_policy(story, identity="payments/prod-eu")
    assert "twgen.io/identity: twgen/payments/prod-eu" in run("render", "specs", *WORLD).stdout
    for identity in ("me", "twgen/me"):
        rendered = run("render", "specs", *WORLD, "--identity", identity).stdout
        assert "twgen.io/identity: twgen/me\n" in rendered


@pytest.mark.usefixtures("story")
def test_no_hooks_leaves_the_rollout_objects_out(run: Run, story: Path) -> None:
    write_operator(story, rollout={"image": "twgen"})
    options = (*WORLD, "--operator-config", "operator.json", "--identity", "me")
    assert "kind: Job" in run("render", "specs", *options).stdout
    without = run("render", "specs", *options, "--no-hooks").stdout
    assert without == run("render", "specs", *WORLD, "--identity", "me").stdout


@pytest.mark.usefixtures("story")
def test_rollout_in_the_cluster_needs_to_be_told_as_whom(run: Run, story: Path) -> None:
    write_operator(story, rollout={"image": "twgen"})
    ended = run("render", "specs", *WORLD, "--operator-config", "operator.json")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "needs a manager identity" in ended.stderr


def test_misspelt_field_of_a_policy_is_refused_and_widens_nothing(run: Run, story: Path) -> None:
    write_policy(story, onDelete="Delete", workeRef={"name": "payments"})
    ended = run("render", "specs", *WORLD)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "specs/policy.json:1: spec.workeRef: no such field; did you mean workerRef?" in ended.stderr


def test_warnings_are_on_stderr_once_and_can_be_silenced(run: Run, story: Path) -> None:
    with edited(story / "specs" / "workerdeployment.json") as worker:
        worker["kind"] = "TemporalWorker"
        worker["spec"]["nonsense"] = 1
    ended = run("render", "specs", *WORLD)
    assert ended.returncode == 0
    assert ended.stderr.splitlines() == [
        "warning: specs/workerdeployment.json:1: kind: TemporalWorker is now WorkerDeployment",
        "warning: specs/workerdeployment.json:1: spec.nonsense: no such field",
    ]
    assert run("render", "specs", *WORLD, "-q").stderr == ""
    strict = run("render", "specs", *WORLD, "--strict")
    assert (strict.returncode, strict.stdout) == (2, "")
    assert run("validate", "specs", "-q").returncode == 1


def test_version_that_the_cluster_lost_comes_back_from_the_ledger(run: Run, story: Path) -> None:
    run("lock", "specs")
    with edited(story / "snapshot.json") as snapshot:
        target = snapshot["workers"][0]["temporal"]["versions"][0]["buildID"]
        worker = json.loads((story / "specs" / "workerdeployment.json").read_text())
        worker["spec"]["template"]["spec"]["containers"][0]["image"] = "reg.example.com/team/hello:v2"
        (story / "specs" / "workerdeployment.json").write_text(json.dumps(worker))
        snapshot["workers"][0]["deployments"] = []
    labels = [item["metadata"]["labels"] for item in read_documents(run("render", "specs", *WORLD).stdout)]
    assert target in [label["temporal.io/build-id"] for label in labels]


def test_validate_in_json_has_file_line_and_path(run: Run, story: Path) -> None:
    (story / "specs" / "connection.json").write_text(
        '{\n"apiVersion": "temporal.io/v1alpha1",\n"kind": "Connection"}'
    )
    problems = json.loads(run("validate", "specs", "-o", "json").stdout)["problems"]
    assert {"file": "specs/connection.json", "line": 1, "path": "spec", "message": "is required"} in problems


@pytest.mark.parametrize("command", ["render", "render -o json", "plan", "status", "simulate -o svg"])
def test_same_inputs_give_the_same_bytes_whatever_the_seed_of_hashes(story: Path, command: str) -> None:
    line = [TWGEN, *command.split(), "specs", *WORLD, "--identity", "me"]
    printed = {
        subprocess.check_output(line, cwd=story, env={**ENVIRONMENT, "PYTHONHASHSEED": seed})
        for seed in ("1", "2")
    }
    assert len(printed) == 1


@pytest.mark.parametrize(
    ("typed", "instead"),
    [
        ("undo", "twgen abort"),
        ("set", "change the image in the spec"),
        ("restart", "twgen retry"),
        ("wait", "twgen status . -w --within 30m"),
        ("paus", "did you mean pause?"),
    ],
)
def test_command_of_another_tool_says_what_to_type_instead(run: Run, typed: str, instead: str) -> None:
    ended = run(typed, "deployment/payments")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"no such command '{typed}'" in ended.stderr
    assert instead in ended.stderr


@pytest.mark.parametrize("path", ["worker/", "worker/Payments", "worker/a/b"])
def test_name_of_a_worker_that_cannot_be_one_is_refused(run: Run, path: str) -> None:
    ended = run("abort", path, "-n", "shop")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"{path} is neither a file nor the name of a worker" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("abort", "worker/payments"), "choose the namespace of worker/payments with -n NAMESPACE"),
        (
            ("abort", "worker/payments", ".", "-n", "shop"),
            "worker/NAME must be the only argument:",
        ),
        (("plan", "worker/payments", "-n", "shop", "--input", "Helm"), "--input works only with PATHs"),
        (("pause", "worker/payments", "-n", "shop", "--no-cluster"), "leave out --no-cluster"),
        (
            ("retire", "worker/payments", "-n", "shop"),
            "this command is not possible with",
        ),
        (("promote", "worker/payments", "-n", "shop", "--skip-gate"), "--skip-gate is not possible with"),
        (("render", "worker/payments", "-n", "shop"), "worker/payments"),
    ],
)
def test_worker_by_name_needs_a_namespace_and_a_cluster_and_nothing_of_specs(
    run: Run, arguments: tuple[str, ...], message: str
) -> None:
    ended = run(*arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert message in ended.stderr


def test_folder_of_that_name_is_a_path(run: Run, tmp_path: Path) -> None:
    (tmp_path / "worker" / "payments").mkdir(parents=True)
    ended = run("plan", "worker/payments", "--no-cluster")
    assert "no document found in worker/payments" in ended.stderr


@pytest.mark.parametrize("output", ["yaml", "json"])
def test_object_that_names_its_namespace_is_rendered_with_it(run: Run, story: Path, output: str) -> None:
    config_map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a-settings, namespace: own}\n"
    (story / "specs" / "0.yaml").write_text(config_map)
    ended = run("render", "specs", *WORLD, "-n", "shop", "-o", output)
    assert ended.returncode == 0, ended.stderr
    assert "a-settings" in ended.stdout
