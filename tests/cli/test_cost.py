"""What reading and writing may cost, whatever is read: bounded memory, and a line that names the limit."""

import json
import subprocess
import sys
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from tests.cli.conftest import TWGEN, Run
from twgen.model.problem import Document
from twgen.specs.parse import parse_specs
from twgen.specs.spec_document import NamespaceRule

pytestmark = pytest.mark.heavy

RUN_ONE = Path(__file__).parents[2] / "benchmarks" / "run_one.py"
HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x{}, namespace: d}}\n"


@pytest.mark.parametrize("command", ["validate", "render"])
@pytest.mark.parametrize(
    ("body", "files"),
    [
        ('data: {{k: "\U0001f600' + "x" * (16 * 2**20 - 200) + '"}}\n', 3),
        ('data: {{k: "\x85' + "\x85" * (8 * 2**20 - 100) + '"}}\n', 1),
        ("data: " + "[" * 95 + "1, " * 450_000 + "]" * 95 + "\n", 1),
    ],
    ids=["characters of four bytes", "characters that are escaped", "indentation"],
)
def test_largest_input_that_is_accepted_needs_less_than_512_mib(
    tmp_path: Path, command: str, body: str, files: int
) -> None:
    (tmp_path / "specs").mkdir()
    for number in range(files):
        (tmp_path / "specs" / f"{number}.yaml").write_text((HEAD + body).format(number))
    measured = [sys.executable, "-I", "-S", RUN_ONE, tmp_path / "output", TWGEN, command, "specs"]
    (tmp_path / "output").touch()
    ended = subprocess.run(measured, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    # an API server takes no list for the data of a ConfigMap
    assert ended.returncode == (command == "validate" and "[" in body), ended.stderr
    assert int(ended.stdout.split()[1]) < 512 * 1024


def test_keys_and_items_of_all_files_are_counted_together(run: Run, tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.json").write_text("[" + "0, " * 400_000 + "0]")
    ended = run("render", ".")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "2.json:1: more than 1000000 keys and list items in all: read fewer files at once" in ended.stderr


def test_bytes_of_all_files_are_counted_together(run: Run, tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}.yaml").write_text(" " * (12 * 2**20))
    ended = run("validate", ".")
    assert ended.returncode == 1
    assert ended.stdout == "4.yaml: more than 50331648 bytes in all: read fewer files at once\n"


def test_documents_of_all_files_are_counted_together(run: Run, tmp_path: Path) -> None:
    for number in range(2):
        (tmp_path / f"{number}.yaml").write_text("---\n" * 20_000)
    ended = run("validate", ".")
    assert ended.stdout == "1.yaml:10001: more than 30000 documents in all: read fewer files at once\n"


def test_what_aliases_add_in_all_files_is_counted_together(run: Run, tmp_path: Path) -> None:
    aliases = "a: &a [" + "x, " * 100_000 + "]\nb: [" + "*a, " * 20 + "]\n"
    for number in range(2):
        (tmp_path / f"{number}.yaml").write_text(HEAD.format(number) + aliases)
    ended = run("validate", ".")
    assert ended.returncode == 1
    assert "1.yaml:5: more than 8388608 characters from aliases in all" in ended.stdout


def test_output_that_would_be_huge_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "deep.yaml").write_text(
        HEAD.format(0) + "data: " + "[" * 95 + "1, " * 900_000 + "]" * 95 + "\n"
    )
    ended = run("render", ".")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "the output would be more than 100663296 bytes of YAML: read fewer files at once" in ended.stderr


def test_snapshot_that_is_too_large_says_what_to_do(run: Run, story: Path) -> None:
    (story / "snapshot.json").write_text(" " * (52 * 2**20 + 1))
    ended = run("render", "specs", "--snapshot", "snapshot.json")
    assert (ended.returncode, ended.stdout) == (3, "")
    assert "more than 54525952 bytes in all: take a snapshot of fewer workers" in ended.stderr


def connection(name: str, namespace: str = "d", **more: int) -> str:
    metadata = {"name": name, "namespace": namespace}
    head = {"apiVersion": "temporal.io/v1alpha1", "kind": "Connection", "metadata": metadata}
    return json.dumps(head | {"spec": {"hostPort": "h:7233", **more}})


def worker(name: str, uses: str, **more: Any) -> str:
    metadata = {"name": name, "namespace": "d"}
    head = {"apiVersion": "temporal.io/v1alpha1", "kind": "WorkerDeployment", "metadata": metadata}
    spec = {
        "workerOptions": {"connectionRef": {"name": uses}, "temporalNamespace": "t"},
        "rollout": {"strategy": "AllAtOnce"},
        "template": {"spec": {"containers": [{"name": "w", "image": "a:1"}]}},
    }
    return json.dumps(head | {"spec": spec | more})


@pytest.mark.parametrize("command", ["validate", "render"])
def test_duration_of_many_parts_costs_no_more_than_its_text(tmp_path: Path, command: str) -> None:
    delay = {"scaledownDelay": "1h" * 2_000_000}
    (tmp_path / "worker.yaml").write_text(f"{connection('c')}\n---\n{worker('w', 'c', sunset=delay)}\n")
    (tmp_path / "output").touch()
    measured = [sys.executable, "-I", "-S", RUN_ONE, tmp_path / "output", TWGEN, command, "worker.yaml"]
    ended = subprocess.run(measured, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode in {1, 2}
    assert "longer than 100 characters" in ended.stderr + (tmp_path / "output").read_text()
    assert int(ended.stdout.split()[1]) < 128 * 1024


def test_line_of_many_levels_is_refused_before_it_is_taken_in(tmp_path: Path) -> None:
    (tmp_path / "specs.yaml").write_text("- " * 7_900_000)
    (tmp_path / "output").touch()
    measured = [sys.executable, "-I", "-S", RUN_ONE, tmp_path / "output", TWGEN, "render", "specs.yaml"]
    ended = subprocess.run(measured, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert "specs.yaml:1: nested deeper than 100 levels" in ended.stderr
    assert int(ended.stdout.split()[1]) < 128 * 1024


def test_worker_without_its_connection_is_not_compared_with_all_other_namespaces() -> None:
    def seconds(namespaces: int) -> float:
        return min(once(namespaces) for _ in range(3))

    def once(namespaces: int) -> float:
        texts = [connection(f"c{number}", f"n{number % namespaces}") for number in range(4000)]
        texts += [worker(f"w{number}", "missing") for number in range(1000)]
        documents = [Document("x", at, json.loads(text)) for at, text in enumerate(texts)]
        started = process_time()
        assert parse_specs(documents, NamespaceRule()).problems
        return process_time() - started

    assert seconds(4000) < 3 * seconds(1)


def test_of_very_many_mistakes_the_first_are_told(run: Run, tmp_path: Path) -> None:
    wrong = {f"x{number}": 1 for number in range(20)}
    text = "\n---\n".join(connection(f"c{number}", **wrong) for number in range(6000))
    (tmp_path / "all.yaml").write_text(text)
    ended = run("validate", ".")
    assert ended.returncode == 1
    *told, last = ended.stdout.splitlines()
    assert len(told) == 10_000
    assert "there are more: only the first 10000 are shown" in last


def test_items_of_lists_are_counted_as_documents(run: Run, tmp_path: Path) -> None:
    items = ", ".join(["0"] * 40_000)
    (tmp_path / "list.yaml").write_text(f"{{apiVersion: v1, kind: List, items: [{items}]}}\n")
    ended = run("render", ".")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "list.yaml: more than 30000 documents in all: read fewer files at once" in ended.stderr
