"""What a fleet costs: each further rollout as much as the one before."""

import asyncio
import gc
import json
import sys
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from math import inf
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from click.testing import CliRunner
from temporalio.api.workflowservice.v1 import ListWorkerDeploymentsResponse

from tests.cli.test_fleet import left_by
from tests.planning.situations import SPEC
from twgen.cli import live
from twgen.cli.live import CommonPrometheus, Connections, Servers
from twgen.cli.main import twgen
from twgen.cli.status import command as status_command
from twgen.clients.deadline import Deadline
from twgen.clients.kubeconfig import ClusterAccess
from twgen.clients.profiles import Profiles
from twgen.clients.temporal import Call, TemporalClients
from twgen.records.intent import intent_of, write_intent
from twgen.records.rollout_status import write_rollout_status
from twgen.versioning.names import INTENT_HASH, ROLLOUT

IN_A_NAMESPACE = 25
MOST_TIMES = 7
"""For four times the work on a busy machine; a product of two lists would be sixteen."""
MOST_GROWTH = 1.01
"""The order of tasks changes few of many lines; two lines for each pair of workers would be more."""
CREATED = "2026-11-21T12:00:00Z"


class Fleet:
    """An API server with so many rollouts, each with an intent, a status and a Job that has ended."""

    reached = ClusterAccess("")

    def __init__(self, number: int) -> None:
        self._jobs, self._config_maps = list[Mapping[str, Any]](), list[Mapping[str, Any]]()
        left = left_by("v1.0.0-0000", 25)
        for index in range(number):
            name, namespace = f"worker-{index:04}", f"team-{index // IN_A_NAMESPACE}"
            spec = replace(SPEC, namespace=namespace, name=name)
            manifest = write_intent(intent_of(spec, "twgen/me"))
            intent_hash = manifest["metadata"]["annotations"][INTENT_HASH]
            metadata = {"uid": name, "namespace": namespace, "creationTimestamp": CREATED}
            annotated = metadata | {"labels": {ROLLOUT: name}, "annotations": {INTENT_HASH: intent_hash}}
            self._config_maps.append({**manifest, "metadata": {**metadata, **manifest["metadata"]}})
            data = write_rollout_status(replace(left, worker=spec.worker_deployment))
            self._config_maps.append({"metadata": {**metadata, "name": f"{name}-status"}, "data": data})
            end = {"type": "Failed", "status": "True", "lastTransitionTime": CREATED}
            self._jobs.append({"metadata": {**annotated, "name": name}, "status": {"conditions": [end]}})

    async def ask(self, _: str, path: str, *__: object, **___: object) -> tuple[int, Mapping[str, Any]]:
        """The list that was asked for."""
        items = {"jobs": self._jobs, "configmaps": self._config_maps}
        return 200, {"items": items.get(path.rpartition("/")[2], [])}

    def close(self) -> None:
        """Do nothing."""


Cost = Callable[[Callable[[], Any]], float]
"""What a call costs."""


def seconds(called: Callable[[], Any]) -> float:
    gc.collect()
    gc.freeze()  # what the test has made is no part of the fleet
    gc.disable()  # as the program does
    began = process_time()
    called()
    passed = process_time() - began
    gc.enable()
    gc.unfreeze()
    return passed


def lines(called: Callable[[], Any]) -> float:
    """How many lines of Python it runs, which is the same on any machine."""
    number = 0

    def count(_: object, event: str, __: object) -> Any:
        nonlocal number
        number += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        called()
    finally:
        sys.settrace(before)
    return number


def cost_of_status(number: int, monkeypatch: pytest.MonkeyPatch, output: str, cost: Cost) -> float:
    fleet = Fleet(number)
    monkeypatch.setattr(live, "KubernetesClient", lambda _, **__: fleet)
    runner, ended = CliRunner(), list[Any]()
    options = ["--from-cluster", "-A", "-o", output, "--kubeconfig", "none"]
    passed = cost(lambda: ended.append(runner.invoke(status_command, options)))
    assert ended[0].exit_code == 0, ended
    assert "worker-0000" in ended[0].stdout
    assert f"worker-{number - 1:04}" in ended[0].stdout
    assert "has ended as Failed" in ended[0].stdout
    return passed


def times(cost: Callable[[int, int], float], number: int) -> float:
    """How much more four times the number costs, measured in turns until that is little enough.

    Both by the least of all turns: what else a machine does only adds.
    """
    small = large = inf
    for turn in range(6):
        small, large = min(small, cost(number, turn)), min(large, cost(4 * number, turn))
        if turn and large / small <= MOST_TIMES:
            break
    return large / small


def growth(cost: Callable[[int], float]) -> float:
    """How much more the third part of a fleet costs than the second one."""
    first, second, third = (cost(number * IN_A_NAMESPACE) for number in (1, 2, 3))
    return (third - second) / (second - first)


@pytest.mark.parametrize("output", ["text", "json"])
def test_next_rollouts_of_a_fleet_take_as_many_lines_of_a_status(
    monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    cost_of_status(5, monkeypatch, output, lines)
    assert growth(lambda number: cost_of_status(number, monkeypatch, output, lines)) <= MOST_GROWTH


@pytest.mark.heavy
@pytest.mark.parametrize("output", ["text", "json"])
def test_status_of_a_fleet_costs_what_its_rollouts_cost(monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    cost_of_status(50, monkeypatch, output, seconds)
    assert times(lambda number, _: cost_of_status(number, monkeypatch, output, seconds), 1000) <= MOST_TIMES


class Temporal(TemporalClients):
    """Knows no worker."""

    def __init__(self) -> None:
        super().__init__(lambda: Profiles(allow_unlisted=True), {})

    async def ask(self, call: Call[Any], deadline: Deadline) -> Any:  # noqa: ARG002 - nothing is late here
        """Nothing is there."""
        is_list = call.method == "list_worker_deployments"
        return call.value(ListWorkerDeploymentsResponse() if is_list else None)


def write_workers(folder: Path, number: int) -> None:
    """Specs of so many workers, and of their one Connection."""
    documents = [SPEC.connection.document.value]
    for index in range(number):
        document = deepcopy(dict(SPEC.document.value))
        document["metadata"] |= {"name": f"worker-{index:04}", "namespace": "shop"}
        documents.append(document)
    folder.mkdir(parents=True)
    (folder / "specs.yaml").write_text("---\n".join(f"{json.dumps(item)}\n" for item in documents))


def opened(servers: Servers, temporal: TemporalClients) -> Connections:
    """The ways to this Temporal alone."""
    settings = servers._settings  # noqa: SLF001 - as Servers itself opens them
    return Connections(settings, asyncio.Runner(), temporal, None, CommonPrometheus((), "").of)


def cost_of_a_look(folder: Path, number: int, monkeypatch: pytest.MonkeyPatch, cost: Cost) -> float:
    """One look at each of so many workers, with all that the command does once."""
    specs = folder / str(number)
    write_workers(specs, number)
    monkeypatch.setattr(Servers, "_open", lambda servers, _: opened(servers, Temporal()))
    runner, ended = CliRunner(), list[Any]()
    options = ["rollout", str(specs), "--once", "--no-cluster"]
    passed = cost(lambda: ended.append(runner.invoke(twgen, options)))
    assert f"worker-{number - 1:04}: Waiting" in ended[0].stdout, ended[0].output
    return passed


def test_next_workers_of_a_fleet_take_as_many_lines_of_a_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cost_of_a_look(tmp_path, 5, monkeypatch, lines)
    assert growth(lambda number: cost_of_a_look(tmp_path, number, monkeypatch, lines)) <= MOST_GROWTH


@pytest.mark.heavy
def test_look_of_a_rollout_costs_what_its_worker_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cost_of_a_look(tmp_path, 10, monkeypatch, seconds)
    assert (
        times(lambda number, turn: cost_of_a_look(tmp_path / f"{turn}", number, monkeypatch, seconds), 200)
        <= MOST_TIMES
    )


class Paced(Temporal):
    """A Temporal whose rate limit lets one call through in each tenth of a second."""

    def __init__(self) -> None:
        super().__init__()
        self._turn = asyncio.Lock()

    async def ask(self, call: Call[Any], deadline: Deadline) -> Any:
        """Wait for a turn, then answer in time."""
        of_answer = deadline.for_answer()

        async def take_turn() -> None:
            async with self._turn:
                await asyncio.sleep(0.1)

        async def answer() -> Any:
            await of_answer.turn(take_turn())
            return await Temporal.ask(self, call, of_answer)

        return await of_answer.bound("Temporal", answer())


@pytest.mark.parametrize("command", ["status", "plan"])
def test_fleet_is_read_for_as_long_as_its_rate_limit_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    write_workers(tmp_path / "specs", 8)
    monkeypatch.setattr(Servers, "_open", lambda servers, _: opened(servers, Paced()))
    options = ["--no-cluster", "--timeout", "0.5s"]
    ended = CliRunner().invoke(twgen, [command, str(tmp_path / "specs"), *options])
    assert ended.exit_code == 0, ended.output
