"""What the documentation shows is what the program does."""

import ast
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.docs.pages import EXAMPLE, PAGES, ROOT, blocks, documents, run
from tools.documentation import PLANS, diagnosed, objects, on_terminal
from tools.plugin import actions_values_text, chart_values_text, plugin_text
from tools.reasons import reasons_page
from twgen.clients.profiles import load_profiles
from twgen.model.operator import Application
from twgen.model.reasons import RoutingReason, VersionReason
from twgen.model.shapes import Findings
from twgen.records.operator_config import parse_operator
from twgen.specs.fields import Fields
from twgen.specs.policies import POLICY
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

TWGEN = Path(sys.executable).with_name("twgen")
OFFLINE = re.compile(
    r"^twgen (?!.*--input )(?:validate|lock|simulate"
    r"|(?:plan|status|render)(?!.* -w| worker/| .*--(?:via|ca-file|prometheus|from-cluster))) "
)
NEEDS_A_SNAPSHOT = re.compile(r"^twgen (?:plan|status|render) \.(?!.*--(?:snapshot|offline))")


def offline_blocks() -> list[tuple[str, ...]]:
    """Of each block of commands the lines that need no server."""
    found = {
        tuple(line for line in block.splitlines() if OFFLINE.search(line))
        for page in PAGES
        for block in blocks(page, "")
    }
    return sorted(found - {()})


@pytest.mark.parametrize("lines", offline_blocks(), ids=lambda lines: lines[0])
def test_lines_of_a_block_run_one_after_the_other_in_one_folder(
    lines: tuple[str, ...], tmp_path: Path
) -> None:
    specs = tmp_path / "specs"
    shutil.copytree(EXAMPLE, specs)
    (tmp_path / "manifests").mkdir()
    shutil.copy(EXAMPLE / "snapshot.yaml", tmp_path)
    for line in (*lines, "twgen render . -q"):
        command, _, file = re.split(r" && | \| ", line)[0].partition(" > ")
        snapshot = ("--snapshot", "snapshot.yaml") if NEEDS_A_SNAPSHOT.search(command) else ()
        ended = run(specs, *shlex.split(command)[1:], *snapshot)
        may_be_told = "^(checked .*; no problems|recorded .*|warning: no worker (has|uses) .*)\n$"
        told = re.sub(may_be_told, "", ended.stderr)
        assert (ended.returncode, told) == (0, ""), line
        if file:
            (specs / re.sub("^/tmp", str(tmp_path), file)).write_text(ended.stdout)


@pytest.mark.heavy
def test_demonstration_shows_its_commands_in_seconds() -> None:
    command = ["make", "-s", "-C", ROOT, "-o", ".venv/.installed", "demo", f"BIN={TWGEN.parent}"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
    shown = [line.split()[2] for line in ended.stdout.splitlines() if line.startswith("$ twgen ")]
    assert shown == ["plan", "status", "plan", "simulate", "render"]
    assert ended.stdout.endswith("lines, 9 manifests in all\n")
    assert len(ended.stdout.splitlines()) < 100


def test_there_are_commands_in_the_documentation() -> None:
    assert len(offline_blocks()) >= 10


def test_readme_shows_the_worker_of_the_example() -> None:
    (spec,) = blocks(ROOT / "README.md", "yaml")
    assert spec == (EXAMPLE / "worker.yaml").read_text()


def test_page_shows_which_objects_the_example_renders() -> None:
    (shown,) = blocks(ROOT / "docs" / "concepts.md", "text")
    assert shown == objects(run(EXAMPLE, "render", ".", "--snapshot", "before.yaml").stdout)
    for kind in ("Deployment", "HorizontalPodAutoscaler", "PodDisruptionBudget"):
        assert len(re.findall(rf"^{kind} ", shown, re.MULTILINE)) == 3, "one for each version"


def test_readme_shows_plans_of_the_example_with_its_cluster_and_a_change_of_traffic() -> None:
    shown = blocks(ROOT / "README.md", "text")
    assert shown == [on_terminal(*command) for command in PLANS.values()]
    before, then = shown
    assert re.findall(r"^  v\d\S+ +\S+ +(\S+)", before, re.MULTILINE) == ["Create", "Keep", "Keep"]
    assert "next     send 25% of new workflows to v3.0.0-97f7 now\n" in then
    assert "cluster was not read" not in " ".join((before + then).split())


def test_page_shows_the_status_of_the_example() -> None:
    page = ROOT / "docs" / "watch.md"
    [command] = [
        line for block in blocks(page, "") for line in block.splitlines() if "status . --snap" in line
    ]
    assert on_terminal(*shlex.split(command)[1:]) in blocks(page, "text")


def test_page_shows_the_simulation_of_the_example() -> None:
    page = ROOT / "docs" / "rollout.md"
    assert on_terminal("simulate", ".") in blocks(page, "text")
    drawn = run(EXAMPLE, "simulate", ".", "--snapshot", "snapshot.yaml", "-o", "svg")
    assert (page.parent / "simulated-rollout.svg").read_text() == drawn.stdout


def test_page_shows_what_the_doctor_says() -> None:
    assert blocks(ROOT / "docs" / "troubleshooting.md", "text") == [diagnosed()]
    assert [line[0] for line in diagnosed().splitlines()[:-1]] == ["✗", "!", "-"]


def test_page_tells_of_every_reason_once() -> None:
    page = (ROOT / "docs" / "reasons.md").read_text()
    assert page == reasons_page()
    missing = [reason for reason in (*VersionReason, *RoutingReason) if page.count(f"\n### {reason}\n") != 1]
    assert missing == []


def test_every_reason_says_when_and_what_to_do_in_sentences() -> None:
    rows = re.findall(
        r"^### [\w ]+\n\n(.*)\n\nWhat to do: (.*)$", (ROOT / "docs" / "reasons.md").read_text(), re.MULTILINE
    )
    assert len(rows) >= len([*VersionReason, *RoutingReason])
    assert [row for row in rows if not all(cell.endswith((".", "`.")) for cell in row)] == []


@pytest.mark.parametrize(
    "reason", ["GateFailed", "Aborted", "ForeignManager", "VersionCapReached", "MissingTaskQueue", "Manual"]
)
def test_reason_that_stops_a_rollout_names_a_next_step(reason: str) -> None:
    found = re.findall(
        rf"^### {reason}\n\n.*\n\nWhat to do: (.*)$", (ROOT / "docs" / "reasons.md").read_text(), re.MULTILINE
    )
    assert found
    assert not [what_to_do for what_to_do in found if what_to_do.startswith("Nothing")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_the_documentation_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text())
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_plugin_offers_what_an_application_may_set_and_no_more() -> None:
    text = (ROOT / "plugin.yaml").read_text()
    assert text == plugin_text()
    [plugin] = read_documents(text)
    assert plugin["spec"].keys() == {"generate", "parameters"}  # no discovery, no version
    offered = {each["name"]: each["itemType"] for each in plugin["spec"]["parameters"]["static"]}
    texts = ("identity", "input", "release", "valueFiles", "values")
    assert offered == {**dict.fromkeys(texts, "string"), "quiet": "boolean", "strict": "boolean"}
    page = (ROOT / "docs" / "settings.md").read_text()
    [named] = re.findall(r"An\sApplication\scan\sset\sonly\sharmless\soptions:.*?\.\s", page, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", named)) == offered.keys()


def test_parameters_of_a_chart_on_the_page_are_those_that_the_plugin_offers() -> None:
    [plugin] = read_documents((ROOT / "plugin.yaml").read_text())
    offered = {each["name"]: each.get("collectionType") for each in plugin["spec"]["parameters"]["static"]}
    pages = (ROOT / "docs" / "first-application.md", ROOT / "docs" / "charts.md")
    sources = [each["spec"]["source"] for each in documents(*pages, kind="Application")]
    found = [parameter for source in sources for parameter in source["plugin"]["parameters"]]
    assert {each["name"] for each in found} == {"strict", "input", "release", "valueFiles", "values"}
    for parameter in found:
        assert ("array" in parameter) == (offered[parameter["name"]] == "array")


POLICIES = documents(*PAGES, kind="RolloutPolicy")


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy["metadata"]["name"])
def test_every_policy_of_a_page_is_valid_beside_the_example(policy: dict[str, Any], tmp_path: Path) -> None:
    specs = tmp_path / "specs"
    shutil.copytree(EXAMPLE, specs)
    (specs / "scaling.yaml").unlink()  # it decides the replicas of versions that drain, too
    (specs / "policy.yaml").write_text(write_documents([policy]))
    ended = run(specs, "validate", ".", "--strict", "-q")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_patch_of_the_page_is_one_that_a_policy_takes() -> None:
    [text] = [text for text in blocks(ROOT / "docs" / "rolloutpolicy.md", "") if text.startswith("patches:")]
    found = Findings()
    policy = Fields(read_documents(text)[0], "spec", found).read(POLICY)
    assert [patch.build_id for patch in policy.patches] == ["v2.9.1-c656"]
    assert found.problems == found.unknown == found.warnings == []


def test_every_configuration_of_an_operator_on_a_page_is_valid() -> None:
    configurations = documents(*PAGES, kind="OperatorConfig")
    assert len(configurations) > 2
    for configuration in configurations:
        operator, findings = parse_operator(configuration)
        assert operator, findings


def test_page_names_lines_that_twgen_prints() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    told = re.findall(r"^\| `([^`]+)`", page, re.MULTILINE)
    assert len(told) > 10
    of_argocd = {
        "--force cannot be used with --server-side",
        "could not find cmp-server plugin",
        "DeadlineExceeded",
        "Manifest generation error (cached)",
        "Operation terminated",
        "Retrying attempt",
        "is not permitted in project",
        "one or more objects failed to apply",
        "waiting for completion of hook",
        "waiting for healthy state of apps/Deployment",
    }
    texts = [
        "…".join(str(part.value) for part in ast.walk(node) if isinstance(part, ast.Constant))
        for file in (ROOT / "twgen").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.JoinedStr | ast.Constant)
    ]
    printed = [line for line in told if any(all(part in text for part in line.split("…")) for text in texts)]
    assert sorted({*told} - {*printed}) == sorted(of_argocd)


def test_values_of_the_chart_are_those_of_the_patches() -> None:
    deploy = ROOT / "deploy"
    assert (deploy / "values.yaml").read_text() == chart_values_text()
    assert (deploy / "actions" / "values.yaml").read_text() == actions_values_text()
    assert (deploy / "templating" / "values.yaml").read_text() == chart_values_text(with_programs=True)


def test_a_cluster_may_have_an_argo_cd_of_its_own_and_be_one_of_another() -> None:
    files = ("other-cluster.yaml", "in-cluster/rbac.yaml")
    documents = [each for file in files for each in read_documents((ROOT / "deploy" / file).read_text())]
    names = [(each["kind"], each["metadata"]["name"]) for each in documents]
    assert sorted({*names}) == sorted(names), "one would overwrite the other's subjects"


def test_forms_of_the_operator_are_valid_and_name_each_other() -> None:
    [operator_form] = read_documents((ROOT / "deploy" / "twgen-operator.yaml").read_text())
    operator, findings = parse_operator(read_documents(operator_form["data"]["operator.yaml"])[0])
    assert operator, findings
    [secret] = read_documents((ROOT / "deploy" / "temporal.yaml").read_text())
    [name] = secret["stringData"]
    assert operator.temporal.config_file == f"/etc/twgen/temporal/{name}"
    assert [profile for profile in secret["stringData"][name].splitlines() if "payments]" in profile]
    assert operator.may_use("payments", Application("shop", "payments"))


def test_operators_configuration_of_the_page_is_valid() -> None:
    [document] = documents(ROOT / "docs" / "settings.md", kind="OperatorConfig")
    operator, findings = parse_operator(document)
    assert operator, findings
    assert operator.instance == "prod-eu"
    assert operator.rollout.image.startswith("registry.example.com/")
    Draft202012Validator(json.loads((ROOT / "schemas" / "operatorconfig.json").read_text())).validate(
        document
    )


def test_profiles_of_the_page_are_what_temporal_reads(tmp_path: Path) -> None:
    [text] = blocks(ROOT / "docs" / "terminal.md", "toml")
    file = tmp_path / "temporal.toml"
    file.write_text(text)
    profiles = load_profiles({}, str(file), use_environment=False)
    assert [profile.name for profile in profiles] == ["on-premises", "payments"]
