"""Renders without any server, and the check of what a render printed."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

SCALER = {
    "apiVersion": "temporal.io/v1alpha1",
    "kind": "WorkerResourceTemplate",
    "metadata": {"name": "scaler", "namespace": "default"},
    "spec": {
        "workerDeploymentRef": {"name": "WORKER"},
        "template": {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "spec": {"scaleTargetRef": {}, "minReplicas": 1, "maxReplicas": 9},
        },
    },
}


@pytest.fixture(autouse=True)
def scaled(story: Path) -> None:
    worker = json.loads((story / "specs" / "workerdeployment.json").read_text())["metadata"]["name"]
    (story / "specs" / "scaler.json").write_text(json.dumps(SCALER).replace("WORKER", worker))


def test_offline_a_worker_is_rendered_as_its_first_deployment(run: Run, story: Path) -> None:
    ended = run("render", "specs", "--offline", env={"PATH": "/bin"})
    assert (ended.returncode, "kubeconfig" in ended.stderr) == (0, False)
    worker = json.loads((story / "specs" / "workerdeployment.json").read_text())
    never_seen = {"name": f"default/{worker['metadata']['name']}", "temporal": None, "deployments": []}
    never_seen["temporalNamespace"] = worker["spec"]["workerOptions"]["temporalNamespace"]
    snapshot = {"apiVersion": "twgen.io/v1alpha1", "kind": "Snapshot", "takenAt": "2020-01-01T00:00:00Z"}
    (story / "new.json").write_text(json.dumps({**snapshot, "workers": [never_seen]}))
    assert ended.stdout == run("render", "specs", "--snapshot", "new.json").stdout
    deployment, scaler = read_documents(ended.stdout)
    assert (deployment["kind"], scaler["kind"]) == ("Deployment", "HorizontalPodAutoscaler")
    assert "Prune=false" in deployment["metadata"]["annotations"]["argocd.argoproj.io/sync-options"]


@pytest.mark.parametrize(
    "other", [("--snapshot", "snapshot.json"), ("--now", "2026-11-21T12:00:00Z"), ("--no-cluster",)]
)
def test_offline_goes_without_what_says_where_to_read(run: Run, other: tuple[str, ...]) -> None:
    ended = run("render", "specs", "--offline", *other)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"--offline reads no server and no snapshot: leave out {other[0]}" in ended.stderr


@pytest.mark.parametrize(
    "scope",
    [
        {"TWGEN_OFFLINE": "true"},
        {"ARGOCD_ENV_TWGEN_OFFLINE": "true"},
        {"ARGOCD_APP_PARAMETERS": '[{"name": "offline", "string": "true"}]'},
    ],
)
def test_plugin_refuses_offline_whoever_sets_it(run: Run, scope: dict[str, str]) -> None:
    ended = run("render", "specs", "--identity", "pay", env={"ARGOCD_APP_NAME": "pay", **scope})
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "offline" in ended.stderr


def test_plugin_refuses_offline_on_its_command_line(run: Run) -> None:
    ended = run("render", "specs", "--offline", env={"ARGOCD_APP_NAME": "pay"})
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "Argo CD would prune the omitted older versions" in ended.stderr


@pytest.mark.parametrize("output", ["yaml", "json"])
def test_validate_accepts_what_render_printed(run: Run, output: str) -> None:
    printed = run("render", "specs", "--offline", "-o", output).stdout
    ended = run("validate", "-", "--strict", given=printed)
    assert (ended.returncode, ended.stdout) == (0, "")
    assert ended.stderr == "checked 1 file: 2 rendered manifests; no problems\n"


def test_validate_finds_what_an_api_server_would_refuse_of_rendered_manifests(run: Run) -> None:
    deployment, scaler = read_documents(run("render", "specs", "--offline").stdout)
    deployment["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] = "Sometimes"
    scaler["spec"]["maxReplicas"] = 0
    deployment["metadata"]["labels"]["-"] = "odd"
    ended = run("validate", "-", given=write_documents([deployment, scaler]))
    assert ended.returncode == 1
    for path in ("metadata.labels", "spec.template.spec.containers[0].imagePullPolicy", "spec.maxReplicas"):
        assert ended.stdout.count(path) == 1


def test_validate_checks_the_fields_and_kinds_of_rendered_manifests(run: Run) -> None:
    deployment, scaler = read_documents(run("render", "specs", "--offline").stdout)
    deployment["spec"] |= {"replicas": "two", "progresDeadlineSeconds": 60}
    named = {"metadata": scaler["metadata"]}
    job = {"apiVersion": "batch/v1", "kind": "Job", **named, "spec": {"backoffLimit": "six", "template": {}}}
    misspelled = {"apiVersion": "apps/v1", "kind": "Deploymint", **named}
    odd = {"metadata": {**scaler["metadata"], "annotations": {"port": 80}}, "spec": {"anything": 1}}
    other = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PodMonitor", **odd}
    ended = run("validate", "-", given=write_documents([deployment, scaler, job, misspelled, other]))
    assert ended.returncode == 1
    assert [line.partition(" ")[2] for line in ended.stdout.splitlines()] == [
        "spec.replicas: must be a whole number, not a string",
        "spec.progresDeadlineSeconds: is not a field of a Deployment; did you mean progressDeadlineSeconds?",
        "spec.backoffLimit: must be a whole number, not a string",
        "spec.template.spec: is required",
        "kind: 'apps/v1' has no kind 'Deploymint'; did you mean Deployment?",
        "metadata.annotations.port: must be a string, not a whole number; put it in quotes",
    ]
    assert ended.stderr == "twgen: 6 problems found (2 documents without a schema)\n"


def test_pods_of_a_rendered_job_need_not_restart_always(run: Run) -> None:
    deployment, _ = read_documents(run("render", "specs", "--offline").stdout)
    template = deployment["spec"]["template"]
    job = {**deployment, "apiVersion": "batch/v1", "kind": "Job", "spec": {"template": template}}
    template["spec"]["restartPolicy"] = "Never"
    assert run("validate", "-", given=write_documents([job])).returncode == 0
    assert run("validate", "-", given=write_documents([deployment])).returncode == 1


def test_rendered_manifests_beside_specs_are_refused(run: Run) -> None:
    printed = run("render", "specs", "--offline").stdout
    ended = run("validate", "-", "specs", given=printed)
    assert ended.returncode == 1
    assert "is output of `twgen render`" in ended.stdout


@pytest.mark.parametrize("command", ["render", "plan", "lock"])
def test_other_commands_refuse_rendered_manifests(run: Run, command: str) -> None:
    ended = run(command, "-", given=run("render", "specs", "--offline").stdout)
    assert ended.returncode == 2
    assert "is output of `twgen render`" in ended.stderr
