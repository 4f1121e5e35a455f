"""`twgen import`: a folder of specs and their ledger, of what runs already."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.specs.test_imports import CONTAINER, deployment

OBJECTS = "objects.json"
KEY = {"name": "TEMPORAL_API_KEY", "valueFrom": {"secretKeyRef": {"name": "key-b", "key": "key"}}}
VERSIONS = json.loads((Path(__file__).parents[1] / "fixtures" / "vectors" / "versions.json").read_text())


@pytest.fixture
def objects(tmp_path: Path) -> Path:
    (tmp_path / OBJECTS).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [deployment()]}))
    return tmp_path


def test_specs_are_valid_and_recorded_and_another_import_changes_nothing(run: Run, objects: Path) -> None:
    first = run("import", OBJECTS, "--folder", "workers")
    assert (first.returncode, first.stdout) == (0, ""), first
    assert "wrote workers/connection-temporal.yaml and workers/payments.yaml" in first.stderr
    assert "turn versioning on in the code (docs/workers.md), write its image" in first.stderr
    assert not (objects / "workers" / "twgen.lock").exists(), "the image never ran with versioning"
    assert run("validate", "workers").returncode == 0
    assert run("lock", "workers", "-q").returncode == 0
    assert run("lock", "workers", "--check", "-q").returncode == 0
    before = {file: file.read_text() for file in (objects / "workers").rglob("*.yaml")}
    assert len(before) == 3
    again = run("import", OBJECTS, "--folder", "workers")
    assert again.returncode == 0, again
    assert "twgen does not change it" in again.stderr
    assert {file: file.read_text() for file in (objects / "workers").rglob("*.yaml")} == before


@pytest.mark.parametrize(
    ("name", "variables", "connection"),
    [("reports", [KEY], "reports"), ("reports", [], "temporal"), ("payments", [KEY], "temporal")],
)
def test_worker_shares_the_connection_of_the_folder_only_with_the_same_credentials(
    run: Run, objects: Path, name: str, variables: list[Any], connection: str
) -> None:
    run("import", OBJECTS, "--folder", "workers")
    first = (objects / "workers" / "connection-temporal.yaml").rename(objects / "workers" / "x.yaml")
    first.write_text(first.read_text().replace("kind: Connection", "kind: TemporalConnection"))
    before = first.read_text()
    other = deployment(env=[*CONTAINER["env"], *variables])
    other["metadata"]["name"] = name
    (objects / OBJECTS).write_text(json.dumps(other))
    ended = run("import", OBJECTS, "--folder", "workers")
    assert ended.returncode == 0, ended
    assert "already has Connection" not in ended.stderr
    worker = (objects / "workers" / f"{name}.yaml").read_text()
    assert f"connectionRef:\n      name: {connection}\n" in worker
    assert first.read_text() == before
    written = [file.name for file in (objects / "workers").glob("connection-*.yaml")]
    assert written == (["connection-reports.yaml"] if connection == "reports" else [])
    assert run("validate", "workers").returncode == 0


def test_workers_of_two_namespaces_come_into_one_folder(run: Run, objects: Path) -> None:
    assert run("import", OBJECTS, "--folder", "workers").returncode == 0
    before = {file.name: file.read_text() for file in (objects / "workers").iterdir()}
    other = deployment()
    other["metadata"]["namespace"] = "mail"
    (objects / OBJECTS).write_text(json.dumps(other))
    ended = run("import", OBJECTS, "--folder", "workers")
    assert ended.returncode == 0, ended
    assert run("import", OBJECTS, "--folder", "workers").returncode == 0
    after = {file.name: file.read_text() for file in (objects / "workers").iterdir()}
    assert after.keys() - before.keys() == {"mail.connection-temporal.yaml", "mail.payments.yaml"}
    assert after.items() > before.items()
    assert run("validate", "workers").returncode == 0


def test_import_of_a_deployment_records_no_other_worker(run: Run, objects: Path) -> None:
    run("import", OBJECTS, "--folder", "workers")
    (objects / OBJECTS).write_text(
        json.dumps({**deployment(), "metadata": {"name": "mail", "namespace": "m"}})
    )
    for _ in range(2):
        assert run("import", OBJECTS, "--folder", "workers").returncode == 0
    assert not (objects / "workers" / "twgen.lock").exists()


def test_worker_that_people_have_already_is_left_as_it_is(run: Run, objects: Path) -> None:
    run("import", OBJECTS, "--folder", "workers")
    worker = objects / "workers" / "payments.yaml"
    worker.write_text("# of the payments team\n" + worker.read_text().replace("AllAtOnce", "Manual"))
    before = worker.read_text()
    (objects / OBJECTS).write_text(json.dumps(deployment(image="pay:2")))
    ended = run("import", OBJECTS, "--folder", "workers")
    assert ended.returncode == 0, ended
    assert (
        "workers/payments.yaml already has WorkerDeployment shop payments: twgen does not change it"
        in ended.stderr
    )
    assert worker.read_text() == before


def test_object_of_the_controller_is_brought_up_to_date_where_it_stands(run: Run, tmp_path: Path) -> None:
    connection = {
        "apiVersion": "temporal.io/v1alpha1",
        "kind": "Connection",
        "metadata": {"name": "temporal", "namespace": "shop"},
        "spec": {"hostPort": "new.example.com:7233"},
    }
    (tmp_path / OBJECTS).write_text(json.dumps(connection))
    (tmp_path / "workers").mkdir()
    file = tmp_path / "workers" / "connection-temporal.yaml"
    text = (
        "# ours\r\napiVersion: temporal.io/v1alpha1\r\nkind: Connection\r\nmetadata:\r\n  name: temporal\r\n"
        '  namespace: shop\r\n  annotations: {argocd.argoproj.io/sync-wave: "1"}\r\nspec:\r\n'
        "  hostPort: old.example.com:7233  # the old one\r\n"
    )
    file.write_bytes(text.encode())
    assert run("import", OBJECTS, "--folder", "workers").returncode == 0
    assert file.read_bytes().decode() == text.replace("old.example", "new.example")


def test_older_version_whose_deployment_is_there_is_recorded_too(run: Run, tmp_path: Path) -> None:
    older = [
        {"apiVersion": "apps/v1", "kind": "Deployment", **one["expect"]["deployment"]}
        for one in VERSIONS
        if one["name"] in {"plain", "uppercase-tag"}
    ]
    edited = json.loads(json.dumps(older[1]))
    edited["spec"]["template"]["spec"]["containers"][0]["image"] = "another:1"
    [today] = [one for one in VERSIONS if one["name"] == "digest-only"]
    items = [today["worker"], today["connection"], older[0], edited]
    (tmp_path / OBJECTS).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    first = run("import", OBJECTS, "--folder", "workers")
    assert first.returncode == 0, first
    assert "recorded the workers' targets and 1 older version in workers/twgen.lock" in first.stderr
    assert f"Deployment {edited['metadata']['name']} is not recorded: no hash proves" in first.stderr
    [ledger] = (tmp_path / "workers" / "twgen.lock").glob("*.yaml")
    before = ledger.read_text()
    assert before.count("- {") == 2
    assert run("lock", "workers", "--check", "-q").returncode == 0
    assert run("validate", "workers").returncode == 0
    again = run("import", OBJECTS, "--folder", "workers")
    assert "recorded the workers' targets in workers/twgen.lock" in again.stderr
    assert ledger.read_text() == before


def test_worker_that_people_have_elsewhere_below_the_folder_goes_on_there(run: Run, objects: Path) -> None:
    run("import", OBJECTS, "--folder", "all/workers")
    run("lock", "all/workers")
    ended = run("import", OBJECTS, "--folder", "all")
    assert ended.returncode == 0, ended
    assert ended.stderr.endswith("`twgen plan all` shows what would change\n")
    assert not (objects / "all" / "twgen.lock").exists()


def test_folder_without_documents_is_as_good_as_a_new_one(run: Run, objects: Path) -> None:
    for name in (".git/config", ".gitkeep", "README.md"):
        file = objects / "workers" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("# ours\n")
    ended = run("import", OBJECTS, "--folder", "workers")
    assert ended.returncode == 0, ended
    assert (objects / "workers" / "payments.yaml").exists()


def test_name_with_a_path_writes_nothing_outside_the_folder(run: Run, objects: Path) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "x/../../evil", "namespace": "shop"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "payments"}}},
    }
    items = [deployment(), budget]
    (objects / OBJECTS).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    (objects / "workers" / "template-x").mkdir(parents=True)
    assert run("import", OBJECTS, "--folder", "workers").returncode == 0
    assert not list(objects.rglob("*evil*"))


@pytest.mark.parametrize("kind", ["ConfigMap", "Deployment"])
def test_file_that_holds_something_else_is_left_alone(run: Run, objects: Path, kind: str) -> None:
    (objects / "workers").mkdir()
    file = objects / "workers" / "payments.yaml"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": kind, "metadata": {"name": "payments"}}))
    before = file.read_text()
    ended = run("import", OBJECTS, "--folder", "workers")
    assert (ended.returncode, file.read_text()) == (2, before)
    assert "contains something else: move it away" in ended.stderr


def test_link_out_of_the_folder_is_not_followed(run: Run, objects: Path) -> None:
    (objects / "workers").mkdir()
    (objects / "outside.yaml").write_text("secret: mine\n")
    (objects / "workers" / "payments.yaml").symlink_to("../outside.yaml")
    ended = run("import", OBJECTS, "--folder", "workers")
    assert ended.returncode == 2, ended
    assert (objects / "outside.yaml").read_text() == "secret: mine\n"


def test_stdin_is_read_and_what_is_missing_is_told_before_it_is_locked(run: Run, tmp_path: Path) -> None:
    ended = run("import", "-", "--folder", "workers", given=json.dumps(deployment(env=[])))
    assert ended.returncode == 0, ended
    lines = ended.stderr.splitlines()
    at = lines.index("do the following, then run `twgen lock workers`:")
    assert lines[at + 1].startswith("payments.yaml: fill in spec.workerOptions.temporalNamespace")
    assert not (tmp_path / "workers" / "twgen.lock").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("import", OBJECTS), "give --folder: the folder to write the specs to"),
        (("import", "nothing.yaml", "--folder", "w"), "nothing.yaml"),
        (("import", "service.json", "--folder", "w"), "nothing to import: service.json: Service web"),
        (("import", OBJECTS, "--folder", "several"), "several/payments.yaml contains something else"),
        (("import", OBJECTS, "--folder", "broken"), "broken/payments.yaml cannot be edited"),
        (
            ("import", "--from-cluster", "--folder", "w"),
            "--from-cluster reads one namespace: give -n",
        ),
        (
            ("import", "--from-cluster", "-n", "shop", "--folder", "w", OBJECTS),
            f"--from-cluster reads no files: give deployment/NAME instead of {OBJECTS}",
        ),
        (("import", OBJECTS, "--folder", OBJECTS), "cannot write specs there (File exists)"),
    ],
)
def test_what_cannot_be_imported_is_said_in_a_line_and_nothing_is_written(
    run: Run, objects: Path, arguments: tuple[str, ...], told: str
) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    (objects / "service.json").write_text(json.dumps(service))
    for folder, text in (("several", "a: 1\n---\nb: 2\n"), ("broken", "a: [\n")):
        (objects / folder).mkdir()
        (objects / folder / "payments.yaml").write_text(text)
    ended = run(*arguments)
    assert ended.returncode == 2, ended
    assert told in ended.stderr
    assert len(ended.stderr.splitlines()) <= 2
    assert not (objects / "w").exists()
    assert not list(objects.rglob("connection-temporal.yaml"))
