"""The installed wheel works outside the checkout, with its schemas inside it."""

import json
import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

import pytest

from tools.home import home
from twgen import __version__

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.packaging


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an sdist, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("packages")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(build, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def wheel(packages: Path) -> Path:
    (found,) = packages.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def sdist(packages: Path) -> Path:
    (found,) = packages.glob("*.tar.gz")
    return found


@pytest.fixture(scope="module")
def readme(wheel: Path) -> str:
    return str(metadata(wheel).get_payload())


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as files:
        (name,) = [name for name in files.namelist() if name.endswith(".dist-info/METADATA")]
        return HeaderParser().parsestr(files.read(name).decode())


@pytest.fixture(scope="module")
def commit() -> str:
    """The commit of the checkout, as git describes it."""
    command = ["git", "describe", "--always", "--exclude=*", "--abbrev=12", "--dirty=.dirty"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def twgen(wheel: Path) -> Path:
    """The program, installed beside the dependencies of this environment, but not beside the checkout."""
    folder = wheel.parent / "venv"
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel], check=True)
    (packages,) = (folder / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin" / "twgen"


def test_wheel_holds_schemas_table_and_type_marker(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    schemas = {f"twgen/schemas/{path.name}" for path in (ROOT / "schemas").glob("*.json")}
    page = {f"twgen/reporting/page/{name}" for name in ("page.html", "fleet.html", "page.css", "page.js")}
    assert schemas | page | {"twgen/py.typed", "twgen/versioning/kubernetes_types.json"} <= names
    assert "twgen/specs/manifest_schemas.json" in names


def test_wheel_holds_nothing_but_the_package(wheel: Path) -> None:
    tops = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"twgen"}


def test_sdist_holds_what_the_wheel_is_built_from_and_nothing_else(sdist: Path) -> None:
    with tarfile.open(sdist) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    assert {name for name in names if not name.startswith(("twgen/", "schemas/"))} == {
        *("README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", "tools/build_hook.py"),
        *("PKG-INFO", ".gitignore"),  # hatchling adds these two
    }
    schemas = {f"schemas/{path.name}" for path in (ROOT / "schemas").iterdir()}
    assert {name for name in names if name.startswith("schemas/")} == schemas


def test_package_index_takes_both_packages(packages: Path) -> None:
    command = [sys.executable, "-m", "twine", "check", "--strict", *packages.iterdir()]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout


def test_readme_of_the_packages_has_no_link_that_needs_the_files_next_to_it(readme: str) -> None:
    links = re.findall(r"\]\(([^)\s]+)|\b(?:src|srcset|href)=\"([^\"]+)", readme)
    assert links
    assert [link for link in map("".join, links) if not link.startswith(("https://", "#"))] == []
    assert "drawn by" not in readme, "the caption of a picture that is left out"


def test_packages_name_the_public_addresses_if_there_are_any(wheel: Path) -> None:
    urls = metadata(wheel).get_all("Project-URL") or []
    assert bool(urls) is bool(home())
    for address in home() or ():
        assert [url for url in urls if url.endswith(f", {address}")]


def test_packages_and_the_installed_program_name_the_version_and_its_commit(
    wheel: Path, sdist: Path, twgen: Path, commit: str
) -> None:
    assert wheel.name == f"twgen-{__version__}-py3-none-any.whl"
    assert sdist.name == f"twgen-{__version__}.tar.gz"
    told = subprocess.run([twgen, "version"], capture_output=True, text=True, check=True).stdout
    assert told == f"twgen {__version__}\n"
    told = subprocess.run([twgen, "version", "-o", "json"], capture_output=True, text=True, check=True).stdout
    assert json.loads(told) == {"twgen": __version__, "commit": commit}


@pytest.mark.parametrize("name", ["kubectl-twgen", "temporal-twgen"])
def test_plugins_of_kubectl_and_the_temporal_cli_are_installed(twgen: Path, name: str) -> None:
    ended = subprocess.run([twgen.with_name(name), "-h"], capture_output=True, text=True, check=True)
    assert ended.stdout.startswith(f"Usage: {name.replace('-', ' ')} ")


def test_installed_program_validates_and_plans_an_example(twgen: Path, tmp_path: Path) -> None:
    example = ROOT / "examples" / "three-versions"
    for command in (
        ["version"],
        ["validate", "-q", example],
        ["plan", example, "--snapshot", example / "snapshot.yaml"],
        ["render", example, "--snapshot", example / "snapshot.yaml"],
        ["simulate", example, "-o", "html"],
    ):
        ended = subprocess.run([twgen, *command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stderr) == (0, "")


def test_python_m_twgen_is_the_installed_program(twgen: Path, tmp_path: Path) -> None:
    command = [twgen.with_name("python"), "-m", "twgen", "version"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (
        ended.stdout == subprocess.run([twgen, "version"], capture_output=True, text=True, check=True).stdout
    )


def test_installed_program_finds_its_own_schemas(twgen: Path, tmp_path: Path) -> None:
    python = twgen.with_name("python")
    code = "from importlib.resources import files; print(next((files('twgen') / 'schemas').iterdir()))"
    ended = subprocess.run([python, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert Path(ended.stdout.strip()).is_relative_to(twgen.parents[1])
