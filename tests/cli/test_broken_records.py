"""No spec, snapshot, ledger, operator configuration or plugin parameter ends as a bug, whatever is wrong."""

import io
import json
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import click
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.broken_documents import broken_text, json_values, mutations
from tests.schemas.documents import OPERATOR
from twgen.cli.environment import environment
from twgen.cli.main import twgen
from twgen.cli.options import refuse_settings_of_operator
from twgen.errors import NegativeAnswer, TwgenError
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

CASES = Path(__file__).parents[1] / "fixtures" / "vectors" / "plans.json"
CASE = next(case for case in json.loads(CASES.read_text()) if case["name"] == "advances-step")
COMMANDS = ("render", "plan", "status", "simulate")
COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
PLUGIN = {"ARGOCD_APP_NAME": "shop", "ARGOCD_APP_PROJECT_NAME": "payments"}
HELD = {
    "manager": "hpa",
    "operation": "Update",
    "subresource": "scale",
    "fieldsV1": {"f:spec": {"f:replicas": {}}},
}

Write = Callable[[Any], None]


def snapshot() -> dict[str, Any]:
    """The snapshot of the story, whose Deployments have what an API server adds."""
    found: dict[str, Any] = json.loads(json.dumps(CASE["snapshot"]))
    for deployment in found["workers"][0]["deployments"]:
        deployment["metadata"] |= {"managedFields": [HELD], "generation": 1}
        pod = deployment["spec"]["template"]["spec"]
        pod["initContainers"] = [{"name": "i", "image": "i", "imagePullPolicy": "Always"}]
        pod["volumes"] = [{"name": "v", "secret": {"secretName": "s", "defaultMode": 420}}]
        pod["hostAliases"], pod["imagePullSecrets"] = [{"ip": "1.2.3.4"}], [{"name": "s"}]
        pod["containers"][0] |= {
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            "volumeDevices": [{"name": "v", "devicePath": "/v"}],
            "ports": [{"containerPort": 80, "protocol": "TCP"}],
        }
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the story, where the program runs."""
    (tmp_path / "specs").mkdir()
    for document in CASE["documents"]:
        (tmp_path / "specs" / f"{document['kind'].lower()}.json").write_text(json.dumps(document))
    (tmp_path / "snapshot.json").write_text(json.dumps(snapshot()))
    monkeypatch.chdir(tmp_path)
    environment.cache_clear()
    yield tmp_path
    environment.cache_clear()


def ends_well(*arguments: str) -> None:
    """The command ends with a message of ours, or with data of the format; whatever else is a bug."""
    raw, told = io.BytesIO(), io.StringIO()
    stdout = io.TextIOWrapper(raw, "utf-8")
    with redirect_stdout(stdout), redirect_stderr(told):
        try:
            with twgen.make_context("twgen", list(arguments)) as context:
                twgen.invoke(context)
        except (TwgenError, click.ClickException) as error:
            said = str(error)
            assert said
            is_answer = isinstance(error, NegativeAnswer)
            assert is_answer or not raw.getvalue(), said
            # `spec.driver: None` is a value that people write
            said = said.replace("spec.driver: None", "")
            for word in ("None", "dict", "KeyError", "Traceback", "NoneType", "<class"):
                assert word not in said or word in json.dumps(arguments), said
    text = raw.getvalue().decode()
    match arguments[arguments.index("-o") + 1] if text and "-o" in arguments else "":
        case "json" | "sarif":
            json.loads(text, parse_constant=pytest.fail)
        case "yaml":
            read_documents(text)
        case "junit" | "svg":
            ET.fromstring(text)  # noqa: S314 - our own
        case "text" | "markdown":
            assert all(line.isprintable() for line in text.split("\n")), text
    assert all(line.isprintable() for line in told.getvalue().split("\n")), told.getvalue()


OUTPUTS = {
    "validate": ("text", "json", "junit", "sarif"),
    "render": ("yaml", "json"),
    "plan": ("text", "json", "markdown"),
    "status": ("text", "json"),
    "simulate": ("text", "json", "svg"),
    "lock": ("",),
}


@COMMON
@given(data=st.data())
def test_no_broken_snapshot_is_a_bug(folder: Path, data: st.DataObject) -> None:
    (folder / "snapshot.json").write_text(json.dumps(data.draw(mutations(snapshot()))))
    for command in COMMANDS:
        ends_well(command, "specs", "--snapshot", "snapshot.json")


@COMMON
@given(data=st.data())
def test_no_broken_live_deployment_is_a_bug(folder: Path, data: st.DataObject) -> None:
    world = snapshot()
    live = world["workers"][0]["deployments"]
    index = data.draw(st.integers(0, len(live) - 1))
    live[index] = data.draw(mutations(live[index]))
    (folder / "snapshot.json").write_text(json.dumps(world))
    for command in COMMANDS:
        ends_well(command, "specs", "--snapshot", "snapshot.json")


@pytest.fixture
def ledger(folder: Path) -> Path:
    """The ledger of the story, in which another version stands too that the cluster has lost."""
    world = snapshot()
    worker = json.loads((folder / "specs" / "workerdeployment.json").read_text())
    for tag in ("v0", "v1"):
        image = f"reg.example.com/team/hello:{tag}"
        worker["spec"]["template"]["spec"]["containers"][0]["image"] = image
        (folder / "specs" / "workerdeployment.json").write_text(json.dumps(worker))
        ends_well("lock", "specs")
    [path] = (folder / "specs" / "twgen.lock").glob("*.yaml")
    [document] = read_documents(path.read_text())
    lost = document["versions"][0]["buildID"]
    world["workers"][0]["temporal"]["versions"].append({"buildID": lost, "status": "Draining"})
    (folder / "snapshot.json").write_text(json.dumps(world))
    return path


@COMMON
@given(data=st.data())
def test_no_broken_ledger_is_a_bug(ledger: Path, data: st.DataObject) -> None:
    text = ledger.read_text()
    [document] = read_documents(text)
    # without its hash nothing says that a template was changed
    without_hash = data.draw(st.booleans())
    for version in document["versions"] if without_hash else ():
        del version["deployment"]["spec"]["template"]["metadata"]["annotations"]
    try:
        ledger.write_text(json.dumps(data.draw(mutations(document))))
        for command in (*COMMANDS, "validate", "lock"):
            snapshot_option = () if command in {"validate", "lock"} else ("--snapshot", "snapshot.json")
            ends_well(command, "specs", *snapshot_option, *(["--check"] if command == "lock" else []))
    finally:
        ledger.write_text(text)


@COMMON
@given(data=st.data())
def test_no_broken_text_of_an_input_is_a_bug(ledger: Path, data: st.DataObject) -> None:
    folder = ledger.parents[2]
    (folder / "operator.json").write_text(json.dumps(OPERATOR))
    files = [path for path in folder.rglob("*") if path.suffix in {".json", ".yaml"}]
    file = data.draw(st.sampled_from(sorted(files)))
    content = file.read_bytes()
    try:
        file.write_bytes(
            data.draw(broken_text(write_documents(read_documents(content)).removeprefix("---\n")))
        )
        command, output = data.draw(
            st.sampled_from([(one, form) for one in OUTPUTS for form in OUTPUTS[one]])
        )
        options = ["--check"] if command == "lock" else ["-o", output]
        options += ["--snapshot", "snapshot.json"] if command not in {"lock", "validate"} else []
        ends_well(command, "specs", "--operator-config", "operator.json", *options)
    finally:
        file.write_bytes(content)


@COMMON
@given(document=mutations(OPERATOR))
@example(document={**OPERATOR, "kind": [None]})
def test_no_broken_operator_configuration_is_a_bug(
    folder: Path, monkeypatch: pytest.MonkeyPatch, document: Any
) -> None:
    for name, value in {**PLUGIN, "TWGEN_OPERATOR_CONFIG": "operator.json"}.items():
        monkeypatch.setenv(name, value)
    environment.cache_clear()
    (folder / "operator.json").write_text(json.dumps(document))
    ends_well("render", "specs", "--snapshot", "snapshot.json")


PARAMETERS = [
    {"name": "identity", "string": "twgen/payments"},
    {"name": "strict", "string": "true"},
    {"name": "quiet", "string": "false", "array": ["a"], "map": {"a": "b"}},
]


@COMMON
@given(parameters=mutations({"all": PARAMETERS}).map(lambda value: value.get("all")) | json_values)
def test_no_broken_plugin_parameter_is_a_bug(
    folder: Path, monkeypatch: pytest.MonkeyPatch, parameters: Any
) -> None:
    assert folder
    for name, value in {**PLUGIN, "ARGOCD_APP_PARAMETERS": json.dumps(parameters)}.items():
        monkeypatch.setenv(name, value)
    environment.cache_clear()
    try:
        refuse_settings_of_operator()
    except TwgenError:
        return
    ends_well("render", "specs", "--snapshot", "snapshot.json")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":',
        "NaN",
        "1e999",
        '[{"name": "a", "name": "b"}]',
        '[{"name": "identity", "string": "\\ud800"}]',
        '[{"name": "identity", "string": "a\\nb"}]',
    ],
    ids=range(7),
)
def test_plugin_parameters_that_are_hardly_json_are_no_bug(
    folder: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    assert folder
    for name, value in {**PLUGIN, "ARGOCD_APP_PARAMETERS": text}.items():
        monkeypatch.setenv(name, value)
    try:
        refuse_settings_of_operator()
    except TwgenError:
        return
    ends_well("render", "specs", "--snapshot", "snapshot.json")
