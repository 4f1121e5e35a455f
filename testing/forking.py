"""Starts Python programs by forking a process that has already imported them.

Each program is a separate process, with its own arguments, streams, folder, environment and exit code. It
saves starting Python and importing, which takes most of a short run. All of them have the same hash seed.
"""

import atexit
import gc
import json
import os
import pkgutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from socket import SOCK_SEQPACKET, recv_fds, send_fds, socket, socketpair
from threading import Lock
from typing import IO, Any, NoReturn

_ROOT = Path(__file__).parents[1]
_STREAMS = 3
_GRACE = 10.0
_ONE_ASKS = Lock()
"""Prevents that threads which ask at the same time each start a process."""


class Forked:
    """A running or ended program."""

    def __init__(self, told: socket) -> None:
        self._told = told
        self._code: int | None = None
        self.pid = self._number()

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its exit code, as in `subprocess`; raises TimeoutError after this many seconds."""
        if self._code is None:
            self._told.settimeout(timeout)
            self._code = self._number()
            self._told.close()
        return self._code

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def stop(self) -> None:
        """Stop it with SIGTERM, then with SIGKILL."""
        if self._code is None:
            self.send(signal.SIGTERM)
        try:
            self.wait(_GRACE)
        except TimeoutError:
            self.send(signal.SIGKILL)
            self.wait()

    def _number(self) -> int:
        found = self._told.recv(8)
        if not found:
            raise RuntimeError("the forking process has ended")
        return int.from_bytes(found, signed=True)


class Forker:
    """A process that has imported programs, and forks them on request. It can be used from any thread."""

    def __init__(self, ours: socket) -> None:
        self._ours = ours

    def start(
        self,
        program: str,
        arguments: Sequence[str | Path],
        folder: Path,
        environment: Mapping[str, str],
        streams: Sequence[int],
    ) -> Forked:
        """Start a function, `module:function`, as a program. `streams` are its stdin, stdout and stderr."""
        wanted = [program, list(map(str, arguments)), str(folder), dict(environment)]
        told, theirs = socketpair()
        with _memory() as file, theirs:
            file.write(json.dumps(wanted).encode())
            file.seek(0)
            send_fds(self._ours, [b"."], [*streams, file.fileno(), theirs.fileno()])
        return Forked(told)

    def run(
        self,
        arguments: Sequence[str | Path],
        folder: Path,
        environment: Mapping[str, str],
        *,
        given: str = "",
        timeout: float = 300.0,
    ) -> subprocess.CompletedProcess[str]:
        """Run twgen and wait for its end. `given` is its stdin."""
        with _memory() as stdin, _memory() as stdout, _memory() as stderr:
            stdin.write(given.encode())
            stdin.seek(0)
            streams = [stream.fileno() for stream in (stdin, stdout, stderr)]
            forked = self.start("twgen.__main__:main", arguments, folder, environment, streams)
            try:
                code = forked.wait(timeout)
            except TimeoutError:
                forked.stop()
                raise
            for stream in (stdout, stderr):
                stream.seek(0)
            return subprocess.CompletedProcess(
                ["twgen", *arguments], code, stdout.read().decode(), stderr.read().decode()
            )


def _memory() -> IO[bytes]:
    """An unnamed file in memory."""
    return os.fdopen(os.memfd_create("stream"), "w+b", buffering=0)


def forker(*modules: str) -> Forker:
    """A process that has imported all of twgen and these modules. It ends together with this process."""
    with _ONE_ASKS:
        return _forker(modules)


@cache
def _forker(modules: Sequence[str]) -> Forker:
    ours, theirs = socketpair(type=SOCK_SEQPACKET)
    command = [sys.executable, "-P", __file__, str(theirs.fileno()), *modules]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True
    )
    theirs.close()

    @atexit.register
    def _end() -> None:
        ours.close()
        process.wait()

    return Forker(ours)


def answer(asked: socket, group: int | None = None) -> bool:
    """Fork the program of the next request; returns False if there are no more requests.

    The program joins the process group `group`, if it is given.
    """
    descriptors = recv_fds(asked, 1, _STREAMS + 2)[1]
    if descriptors and not os.fork():
        asked.close()
        _watch(descriptors, group)
    for descriptor in descriptors:
        os.close(descriptor)
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return bool(descriptors)


def _serve(asked: socket) -> None:
    while answer(asked):
        pass
    # the requesting process has ended, perhaps by SIGKILL, so the programs that it did not stop are killed
    os.killpg(0, signal.SIGKILL)


def _watch(descriptors: Sequence[int], group: int | None) -> NoReturn:
    *streams, request, telling = descriptors
    with os.fdopen(request, "rb") as file:
        wanted = json.load(file)
    pid = os.fork()
    if not pid:
        if group is not None:
            os.setpgid(0, group)
        _become(wanted, streams)
    for stream in streams:
        os.close(stream)
    with socket(fileno=telling) as told:
        told.send(pid.to_bytes(8))
        told.send(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]).to_bytes(8, signed=True))
    os._exit(0)


def _become(wanted: Sequence[Any], streams: Sequence[int]) -> NoReturn:
    program, arguments, folder, environment = wanted
    code = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.closerange(_STREAMS, 2**16)
        os.chdir(folder)
        os.environ.clear()  # noqa: TID251 - replaced by the program's own
        os.environ.update(environment)  # noqa: TID251 - as above
        module, _, function = program.partition(":")
        sys.argv = [module, *arguments]
        getattr(import_module(module), function)()
        code = 0
    except BaseException:  # noqa: BLE001 - as Python does; the forked process must not continue as the forking one
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def import_all(*modules: str) -> None:
    """Import all of twgen and these modules, for programs that are forked later."""
    sys.path.insert(0, str(_ROOT))
    import twgen

    ours = [found.name for found in pkgutil.walk_packages(twgen.__path__, "twgen.")]
    for module in (*ours, "jsonschema", "temporalio.service", *modules):
        if module != "twgen.__main__":  # imported by each program
            import_module(module)
    gc.freeze()


if __name__ == "__main__":
    import_all(*sys.argv[2:])
    _serve(socket(fileno=int(sys.argv[1])))
