"""Files of one document: whatever is wrong with one is a line with its place."""

from collections.abc import Callable
from pathlib import Path

import pytest

from twgen.errors import InvalidDocuments, StateUnavailable
from twgen.model.operator import Operator
from twgen.reading.documents import Sources, read_operator_file, read_snapshot_file

HEAD = 'apiVersion: twgen.io/v1alpha1\nkind: Snapshot\ntakenAt: "2026-11-21T12:00:00Z"\nworkers:\n'
WORKER = "- {name: shop/pay, temporalNamespace: default, temporal: null}\n"

ONE_SNAPSHOT = ": it must contain one Snapshot, as `twgen snapshot` prints it"

Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_(text: str) -> str:
        path = tmp_path / "world.yaml"
        path.write_text(text)
        return str(path)

    return write_


def refusal(path: str) -> str:
    with pytest.raises(StateUnavailable) as caught:
        read_snapshot_file(path, Sources())
    line = str(caught.value)
    assert "\n" not in line
    return line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            f"{HEAD}<<<<<<< HEAD\n{WORKER}=======\n>>>>>>> other\n",
            ":5: the file contains merge conflict markers: resolve them",
        ),
        (f"{HEAD}{WORKER}---\n{HEAD}{WORKER}", f" contains 2 of kind 'Snapshot'{ONE_SNAPSHOT}"),
        ("", f" contains no document{ONE_SNAPSHOT}"),
        (
            "kind: WorkerDeployment\n---\nkind: Connection\n---\nkind: WorkerDeployment\n",
            f" contains 2 of kind 'WorkerDeployment' and 1 of kind 'Connection'{ONE_SNAPSHOT}",
        ),
        ("[1, 2]", f" contains 1 of kind (none){ONE_SNAPSHOT}"),
        ('{"kind": "Snapshot",\n "takenAt": NaN}', ":2: NaN is not a JSON number: quote it"),
        (
            f"{HEAD}{WORKER}kind: Snapshot\n",
            ":6: the key 'kind' appears twice; write --- between two documents",
        ),
        (f"---\n---\n{HEAD}{WORKER}- 7\n", ":8: workers[1]: must be a mapping, not a whole number"),
        (
            f"{HEAD}{WORKER}{WORKER}",
            ":6: workers[1]: worker shop/pay default appears twice, first at [0] (shop/pay)",
        ),
        (
            f"{HEAD}{WORKER}wokers: 1\nx: 2\n",
            ":6: wokers: no such field; did you mean workers? (and 1 more problem)",
        ),
    ],
)
def test_snapshot_that_cannot_be_read_is_one_line_with_its_place(write: Write, text: str, line: str) -> None:
    path = write(text)
    assert refusal(path) == path + line


def test_snapshot_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    assert "No such file" in refusal(str(tmp_path / "world.yaml"))


def test_snapshot_larger_than_a_file_of_specs_is_read_to_its_end(write: Write) -> None:
    world = read_snapshot_file(
        write(f"{HEAD}{WORKER}# {'x' * 2**25}\n{WORKER.replace('pay', 'ship')}"), Sources()
    )
    assert [name for name, _ in world.workers] == ["shop/pay", "shop/ship"]


def test_every_mistake_of_an_operator_is_told_with_its_line(write: Write) -> None:
    path = write("apiVersion: twgen.io/v1alpha1\nkind: OperatorConfig\ninstanse: a\nclusters: 7\n")
    with pytest.raises(InvalidDocuments) as caught:
        read_operator_file(path, Sources())
    assert caught.value.problems == (
        f"{path}:3: instanse: no such field; did you mean instance?",
        f"{path}:4: clusters: must be a list, not a whole number",
    )


def test_configuration_of_an_operator_is_read(write: Write) -> None:
    path = write("apiVersion: twgen.io/v1alpha1\nkind: OperatorConfig\ninstance: prod-eu\n")
    assert read_operator_file(path, Sources()) == Operator("prod-eu", file=path)


def test_form_of_a_config_map_says_how_to_get_the_document_that_it_holds() -> None:
    form = Path(__file__).parents[2] / "deploy" / "twgen-operator.yaml"
    with pytest.raises(InvalidDocuments) as caught:
        read_operator_file(str(form), Sources())
    [line] = caught.value.problems
    command = "kubectl get configmap -n argocd twgen-operator -o jsonpath='{.data.operator\\.yaml}'"
    assert command in form.read_text()
    assert line == (
        f"{form} contains 1 of kind 'ConfigMap': it must contain one OperatorConfig, and this one contains"
        f" it under operator.yaml: give only that text, as `{command}` prints it"
    )


@pytest.mark.heavy
def test_very_many_problems_are_cut_and_told_in_bounded_time(write: Write) -> None:
    path = write(f"{HEAD}" + "- 7\n" * 200_000)
    assert (
        refusal(path)
        == f"{path}:5: workers[0]: must be a mapping, not a whole number (and 1000 more problems)"
    )
