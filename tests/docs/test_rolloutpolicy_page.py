"""The policies of the page are valid, and it lists every field with its default."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks, run
from tests.docs.test_specs_page import BLOCKS as SPECS
from tools.parts import parts
from twgen.model.policy import Policy
from twgen.model.shapes import Findings
from twgen.specs.fields import Fields
from twgen.specs.policies import POLICY, default_policy
from twgen.yaml.reader import read_documents

PAGE = (ROOT / "docs" / "rolloutpolicy.md").read_text()
BLOCKS = [text for text in blocks(PAGE, "yaml") if "kind: RolloutPolicy\n" in text]
SCHEMA = json.loads((ROOT / "schemas" / "rolloutpolicy.json").read_text())
SECTIONS = dict(
    re.findall(r"^### RolloutPolicy: (.+)\n\n((?:- .+\n)+)", parts(PAGE)["RolloutPolicy"], re.MULTILINE)
)
"""The lists of fields, by their titles."""


def listed(title: str) -> list[tuple[str, str]]:
    """The fields of the spec itself in a section, or of one field of it, each with its default."""
    lines = re.findall(r"^- `(?:spec\.)?(\w+)`(.*)$", SECTIONS[title], re.MULTILINE)
    return [(name, "".join(re.findall(r" Default: `([^`]+)`\.$", text))) for name, text in lines]


FIELDS = [*listed("spec"), *listed("rare fields")]
DEFAULTS = [
    *(f"{name}: {default}" for name, default in FIELDS if default),
    *(f"unserved: {{{name}: {default}}}" for name, default in listed("spec.unserved")),
]
"""The fields to which the page gives a default, each with that default as YAML."""


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
    [line] = re.findall(r"^  drains   (v1\.4\.2.*)$", ended.stdout, re.MULTILINE)
    assert "continue-as-new" in line


def test_page_has_a_line_for_every_field() -> None:
    assert {name for name, _ in FIELDS} == {*SCHEMA["properties"]["spec"]["properties"]}


@pytest.mark.parametrize("default", DEFAULTS)
def test_default_on_the_page_is_the_one_of_the_program(default: str) -> None:
    assert policy_of(default) == default_policy()


def test_page_has_every_default() -> None:
    with_default = {
        name
        for name, field in SCHEMA["properties"]["spec"]["properties"].items()
        if field.get("default") is not None
    }
    assert with_default
    assert with_default <= {name for name, default in FIELDS if default}
