"""Run one command and print its seconds and its most KiB of memory: `run_one.py OUTPUT COMMAND...`.

Linux counts the peak of the process that starts a command as the command's own, so a small one starts it.
"""

import os
import sys
import time


def main(output: str, *command: str) -> int:
    """The command's exit code."""
    into = (os.POSIX_SPAWN_OPEN, 1, output, os.O_WRONLY | os.O_TRUNC, 0o600)
    started = time.perf_counter()
    child = os.posix_spawnp(command[0], command, os.environ, file_actions=[into])  # noqa: TID251 - handed on
    _, status, usage = os.wait4(child, 0)
    print(time.perf_counter() - started, usage.ru_maxrss)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
