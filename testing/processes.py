"""Starting and stopping processes, and waiting for what they do."""

import os
import random
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TypeVar

Answer = TypeVar("Answer")

ENVIRONMENT: Mapping[str, str] = dict(os.environ)  # noqa: TID251 - twgen's own code does not see it
"""The environment that this process started with."""

_NOT_YET = (AssertionError, LookupError, ValueError, StopIteration, FileNotFoundError)
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
_PART_OF_WAIT = 0.05
_RARE_COLLECTIONS = {"GOGC": "400", "GOMEMLIMIT": "1GiB"}
"""For servers in Go: there is memory, and two cores for dozens of them (https://go.dev/doc/gc-guide)."""
# below those that Linux gives to outgoing connections, which could take one before the server does
_PORTS = range(15000, 32000)
_CLAIM = "\0twgen-port-"
_GRACE = 10.0


def eventually(condition: Callable[[], Answer], deadline: float = 300.0) -> Answer:
    """The condition's first true answer; at the deadline AssertionError with the last answer or error.

    A condition is asked again if an assertion in it fails, or if something cannot be read yet: a list to
    unpack is empty, a key or a file is missing, a JSON document is half written.

    What takes long, or is waited for long, is asked less often.
    """
    began = time.monotonic()
    while True:
        failure: Exception | None = None
        asked = time.monotonic()
        try:
            if answer := condition():
                return answer
        except _NOT_YET as error:
            failure = error
        now = time.monotonic()
        if now - began >= deadline:
            if isinstance(failure, AssertionError):
                raise failure
            last = f"error was {failure!r}" if failure else f"answer was {answer!r}"
            message = f"not within {deadline:g} s; the last {last}"
            raise AssertionError(message) from failure
        time.sleep(min(max(_SHORTEST_PAUSE, (now - began) * _PART_OF_WAIT, now - asked), _LONGEST_PAUSE))


@contextmanager
def running(
    command: Sequence[str],
    log: Path,
    environment: Mapping[str, str] | None = None,
    *,
    grace: float = _GRACE,
) -> Iterator[subprocess.Popen[bytes]]:
    """A process whose output goes to the log, stopped at the end, after `grace` seconds by force."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**ENVIRONMENT, **_RARE_COLLECTIONS, **(environment or {})},
            # Ctrl-C is meant for us, who stop it when nobody needs it any more
            process_group=0,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(grace)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_ports(count: int) -> list[int]:
    """Ports of the loopback address on which nobody listens, and which nobody else who asks here is given."""
    candidates = random.sample(_PORTS, len(_PORTS))
    return list(islice(filter(_is_free, candidates), count))


def _is_free(port: int) -> bool:
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        # a name that one process has until it ends; of the port itself nobody knows until its server listens
        claim.bind(f"{_CLAIM}{port}")
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        claim.close()
        return False
    claim.detach()
    return True
