"""Comments, order and all other entries of a ledger stay; a version is one line."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.records.ledgers import entry, ledger, spec
from twgen.errors import InvalidInput
from twgen.records.ledger import write_entry
from twgen.records.ledger_text import updated_text
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

ORDERS = entry(spec(name="orders"))
_LINES = write_documents([entry().deployment]).splitlines(keepends=True)[1:]
BY_HAND = f"""\
# what has been deployed; do not sort
apiVersion: twgen.io/v1alpha1
kind: Ledger
versions:
# the big one
- worker: shop/payments  # of team blue
  buildID: v1
  recordedAt: "2026-11-01T00:00:00Z"
  deployment:
{"".join(f"    {line}" for line in _LINES)}
# the small one
- {{worker: shop/orders, buildID: v1, deployment: {ORDERS.deployment}}}
metadata: {{name: versions}}  # nobody reads it
"""


def build_ids(text: str) -> list[tuple[str, str]]:
    [document] = read_documents(text)
    return [(item["worker"], item["buildID"]) for item in document["versions"]]


def test_ledger_that_is_not_there_yet_is_begun() -> None:
    text = updated_text("", [entry()], "a.yaml")
    assert text.startswith(
        'apiVersion: twgen.io/v1alpha1\nkind: Ledger\nversions:\n- {"worker": "shop/payments", "buildID":'
    )
    assert len(text.splitlines()) == 4
    assert read_documents(text) == [ledger(entry())]


def test_new_version_is_added_below_all_that_people_wrote() -> None:
    new = entry(spec("payments:v2", "v2"))
    text = updated_text(BY_HAND, [new], "a.yaml")
    above, _, below = BY_HAND.partition("\nmetadata:")
    assert text.startswith(above)
    assert text.endswith(f"\nmetadata:{below}")
    assert build_ids(text) == [("shop/payments", "v1"), ("shop/orders", "v1"), ("shop/payments", "v2")]
    assert read_documents(text)[0]["versions"][2] == write_entry(new)


def test_changed_template_of_a_version_replaces_it_in_its_place() -> None:
    text = updated_text(BY_HAND, [entry(spec("payments:v1-fixed"))], "a.yaml")
    assert "# the big one\n- worker: shop/payments  # of team blue\n" in text
    assert text.partition("# the small one")[2] == BY_HAND.partition("# the small one")[2]
    assert build_ids(text) == build_ids(BY_HAND)
    assert "payments:v1-fixed" in text
    assert "2026-11-21T12:00:00Z" in text


def test_entry_on_one_line_and_without_a_time_is_changed_in_its_place() -> None:
    text = updated_text(BY_HAND, [entry(spec("orders:fixed", name="orders"))], "a.yaml")
    assert text.startswith(BY_HAND.partition("- {worker: shop/orders")[0])
    assert text.endswith("\nmetadata: {name: versions}  # nobody reads it\n")
    assert build_ids(text) == build_ids(BY_HAND)
    assert read_documents(text)[0]["versions"][1] == write_entry(entry(spec("orders:fixed", name="orders")))


@pytest.mark.parametrize("begins", ["", "---\n", "# ours\n---\n# really\n", "\n# ours\n\n"])
@pytest.mark.parametrize("ends", ["", "...\n", "\n# the end\n"])
@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
@pytest.mark.parametrize("image", ["payments:v1", "payments:v1-fixed"])
def test_comments_stay_whatever_stands_around_them(
    begins: str, ends: str, line_break: str, image: str
) -> None:
    first, second = (f"- {json.dumps(write_entry(item))}" for item in (entry(), ORDERS))
    below = f"kind: Ledger\nversions:\n# old\n{first}  # why\n\n# new\n{second}\n{ends}"
    text = f"{begins}apiVersion: twgen.io/v1alpha1  # of now\n{below}".replace("\n", line_break)
    found = updated_text(text, [entry(spec(image)), entry(spec("payments:v2", "v2"))], "a.yaml")
    assert [line.strip() for line in text.splitlines() if line.startswith("#")] == [
        line.strip() for line in found.splitlines() if line.startswith("#")
    ]
    assert found.count("# of now") == found.count("# why") == 1
    assert found.count("\n") == found.count(line_break)
    assert build_ids(found) == [("shop/payments", "v1"), ("shop/orders", "v1"), ("shop/payments", "v2")]


def test_indentation_of_a_ledger_is_kept() -> None:
    lines = [f"  - {json.dumps(write_entry(item))}\n" for item in (entry(), ORDERS)]
    text = f"kind: Ledger  # ours\napiVersion: twgen.io/v1alpha1\nversions:\n{''.join(lines)}"
    assert updated_text(text, [entry(spec("payments:v2", "v2"))], "a.yaml").startswith(f"{text}  - {{")


def test_ledger_whose_layout_cannot_be_kept_is_not_touched() -> None:
    text = (
        f"apiVersion: twgen.io/v1alpha1\nkind: Ledger\nversions:\n-\n  {json.dumps(write_entry(entry()))}\n"
    )
    with pytest.raises(
        InvalidInput, match=r"a\.yaml cannot be edited without losing its layout: write `versions`"
    ):
        updated_text(text, [ORDERS], "a.yaml")


@pytest.mark.parametrize("above", ["", "# ours\n"])
def test_version_that_two_branches_recorded_is_changed_wherever_it_stands(above: str) -> None:
    [once] = [line for line in updated_text("", [entry()], "a.yaml").splitlines() if line.startswith("- ")]
    twice = f"{above}{updated_text('', [entry()], 'a.yaml')}{once}\n"
    changed = entry(spec("payments:v1-hotfix"))
    text = updated_text(twice, [changed], "a.yaml")
    assert read_documents(text)[0]["versions"] == [write_entry(changed)] * 2


@pytest.mark.parametrize("indent", [None, 1])
def test_ledger_as_json_stays_json(indent: int | None) -> None:
    text = updated_text(json.dumps(ledger(entry()), indent=indent), [ORDERS], "a.json")
    assert json.loads(text) == ledger(entry(), ORDERS)


def test_only_a_ledger_that_somebody_edited_is_read_by_ruamel() -> None:
    program = """
import sys
from tests.records.ledgers import entry, spec
from twgen.records.ledger_text import updated_text
text = updated_text("", [entry()], "a.yaml")
for text in (text, "# ours\\n" + text):
    updated_text(text, [entry(spec("payments:v2", "v2"))], "a.yaml")
    print("ruamel.yaml" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


@pytest.mark.parametrize("begins", ["", "# ours\n"])
def test_many_versions_are_changed_and_added_at_once(begins: str) -> None:
    known = [entry(spec(f"payments:{n}", f"v{n}")) for n in range(30)]
    text = begins + updated_text("", known, "a.yaml")
    changed = [entry(spec(f"payments:fixed-{n}", f"v{n}")) for n in range(0, 60, 2)]
    found = updated_text(text, changed, "a.yaml")
    assert found.startswith(begins)
    fixed = {item.key: item for item in changed}
    wanted = [fixed.pop(item.key, item) for item in known]
    assert read_documents(found) == [ledger(*wanted, *fixed.values())]


def test_file_that_is_no_ledger_is_not_touched() -> None:
    with pytest.raises(InvalidInput, match=r"a\.yaml is not a ledger: restore it from Git, or move it"):
        updated_text("kind: Service\n", [entry()], "a.yaml")


@pytest.mark.parametrize("begins", ["", "# ours\n"])
def test_strings_that_look_like_something_else_stay_strings(begins: str) -> None:
    odd = {
        "a": "y",
        "b": "08",
        "c": "1e3",
        "d": "null",
        "e": "a\nb\n",
        "f": "\u2028\x7f\ufeff",
        "g": "\U0001f600",
    }
    deployment = {**entry().deployment, "metadata": {"name": "on", "annotations": odd}}
    changed = replace(entry(), build_id="on", deployment=deployment)
    text = begins + updated_text("", [changed], "a.yaml")
    assert read_documents(text)[0]["versions"] == [write_entry(changed)]
    added = updated_text(text, [replace(changed, build_id="no")], "a.yaml")
    assert read_documents(added)[0]["versions"][1]["deployment"] == deployment
