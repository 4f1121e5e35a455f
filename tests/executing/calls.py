"""Every call of a rollout in its order: the real command against models of Temporal and of an API server."""

import asyncio
import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

from click.testing import CliRunner, Result

from tests.executing.api_server import DEPLOYMENTS, INTENT, ApiServer
from tests.planning.situations import MAIN, NOW, live
from tests.planning.times import HOUR
from tests.strategies import a_spec
from twgen.cli.live import CommonPrometheus, Connections, Servers
from twgen.cli.main import twgen
from twgen.clients.deadline import Deadline
from twgen.clients.kubeconfig import ClusterAccess
from twgen.clients.kubernetes import Heard, KubernetesClient, path_of
from twgen.clients.profiles import Profiles
from twgen.clients.temporal import Call, TemporalClients
from twgen.model.problem import Document
from twgen.records.intent import intent_of, write_intent
from twgen.simulating.servers import TemporalModel, server_of
from twgen.versioning.names import INTENT_HASH

STORIES = Path(__file__).parents[1] / "fixtures" / "rollouts"
ME = "twgen/me"
STEPS = [{"rampPercentage": 5, "pauseDuration": "2m"}, {"rampPercentage": 25, "pauseDuration": "1m"}]
RAMP = {"strategy": "Progressive", "steps": STEPS}
GATE = {"workflowType": "Check", "input": {"deep": True}}


class _Clock(asyncio.SelectorEventLoop):
    """An event loop that does not wait: its time jumps to whatever is due next."""

    def __init__(self) -> None:
        super().__init__()
        self.at = 0.0
        select = self._selector.select

        def jump(timeout: float | None) -> Any:
            self.at += timeout or 0
            return select(0 if timeout is not None else None)

        self._selector.select = jump

    def time(self) -> float:
        return self.at

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:  # noqa: ARG002
        """At once: no time is to pass while a thread works."""
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - it is raised where it is awaited
            done.set_exception(error)
        return done


@dataclass
class Recorded:
    """A worker with version v1, and a rollout of v3."""

    rollout: Mapping[str, Any]
    current: str = "v1"
    later: list[tuple[int, Callable[["Recorded"], None]]] = field(default_factory=list)
    """What else happens, so many seconds after the start."""
    ahead: timedelta = timedelta()
    """Of all others is the clock of the machine that it runs on."""
    has_dates: bool = True
    """The API server tells the time."""
    silent_from: float = math.inf
    """So many seconds after the start Temporal answers no more."""
    calls: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.loop = _Clock()
        self.model = TemporalModel(server_of("1.32.0"), NOW - HOUR, timedelta(), HOUR)
        self.token = 1
        for build_id in ("v1", "v3") if self.current else ("v3",):
            self.model.polled(build_id, [MAIN])
        if self.current:
            self.model.set_current("v1")
        if self.current == "v3":
            self.model.set_current("v3")
        self.model.advance(NOW)
        self.api = ApiServer()
        for build_id in self.model.versions:
            manifest = live(build_id)
            self.api.put(f"{DEPLOYMENTS}/{manifest['metadata']['name']}", manifest)
        value = deepcopy(dict(a_spec().document.value))
        value["spec"] |= {"rollout": dict(self.rollout), "replicas": 3}
        self.intent = intent_of(replace(a_spec(), document=Document("", 0, value)), ME)
        self.api.put(INTENT, write_intent(self.intent))

    def now(self) -> datetime:
        """The time, to the second."""
        return NOW + timedelta(seconds=int(self.loop.at))

    def arrive(self, call: str) -> None:
        """A call reaches its server."""
        while self.later and self.later[0][0] <= self.loop.at:
            self.later.pop(0)[1](self)
        self.model.advance(NOW + timedelta(seconds=self.loop.at))
        self.calls.append(f"{int(self.loop.at):>4} s  {call}")

    def opened(self, servers: Servers, runner: asyncio.Runner) -> Connections:
        """The ways to its servers, in a loop of one's own."""
        settings: Any = servers._settings  # noqa: SLF001 - as Servers itself opens them
        return Connections(settings, runner, _Temporal(self), _Kubernetes(self), CommonPrometheus((), "").of)

    def run(self, *options: str) -> Result:
        """Run the command that the Job runs, to its end."""
        place = f"{self.intent.namespace}/{self.intent.worker}-rollout"
        return self.roll_out("--intent", place, "--intent-hash", self.intent.hash, *options)

    def roll_out(self, *arguments: str) -> Result:
        """Run `twgen rollout` to its end."""
        runner = asyncio.Runner(loop_factory=lambda: self.loop)
        with (
            patch.object(Servers, "_open", lambda servers, _: self.opened(servers, runner)),
            patch("twgen.cli.live.clock", self.now),
            patch("twgen.cli.rolling.clock", lambda: self.now() + self.ahead),
            patch("twgen.cli.rolling.monotonic", lambda: self.loop.at),
            patch("twgen.cli.rollout.clock", self.now),
        ):
            return CliRunner().invoke(twgen, ["rollout", *arguments])


class _Kubernetes(KubernetesClient):
    _access, _login = ClusterAccess(""), None

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded

    @property
    def heard(self) -> Heard | None:
        """Answers come at once, with the right time."""
        recorded = self._recorded
        return Heard(recorded.now(), int(recorded.loop.at)) if recorded.has_dates else None

    def close(self) -> None: ...

    async def ask(
        self, method: str, path: str, deadline: Deadline, *, query: Any = None, body: Any = None, **_: object
    ) -> tuple[int, Mapping[str, Any]]:
        told = f" {body.get('reason')}" if method == "POST" else ""
        self._recorded.arrive(f"{'LIST' if query and method == 'GET' else method} {path}{told}")
        return await self._recorded.api.ask(method, path, deadline, query=query, body=body)

    async def _listed(
        self, api_version: str, kind: str, namespace: str, label_selector: str, _: Deadline
    ) -> list[Mapping[str, Any]]:
        path = path_of(api_version, kind, namespace)
        self._recorded.arrive(f"LIST {path}")
        return deepcopy(self._recorded.api.listed(path, label_selector))


class _Temporal(TemporalClients):
    def __init__(self, recorded: Recorded) -> None:
        super().__init__(Profiles, {})
        self._recorded = recorded

    def profile_of(self, *_: Any) -> None:
        return None

    async def ask(self, call: Call[Any], deadline: Deadline) -> Any:  # noqa: ARG002 - nothing is late here
        from tests.executing import answers

        request, name = call.request, "".join(map(str.capitalize, call.method.split("_")))
        self._recorded.arrive(" ".join(filter(None, (name, answers.told(request)))))
        if self._recorded.loop.at >= self._recorded.silent_from:
            await asyncio.Event().wait()
        before = self._recorded.model.routing, self._recorded.model.manager
        answer = getattr(answers, call.method)(
            self._recorded.model, request, str(self._recorded.token).encode()
        )
        if before != (self._recorded.model.routing, self._recorded.model.manager):
            self._recorded.token += 1
        return call.value(answer)


def _another_intent(recorded: Recorded) -> None:
    recorded.api.annotate(INTENT, **{INTENT_HASH: "another"})


def rollback(left: timedelta = timedelta(minutes=5), ahead: timedelta = timedelta()) -> Recorded:
    """Back to a version that stopped being current a while ago."""
    recorded = Recorded(RAMP, ahead=ahead)
    recorded.model.now = NOW - left - timedelta(minutes=25)
    recorded.model.set_current("v3")
    recorded.model.polled("v4", [MAIN])
    recorded.model.now = NOW - left
    recorded.model.set_current("v4")
    recorded.model.advance(NOW)
    recorded.api.put(f"{DEPLOYMENTS}/payments-v4", live("v4"))
    return recorded


def _edited() -> Recorded:
    recorded = Recorded(RAMP)
    recorded.api.objects[INTENT]["data"]["identity"] = "twgen/you"
    return recorded


TOLD: Mapping[str, Callable[[], Recorded]] = {
    "first-version": lambda: Recorded({"strategy": "AllAtOnce"}, current=""),
    "gated-ramp": lambda: Recorded(RAMP | {"gate": GATE}),
    "settled": lambda: Recorded(RAMP, current="v3"),
    "superseded": lambda: Recorded(RAMP, later=[(70, _another_intent)]),
    "rollback": rollback,
    "edited-intent": _edited,
}
"""Every story, by the folder of its golden file."""


def golden_files() -> dict[Path, str]:
    """What the stories are now, by golden file: a line for each call, with the seconds since the start."""
    told = {}
    for name, story in TOLD.items():
        recorded = story()
        ended = recorded.run()
        code = getattr(ended.exception, "exit_code", ended.exit_code)
        lines = [*recorded.calls, f"exit {code}"]
        told[STORIES / name / "calls.txt"] = "".join(f"{line}\n" for line in lines)
    return told
