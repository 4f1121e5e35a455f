"""The twgen that the plugin's server runs, forked from a process that has already imported everything.

Most of the time of a render in tests would be starting Python and importing. The process is in the sidecar's
mount namespace, ends with the plugin's server, and forks a process for each render. That process gets the
environment, folder, streams and process group from the server.
"""

import os
import signal
import sys
from pathlib import Path
from socket import AF_UNIX, SO_PEERCRED, SOCK_SEQPACKET, SOL_SOCKET, socket
from struct import Struct

sys.path.insert(0, str(Path(__file__).parents[2]))

from testing.forking import Forker, answer, import_all
from testing.local_node.enter import end_with_parent

_CREDENTIALS = Struct("3i")
"""Process ID, user ID and group ID (unix(7))."""


def serve(name: str, server: list[str]) -> None:
    """Become the plugin's server, after starting a process that forks on request on the socket `name`."""
    import_all()
    with socket(AF_UNIX, SOCK_SEQPACKET) as listening:
        listening.bind(f"\0{name}")
        listening.listen(64)
        if os.fork():
            os.execvp(server[0], server)  # noqa: S606 - no shell is involved
        end_with_parent()
        while True:
            with listening.accept()[0] as asked:
                pid, *_ = _CREDENTIALS.unpack(asked.getsockopt(SOL_SOCKET, SO_PEERCRED, _CREDENTIALS.size))
                answer(asked, os.getpgid(pid))


def ask(name: str, arguments: list[str]) -> int:
    """Run twgen in a forked process. It has the same process group, so the server's signals reach both."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with socket(AF_UNIX, SOCK_SEQPACKET) as asked:
        asked.connect(f"\0{name}")
        environment = os.environ  # noqa: TID251 - passed on to twgen
        return Forker(asked).start("twgen.__main__:main", arguments, Path.cwd(), environment, range(3)).wait()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2], sys.argv[3:])
    sys.exit(ask(sys.argv[2], sys.argv[3:]))
