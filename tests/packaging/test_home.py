"""The public addresses: in no file while the project has no home, and in every one as soon as it has one."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from tools.home import PAGES, addressed, home, identified

ROOT = Path(__file__).parents[2]
URLS = """
[project.urls]
Source = "https://git.example.org/t/twgen"
Documentation = "https://docs.example.org/twgen/"
"""
PLACEHOLDERS = re.compile(r"git clone ADDRESS|git\.example\.com/tools|/path/to/twgen|who gave you twgen")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files that `make home` reads or writes, without a home."""
    caches = shutil.ignore_patterns("__pycache__", "target")
    for folder in ("tools", "schemas", "docs", "examples"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=caches)
    for name in ("README.md", "SECURITY.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    project = (ROOT / "pyproject.toml").read_text()
    without = re.sub(r"^\[project\.urls\]\n(\w+ = .*\n)+", "", project, flags=re.MULTILINE)
    (tmp_path / "pyproject.toml").write_text(without)
    make_home(tmp_path)
    return tmp_path


def make_home(folder: Path) -> str:
    command = [sys.executable, "-m", "tools.home"]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def texts(folder: Path) -> dict[Path, str]:
    """The text of each page and schema."""
    files = (path for pattern in (*PAGES, "schemas/*.json") for path in folder.glob(pattern))
    return {path.relative_to(folder): path.read_text() for path in files}


def test_files_have_the_addresses_of_the_setting() -> None:
    for path, text in texts(ROOT).items():
        is_schema = path.suffix == ".json"
        assert text == (identified(text, path.name, home()) if is_schema else addressed(text, home()))


def test_no_file_names_an_address_that_the_setting_does_not_have() -> None:
    pattern = r"https?://[^ )\"]*\btwgen\b[^ )\"]*|\b(ghcr|docker|quay)\.io/twgen[^ )\"]*|twgen\.github\.io"
    listed = ["git", "grep", "-hoIE", pattern, "--", ":!tests"]
    found = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    assert found
    ours = (*(home() or ()), "https://pypi.org/project/twgen/")
    # the domain example.com is reserved for examples
    assert [each for each in found if not each.startswith(ours) and ".example.com" not in each] == []


def test_home_is_written_into_every_page_and_schema_and_removed_again(copy: Path) -> None:
    before = texts(copy)
    assert "example.org" not in "".join(before.values())
    setting = (copy / "pyproject.toml").read_text()
    (copy / "pyproject.toml").write_text(setting + URLS)
    entries = json.loads(make_home(copy))
    assert {entry["url"].rpartition("/")[0] for entry in entries} == {
        "https://docs.example.org/twgen/schemas"
    }
    after = texts(copy)
    assert {str(path): found for path, text in after.items() if (found := PLACEHOLDERS.findall(text))} == {}
    changed = {str(path) for path, text in after.items() if text != before[path]}
    assert changed > {"README.md", "SECURITY.md", "docs/install.md", "docs/ci.md", "examples/ci/github.yaml"}
    assert changed > {f"schemas/{path.name}" for path in (ROOT / "schemas").iterdir()}
    (copy / "pyproject.toml").write_text(setting + URLS.replace("example.org", "example.net"))
    make_home(copy)
    assert "example.org" not in "".join(texts(copy).values()), "an earlier home"
    (copy / "pyproject.toml").write_text(setting)
    assert make_home(copy) == ""
    assert texts(copy) == before


def test_references_between_schemas_resolve_from_the_file_as_in_an_editor(copy: Path) -> None:
    assert_references_resolve(copy / "schemas", retrieved)


def test_references_between_schemas_resolve_on_the_site(copy: Path) -> None:
    with (copy / "pyproject.toml").open("a") as file:
        file.write(URLS)
    make_home(copy)
    site = "https://docs.example.org/twgen/schemas/"

    def published(address: str) -> Resource[Any]:
        assert address.startswith(site)
        return retrieved((copy / "schemas" / address.removeprefix(site)).as_uri())

    for path in (copy / "schemas").glob("*.json"):
        assert json.loads(path.read_text())["$id"] == site + path.name
    assert_references_resolve(copy / "schemas", published)


def retrieved(address: str) -> Resource[Any]:
    """A file by its URI: editors and `check-jsonschema` follow references so."""
    text = Path(url2pathname(urlsplit(address).path)).read_text()
    return Resource.from_contents(json.loads(text), default_specification=DRAFT202012)


def assert_references_resolve(folder: Path, retrieve: Callable[[str], Resource[Any]]) -> None:
    registry: Registry[Any] = Registry(retrieve=retrieve)
    referred = []
    for path in folder.glob("*.json"):
        base = json.loads(path.read_text()).get("$id", path.as_uri())
        found = re.findall(r'"\$ref": "([^#"]+)"', path.read_text())
        referred += [registry.resolver(base).lookup(reference).contents["title"] for reference in found]
    assert len(referred) == 5
    # jsonschema follows a reference to another file, and from there to a definition of that file
    worker = folder / "workerdeployment.json"
    base = json.loads(worker.read_text()).get("$id", worker.as_uri())
    template = {"$ref": f"{base}#/properties/spec/properties/template"}
    for image, is_valid in (("worker:1", True), (1, False)):
        value = {"spec": {"containers": [{"name": "worker", "image": image}]}}
        assert Draft202012Validator(template, registry=registry).is_valid(value) is is_valid
