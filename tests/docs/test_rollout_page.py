"""The pages for who rolls out name commands, options, codes and marks that there are."""

import re
import shlex
from dataclasses import fields
from typing import Any

import pytest

from testing.forking import forker
from tests.cases.story import STORIES
from tests.docs.pages import EXAMPLE, ROOT, blocks
from tests.servers.live import ENVIRONMENT
from tools.documentation import foretold, rollbacks
from tools.ramps import BOUND, FAILING, ramps_text, simulated_ramps
from twgen import errors
from twgen.model.status import RolloutStatus
from twgen.records.rollout_status import ANSWER_ENTRIES
from twgen.specs.attached import KINDS
from twgen.versioning import names
from twgen.versioning.names import MarkKey
from twgen.yaml.reader import read_documents

NAMES = ("rollout", "measured-ramps", "steer", "rollback", "jobs")
PAGE = "".join((ROOT / "docs" / f"{name}.md").read_text() for name in NAMES)
SHOWN = "".join(blocks(PAGE, "")).splitlines()
NAMED = re.findall(r"^\| `(twgen [^`]+)` \|", PAGE, re.MULTILINE)
# what names a worker is asked of its cluster alone
BY_PATH = "twgen (?!simulate )(?!.* worker/)[^>]*$"
COMMANDS = [line.partition(" | ")[0] for line in SHOWN if re.match(BY_PATH, line)]
CHANGING = sorted({*NAMED, *COMMANDS})


@pytest.mark.parametrize("command", CHANGING)
def test_command_of_the_page_asks_temporal_first(command: str) -> None:
    unreachable = ("--no-cluster", "--via", "temporal.example.com:7233=127.0.0.1:1")
    ended = forker().run([*shlex.split(command)[1:], *unreachable], EXAMPLE, ENVIRONMENT)
    assert (ended.returncode, ended.stdout) == (3, ""), ended.stderr
    assert "cannot be reached" in ended.stderr


def test_page_links_to_the_exit_codes_of_a_rollout() -> None:
    assert "(commands.md#exit-codes)" in (ROOT / "docs" / "rollout.md").read_text()
    commands = (ROOT / "docs" / "commands.md").read_text()
    codes = commands.partition("\n## Exit codes\n")[2].partition("\n## ")[0]
    listed = {int(code) for code in re.findall(r"^\| (\d) \|", codes, re.MULTILINE)}
    raised = {error.exit_code for error in errors.TwgenError.__subclasses__()}
    assert listed == {0} | raised


def test_page_shows_what_a_simulation_says_of_the_policy_above_it() -> None:
    page = ROOT / "docs" / "measured-ramps.md"
    assert foretold(page) in blocks(page, "text")
    assert "twgen simulate . --starts-per-hour 100 --failing 0.2" in SHOWN


def test_page_shows_what_a_rollback_plans_in_mid_ramp_and_from_a_current_version() -> None:
    assert rollbacks() == blocks(ROOT / "docs" / "rollback.md", "text")


def test_planner_takes_back_what_fails_and_hardly_ever_what_is_at_its_bound() -> None:
    well, bad = simulated_ramps(BOUND), simulated_ramps(FAILING)
    assert len(well) == len(bad) == 1000
    assert sum(ramp.is_taken_back for ramp in well) <= 10
    assert sum(ramp.is_noticed_at_once for ramp in bad) >= 990
    assert f"```text\n{ramps_text()}```" in (ROOT / "docs" / "measured-ramps.md").read_text()


def test_page_of_reasons_lists_every_mark_with_what_ends_it() -> None:
    table = (ROOT / "docs" / "reasons.md").read_text().partition("## Marks")[2]
    rows = re.findall(r"^\| `(twgen\.io/[\w-]+)` \| .+ \| (.+) \|$", table, re.MULTILINE)
    assert rows == [(key.value, key.lifetime.value) for key in MarkKey]


def test_page_shows_the_operators_file_of_the_example() -> None:
    operator = (EXAMPLE / "operator.yaml").read_text()
    assert operator in blocks(PAGE, "yaml")


def test_page_names_the_objects_of_a_rollout_and_the_entries_of_its_status() -> None:
    rendered = {item["metadata"]["name"] for item in rollout_case()}
    named = set(re.findall(r"`(payments-rollout[\w-]*)`", PAGE))
    assert named - rendered == {names.rollout_status_name("payments")}
    assert {name for name in rendered if "rollout" in name} <= named
    entries = {field.name for field in fields(RolloutStatus) if field.compare} - {"report", "answers"} | {
        "status.json",
        *ANSWER_ENTRIES.values(),
    }
    [told] = re.findall(
        r"^The Job reports its status in the ConfigMap .*?\n\n.*?\n\n", PAGE, re.MULTILINE | re.DOTALL
    )
    assert entries <= set(re.findall(r"`([^`]+)`", told))


def test_page_lists_every_right_of_the_account_and_no_other() -> None:
    [role] = [item for item in rollout_case() if item["kind"] == "Role"]
    attached = {names.resource_of_kind(kind.kind) for kind in KINDS}
    rights = {
        (verb, "each kind that is or was attached" if resource in attached else resource)
        for rule in role["rules"]
        for verb in rule["verbs"]
        for resource in rule["resources"]
    }
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*)(?: of)? ([\w ]+) \|", PAGE, re.MULTILINE)
    assert {(verb, what.lower()) for verbs, what in rows for verb in re.findall(r"\w+", verbs)} == rights


def rollout_case() -> list[Any]:
    return [*read_documents((STORIES / "rollout-job" / "manifests.yaml").read_text())]
