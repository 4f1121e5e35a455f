"""What `validate` says, and what every command says of what it read."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run, edited, write_operator, write_policy
from tests.json_schemas import schema_problems
from tests.specs.test_imports import deployment
from twgen.model.problem import Document

WORLD = ("--snapshot", "snapshot.json", "--now", "2026-11-21T12:00:00Z")
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n"


def test_success_says_what_was_checked(run: Run, story: Path) -> None:
    (story / "specs" / "service.yaml").write_text(SERVICE)
    ended = run("validate", "specs")
    assert (ended.returncode, ended.stdout) == (0, "")
    counts = "1 worker, 1 connection, 1 other document (1 document without a schema)"
    assert ended.stderr == f"checked 3 files: {counts}; no problems\n"
    assert run("validate", "specs", "-q").stderr == ""


@pytest.mark.parametrize(
    ("file", "path", "written"),
    [
        ("workerdeployment.json", ("spec",), "spce"),
        ("workerdeployment.json", ("spec", "template"), "tempalte"),
        ("workerdeployment.json", ("spec", "rollout", "strategy"), "stratgy"),
        ("workerdeployment.json", ("spec", "rollout", "steps"), "step"),
        ("workerdeployment.json", ("spec", "template", "spec", "containers"), "continers"),
        ("workerdeployment.json", ("spec", "template", "spec", "containers", 0, "name"), "nmae"),
        ("connection.json", ("spec", "hostPort"), "hostport"),
    ],
)
def test_required_field_that_is_mistyped_is_one_problem(
    run: Run, story: Path, file: str, path: tuple[str | int, ...], written: str
) -> None:
    with edited(story / "specs" / file) as document:
        *above, name = path
        place = document
        for step in above:
            place = place[step]
        place[written] = place.pop(name)
    ended = run("validate", "specs")
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (1, "twgen: 1 problem found"), ended.stdout
    assert f"{written}: " in ended.stdout
    assert ended.stdout.endswith(f"; did you mean {name}?\n")


def test_manifest_next_to_the_specs_is_checked_by_the_schema_of_its_kind(run: Run, story: Path) -> None:
    budget = (
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b}\nspec: {minAvailabel: 1}\n"
    )
    (story / "specs" / "more.yaml").write_text(f"{budget}---\n{SERVICE}")
    ended = run("validate", "specs")
    wrong = "is not a field of a PodDisruptionBudget; did you mean minAvailable?"
    assert ended.stdout == f"specs/more.yaml:4: spec.minAvailabel: {wrong}\n"
    assert ended.stderr == "twgen: 1 problem found (1 document without a schema)\n"


def test_patch_next_to_a_kustomization_need_not_be_whole(run: Run, story: Path) -> None:
    patch = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w"}, "spec": {}}
    for name, value in (("kustomization.yaml", {"resources": []}), ("patches/replicas.yaml", patch)):
        file = story / "specs" / "overlay" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(value))
    [line] = run("validate", "specs").stdout.splitlines()
    assert line.startswith("specs/overlay/kustomization.yaml:1: is for kustomize: pass only specs/overlay")


def test_attached_kind_is_refused_if_a_document_says_that_it_is_cluster_scoped(run: Run, story: Path) -> None:
    kind = {"group": "shop.example.com", "kind": "Rule"}
    write_operator(story, attached={"kinds": [kind]})
    worker = json.loads((story / "specs" / "workerdeployment.json").read_text())["metadata"]
    attached = {
        "apiVersion": "temporal.io/v1alpha1",
        "kind": "WorkerResourceTemplate",
        "metadata": {**worker, "name": "rule"},
        "spec": {
            "workerDeploymentRef": {"name": worker["name"]},
            "template": {"apiVersion": "shop.example.com/v1", "kind": "Rule", "spec": {}},
        },
    }
    (story / "specs" / "attached.json").write_text(json.dumps(attached))
    for scope, code in (("Namespaced", 0), ("Cluster", 1)):
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "rules.shop.example.com"},
            "spec": {"group": kind["group"], "names": {"kind": "Rule"}, "scope": scope, "versions": []},
        }
        (story / "specs" / "definition.json").write_text(json.dumps(definition))
        validated = run("validate", "specs", "--operator-config", "operator.json")
        planned = run("plan", "specs", *WORLD, "--operator-config", "operator.json")
        assert (validated.returncode, planned.returncode) == (code, 2 * code)
    for printed in (validated.stdout, planned.stderr):
        assert (
            "attached.json:1: spec.template.kind: shop.example.com/Rule is cluster-scoped, but a " in printed
        )


@pytest.mark.parametrize(
    ("command", "imports"),
    [(("validate",), True), (("render", "--offline"), False), (("plan", *WORLD), False)],
)
def test_only_validate_imports_jsonschema(
    story: Path,
    command: tuple[str, ...],
    imports: bool,  # noqa: FBT001 - what pytest is given
) -> None:
    # it is found before the library
    (story / "jsonschema.py").write_text("raise SystemExit(9)")
    program = [sys.executable, "-m", "twgen", *command, "specs"]
    ended = subprocess.run(program, cwd=story, capture_output=True, text=True, check=False)
    assert ended.returncode == (9 if imports else 0), ended.stderr


@pytest.mark.usefixtures("story")
def test_success_counts_the_warnings(run: Run, story: Path) -> None:
    (story / "specs" / "values.yaml").write_text("replicas: 3\n")
    assert run("validate", "specs").stderr.endswith("; no problems, 1 warning\n")


def test_validation_in_json_fits_its_schema(run: Run, story: Path) -> None:
    with edited(story / "specs" / "workerdeployment.json") as worker:
        worker["kind"] = "TemporalWorker"
        worker["spec"] |= {"replica": 1, "minReadySeconds": "1"}
    (story / "specs" / "broken.yaml").write_text("a: [")
    (story / "specs" / "values.yaml").write_text("a: 1")
    document = json.loads(run("validate", "specs", "-o", "json").stdout)
    assert {name: len(found) for name, found in document.items() if isinstance(found, list)} == {
        "unreadable": 1,
        "problems": 2,
        "warnings": 1,
        "deprecations": 1,
    }
    assert list(schema_problems([Document("", 0, document)])) == []


def test_record_next_to_the_specs_is_checked_too(run: Run, story: Path) -> None:
    operator = {"apiVersion": "twgen.io/v1alpha1", "kind": "OperatorConfig", "instance": "a//b"}
    (story / "specs" / "operator.json").write_text(json.dumps(operator))
    snapshot = json.loads((story / "snapshot.json").read_text())
    (story / "specs" / "snapshot.json").write_text(json.dumps(snapshot | {"takenAt": "today"}))
    ended = run("validate", "specs")
    assert ended.returncode == 1
    assert "instance: 'a//b' is not the name of an Argo CD instance" in ended.stdout
    assert "takenAt: must be a time from 1970 to 2199" in ended.stdout


@pytest.mark.parametrize("command", [("validate",), ("render", *WORLD), ("plan", *WORLD), ("status", *WORLD)])
def test_no_worker_found_is_said(run: Run, story: Path, command: tuple[str, ...]) -> None:
    (story / "specs" / "workerdeployment.json").write_text(SERVICE)
    ended = run(*command, "specs")
    assert ended.returncode == 0
    assert (
        "warning: no worker found in specs: a worker is a WorkerDeployment of temporal.io/v1alpha1"
        in ended.stderr
    )


@pytest.mark.parametrize("command", [("validate",), ("render", *WORLD)])
def test_folder_with_a_plain_deployment_leads_to_import(
    run: Run, story: Path, command: tuple[str, ...]
) -> None:
    (story / "specs" / "workerdeployment.json").write_text(json.dumps(deployment()))
    ended = run(*command, "specs")
    assert "of temporal.io/v1alpha1; `twgen import` creates one from a Deployment\n" in ended.stderr


@pytest.mark.parametrize(
    ("command", "code"), [(("validate",), 1), (("render", *WORLD), 2), (("plan", *WORLD), 2)]
)
def test_no_worker_found_is_no_success_where_warnings_are_errors(
    run: Run, story: Path, command: tuple[str, ...], code: int
) -> None:
    (story / "specs" / "workerdeployment.json").write_text(SERVICE)
    ended = run(*command, "specs", "--strict")
    assert ended.returncode == code
    assert "twgen: no worker found in specs: a worker is a WorkerDeployment of temp" in ended.stderr


def test_nothing_to_simulate_is_refused(run: Run, story: Path) -> None:
    (story / "specs" / "workerdeployment.json").write_text(SERVICE)
    assert run("simulate", "specs").returncode == 2


@pytest.mark.parametrize("command", ["validate", "render"])
def test_template_of_helm_says_which_command_to_run_first(run: Run, story: Path, command: str) -> None:
    templates = story / "specs" / "chart" / "templates"
    templates.mkdir(parents=True)
    (templates / "worker.yaml").write_text("{{- if .Values.on }}\nkind: WorkerDeployment\n{{- end }}\n")
    (templates.parent / "Chart.yaml").write_text("apiVersion: v2\nname: pay\nversion: 1.0.0\n")
    (templates.parent / "values.yaml").write_text("on: true\n")
    ended = run(command, "specs", *(WORLD if command == "render" else ()))
    lines = [line for line in (ended.stdout + ended.stderr).splitlines() if "chart" in line]
    here = "pass only specs/chart, with --input Helm (in Argo CD, parameter input)"
    first = f"{here}, or run `helm template specs/chart | twgen render -`"
    assert lines == [f"specs/chart/Chart.yaml:1: is a Helm chart: {first}"]


@pytest.mark.usefixtures("story")
def test_templates_of_one_chart_are_one_problem(run: Run, story: Path) -> None:
    for name in ("a/templates/w.yaml", "a/templates/below/v.yaml", "b/templates/w.yaml"):
        file = story / "specs" / name
        file.parent.mkdir(parents=True)
        file.write_text("{{- if .Values.on }}\nkind: WorkerDeployment\n{{- end }}\n")
    assert run("validate", "specs").stdout.splitlines() == [
        f"specs/{file}:1: is a Helm template: pass only specs/{file[0]}, with --input Helm (in Argo CD,"
        f" parameter input), or run `helm template specs/{file[0]} | twgen render -`"
        for file in ("a/templates/below/v.yaml", "b/templates/w.yaml")
    ]


@pytest.mark.parametrize("broken", ["workerdeployment", "connection"])
def test_what_is_in_a_file_that_cannot_be_read_is_not_told_to_be_missing(
    run: Run, story: Path, broken: str
) -> None:
    write_policy(story, workerRef={"name": "helloworld"})
    other = json.loads((story / "specs" / "workerdeployment.json").read_text())
    other["metadata"]["name"] = "goodbye"
    (story / "specs" / "goodbye.json").write_text(json.dumps(other))
    (story / "specs" / f"{broken}.json").write_text('{"kind": ')
    ended = run("validate", "specs")
    assert ended.stderr == "twgen: 1 problem found\n"
    assert ended.stdout.startswith(f"specs/{broken}.json:")
    assert ended.stdout.count("\n") == 1


def test_field_that_stands_beside_its_spec_is_one_problem(run: Run, story: Path) -> None:
    with edited(story / "specs" / "workerdeployment.json") as worker:
        worker["template"] = worker["spec"].pop("template")
    ended = run("validate", "specs")
    assert ended.stdout.endswith(": template: no such field; the fields of this kind belong in spec\n")
    assert ended.stderr == "twgen: 1 problem found\n"


@pytest.mark.parametrize("in_a_list", [False, True])
def test_field_of_a_later_controller_is_one_problem_that_says_what_to_write(
    run: Run, story: Path, *, in_a_list: bool
) -> None:
    file = story / "specs" / "workerdeployment.json"
    worker = json.loads(file.read_text())
    template = worker["spec"].pop("template")
    worker["spec"]["workerGroups"] = [{"name": "all", "deployment": {"template": template}}]
    around = {"apiVersion": "v1", "kind": "List", "items": [worker]}
    file.write_text(json.dumps(around if in_a_list else worker))
    ended = run("validate", "specs")
    assert "spec.workerGroups: is not read: several kinds of pods" in ended.stdout
    assert ended.stderr == "twgen: 1 problem found\n", ended.stdout


def test_end_of_a_required_field_is_one_problem(run: Run, story: Path) -> None:
    with edited(story / "specs" / "workerdeployment.json") as worker:
        worker["spec"]["template"]["spec"]["volumes"] = [{"name": "keys", "secret": {"name": "keys"}}]
    ended = run("validate", "specs")
    assert ended.stdout.endswith(".secret.name: is not a field of a pod template; did you mean secretName?\n")
    assert ended.stderr == "twgen: 1 problem found\n"


def test_kustomization_never_reaches_the_output(run: Run, story: Path) -> None:
    (story / "specs" / "kustomization.yaml").write_text(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.json]\n"
    )
    ended = run("render", "specs", *WORLD)
    assert (ended.returncode, ended.stdout) == (2, "")
    here = "pass only specs, with --input Kustomize (in Argo CD, parameter input)"
    first = f"{here}, or run `kustomize build specs | twgen render -`"
    assert f"specs/kustomization.yaml:1: is for kustomize: {first}" in ended.stderr


def test_list_is_its_items(run: Run, story: Path) -> None:
    whole = run("render", "specs", *WORLD).stdout
    items = [json.loads(path.read_text()) for path in sorted((story / "specs").iterdir())]
    for path in (story / "specs").iterdir():
        path.unlink()
    (story / "specs" / "all.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    )
    assert run("render", "specs", *WORLD).stdout == whole


def test_namespace_that_is_none_is_refused_once(run: Run, story: Path) -> None:
    ended = run("validate", "specs", "-n", "My_Shop")
    assert (ended.returncode, len(ended.stderr.splitlines())) == (2, 1)
    assert "'My_Shop' is not a valid Kubernetes namespace" in ended.stderr
    assert story.is_dir()


def test_two_of_one_name_are_told_with_both_places(run: Run, story: Path) -> None:
    again = (story / "specs" / "connection.json").read_text()
    (story / "specs" / "other.yaml").write_text("---\n---\n" + again)
    assert (
        "specs/other.yaml:3: metadata.name: there are two Connection documents default/conn: keep one;"
        in (told := run("validate", "specs").stdout)
    )
    assert "the other is at specs/connection.json:1" in told


@pytest.mark.parametrize(("option", "length"), [("2d", "48h"), ("1d 2h", "26h"), ("10min", "10m")])
@pytest.mark.usefixtures("story")
def test_option_reads_a_length_as_people_say_it(run: Run, option: str, length: str) -> None:
    simulate = ("simulate", "specs", "-o", "json", "--now", "2026-11-21T12:00:00Z", "--workflow-duration")
    assert (printed := run(*simulate, option).stdout)
    assert printed == run(*simulate, length).stdout


@pytest.mark.parametrize("command", [("render", *WORLD), ("plan", *WORLD), ("lock",), ("status", *WORLD)])
def test_command_that_fails_tells_all_that_validate_tells(
    run: Run, story: Path, command: tuple[str, ...]
) -> None:
    with edited(story / "specs" / "workerdeployment.json") as worker:
        worker["kind"] = "TemporalWorkerDeployment"
        worker["spec"] |= {"replica": 1, "minReadySeconds": "1"}
        worker["spec"]["template"]["spec"]["containers"][0]["imagePullPolice"] = "Always"
    (story / "specs" / "broken.yaml").write_text("a: [")
    (story / "specs" / "values.yaml").write_text("a: 1")
    (story / "specs" / "ledger.yaml").write_text("apiVersion: twgen.io/v1alpha1\nkind: Ledger\n")
    validated = run("validate", "specs")
    assert len(told := [*validated.stdout.splitlines(), *validated.stderr.splitlines()]) == 8
    assert sorted(run(*command, "specs").stderr.splitlines()) == sorted(told)


@pytest.mark.parametrize("command", [("validate",), ("render", *WORLD), ("plan", *WORLD), ("lock",)])
def test_documents_of_one_name_are_told_by_every_command(
    run: Run, story: Path, command: tuple[str, ...]
) -> None:
    (story / "specs" / "services.yaml").write_text(f"{SERVICE}---\n{SERVICE}")
    ended = run(*command, "specs", "-n", "shop")
    assert ended.returncode == (1 if command == ("validate",) else 2)
    assert (
        "specs/services.yaml:7: metadata.name: Service shop/s is defined twice: remove or rename this object;"
        " the other is at specs/services.yaml:3"
    ) in (ended.stdout + ended.stderr).splitlines()


@pytest.mark.parametrize("command", ["render", "plan"])
def test_document_that_is_an_old_version_is_told(run: Run, story: Path, command: str) -> None:
    world = json.loads((story / "snapshot.json").read_text())
    live = world["workers"][0]["deployments"][0]["metadata"]
    named = f"{{name: {live['name']}, namespace: default}}"
    (story / "specs" / "old.yaml").write_text(f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {named}\n")
    ended = run(command, "specs", *WORLD)
    assert ended.returncode == 2
    assert (
        f"specs/old.yaml:3: metadata.name: Deployment {live['namespace']}/{live['name']} is defined twice"
        in (ended.stderr)
    )


def test_snapshot_among_the_specs_is_explained(run: Run, story: Path) -> None:
    (story / "snapshot.json").rename(story / "specs" / "world.json")
    ended = run("render", "specs", "--timeout", "1s", "--no-cluster")
    assert (
        "warning: specs/world.json is a Snapshot, not a spec: pass it with `--snapshot"
        " specs/world.json` to plan without servers"
    ) in ended.stderr.splitlines()
    assert "is a Snapshot" not in run("render", "specs", "--snapshot", "specs/world.json").stderr


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59Z", "1969-12-31T23:59:59Z", "2026-11-21T12:00:00", "x"])
def test_time_that_cannot_be_says_which_can(run: Run, time: str) -> None:
    ended = run("plan", ".", "--now", time)
    assert (ended.returncode, ended.stderr) == (
        2,
        f"twgen: --now '{time}' is not a time from 1970 to 2199 such as 2026-11-21T12:00:00Z\n",
    )


@pytest.mark.parametrize("empty", ["empty.yaml", "nothing", "-"])
def test_path_that_holds_no_document_beside_others_is_told(run: Run, story: Path, empty: str) -> None:
    (story / "empty.yaml").write_text("# later\n")
    (story / "nothing").mkdir()
    for command in (("validate",), ("render", *WORLD)):
        ended = run(*command, "specs", empty)
        said = f"no document found in {empty}: correct the path, or leave it out"
        assert (ended.returncode, ended.stdout + ended.stderr) == (
            1 if command == ("validate",) else 2,
            f"{said}\ntwgen: 1 problem found\n",
        )


def test_bytes_before_and_line_ends_of_other_systems_change_nothing(run: Run, story: Path) -> None:
    expected = run("render", "specs", *WORLD).stdout
    for path in (story / "specs").iterdir():
        document = json.dumps(json.loads(path.read_text()), indent=1).replace("\n", "\r\n")
        path.write_bytes(b"\xef\xbb\xbf" + document.encode())
        path.rename(path.with_suffix(".YML"))
    assert run("render", "specs", *WORLD).stdout == expected


@pytest.mark.parametrize(("output", "begins"), [("json", "{\n"), ("junit", "<?xml "), ("sarif", "{\n")])
def test_reports_for_ci_are_data_on_stdout_and_a_problem_is_still_1(
    run: Run, story: Path, output: str, begins: str
) -> None:
    good = run("validate", "specs", "-o", output)
    assert (good.returncode, good.stdout.startswith(begins)) == (0, True)
    (story / "specs" / "broken.yaml").write_text("a: [\n")
    ended = run("validate", "specs", "-o", output)
    assert (ended.returncode, ended.stdout.startswith(begins)) == (1, True)
    assert "specs/broken.yaml" in ended.stdout
    text = run("validate", "specs")
    assert ended.stderr == text.stdout + text.stderr, "whoever has the log alone learns what is wrong"
    assert text.stdout.startswith("specs/broken.yaml:")


def test_strict_raises_the_level_of_a_warning_and_not_its_rule(run: Run, story: Path) -> None:
    (story / "specs" / "package.json").write_text("{}")
    levels = []
    for strict in ((), ("--strict",)):
        ended = run("validate", "specs", "-q", "-o", "sarif", *strict)
        levels += [
            (result["ruleId"], result["level"], ended.returncode, ended.stderr.count("package.json"))
            for result in json.loads(ended.stdout)["runs"][0]["results"]
        ]
    assert levels == [("not-a-spec", "warning", 0, 0), ("not-a-spec", "error", 1, 1)]


@pytest.mark.parametrize("driver", ["Hook", "Job"])
def test_driver_without_an_image_is_a_warning_at_a_terminal_and_an_error_in_argo_cd(
    run: Run, story: Path, driver: str
) -> None:
    write_policy(story, driver=driver)
    write_operator(story)
    given = ("--operator-config", "operator.json")
    needed = "its rollout is a Job that needs an image"
    why = f"a render omits its rollout objects, and fails in Argo CD: {needed}"
    assert why not in run("validate", "specs").stderr
    ended = run("validate", "specs", *given)
    assert (ended.returncode, ended.stderr.count(f"policy.json:1: spec.driver: {why}")) == (0, 1)
    assert run("validate", "specs", *given, "--strict").returncode == 1
    rendered = run("render", "specs", *WORLD, *given)
    assert (rendered.returncode, rendered.stderr.count(f": {why}")) == (0, 1)
    assert rendered.stdout == run("render", "specs", *WORLD, *given, "--no-hooks").stdout
    assert why not in run("render", "specs", *WORLD, *given, "--no-hooks").stderr
    in_plugin = {"ARGOCD_APP_NAME": "pay", "TWGEN_OPERATOR_CONFIG": str(story / "operator.json")}
    failed = run("render", "specs", *WORLD, "--identity", "pay", env=in_plugin)
    assert (failed.returncode, failed.stdout) == (2, "")
    assert f": {needed}" in failed.stderr
    assert f"warning: {why}" in run("plan", "specs", *WORLD, *given).stdout
    assert f"warning: {why}" in run("status", "specs", *WORLD, *given).stdout


def test_operator_gives_hooks_to_all_workers_in_one_line_unless_one_of_them_cannot_have_one(
    run: Run, story: Path
) -> None:
    write_operator(story, rollout={"driver": "Hook", "image": "twgen:1"}, tick={"rollouts": True})
    file = story / "specs" / "workerdeployment.json"
    with edited(file) as worker:
        worker["spec"]["rollout"] = {"strategy": "AllAtOnce"}
    render = ("render", "specs", *WORLD, "--operator-config", "operator.json", "--identity", "me")
    rendered = run(*render)
    assert (rendered.returncode, rendered.stderr) == (0, "")
    assert rendered.stdout.count("argocd.argoproj.io/hook: Sync,PostSync") == 1
    assert "skippedHook: |\n    taken over by tick\n" in rendered.stdout

    worker["spec"]["rollout"] = {"strategy": "Manual"}
    file.write_text(json.dumps(worker))
    rendered = run(*render)
    assert rendered.returncode == 0
    assert "argocd.argoproj.io/hook" not in rendered.stdout
    assert rendered.stdout.count("kind: Job\n") == 1
    warning = "workerdeployment.json:1: spec: its strategy is Manual, and a sync should not wait for that: "
    assert rendered.stderr.count(warning) == 1
    write_policy(story, driver="Hook")
    assert "argocd.argoproj.io/hook: Sync,PostSync" in run(*render).stdout, "its policy asks for it"


HOOKED = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {
        "name": "migrate",
        "namespace": "default",
        "annotations": {"argocd.argoproj.io/hook": "PreSync", "argocd.argoproj.io/sync-wave": "0"},
    },
    "spec": {"template": {"spec": {"containers": [{"name": "migrate", "image": "shop:1"}]}}},
}


@pytest.mark.parametrize(
    ("driver", "image", "refused"),
    [
        ("Job", "", True),
        ("None", "twgen", False),
        ("Hook", "twgen", False),
        ("Auto", "", False),
        ("Auto", "twgen", True),
    ],
)
def test_hook_beside_a_tracked_job_would_hold_up_every_sync(
    run: Run,
    story: Path,
    driver: str,
    image: str,
    refused: bool,  # noqa: FBT001 - a row of the table
) -> None:
    write_policy(story, driver=driver)
    write_operator(story, **({"rollout": {"image": image}} if image else {}))
    (story / "specs" / "hook.json").write_text(json.dumps(HOOKED))
    ended = run("validate", "specs", "--operator-config", "operator.json")
    assert ended.returncode == int(refused), ended
    assert ("a sync with hooks or waves waits" in ended.stdout) is refused
    assert "sync-wave" not in ended.stdout, "wave 0 is where everything is"


@pytest.mark.parametrize("command", ["validate", "render"])
@pytest.mark.parametrize(("image", "refused"), [("twgen", True), ("", False)])
def test_document_that_is_an_object_of_a_rollout_is_refused_before_it_is_rendered(
    run: Run,
    story: Path,
    command: str,
    image: str,
    refused: bool,  # noqa: FBT001 - a row of the table
) -> None:
    worker = json.loads((story / "specs" / "workerdeployment.json").read_text())["metadata"]
    own = {"name": f"{worker['name']}-rollout-status", "namespace": worker.get("namespace", "default")}
    (story / "specs" / "own.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": own})
    )
    write_operator(story, **({"rollout": {"image": image}} if image else {}))
    snapshot = ("--snapshot", "snapshot.json", "--identity", "me") if command == "render" else ()
    ended = run(command, "specs", "--operator-config", "operator.json", *snapshot)
    assert (ended.returncode != 0) is refused, ended
    told = f"ConfigMap {own['namespace']}/{own['name']} is defined twice, from the rollout of worker"
    assert (ended.stdout + ended.stderr).count(told) == int(refused)


@pytest.mark.parametrize("path", ["nothere", "empty"])
def test_path_that_names_nothing_is_in_every_report(run: Run, story: Path, path: str) -> None:
    (story / "empty").mkdir()
    for output in ("json", "junit", "sarif"):
        ended = run("validate", path, "-o", output)
        assert (ended.returncode, f"{path}: " in ended.stdout) == (2, True), ended.stdout
        assert path in ended.stderr
