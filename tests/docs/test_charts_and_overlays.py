"""What the page and an example say of charts and overlays, by the programs themselves."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from testing.install import installed
from testing.recipes import KUSTOMIZE
from tests.docs.pages import ROOT
from tests.servers.live import Document
from tests.servers.test_templated import BUDGET_OF_CHART, CHART, CONNECTION, SNAPSHOT, WORKER, twgen, write
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server
EXAMPLES = ROOT / "examples"
PAGE = (ROOT / "docs" / "charts.md").read_text()
BUDGET = {"maxUnavailable": 1, "selector": {"matchLabels": {}}}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    worker = WORKER.replace("TAG", "{{ .Values.tag }}").replace(
        "name: payments", "name: {{ .Release.Name }}", 1
    )
    files = {
        "chart/Chart.yaml": CHART,
        "chart/values.yaml": "tag: v1\n",
        "chart/templates/connection.yaml": CONNECTION,
        "chart/templates/worker.yaml": worker,
        "values/prod.yaml": "tag: v2\n",
    }
    write(folder, {".git/HEAD": "ref: refs/heads/main\n", **files})
    (tmp_path / "snapshot.json").write_text(json.dumps(SNAPSHOT))
    return folder


def test_references_follow_prefixes_and_hashes_by_the_file_of_the_example(checkout: Path) -> None:
    names = (EXAMPLES / "kustomize" / "names.yaml").read_text()
    container = {
        "name": "worker",
        "image": "registry.example.com/payments:v1",
        "envFrom": [{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "keys"}}],
        "env": [
            {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "a"}}},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "b"}}},
        ],
    }
    sources = [{"configMap": {"name": "settings"}}, {"secret": {"name": "keys"}}]
    pod = {
        "serviceAccountName": "runner",
        "imagePullSecrets": [{"name": "keys"}],
        "initContainers": [{**container, "name": "before"}],
        "containers": [container],
        "volumes": [
            {"name": "a", "configMap": {"name": "settings"}},
            {"name": "b", "secret": {"secretName": "keys"}},
            {"name": "c", "persistentVolumeClaim": {"claimName": "disk"}},
            {"name": "d", "projected": {"sources": sources}},
        ],
    }
    gate = {"workflowType": "Check", "inputFrom": {"configMapKeyRef": {"name": "settings", "key": "a"}}}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": BUDGET}
    temporal, twgen_io = "temporal.io/v1alpha1", "twgen.io/v1alpha1"
    worker = {
        "workerOptions": {"connectionRef": {"name": "cloud"}, "temporalNamespace": "default"},
        "rollout": {"strategy": "AllAtOnce", "gate": gate},
        "template": {"spec": pod},
    }
    objects: list[tuple[str, str, str, Document]] = [
        ("v1", "ServiceAccount", "runner", {}),
        ("v1", "PersistentVolumeClaim", "disk", {}),
        (
            temporal,
            "Connection",
            "cloud",
            {"hostPort": "a:1", "apiKeySecretRef": {"name": "keys", "key": "b"}},
        ),
        (temporal, "WorkerDeployment", "payments", worker),
        # nothing else differs by where a pod template stands
        (temporal, "WorkerDeployment", "orders", {**worker, "deployment": {"template": {"spec": pod}}}),
        (
            temporal,
            "WorkerResourceTemplate",
            "budget",
            {"workerDeploymentRef": {"name": "payments"}, "template": budget},
        ),
        (
            twgen_io,
            "RolloutPolicy",
            "policy",
            {
                "workerRef": {"name": "payments"},
                "serviceAccountName": "runner",
                "controlPlaneSecretRef": {"name": "keys"},
            },
        ),
    ]
    files = {
        "eu/kustomization.yaml": """\
namespace: shop
namePrefix: eu-
resources: [all.yaml]
configurations: [names.yaml]
configMapGenerator: [{name: settings, literals: [a=1]}]
secretGenerator: [{name: keys, literals: [b=2]}]
images: [{name: registry.example.com/payments, newTag: v9}]
""",
        "eu/names.yaml": names,
        "eu/all.yaml": write_documents(
            {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **({"spec": spec} if spec else {})}
            for api, kind, name, spec in objects
        ),
    }
    write(checkout, files)
    output = built(checkout / "eu")
    unchanged = (
        r"(?:name|secretName|claimName|serviceAccountName): (?:settings|keys|runner|disk|cloud|payments)$"
    )
    assert re.findall(unchanged, output, re.MULTILINE) == []
    # its own name; twice in env and envFrom of four kinds of containers, in volumes, and once in each gate
    generated = re.search(r"eu-settings-\w+", output)
    assert generated
    in_pods = 3 * (2 * 2 + 2)
    assert output.count(generated[0]) == 1 + in_pods + 2
    assert output.count("payments:v9") == 3 * 2
    assert "payments:v1" not in output


SCALER = """\
apiVersion: temporal.io/v1alpha1
kind: WorkerResourceTemplate
metadata: {name: scaling}
spec:
  workerDeploymentRef: {name: payments}
  template:
    apiVersion: keda.sh/v1alpha1
    kind: ScaledObject
    spec:
      scaleTargetRef: {}
      maxReplicaCount: 9
      triggers: [{type: cron, authenticationRef: {name: login}, metadata: {}}]
---
apiVersion: keda.sh/v1alpha1
kind: TriggerAuthentication
metadata: {name: login}
spec:
  secretTargetRef: [{parameter: password, name: keys, key: b}]
"""
MERGED = """\
namespace: shop
resources: [../base]
openapi: {path: schema.json}
patches:
- patch: |-
    apiVersion: temporal.io/v1alpha1
    kind: WorkerDeployment
    metadata: {name: payments, namespace: shop}
    spec:
      template:
        spec:
          containers:
          - name: worker
            env: [{name: LEVEL, value: debug}]
"""


def built(folder: Path) -> str:
    """What kustomize prints of a folder."""
    command = [installed(KUSTOMIZE), "build", folder]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_replicas_labels_and_logins_of_triggers_reach_workers_by_the_file_of_the_example(
    checkout: Path,
) -> None:
    names = (EXAMPLES / "kustomize" / "names.yaml").read_text()
    worker = (EXAMPLES / "three-versions" / "worker.yaml").read_text()
    overlay = """\
namePrefix: eu-
resources: [worker.yaml, scaler.yaml]
configurations: [names.yaml]
replicas: [{name: payments, count: 5}]
labels: [{pairs: {team: shop}, includeTemplates: true}]
secretGenerator: [{name: keys, literals: [b=2]}]
"""
    files = {"eu/worker.yaml": worker, "eu/scaler.yaml": SCALER, "eu/names.yaml": names}
    write(checkout, {**files, "eu/kustomization.yaml": overlay})
    output = built(checkout / "eu")
    assert "  replicas: 5\n" in output
    assert re.search(r"template:\n    metadata:\n      labels:\n        team: shop\n", output)
    assert output.count("name: eu-login") == 2
    assert output.count("name: eu-keys-") == 2
    write(checkout, {"eu/names.yaml": ""})
    refused = twgen(checkout, "validate", "eu", "--input", "Kustomize")
    assert "kustomize cannot set the replicas of a WorkerDeployment: add" in refused.stdout


GENERATED = """\
namespace: shop
resources: [worker.yaml, connection.yaml]
configMapGenerator: [{name: settings, literals: [a=1]}]
"""


def test_pods_that_name_a_generated_object_without_its_hash_are_warned_of(checkout: Path) -> None:
    worker = (EXAMPLES / "three-versions" / "worker.yaml").read_text()
    name = "      - name: worker\n"
    assert name in worker
    files = {
        "eu/worker.yaml": worker.replace(
            name, f"{name}        envFrom: [{{configMapRef: {{name: settings}}}}]\n"
        ),
        "eu/connection.yaml": (EXAMPLES / "three-versions" / "connection.yaml").read_text(),
        "eu/names.yaml": (EXAMPLES / "kustomize" / "names.yaml").read_text(),
    }
    write(checkout, {**files, "eu/kustomization.yaml": GENERATED})
    asked = ("validate", "eu", "--input", "Kustomize")
    warning = "the pods refer to ConfigMap settings, but kustomize has renamed it to settings-"
    assert warning in twgen(checkout, *asked).stderr
    write(checkout, {"eu/kustomization.yaml": f"{GENERATED}configurations: [names.yaml]\n"})
    assert warning not in twgen(checkout, *asked).stderr


def test_strategic_merge_changes_one_container_by_the_schema_of_the_example(checkout: Path) -> None:
    base = (EXAMPLES / "three-versions" / "worker.yaml").read_text()
    schema = (EXAMPLES / "kustomize" / "schema.json").read_text()
    files = {"base/worker.yaml": base, "base/kustomization.yaml": "resources: [worker.yaml]\n"}
    write(checkout, {**files, "eu/kustomization.yaml": MERGED, "eu/schema.json": schema})
    output = built(checkout / "eu")
    assert "value: debug" in output
    assert "image: registry.example.com/shop/payments:" in output


def test_overlay_of_the_page_renders_the_example(checkout: Path) -> None:
    [overlay] = re.findall(r"^```yaml\n(namePrefix: .*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    base = ("connection", "worker", "scaling", "budget", "policy")
    files = {f"base/{name}.yaml": (EXAMPLES / "three-versions" / f"{name}.yaml").read_text() for name in base}
    files["base/kustomization.yaml"] = f"resources: [{', '.join(f'{name}.yaml' for name in base)}]\n"
    names = (EXAMPLES / "kustomize" / "names.yaml").read_text()
    overlay = overlay.replace("newTag: v3.0.0", "newTag: v9.0.0")
    write(checkout, {**files, "eu/kustomization.yaml": overlay, "eu/names.yaml": names})
    ended = twgen(checkout, "validate", "eu", "--input", "Kustomize", "--strict", "-q")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert twgen(checkout, "lock", "eu", "--input", "Kustomize").returncode == 0
    ledger = (checkout / "eu" / "twgen.lock" / "shop.eu-payments.yaml").read_text()
    assert "payments:v9.0.0" in ledger
    assert '"cpu": "1"' in ledger


def test_commands_of_the_page_lock_and_validate_a_chart(checkout: Path) -> None:
    commands = re.findall(r"^twgen (\w+ --input Helm .*)$", PAGE.replace("\\\n", ""), re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["validate", "lock"]
    for command in commands:
        ended = twgen(checkout / "chart", *shlex.split(command))
        assert ended.returncode == 0, ended.stderr
    ledger = (checkout / "chart" / "twgen.lock" / "shop.payments.yaml").read_text()
    assert "registry.example.com/payments:1.4.0" in ledger


def test_placeholder_of_twgen_reaches_it_through_a_chart_as_the_page_writes_it(checkout: Path) -> None:
    escaped = "{{ `{{ .BuildID }}` }}"
    assert f"``{escaped}``" in PAGE
    asked = ("render", "chart", "--input", "Helm", "-n", "shop", "--release", "payments")
    for written, version in ((escaped, "of v1-"), ("{{ .BuildID }}", '"of "')):
        write(
            checkout, {"chart/templates/budget.yaml": BUDGET_OF_CHART.replace("WRITTEN", f"'of {written}'")}
        )
        ended = twgen(checkout, *asked, "--snapshot", "../snapshot.json")
        assert ended.returncode == 0, ended.stderr
        assert f"version: {version}" in ended.stdout


def test_application_of_the_page_renders_its_chart(checkout: Path) -> None:
    text = (EXAMPLES / "argocd" / "chart.yaml").read_text()
    assert f"```yaml\n{text}```" in PAGE
    [application] = read_documents(text)
    source = application["spec"]["source"]
    parameters = [*source["plugin"]["parameters"], {"name": "identity", "string": "shop"}]
    ended = twgen(
        checkout / source["path"],
        *("plan", ".", "--snapshot", "../../snapshot.json", "-o", "json"),
        ARGOCD_APP_NAME=application["metadata"]["name"],
        ARGOCD_APP_NAMESPACE=application["spec"]["destination"]["namespace"],
        ARGOCD_APP_SOURCE_PATH=source["path"],
        ARGOCD_APP_PARAMETERS=json.dumps(parameters),
    )
    assert ended.returncode == 0, ended.stderr
    [planned] = json.loads(ended.stdout)["workers"]
    assert planned["worker"] == "shop/payments"
    assert planned["targetBuildID"].startswith("1.4.0-"), (
        "values go before the files, and these before the chart's"
    )
