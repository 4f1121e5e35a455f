"""Starts and stops processes, and waits for conditions."""

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

from twgen.errors import OutOfTime

Answer = TypeVar("Answer")

ENVIRONMENT: Mapping[str, str] = dict(os.environ)  # noqa: TID251 - twgen's own code does not see it
"""The environment that this process started with."""

_NOT_YET = (AssertionError, LookupError, ValueError, StopIteration, FileNotFoundError, OutOfTime)
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
_PART_OF_WAIT = 0.05
_RARE_COLLECTIONS = {"GOGC": "400", "GOMEMLIMIT": "1GiB"}
"""Makes Go's garbage collector run less often, because dozens of servers share two cores but have enough
memory (https://go.dev/doc/gc-guide)."""
# below the range for outgoing connections, which could otherwise take a port before the server does
_PORTS = range(15000, 32000)
_CLAIM = "\0twgen-port-"
_GRACE = 10.0


def eventually(condition: Callable[[], Answer], deadline: float = 300.0) -> Answer:
    """Wait until a condition returns a true value; raises AssertionError at the deadline.

    The condition is tried again if an assertion in it fails, or if data is missing: a list to unpack is
    empty, a key or a file does not exist, or a JSON document is incomplete. It is also tried again if a busy
    server does not answer in time.

    The longer a condition takes, or the longer the wait, the less often it is tried.
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
    """Run a process whose output goes to the log. At the end, it is stopped, with SIGKILL after `grace` s."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**ENVIRONMENT, **_RARE_COLLECTIONS, **(environment or {})},
            # Ctrl-C must reach only this process, which then stops the other
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
    """Free ports on loopback, which this function gives to no other process."""
    candidates = random.sample(_PORTS, len(_PORTS))
    return list(islice(filter(_is_free, candidates), count))


def _is_free(port: int) -> bool:
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        # binding the name reserves the port until this process ends, even before the port's server listens
        claim.bind(f"{_CLAIM}{port}")
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        claim.close()
        return False
    claim.detach()
    return True
