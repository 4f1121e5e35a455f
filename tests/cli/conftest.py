import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from testing.forking import forker

TWGEN = Path(sys.executable).with_name("twgen")
CASES = Path(__file__).parents[1] / "fixtures" / "vectors" / "plans.json"

Ended = subprocess.CompletedProcess[str]
Run = Callable[..., Ended]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """The real program, in an empty folder; tests of streams start it from nothing."""

    def run_(*arguments: str | Path, env: Mapping[str, str] | None = None, given: str = "") -> Ended:
        variables = dict(os.environ) if env is None else env  # noqa: TID251 - what a test has set is there
        return forker().run(arguments, tmp_path, variables, given=given)

    return run_


@pytest.fixture
def story(tmp_path: Path) -> Path:
    """A folder `specs` with a worker in mid-ramp, and its `snapshot.json` beside it."""
    case = next(case for case in json.loads(CASES.read_text()) if case["name"] == "advances-step")
    (tmp_path / "specs").mkdir()
    for document in case["documents"]:
        (tmp_path / "specs" / f"{document['kind'].lower()}.json").write_text(json.dumps(document))
    (tmp_path / "snapshot.json").write_text(json.dumps(case["snapshot"]).replace('"twc"', '"twgen/twc"'))
    return tmp_path


@contextmanager
def edited(file: Path) -> Iterator[Any]:
    """The document in a file, which is written with the changes."""
    document = json.loads(file.read_text())
    yield document
    file.write_text(json.dumps(document))


def write_operator(story: Path, **fields: Any) -> None:
    """Write `operator.json` into the folder of a story."""
    head = {"apiVersion": "twgen.io/v1alpha1", "kind": "OperatorConfig"}
    (story / "operator.json").write_text(json.dumps(head | fields))


def write_kubeconfig(file: Path, server: str, user: Mapping[str, Any] | None = None) -> Path:
    """Write a file for kubectl that leads to this server, as a user with these credentials."""
    context = {"cluster": "here", "user": "ana"}
    config = {
        "current-context": "here",
        "clusters": [{"name": "here", "cluster": {"server": server}}],
        "contexts": [{"name": "here", "context": context}],
        "users": [{"name": "ana", "user": user or {}}],
    }
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **config}))
    return file


def write_policy(story: Path, **spec: Any) -> None:
    """Add a RolloutPolicy to the folder `specs` of a story: for all workers, unless `workerRef` names one."""
    policy = {
        "apiVersion": "twgen.io/v1alpha1",
        "kind": "RolloutPolicy",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": spec,
    }
    (story / "specs" / "policy.json").write_text(json.dumps(policy))
