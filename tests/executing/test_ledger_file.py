from pathlib import Path
from typing import Any

import pytest

from twgen.errors import InvalidInput
from twgen.executing.ledger_file import updated_ledger, write_ledger
from twgen.yaml.reader import read_documents

BY_HAND = """\
# what has been deployed; do not sort
apiVersion: twgen.io/v1alpha1
kind: Ledger
metadata:
  name: versions
versions:
- worker: shop/payments  # the big one
  buildID: v1
  recordedAt: "2026-11-01T00:00:00Z"
  deployment:
    spec:
      template: {spec: {containers: [{name: worker, image: 'payments:v1'}]}}
"""


def entry(build_id: str, image: str) -> dict[str, Any]:
    containers = [{"name": "worker", "image": image}]
    deployment = {"spec": {"template": {"spec": {"containers": containers}}}}
    return {
        "worker": "shop/payments",
        "buildID": build_id,
        "recordedAt": "2026-11-21T12:00:00Z",
        "deployment": deployment,
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "twgen.lock.yaml"
    path.write_text(BY_HAND)
    return path


def test_new_version_is_added_below_all_that_people_wrote(path: Path) -> None:
    text = updated_ledger(path, [entry("v2", "payments:v2")])
    assert text.startswith(BY_HAND[: BY_HAND.index("  recordedAt")])
    (ledger,) = read_documents(text)
    assert [version["buildID"] for version in ledger["versions"]] == ["v1", "v2"]


def test_recorded_version_is_left_alone(path: Path) -> None:
    assert updated_ledger(path, [entry("v1", "payments:v1")]) == BY_HAND


def test_changed_template_of_a_version_replaces_it_in_its_place(path: Path) -> None:
    (ledger,) = read_documents(updated_ledger(path, [entry("v1", "payments:v1-fixed")]))
    (version,) = ledger["versions"]
    containers = version["deployment"]["spec"]["template"]["spec"]["containers"]
    assert containers[0]["image"] == "payments:v1-fixed"


def test_strings_that_look_like_something_else_stay_strings(tmp_path: Path) -> None:
    image = {"a": "y", "b": "08", "c": "1e3", "d": "null", "e": "0x1F", "f": "1:30", "g": "multi\nline\n"}
    new = entry("on", "x") | {"deployment": {"spec": image}}
    (ledger,) = read_documents(updated_ledger(tmp_path / "new.yaml", [new]))
    assert ledger["versions"] == [new]


def test_file_that_is_no_ledger_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "twgen.lock.yaml"
    path.write_text("kind: Service\n")
    with pytest.raises(InvalidInput, match="not a ledger"):
        updated_ledger(path, [entry("v1", "x")])


def test_ledger_is_replaced_whole(path: Path) -> None:
    write_ledger(path, "new\n")
    assert path.read_text() == "new\n"
    assert [item.name for item in path.parent.iterdir()] == [path.name]
