"""Charts and overlays as input: the programs themselves, confined by the kernel."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from testing.forking import forker
from testing.install import installed
from testing.processes import ENVIRONMENT
from testing.recipes import HELM, KUSTOMIZE
from tests.cli.conftest import Ended
from twgen.errors import InvalidInput
from twgen.reading import templated
from twgen.reading.documents import Sources
from twgen.reading.templated import Input

pytestmark = pytest.mark.server
CONNECTION = """\
apiVersion: temporal.io/v1alpha1
kind: Connection
metadata: {name: temporal}
spec: {hostPort: "temporal.shop.svc:7233"}
"""
WORKER = """\
apiVersion: temporal.io/v1alpha1
kind: WorkerDeployment
metadata: {name: payments}
spec:
  replicas: 2
  workerOptions: {connectionRef: {name: temporal}, temporalNamespace: default}
  rollout: {strategy: AllAtOnce}
  template:
    spec:
      containers: [{name: worker, image: "registry.example.com/payments:TAG"}]
"""
COMPONENT = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
- target: {kind: WorkerDeployment}
  patch: |-
    - {op: replace, path: /spec/replicas, value: 7}
"""
CHART = "apiVersion: v2\nname: shop\nversion: 0.1.0\n"
SNAPSHOT = {
    "apiVersion": "twgen.io/v1alpha1",
    "kind": "Snapshot",
    "takenAt": "2026-11-24T12:00:00Z",
    "workers": [
        {"name": f"shop/{name}", "temporalNamespace": "default", "temporal": None, "deployments": []}
        for name in ("payments", "orders")
    ],
}


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    write(
        folder,
        {
            ".git/HEAD": "ref: refs/heads/main\n",
            "base/kustomization.yaml": "resources: [connection.yaml, worker.yaml]\n",
            "base/connection.yaml": CONNECTION,
            "base/worker.yaml": WORKER.replace("TAG", "v1"),
            "many/kustomization.yaml": COMPONENT,
            "overlay/kustomization.yaml": "namespace: shop\nresources: [../base]\ncomponents: [../many]\n",
            "chart/Chart.yaml": CHART,
            "chart/values.yaml": "tag: v1\n",
            "prod.yaml": "tag: v2\n",
            "chart/templates/connection.yaml": CONNECTION,
            "chart/templates/worker.yaml": WORKER.replace("TAG", "{{ .Values.tag }}").replace(
                "name: payments", 'name: "{{ .Release.Name }}"'
            ),
        },
    )
    (tmp_path / "snapshot.json").write_text(json.dumps(SNAPSHOT))
    (tmp_path / "secret").write_text("hunter2")
    return folder


def twgen(checkout: Path, *arguments: str, **variables: str) -> Ended:
    programs = os.pathsep.join(str(installed(program).parent) for program in (HELM, KUSTOMIZE))
    environment = {**ENVIRONMENT, "PATH": f"{programs}{os.pathsep}{ENVIRONMENT['PATH']}", **variables}
    return forker().run(arguments, checkout, environment)


def refusal(checkout: Path, kind: str, folder: str = "bad") -> str:
    ended = twgen(checkout, "render", folder, "--input", kind, "--snapshot", "../snapshot.json")
    assert (ended.returncode, ended.stdout) == (2, ""), ended
    assert "hunter2" not in ended.stderr
    return ended.stderr


def test_overlay_with_a_component_is_rendered(checkout: Path) -> None:
    ended = twgen(checkout, "render", "overlay", "--input", "Kustomize", "--snapshot", "../snapshot.json")
    assert ended.returncode == 0, ended.stderr
    assert "replicas: 7" in ended.stdout
    assert "namespace: shop" in ended.stdout


def test_values_go_before_value_files(checkout: Path) -> None:
    asked = ("render", "chart", "--input", "Helm", "-n", "shop", "--release", "payments")
    given = ("--value-files", "../prod.yaml", "--values", "tag: v3")
    ended = twgen(checkout, *asked, *given, "--snapshot", "../snapshot.json")
    assert "registry.example.com/payments:v3" in ended.stdout


def test_chart_is_rendered_with_its_release_and_values(checkout: Path) -> None:
    asked = ("render", "chart", "--input", "Helm", "-n", "shop", "--snapshot", "../snapshot.json")
    ended = twgen(checkout, *asked, "--release", "orders", "--value-files", "../prod.yaml")
    assert ended.returncode == 0, ended.stderr
    assert "registry.example.com/payments:v2" in ended.stdout
    assert "temporal.io/deployment-name: orders" in ended.stdout
    assert "namespace: shop" in ended.stdout
    ended = twgen(checkout, *asked, "--release", "orders", "--values", "tag: v3")
    assert "registry.example.com/payments:v3" in ended.stdout


def test_application_sets_the_input_by_its_parameters(checkout: Path) -> None:
    parameters = [
        {"name": "input", "string": "Helm"},
        {"name": "valueFiles", "array": ["../prod.yaml"]},
        {"name": "values", "string": "replicas: 1"},
        {"name": "identity", "string": "shop"},
    ]
    ended = twgen(
        checkout / "chart",
        *("plan", ".", "--snapshot", "../../snapshot.json", "-o", "json"),
        ARGOCD_APP_NAME="orders",
        ARGOCD_APP_NAMESPACE="shop",
        ARGOCD_APP_SOURCE_PATH="chart",
        ARGOCD_APP_PARAMETERS=json.dumps(parameters),
    )
    assert ended.returncode == 0, ended.stderr
    assert "orders" in ended.stdout
    assert "v2" in ended.stdout


def test_mistake_names_the_document_that_was_rendered(checkout: Path) -> None:
    worker = checkout / "chart" / "templates" / "worker.yaml"
    worker.write_text(worker.read_text().replace("replicas: 2", "replicas: two"))
    said = refusal(checkout, "Helm", "chart")
    assert "rendered by helm, document 2 (shop/templates/worker.yaml):" in said
    worker.write_text("a: {{ .Values.none.such }}")
    assert "shop/templates/worker.yaml" in refusal(checkout, "Helm", "chart")


def test_ledger_beside_a_chart_is_written_and_read_and_is_of_all_environments(checkout: Path) -> None:
    asked = ("chart", "--input", "Helm", "--release", "payments", "-n")
    for namespace in ("staging", "shop"):
        locked = twgen(checkout, "lock", *asked, namespace)
        assert locked.returncode == 0, locked.stderr
        assert re.fullmatch(
            rf"recorded {namespace}/payments \S+ in chart/twgen.lock/{namespace}.payments.yaml\n",
            locked.stderr,
        )
    assert sorted(file.name for file in (checkout / "chart" / "twgen.lock").glob("*.yaml")) == [
        "shop.payments.yaml",
        "staging.payments.yaml",
    ]
    checked = twgen(checkout, "lock", *asked, "shop", "--check")
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "warning" not in twgen(checkout, "validate", *asked, "staging").stderr


def test_test_of_a_chart_is_left_to_helm(checkout: Path) -> None:
    pod = """\
apiVersion: v1
kind: Pod
metadata:
  name: connection
  annotations: {helm.sh/hook: test}
spec:
  containers: [{name: wget, image: busybox}]
"""
    slow = "rollout: {strategy: Progressive, steps: [{rampPercentage: 10, pauseDuration: 1h}]}"
    worker = checkout / "chart" / "templates" / "worker.yaml"
    worker.write_text(worker.read_text().replace("rollout: {strategy: AllAtOnce}", slow))
    write(checkout, {"chart/templates/tests/connection.yaml": pod})
    asked = ("render", ".", "--input", "Helm", "--release", "payments", "-n", "shop", "--snapshot")
    rendered = twgen(checkout / "chart", *asked, "../../snapshot.json")
    assert rendered.returncode == 0, rendered.stderr
    assert "kind: Pod\n" not in rendered.stdout
    operator = checkout.parent / "operator.yaml"
    operator.write_text("apiVersion: twgen.io/v1alpha1\nkind: OperatorConfig\nrollout: {image: twgen}\n")
    in_argocd = twgen(
        checkout / "chart",
        *(*asked, "../../snapshot.json", "--identity", "shop"),
        ARGOCD_APP_NAME="payments",
        ARGOCD_APP_SOURCE_PATH="chart",
        ARGOCD_APP_NAMESPACE="shop",
        TWGEN_OPERATOR_CONFIG=str(operator),
    )
    assert in_argocd.returncode == 0, in_argocd.stderr
    assert "kind: Pod\n" in in_argocd.stdout


def results(checkout: Path, *arguments: str) -> list[tuple[str, str, int, str]]:
    """What the SARIF report has: the rule, the file, its line, and the message."""
    ended = twgen(checkout, "validate", *arguments, "-o", "sarif")
    told, last = ended.stderr.splitlines()[:-1], ended.stderr.splitlines()[-1]
    assert (ended.returncode, last) == (1, "twgen: 1 problem found")
    assert told, "the log has the problem too"
    [run] = json.loads(ended.stdout)["runs"]
    places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    return [
        (
            result["ruleId"],
            place["artifactLocation"]["uri"],
            place["region"]["startLine"],
            result["message"]["text"],
        )
        for result, place in zip(run["results"], places, strict=True)
    ]


def test_report_names_the_template_of_what_is_wrong(checkout: Path) -> None:
    asked = ("chart", "--input", "Helm", "-n", "shop")
    worker = checkout / "chart" / "templates" / "worker.yaml"
    written = worker.read_text()
    worker.write_text(written.replace("replicas: 2", "replicas: two"))
    template = "chart/templates/worker.yaml"
    why = "spec.replicas: must be a whole number, not a string"
    assert results(checkout, *asked) == [("invalid", template, 1, why)]
    worker.write_text(written + "{{ .Values.none.such }}")
    [(rule, file, line, why)] = results(checkout, *asked)
    assert (rule, file, line) == ("unreadable", template, written.count("\n") + 1)
    assert why.startswith("helm failed: ")
    junit = twgen(checkout, "validate", *asked, "-o", "junit")
    assert f'file="{template}"' in junit.stdout
    assert "unreadable" in twgen(checkout, "validate", *asked, "-o", "json").stdout


def test_report_names_the_kustomization_of_what_is_wrong(checkout: Path) -> None:
    asked = ("overlay", "--input", "Kustomize")
    write(checkout, {"base/worker.yaml": WORKER.replace("replicas: 2", "replicas: two")})
    many = checkout / "many" / "kustomization.yaml"
    many.write_text(COMPONENT.replace("value: 7", "value: seven"))
    why = "spec.replicas: must be a whole number, not a string"
    assert results(checkout, *asked) == [("invalid", "overlay/kustomization.yaml", 1, why)]
    many.unlink()
    [(rule, file, _, why)] = results(checkout, *asked)
    assert (rule, file, why[:18]) == ("unreadable", "overlay/kustomization.yaml", "kustomize failed: ")


@pytest.mark.parametrize("target", ["/etc/passwd", "../../secret", "/proc/self/environ"])
def test_chart_reads_no_file_out_of_the_checkout_through_a_link(checkout: Path, target: str) -> None:
    write(checkout, {"bad/Chart.yaml": CHART, "bad/templates/a.yaml": '{{ .Files.Get "a" }}'})
    (checkout / "bad" / "a").symlink_to(target)
    assert "permission denied" in refusal(checkout, "Helm")


@pytest.mark.parametrize(
    "reference", ["file:///etc/hostname", "http://127.0.0.1:1/schema.json"], ids=["file", "network"]
)
def test_schema_of_a_chart_refers_to_nothing_outside(checkout: Path, reference: str) -> None:
    write(checkout, {"bad/Chart.yaml": CHART, "bad/values.schema.json": json.dumps({"$ref": reference})})
    assert "permission denied" in refusal(checkout, "Helm")


@pytest.mark.parametrize(
    "kustomization",
    [
        "configMapGenerator: [{name: a, files: [/etc/passwd]}]",
        "configMapGenerator: [{name: a, files: [../../secret]}]",
        "configMapGenerator: [{name: a, files: [link]}]",
        "resources: [../../outside]",
        "components: [../../outside]",
        "resources: ['http://127.0.0.1:1/a.yaml']",
        "resources: ['https://github.com/example/example//config?ref=main']",
        "helmCharts: [{name: a, repo: 'https://example.com'}]",
        "transformers: [plugin.yaml]",
    ],
)
def test_overlay_reaches_nothing_out_of_the_checkout(checkout: Path, kustomization: str) -> None:
    outside = checkout.parent / "outside"
    write(outside, {"kustomization.yaml": COMPONENT.replace("Component", "Kustomization")})
    plugin = {
        "apiVersion": "example.com/v1",
        "kind": "Run",
        "metadata": {
            "name": "run",
            "annotations": {"config.kubernetes.io/function": "exec: {path: ./run.sh}"},
        },
    }
    write(checkout, {"bad/kustomization.yaml": kustomization, "bad/plugin.yaml": json.dumps(plugin)})
    (checkout / "bad" / "link").symlink_to("../../secret")
    assert "kustomize failed: " in refusal(checkout, "Kustomize")


@pytest.mark.parametrize(
    ("kustomization", "said"),
    [
        ("resources: ['https://github.com/example/example//config?ref=main']", "`kustomize localize`"),
        ("components: ['git@github.com:example/example.git']", "`kustomize localize`"),
        ("resources: ['http://127.0.0.1:1/a.yaml']", "`kustomize localize`"),
        ("helmCharts: [{name: a, repo: 'https://example.com'}]", "render the chart with --input Helm"),
        ("bases: [../nothere]", "Error: accumulating resources"),
    ],
)
def test_overlay_that_cannot_be_rendered_says_first_what_to_do(
    checkout: Path, kustomization: str, said: str
) -> None:
    write(checkout, {"bad/kustomization.yaml": kustomization})
    told = refusal(checkout, "Kustomize")
    assert said in told
    assert "Warning" not in told.partition("Error: ")[0]


@pytest.mark.parametrize(
    "name", ["/prod.yaml", "$ref/prod.yaml", "../../secret", "https://example.com/a.yaml"]
)
def test_value_file_that_is_not_read_is_told_with_those_that_are(checkout: Path, name: str) -> None:
    asked = ("validate", "chart", "--input", "Helm", "--value-files", name)
    assert (
        "with a path relative to the chart's folder, such as ../prod.yaml" in twgen(checkout, *asked).stderr
    )
    (checkout / ".git" / "HEAD").unlink()
    (checkout / ".git").rmdir()
    assert "the chart is not in a Git repository" in twgen(checkout, *asked).stderr


@pytest.mark.parametrize("name", ["/etc/passwd", "../../secret", "https://example.com/a.yaml", "none.yaml"])
def test_value_file_is_one_of_the_checkout(checkout: Path, name: str) -> None:
    ended = twgen(checkout, "validate", "chart", "--input", "Helm", "--value-files", name)
    assert (ended.returncode, "value-files: " in ended.stderr) == (2, True)


def test_chart_takes_no_more_memory_than_it_may(checkout: Path) -> None:
    greedy = '{{ range until 100000 }}{{ repeat 100000 "a" }}{{ end }}'
    write(checkout, {"bad/Chart.yaml": CHART, "bad/templates/a.yaml": greedy})
    assert refusal(checkout, "Helm") == ("twgen: helm ran out of memory (it may use 768 MiB): render less\n")


def test_chart_prints_no_more_than_it_may(checkout: Path) -> None:
    text = 'a: "{{ range until 1700 }}{{ repeat 10000 "a" }}{{ end }}"'
    write(checkout, {"bad/Chart.yaml": CHART, "bad/templates/a.yaml": text})
    assert refusal(checkout, "Helm") == "twgen: the output of helm is larger than 16 MiB: render less\n"


def test_chart_that_does_not_come_to_an_end_is_ended(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forever = "{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}"
    write(checkout, {"bad/Chart.yaml": CHART, "bad/templates/a.yaml": forever})
    monkeypatch.setattr(templated, "_MOST_SECONDS", 2)
    monkeypatch.setenv("PATH", str(installed(HELM).parent))
    with pytest.raises(InvalidInput, match="helm took longer than 2s: render less"):
        templated.read_input(Input("Helm"), [str(checkout / "bad")], Sources(), ledgers=False)


@pytest.mark.parametrize(
    ("options", "named"),
    [(("--values", "tag: ["), "--values"), (("--value-files", "../bad.yaml"), "../bad.yaml")],
)
def test_mistake_in_values_names_where_they_come_from(
    checkout: Path, options: tuple[str, ...], named: str
) -> None:
    (checkout / "bad.yaml").write_text("tag: [")
    ended = twgen(checkout, "validate", "chart", "--input", "Helm", *options)
    assert ended.returncode == 1
    assert f"failed to parse {named}: " in ended.stdout


def test_version_that_only_the_history_of_git_has_says_that_this_is_not_read(checkout: Path) -> None:
    world = json.loads((checkout.parent / "snapshot.json").read_text())
    routing = {"current": {"buildID": "v0", "since": "2026-11-24T11:00:00Z"}}
    world["workers"][0]["temporal"] = {
        "routing": routing,
        "versions": [{"buildID": "v0", "status": "Current"}],
    }
    (checkout.parent / "snapshot.json").write_text(json.dumps(world))
    ended = twgen(checkout, "plan", "overlay", "--input", "Kustomize", "--snapshot", "../snapshot.json")
    assert (
        "twgen does not read the Git history of rendered specs: run `twgen lock` to record versions"
        in ended.stderr + " ".join(ended.stdout.split())
    )
