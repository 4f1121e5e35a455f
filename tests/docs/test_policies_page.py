"""The policies of the page are valid, and it explains every field with its default."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks, run
from tests.docs.test_specs_page import BLOCKS as SPECS
from twgen.model.policy import Policy
from twgen.model.shapes import Findings
from twgen.specs.fields import Fields
from twgen.specs.policies import POLICY, default_policy
from twgen.yaml.reader import read_documents

PAGE = (ROOT / "docs" / "policies.md").read_text()
BLOCKS = blocks(PAGE, "yaml")
SCHEMA = json.loads((ROOT / "schemas" / "rolloutpolicy.json").read_text())
DEFAULTS = re.findall(r"`(\w+)`\*\* \(default `([^`]+)`\)", PAGE)
"""Each field that the page gives a default, and that default as YAML."""


def policy_of(text: str) -> Policy:
    """The policy whose spec is this YAML."""
    found = Findings()
    policy = Fields(read_documents(text)[0], "spec", found).read(POLICY)
    assert found.problems == found.unknown == found.warnings == []
    return policy


def test_page_begins_with_three_policies() -> None:
    assert len(BLOCKS) == 3


@pytest.mark.parametrize("block", BLOCKS, ids=["careful", "measured", "draining"])
def test_policy_is_valid_with_the_worker_of_the_page_about_specs(block: str, tmp_path: Path) -> None:
    for index, spec in enumerate(SPECS):
        # its autoscaler for draining versions decides their replicas: the page says so
        if "twgen.io/when" not in spec:
            (tmp_path / f"{index}.yaml").write_text(spec)
    (tmp_path / "policy.yaml").write_text(block)
    ended = run(tmp_path, "validate", ".", "--strict", "-q")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


@pytest.fixture
def example(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "examples" / "three-versions", folder := tmp_path / "specs")
    return folder


def test_careful_ramp_waits_for_its_gate_and_at_its_first_step_for_a_person(example: Path) -> None:
    (example / "policy.yaml").write_text(BLOCKS[0])
    ended = run(example, "simulate", ".")
    assert ended.returncode == 0, ended.stderr
    assert "its gate passes" in ended.stdout
    assert re.search(r"its pause at 5 ?% is over, and its policy waits for `twgen promote`", ended.stdout)


def test_measured_ramp_notices_bad_versions_by_the_command_of_the_page(example: Path) -> None:
    (example / "policy.yaml").write_text(BLOCKS[1])
    [options] = re.findall(r"`twgen simulate \. (--starts-per-hour[^`]*)`", PAGE)
    ended = run(example, "simulate", ".", *options.split())
    assert ended.returncode == 0, ended.stderr
    assert "Metric failures would detect" in ended.stdout


def test_plan_shows_what_becomes_of_old_workflows(example: Path) -> None:
    (example / "policy.yaml").write_text(BLOCKS[2])
    ended = run(example, "plan", ".", "--snapshot", "snapshot.yaml")
    assert ended.returncode == 0, ended.stderr
    [line] = re.findall(r"^  drains  (v1\.4\.2.*)$", ended.stdout, re.MULTILINE)
    assert "continue-as-new" in line


def test_page_has_a_paragraph_for_every_field() -> None:
    fields = set(SCHEMA["properties"]["spec"]["properties"])
    explained = {
        name
        for line in re.findall(r"^(\*\*`\w+`\*\*.*)", PAGE, re.MULTILINE)
        for name in re.findall(r"\*\*`(\w+)`\*\*", line)
    }
    assert explained == fields


@pytest.mark.parametrize(("field", "default"), DEFAULTS)
def test_default_on_the_page_is_the_one_of_the_program(field: str, default: str) -> None:
    assert policy_of(f"{field}: {default}") == default_policy()


def test_page_has_every_default() -> None:
    with_default = {
        name
        for name, field in SCHEMA["properties"]["spec"]["properties"].items()
        if field.get("default") is not None
    }
    assert with_default
    assert with_default <= {name for name, _ in DEFAULTS}
