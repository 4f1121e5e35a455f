"""The twgen that the plugin's server runs: a process that is ready at once.

Hundreds of renders of the tests else start Python and import, which is most of their work. The process is in
the sidecar's mount namespace, ends with the plugin's server, and forks one for each render. That one has the
environment, folder, streams and process group which the server gives it.
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
"""Process, user and group (unix(7))."""


def serve(name: str, server: list[str]) -> None:
    """Become the plugin's server, beside a process that forks what is asked of the name."""
    import_all()
    with socket(AF_UNIX, SOCK_SEQPACKET) as listening:
        listening.bind(f"\0{name}")
        listening.listen(64)
        if os.fork():
            os.execvp(server[0], server)  # noqa: S606 - a command is no shell's text
        end_with_parent()
        while True:
            with listening.accept()[0] as asked:
                pid, *_ = _CREDENTIALS.unpack(asked.getsockopt(SOL_SOCKET, SO_PEERCRED, _CREDENTIALS.size))
                answer(asked, os.getpgid(pid))


def ask(name: str, arguments: list[str]) -> int:
    """Run twgen as this process would; a signal of the server reaches both, since they are one group."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with socket(AF_UNIX, SOCK_SEQPACKET) as asked:
        asked.connect(f"\0{name}")
        environment = os.environ  # noqa: TID251 - twgen gets it
        return Forker(asked).start("twgen.__main__:main", arguments, Path.cwd(), environment, range(3)).wait()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2], sys.argv[3:])
    sys.exit(ask(sys.argv[2], sys.argv[3:]))
