"""Runs a container as a process: starts it, restarts it by the Pod's restart policy, and stops it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from subprocess import Popen
from threading import Thread

from testing.forking import Forked, forker
from testing.kubernetes.api import Object
from testing.local_node.environment import command, environment
from testing.local_node.image import Image, entering
from testing.local_node.materials import CannotStart, Materials
from testing.local_node.probes import ReadinessProbe
from testing.local_node.volumes import Mount, mounts
from testing.processes import ENVIRONMENT

_LONGEST_BACK_OFF = 30.0
_KEPT_MESSAGE = 2048
_LONGEST_MESSAGE = 4096
_MESSAGE_PATH = "/dev/termination-log"
_ANYBODY_WRITES = 0o666
_OWN = tuple({Path(__file__).parents[2], Path(sys.prefix)})
_WORKER = Path(__file__).parents[1] / "worker_program.py"
_FORKED = {
    ("twgen",): ("twgen.__main__:main", "urllib3"),
    (sys.executable, "-P", str(_WORKER)): ("testing.worker_program:run", "testing.worker_program"),
}
"""The function for a command, and a module to import before, by the first words of the command."""
_SIGNALLED = 128
_KILLED = _SIGNALLED + signal.SIGKILL


@dataclass(frozen=True, slots=True)
class Place:
    """The environment of one Pod's containers."""

    folder: Path
    materials: Materials
    volumes: Callable[[], Mapping[str, Path]]
    """Returns the folder of each volume; raises CannotStart if one cannot be written yet."""
    unshare: Sequence[str]
    """The command that makes a mount namespace."""
    images: Mapping[str, Image]
    """The file systems of known images, by name."""
    back_off: float
    """Seconds before the first restart. Each further restart waits twice as long."""
    changed: Callable[[], None]
    """Called, from any thread, when a container ends or its readiness changes."""


class Container:
    """One container of a Pod. Its state changes only in `advance` and `end`."""

    def __init__(self, spec: Object, policy: str, place: Place) -> None:
        self.spec = spec
        self.state: Object = {"waiting": {"reason": "ContainerCreating"}}
        self.last_state: Object = {}
        self.restarts = 0
        self.due: float | None = 0.0
        """When `advance` is due, on the monotonic clock; None if only the end of the process matters."""
        self._policy = policy
        self._place = place
        self._image = place.images.get(spec.get("image", ""))
        self._process: Popen[bytes] | Forked | None = None
        self._code: int | None = None
        """The exit code of the process."""
        self._probe: ReadinessProbe | None = None
        self._started_at = ""

    @property
    def name(self) -> str:
        """The container's name."""
        return str(self.spec["name"])

    @property
    def log(self) -> Path:
        """The file with its output."""
        return self._place.folder / f"{self.name}.log"

    @property
    def _last_word(self) -> Path:
        """The file with its termination message."""
        return self._place.folder / f"{self.name}.termination"

    @property
    def process(self) -> int | None:
        """Its process ID while it is running."""
        return self._process.pid if self._process else None

    @property
    def is_running(self) -> bool:
        """Whether it is running."""
        return self._process is not None

    @property
    def is_ready(self) -> bool:
        """Whether it is running, and its readiness probe, if any, succeeds."""
        return self.is_running and (self._probe is None or self._probe.is_ready)

    @property
    def exit_code(self) -> int | None:
        """Its final exit code; None if it runs or will be restarted."""
        return self.state["terminated"]["exitCode"] if "terminated" in self.state else None

    def advance(self) -> None:
        """Note its end, or start it if that is due."""
        if self._process:
            self._note_end(self._code)
        elif self.due is not None and self.due <= time.monotonic():
            self._start()

    def end(self, number: signal.Signals) -> None:
        """Send the process a signal, and never restart it. SIGKILL also goes to its child processes."""
        self._policy = "Never"
        if not self._process and "terminated" not in self.state:
            self.state = {"terminated": {"exitCode": _KILLED, "reason": "ContainerStatusUnknown"}}
            self.due = None
        elif self._process and self._code is None:
            # a forked process leads its group only after it has entered the container
            for send in (os.killpg, os.kill) if number is signal.SIGKILL else (os.kill,):
                with suppress(ProcessLookupError):
                    send(self._process.pid, number)

    def _start(self) -> None:
        try:
            variables = environment(self.spec, self._place.materials)
            words = command(self.spec, variables)
            entered = self._entered(words, variables)
        except CannotStart as reason:
            self.state = {"waiting": {"reason": reason.reason, "message": str(reason)}}
            self.due = time.monotonic() + self._place.back_off
            return
        self._code = None
        self._process = self._begun(words, entered, variables)
        self._started_at = moment()
        self.state = {"running": {"startedAt": self._started_at}}
        self.due = None
        Thread(target=self._await_end, args=(self._process,), name=self.name, daemon=True).start()
        if "readinessProbe" in self.spec:
            run = self._runs_inside(variables)
            self._probe = ReadinessProbe(self.spec, run, self._place.changed)

    def _begun(
        self, words: Sequence[str], entered: Sequence[str], variables: Mapping[str, str]
    ) -> Popen[bytes] | Forked:
        environment = self._environment(variables)
        with self.log.open("ab") as output, Path(os.devnull).open() as nothing:
            if known := self._known(words, variables):
                function, module = known
                streams = [nothing.fileno(), output.fileno(), output.fileno()]
                arguments = [entered[-1], function]
                become = "testing.local_node.enter:become"
                return forker(module).start(become, arguments, Path("/"), environment, streams)
            return Popen(
                entered,
                env=environment,
                stdin=nothing,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _known(self, words: Sequence[str], variables: Mapping[str, str]) -> tuple[str, str] | None:
        """The function and module of a command that can be forked, if it is one."""
        is_usual = not any(name == "PATH" or name.startswith("PYTHON") for name in variables)
        if self._image or not is_usual or "--map-root-user" in self._place.unshare:
            return None
        return next((_FORKED[first] for first in _FORKED if tuple(words[: len(first)]) == first), None)

    def _await_end(self, process: Popen[bytes] | Forked) -> None:
        self._code = process.wait()
        self._place.changed()

    def _note_end(self, code: int | None) -> None:
        if self._process is None or code is None:
            return
        # as in a container, its child processes end with it
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        if self._probe:
            self._probe.stop()
        ended = {"terminated": self._ending(code if code >= 0 else _SIGNALLED - code)}
        self._process, self._probe = None, None
        if self._policy == "Always" or (self._policy == "OnFailure" and code):
            wait = min(self._place.back_off * 2**self.restarts, _LONGEST_BACK_OFF)
            message = f"back-off {wait:g}s restarting container {self.name}"
            self.state = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
            self.last_state = ended
            self.restarts += 1
            self.due = time.monotonic() + wait
        else:
            self.state = ended
            self.due = None

    def _ending(self, code: int) -> Object:
        ending: Object = {
            "exitCode": code,
            "reason": "Error" if code else "Completed",
            "startedAt": self._started_at,
            "finishedAt": moment(),
        }
        if message := self._last_word.read_bytes()[:_LONGEST_MESSAGE]:
            ending["message"] = message.decode(errors="replace")
        elif code and self.spec.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            ending["message"] = self.log.read_bytes()[-_KEPT_MESSAGE:].decode(errors="replace")
        return ending

    def _runs_inside(self, variables: Mapping[str, str]) -> Callable[[list[str], float], bool]:
        def run(words: list[str], timeout: float) -> bool:
            entered, environment = self._entered(words, variables), self._environment(variables)
            quiet = subprocess.DEVNULL
            try:
                ended = subprocess.run(
                    entered,
                    env=environment,
                    stdin=quiet,
                    stdout=quiet,
                    stderr=quiet,
                    timeout=timeout,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return False
            return ended.returncode == 0

        return run

    def _entered(self, words: Sequence[str], variables: Mapping[str, str]) -> list[str]:
        place = self._place
        root = place.folder / "root"
        root.mkdir(exist_ok=True)
        seen: list[Mount] = mounts(self.spec, place.volumes(), place.materials.pod, variables)
        self._last_word.touch()
        self._last_word.chmod(_ANYBODY_WRITES)
        seen.append(Mount(self._last_word, self.spec.get("terminationMessagePath", _MESSAGE_PATH), False))  # noqa: FBT003 - not read-only
        if not self._image:
            # a volume at /tmp would hide a checkout and its programs in /tmp
            hidden = [own for own in _OWN if any(own.is_relative_to(mount.target) for mount in seen)]
            seen += [Mount(own, str(own), read_only=True) for own in hidden]
        folder = self.spec.get("workingDir", "")
        return [*place.unshare, *entering(root, words, seen, folder, self._image)]

    def _environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        if self._image:
            return {**self._image.variables, **variables}
        # only PATH comes from the machine: all other variables are the Pod's
        path = f"{Path(sys.executable).parent}:{ENVIRONMENT['PATH']}"
        return {"PATH": path, "HOME": str(self._place.folder), **variables}


def moment() -> str:
    """The time in Kubernetes' format."""
    now = datetime.now(UTC)  # noqa: TID251 - a node reports the time
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")
