"""Comments, order and all other entries of a ledger stay; both sides of a merge are kept."""

import json
from dataclasses import replace

import pytest

from tests.records.ledgers import entry, ledger, spec
from twgen.errors import InvalidInput
from twgen.records.ledger import write_entry
from twgen.records.ledger_text import Sides, merged_text, sides_of, updated_text
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
{"".join(f"      {line}" for line in _LINES)}
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
        "apiVersion: twgen.io/v1alpha1\nkind: Ledger\nversions:\n- worker: shop/payments\n"
    )
    assert len(text.splitlines()) == 7
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
    assert "- worker: shop/payments  # of team blue\n" in text
    assert text.partition("  # the small one")[2] == BY_HAND.partition("  # the small one")[2]
    assert build_ids(text) == build_ids(BY_HAND)
    assert "payments:v1-fixed" in text
    assert "2026-11-21T12:00:00Z" in text


def test_entry_on_one_line_is_replaced_whole() -> None:
    text = updated_text(BY_HAND, [entry(spec("orders:fixed", name="orders"))], "a.yaml")
    assert text.startswith(BY_HAND.partition("  - {worker: shop/orders")[0])
    assert build_ids(text) == build_ids(BY_HAND)


def test_ledger_whose_layout_cannot_be_kept_is_not_touched() -> None:
    text = json.dumps(ledger(entry()))
    with pytest.raises(InvalidInput, match="lay `versions` out as a list of blocks"):
        updated_text(text, [ORDERS], "a.yaml")


def test_many_versions_are_changed_and_added_at_once() -> None:
    known = [entry(spec(f"payments:{n}", f"v{n}")) for n in range(100)]
    text = "# ours\n" + updated_text("", known, "a.yaml")
    changed = [entry(spec(f"payments:fixed-{n}", f"v{n}")) for n in range(0, 200, 2)]
    found = updated_text(text, changed, "a.yaml")
    assert found.startswith("# ours\n")
    fixed = {item.key: item for item in changed}
    wanted = [fixed.pop(item.key, item) for item in known]
    assert read_documents(found) == [ledger(*wanted, *fixed.values())]


def test_file_that_is_no_ledger_is_not_touched() -> None:
    with pytest.raises(InvalidInput, match=r"a\.yaml is not a ledger: take it back from Git, or move it"):
        updated_text("kind: Service\n", [entry()], "a.yaml")


def test_strings_that_look_like_something_else_stay_strings() -> None:
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
    text = updated_text("", [changed], "a.yaml")
    assert read_documents(text)[0]["versions"] == [write_entry(changed)]


def test_file_without_markers_is_in_no_conflict() -> None:
    assert sides_of(BY_HAND) is None


@pytest.mark.parametrize("base", ["", "||||||| 1234567\n- nonsense\n"], ids=["merge", "diff3"])
def test_both_sides_of_a_conflict_are_told_apart(base: str) -> None:
    text = f"a\n<<<<<<< HEAD\nb\n{base}=======\nc\n>>>>>>> other\nd\n"
    assert sides_of(text) == Sides("a\nb\nd\n", "a\nc\nd\n", "HEAD", "other")


def test_versions_of_both_sides_are_kept_in_the_layout_of_ours() -> None:
    theirs = updated_text("", [entry(), entry(spec("payments:v2", "v2"))], "a.yaml")
    text = merged_text(Sides(BY_HAND, theirs, "HEAD", "other"), "a.yaml")
    assert text == updated_text(BY_HAND, [entry(spec("payments:v2", "v2"))], "a.yaml")


def test_version_that_both_sides_recorded_with_two_templates_is_refused_naming_both() -> None:
    sides = Sides(
        updated_text("", [entry(spec("payments:a"))], "a.yaml"),
        updated_text("", [entry(spec("payments:b"))], "a.yaml"),
        "HEAD",
        "other",
    )
    with pytest.raises(
        InvalidInput, match=r"shop/payments v1 is payments:a \(template .*\) in HEAD and payments:b"
    ):
        merged_text(sides, "a.yaml")
