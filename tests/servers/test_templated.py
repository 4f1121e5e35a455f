"""Charts and overlays as input: the programs themselves, confined by the kernel."""

import json
import os
import re
import subprocess
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
BUDGET_OF_CHART = """\
apiVersion: temporal.io/v1alpha1
kind: WorkerResourceTemplate
metadata: {name: budget}
spec:
  workerDeploymentRef: {name: payments}
  template:
    apiVersion: policy/v1
    kind: PodDisruptionBudget
    metadata: {annotations: {version: WRITTEN}}
    spec: {maxUnavailable: 1, selector: {matchLabels: {}}}
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
    place = "rendered by helm, document 2 (shop/templates/worker.yaml, WorkerDeployment release-name)"
    assert f"{place}:" in said
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


def in_argocd(checkout: Path, *more: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A render of the chart by the plugin, whose rollouts are tracked Jobs."""
    operator = checkout.parent / "operator.yaml"
    operator.write_text("apiVersion: twgen.io/v1alpha1\nkind: OperatorConfig\nrollout: {image: twgen}\n")
    asked = ("render", ".", "--input", "Helm", "--snapshot", "../../snapshot.json", "--identity", "shop")
    known = {
        "ARGOCD_APP_NAME": "payments",
        "ARGOCD_APP_SOURCE_PATH": "chart",
        "ARGOCD_APP_NAMESPACE": "shop",
        "TWGEN_OPERATOR_CONFIG": str(operator),
    }
    return twgen(checkout / "chart", *asked, *more, **known | variables)


def write_hook(checkout: Path, annotations: str) -> None:
    """Add an object with these annotations to the chart, whose rollouts take hours."""
    pod = f"""\
apiVersion: v1
kind: Pod
metadata:
  name: connection
  annotations: {{{annotations}}}
spec:
  containers: [{{name: wget, image: busybox}}]
"""
    slow = "rollout: {strategy: Progressive, steps: [{rampPercentage: 10, pauseDuration: 1h}]}"
    worker = checkout / "chart" / "templates" / "worker.yaml"
    worker.write_text(worker.read_text().replace("rollout: {strategy: AllAtOnce}", slow))
    write(checkout, {"chart/templates/tests/connection.yaml": pod})


OFFLINE = ("--input", "Helm", "--release", "payments", "-n", "shop", "--offline")
KUBECTL = "kubectl and Flux would apply this Helm hook immediately"


@pytest.mark.parametrize(
    ("annotations", "is_printed", "warning"),
    [
        ("helm.sh/hook: test", False, ""),
        ("helm.sh/hook: post-delete", False, f"{KUBECTL} (post-delete)"),
        ('helm.sh/hook: "post-delete, pre-rollback"', False, f"{KUBECTL} (post-delete, pre-rollback)"),
        ("helm.sh/hook: post-delete, argocd.argoproj.io/hook: PostDelete", True, ""),
    ],
)
def test_hook_of_helm_is_printed_for_argocd_alone_where_no_sync_waits_for_it(
    checkout: Path,
    annotations: str,
    is_printed: bool,  # noqa: FBT001 - what pytest is given
    warning: str,
) -> None:
    write_hook(checkout, annotations)
    rendered = twgen(checkout / "chart", "render", ".", *OFFLINE)
    assert rendered.returncode == 0, rendered.stderr
    assert ("kind: Pod\n" in rendered.stdout) is is_printed
    assert bool(warning) is (KUBECTL in rendered.stderr)
    assert warning in rendered.stderr
    for_argocd = in_argocd(checkout)
    assert for_argocd.returncode == 0, for_argocd.stderr
    assert "kind: Pod\n" in for_argocd.stdout


def test_hook_of_helm_that_a_sync_waits_for_is_refused_beside_a_tracked_job(checkout: Path) -> None:
    write_hook(checkout, "helm.sh/hook: pre-upgrade")
    assert f"{KUBECTL} (pre-upgrade)" in twgen(checkout / "chart", "render", ".", *OFFLINE).stderr
    refused = in_argocd(checkout)
    assert refused.returncode == 2
    assert "a sync with hooks or waves waits" in refused.stderr


WITH_TEXT = """\
apiVersion: v1
kind: Secret
metadata: {name: password}
stringData: {password: "TEXT"}
"""


@pytest.mark.parametrize(
    "text", ["{{ randAlphaNum 5 }}", "{{ now | unixEpoch }}", "{{ uuidv4 | sha256sum }}"]
)
def test_pods_that_a_chart_renders_differently_each_time_are_warned_of(checkout: Path, text: str) -> None:
    asked, world = OFFLINE[:-1], ("--snapshot", "../../snapshot.json")
    worker = checkout / "chart" / "templates" / "worker.yaml"
    fixed = worker.read_text()
    annotations = f"    metadata: {{annotations: {{rollme: '{text}'}}}}\n"
    worker.write_text(fixed.replace("  template:\n", f"  template:\n{annotations}"))
    refused = twgen(checkout / "chart", "validate", ".", *asked, "--strict")
    warning = "spec.template.metadata.annotations.rollme: differs in each render"
    assert (refused.returncode, refused.stdout.count(warning)) == (1, 1)
    assert warning in twgen(checkout / "chart", "lock", ".", *asked).stderr
    assert warning in twgen(checkout / "chart", "plan", ".", *asked, *world).stderr
    assert warning in twgen(checkout / "chart", "render", ".", *OFFLINE).stderr
    assert warning not in twgen(checkout / "chart", "status", ".", *asked, *world).stderr, "it costs a render"
    worker.write_text(fixed)
    write(checkout, {"chart/templates/secret.yaml": WITH_TEXT.replace("TEXT", text)})
    accepted = twgen(checkout / "chart", "validate", ".", *asked, "--strict")
    assert accepted.returncode == 0, "pods read a Secret by its name"


SCALER = """\
{{ if .Capabilities.APIVersions.Has "keda.sh/v1alpha1/ScaledObject" }}
apiVersion: v1
kind: ConfigMap
metadata: {name: scaler}
data: {kubernetes: "{{ .Capabilities.KubeVersion.Minor }}"}
{{ end }}
"""


def test_chart_knows_the_cluster_that_argocd_or_an_option_names(checkout: Path) -> None:
    write(checkout, {"chart/templates/scaler.yaml": SCALER})
    assert "name: scaler" not in twgen(checkout / "chart", "render", ".", *OFFLINE).stdout
    apis = "v1,apps/v1,keda.sh/v1alpha1,keda.sh/v1alpha1/ScaledObject"
    known = in_argocd(checkout, KUBE_VERSION="1.29", KUBE_API_VERSIONS=apis)
    assert known.returncode == 0, known.stderr
    assert 'kubernetes: "29"' in known.stdout
    options = ("--kube-version", "v1.30.2", "--api-versions", apis)
    assert 'kubernetes: "30"' in twgen(checkout / "chart", "render", ".", *OFFLINE, *options).stdout
    wrong = twgen(checkout / "chart", "render", ".", *OFFLINE, "--kube-version", "newest")
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "twgen: --kube-version 'newest' is not a version such as 1.36 or v1.36.1\n",
    )


NAMED = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: "of-{{ .Release.Name }}"}
"""


def test_object_of_a_chart_gets_the_namespace_of_the_option(checkout: Path) -> None:
    write(checkout, {"chart/templates/named.yaml": NAMED})
    rendered = twgen(checkout / "chart", "render", ".", *OFFLINE)
    assert "kind: ConfigMap\nmetadata:\n  name: of-payments\n  namespace: shop\n" in rendered.stdout
    for_argocd = in_argocd(checkout).stdout
    assert "name: of-payments\n---" in for_argocd, "the destination of the Application fills it in"


def test_release_of_an_application_outside_argocds_namespace_is_its_own_name(checkout: Path) -> None:
    write(checkout, {"chart/templates/named.yaml": NAMED})
    rendered = in_argocd(checkout, ARGOCD_APP_NAME="team-a_payments")
    assert rendered.returncode == 0, rendered.stderr
    assert "name: of-payments\n" in rendered.stdout


def test_placeholder_that_helm_replaces_with_nothing_is_warned_of(checkout: Path) -> None:
    escaped = '{{ `{{ .BuildID }}` }} {{/* {{ .BuildID }} */}} {{ "{{ .BuildID }}" }}'
    asked = ("validate", ".", *OFFLINE[:-1], "--strict")
    for written, code in ((f"'{escaped}'", 0), ("{{ .BuildID }}", 1), ('"{{- .BuildID }}"', 1)):
        write(checkout, {"chart/templates/budget.yaml": BUDGET_OF_CHART.replace("WRITTEN", written)})
        ended = twgen(checkout / "chart", *asked)
        assert ended.returncode == code, ended.stdout
        told = "helm replaces {{ .BuildID }} in templates/budget.yaml with an empty string"
        assert ended.stdout.count(told) == code


def test_two_clusters_do_not_share_a_build_id_in_one_ledger(checkout: Path) -> None:
    worker = checkout / "chart" / "templates" / "worker.yaml"
    custom = 'temporalNamespace: default, unsafeCustomBuildID: "{{ .Values.tag }}"}'
    written = worker.read_text().replace("temporalNamespace: default}", custom)
    worker.write_text(
        written.replace(
            "containers:", "terminationGracePeriodSeconds: {{ .Values.grace }}\n      containers:"
        )
    )
    asked = ("lock", ".", *OFFLINE[:-1])
    assert twgen(checkout / "chart", *asked, "--values", "grace: 30").returncode == 0
    refused = twgen(checkout / "chart", *asked, "--values", "grace: 60")
    assert refused.returncode == 2
    assert (
        "records v1 with other pods, which differ in spec.template.spec.terminationGracePeriodSeconds"
        in refused.stderr
    )
    for grace, code in (("30", 0), ("60", 2)):
        checked = twgen(checkout / "chart", *asked, "--check", "--values", f"grace: {grace}")
        assert checked.returncode == code
    assert twgen(checkout / "chart", *asked, "--values", "{grace: 60, tag: v2}").returncode == 0


def test_chart_leaves_out_its_ledger(checkout: Path) -> None:
    chart, asked = checkout / "chart", (".", *OFFLINE[:-1])
    (chart / ".helmignore").write_text("*.swp")
    for tag in ("v1", "v2"):
        assert twgen(chart, "lock", *asked, "--values", f"tag: {tag}").returncode == 0
        assert (chart / ".helmignore").read_text() == "*.swp\ntwgen.lock/\n"
    with (chart / "twgen.lock" / "shop.payments.yaml").open("a") as ledger:
        ledger.write("#" * 6_000_000)
    assert twgen(chart, "validate", *asked).returncode == 0, "helm refuses a file of more than 5 MiB"


def test_value_file_with_a_question_mark_may_be_missing(checkout: Path) -> None:
    asked = ("render", ".", *OFFLINE, "--value-files")
    write(checkout, {"values/eu.yaml": "tag: v2\n"})
    rendered = twgen(checkout / "chart", *asked, "?none.yaml,?../values/eu.yaml")
    assert rendered.returncode == 0, rendered.stderr
    assert "payments:v2" in rendered.stdout
    refused = twgen(checkout / "chart", *asked, "none.yaml")
    assert "there is no file 'none.yaml'" in refused.stderr
    outside = twgen(checkout / "chart", *asked, "?../../secret.yaml")
    assert outside.returncode == 2, "a file out of the checkout may not even be asked for"


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
    assert results(checkout, *asked) == [("wrong-type", template, 1, why)]
    worker.write_text(written + "{{ .Values.none.such }}")
    [(rule, file, line, why)] = results(checkout, *asked)
    assert (rule, file, line) == ("unreadable", template, written.count("\n") + 1)
    assert why.startswith("helm failed: ")
    junit = twgen(checkout, "validate", *asked, "-o", "junit")
    assert f'file="{template}"' in junit.stdout
    assert "unreadable" in twgen(checkout, "validate", *asked, "-o", "json").stdout


def test_report_names_the_kustomization_of_what_is_wrong(checkout: Path) -> None:
    asked = ("overlay", "--input", "Kustomize")
    write(checkout, {"base/worker.yaml": WORKER.replace("replicas: 2", "replicas: two").replace("TAG", "v1")})
    many = checkout / "many" / "kustomization.yaml"
    many.write_text(COMPONENT.replace("value: 7", "value: seven"))
    why = "spec.replicas: must be a whole number, not a string"
    assert results(checkout, *asked) == [("wrong-type", "overlay/kustomization.yaml", 1, why)]
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
    why = "helm ran out of memory (it may use 768 MiB)"
    assert refusal(checkout, "Helm") == f"twgen: {why}: render fewer objects\n"


def test_chart_prints_no_more_than_it_may(checkout: Path) -> None:
    text = 'a: "{{ range until 1700 }}{{ repeat 10000 "a" }}{{ end }}"'
    write(checkout, {"bad/Chart.yaml": CHART, "bad/templates/a.yaml": text})
    why = "the output of helm is larger than 16 MiB"
    assert refusal(checkout, "Helm") == f"twgen: {why}: render fewer objects\n"


def test_chart_that_does_not_come_to_an_end_is_ended(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forever = "{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}"
    write(checkout, {"bad/Chart.yaml": CHART, "bad/templates/a.yaml": forever})
    monkeypatch.setattr(templated, "_MOST_SECONDS", 2)
    monkeypatch.setenv("PATH", str(installed(HELM).parent))
    with pytest.raises(InvalidInput, match="helm took longer than 2s: render fewer objects"):
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
