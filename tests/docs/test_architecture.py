"""ARCHITECTURE.md and CONTRIBUTING.md name what the code has."""

import ast
import re
import tomllib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from itertools import chain
from pathlib import Path

import grimp
import pytest

from tests.docs.pages import ROOT
from twgen.planning.routing.table import TABLE
from twgen.versioning import names
from twgen.versioning.names import MarkKey

ARCHITECTURE = ROOT / "ARCHITECTURE.md"
PAGES = [ARCHITECTURE, ROOT / "CONTRIBUTING.md"]
FILE = re.compile(r"[\w.-]+/[\w./-]*|[\w-]+\.(?:py|md|json|yaml|toml|go|lock)\b")
PLACE = re.compile(r"([\w/]+\.py):(\w[\w.]*(?:, \w+)*)")
KEY = re.compile(r"[a-z][a-z.-]*\.[a-z]+/(?!v\d)[\w-]+")
ELSEWHERE = {
    *("snapshot.yaml", "settings.yaml", "operator.yaml", "documents/"),  # of a test case
    "twgen/schemas",  # of the wheel
    *(".venv/bin/twgen", ".venv/bin/pytest"),
}


def section(title: str) -> str:
    """The text below a heading of ARCHITECTURE.md."""
    return ARCHITECTURE.read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def exists(name: str) -> bool:
    """It is a path from the root or from the package, or the bare name of a file in some folder."""
    if any((folder / name).exists() for folder in (ROOT, ROOT / "twgen")):
        return True
    folders = [ROOT / folder for folder in ("twgen", "tests", "tools")]
    return "/" not in name and any(chain.from_iterable(folder.rglob(name) for folder in folders))


def defined(file: Path) -> set[str]:
    """The functions, classes and constants of a module; methods as `Class.method`."""
    found = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        if isinstance(node, ast.ClassDef):
            methods = (ast.FunctionDef, ast.AsyncFunctionDef)
            found |= {f"{node.name}.{item.name}" for item in node.body if isinstance(item, methods)}
    return found


def marks_of_the_code() -> Iterator[str]:
    for value in vars(names).values():
        for key in value if isinstance(value, dict) else (value,):
            if isinstance(key, str) and KEY.fullmatch(key):
                yield key
    yield from MarkKey


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_file_that_a_page_for_developers_names_exists(page: Path) -> None:
    # keys of marks look like paths
    named = set(FILE.findall(KEY.sub("", page.read_text()))) - ELSEWHERE
    assert len(named) > 15
    assert sorted(name for name in named if not exists(name)) == []


def test_trace_of_a_version_names_functions_and_classes_that_exist() -> None:
    places = PLACE.findall(section("One version, from its facts to every report"))
    assert len(places) > 40
    missing = [
        f"{file}:{name}"
        for file, listed in places
        for name in listed.split(", ")
        if name not in defined(ROOT / "twgen" / file)
    ]
    assert missing == []


def test_order_of_the_routing_table_is_the_order_of_its_rows() -> None:
    [block] = re.findall(r"^```\n(.*?)^```$", section("The two tables"), re.MULTILINE | re.DOTALL)
    assert re.findall(r"\b[A-Z]+(?:_[A-Z]+)*\b", block) == [row.reason.name for row in TABLE]


def test_table_of_marks_has_every_mark_of_the_code_and_no_other() -> None:
    rows = [line.split("|")[1] for line in section("Marks").splitlines() if line.startswith("| `")]
    assert {key for row in rows for key in re.findall("`(.+?)`", row)} == set(marks_of_the_code())


def test_packages_are_listed_from_the_top_layer_to_the_lowest() -> None:
    [layers] = (
        contract["layers"]
        for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
            "contracts"
        ]
        if contract["type"] == "layers"
    )
    place = {name: number for number, layer in enumerate(layers) for name in layer.split(" | ")}
    listed = re.findall(r"^\| `(\w+)` \|", section("Packages"), re.MULTILINE)
    assert sorted(listed) == sorted(place.keys() - {"__main__"})
    assert listed == sorted(listed, key=lambda name: place[name])


def test_no_command_is_longer_than_the_page_says() -> None:
    [most] = re.findall(r"click commands of (\d+) lines at most", section("Packages"))
    lines = {}
    for file in (ROOT / "twgen/cli").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef) and any(
                ast.unparse(decorator).split("(")[0].endswith(".command") for decorator in node.decorator_list
            ):
                first, *_, last = node.body if len(node.body) > 1 else node.body * 2
                # the docstring is the text of --help
                begin = first.end_lineno if ast.get_docstring(node) else first.lineno - 1
                lines[f"{file.stem}:{node.name}"] = (last.end_lineno or 0) - (begin or 0)
    assert len(lines) > 15
    assert {name: length for name, length in lines.items() if length > int(most)} == {}


def test_no_file_imports_itself_through_others() -> None:
    """Not in a function either; only for the checker of types."""
    graph = grimp.build_graph("twgen", exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imports) > 150
    # it raises CycleError with the files of a circle
    assert len([*TopologicalSorter(imports).static_order()]) == len(imports)


def test_only_one_module_sends_requests() -> None:
    """The library's own names of what opens a pool."""
    opens = re.compile(r"\b(?:PoolManager|ProxyManager|SOCKSProxyManager|HTTPSConnection)\(")
    found = {file.name for file in (ROOT / "twgen").rglob("*.py") if opens.search(file.read_text())}
    assert found == {"http.py"}
