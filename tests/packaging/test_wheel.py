"""The installed wheel works outside the checkout, with its schemas inside it."""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.packaging


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(build, check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


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


def test_wheel_holds_nothing_but_the_package(wheel: Path) -> None:
    tops = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"twgen"}


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
