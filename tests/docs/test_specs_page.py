"""What the page about specs shows is valid and complete."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import ROOT, blocks, documents, run
from twgen.yaml.reader import read_documents

PAGE = (ROOT / "docs" / "specs.md").read_text()
BLOCKS = blocks(PAGE, "yaml")
DOCUMENTS = documents(PAGE)
SCHEMAS = {
    "connection": {"Connection", "ClusterConnection"},
    "workerdeployment": {"WorkerDeployment"},
    "workerresourcetemplate": {"WorkerResourceTemplate"},
}


def validate(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    for index, block in enumerate(BLOCKS):
        (folder / f"{index}.yaml").write_text(block)
    return run(folder, "validate", ".", *options)


def schema_fields(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """The paths of all fields but old spellings, and but those that are reserved for Kubernetes."""
    for name, field in schema.get("properties", {}).items():
        if field.get("deprecated") or "$ref" in field:
            continue
        yield f"{path}{name}"
        yield from schema_fields(field, f"{path}{name}.")
        yield from schema_fields(field.get("items", {}), f"{path}{name}.")


def written_fields(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield f"{path}{name}"
            yield from written_fields(item, f"{path}{name}.")
    elif isinstance(value, list):
        for item in value:
            yield from written_fields(item, path)


def test_every_document_of_the_page_is_valid(tmp_path: Path) -> None:
    ended = validate(tmp_path)
    assert (ended.returncode, ended.stdout) == (0, "")


def test_nothing_is_doubtful_about_the_page(tmp_path: Path) -> None:
    assert json.loads(validate(tmp_path, "--strict", "-o", "json").stdout)["problems"] == []


@pytest.mark.parametrize("name", SCHEMAS)
def test_page_shows_every_field_of_the_schema(name: str) -> None:
    schema = json.loads((ROOT / "schemas" / f"{name}.json").read_text())
    shown = {
        path
        for document in DOCUMENTS
        if document["kind"] in SCHEMAS[name]
        for path in written_fields(document)
    }
    named = {name.rpartition(".")[2] for name in words(PAGE)}
    absent = set(schema_fields(schema)) - shown
    assert {path for path in absent if path.rpartition(".")[2] not in named} == set()


def words(text: str) -> list[str]:
    """The names of fields in a text."""
    return re.findall(r"`([\w.]+)`", text)


def kinds(text: str) -> set[str]:
    return {document["kind"] for document in read_documents(text)}


def test_page_shows_what_is_told_of_mistakes(tmp_path: Path) -> None:
    [page] = [text for text in BLOCKS if "name: payments\n" in text and "WorkerDeployment" in kinds(text)]
    mistaken = page.replace("{cpu: 500m,", "{cpu: 500,").replace(
        "temporalNamespace: sho", "temporalNamespace: sho\u200b"
    )
    connections = [text for text in BLOCKS if kinds(text) <= SCHEMAS["connection"]]
    (tmp_path / "pay.yaml").write_text(mistaken + "---\n".join(["", *connections]))
    ended = run(tmp_path, "validate", ".")
    lines = [*ended.stdout.splitlines(), *ended.stderr.splitlines()]
    told = [line for line in lines if "whole cores" in line or "zero width" in line]
    assert len(told) == 2
    assert [line for line in told if line not in PAGE.splitlines()] == []
