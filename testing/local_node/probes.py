"""Runs the readiness probe of a container."""

import socket
import urllib.error
import urllib.request
from collections.abc import Callable
from threading import Event, Thread

from testing.kubernetes.api import Object
from testing.local_node.materials import ADDRESS

ExecProbe = Callable[[list[str], float], bool]
"""Returns whether a command inside the container exits with 0 within this many seconds."""


class ReadinessProbe:
    """Probes in a separate thread until it is stopped. `changed` is called when the result changes."""

    def __init__(self, container: Object, run: ExecProbe, changed: Callable[[], None]) -> None:
        self._probe: Object = container["readinessProbe"]
        self._ports: dict[str | int, int] = {
            port.get("name", ""): port["containerPort"] for port in container.get("ports", [])
        }
        self.is_ready = False
        """The result of as many consecutive answers as the probe requires."""
        self._run = run
        self._changed = changed
        self._stopped = Event()
        self._thread = Thread(target=self._ask_again, name=f"probe of {container['name']}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop probing."""
        self._stopped.set()

    def _ask_again(self) -> None:
        row = 0
        needed = {True: self._probe.get("successThreshold", 1), False: self._probe.get("failureThreshold", 3)}
        pause = self._probe.get("initialDelaySeconds", 0)
        while not self._stopped.wait(pause):
            answer = self._ask()
            row = row + 1 if answer != self.is_ready else 0
            if row >= needed[answer]:
                self.is_ready, row = answer, 0
                self._changed()
            pause = self._probe.get("periodSeconds", 10)

    def _ask(self) -> bool:
        timeout = float(self._probe.get("timeoutSeconds", 1))
        if "exec" in self._probe:
            return self._run(self._probe["exec"]["command"], timeout)
        if "httpGet" in self._probe:
            return _answers(self._url(self._probe["httpGet"]), self._probe["httpGet"], timeout)
        if "tcpSocket" in self._probe:
            return _listens(self._host(self._probe["tcpSocket"]), timeout)
        return False

    def _url(self, action: Object) -> str:
        host, port = self._host(action)
        return f"{action.get('scheme', 'HTTP').lower()}://{host}:{port}{action.get('path', '/')}"

    def _host(self, action: Object) -> tuple[str, int]:
        port: str | int = action["port"]
        return action.get("host") or ADDRESS, int(self._ports.get(port, port))


def _answers(url: str, action: Object, timeout: float) -> bool:
    headers = {header["name"]: header["value"] for header in action.get("httpHeaders", [])}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - of a Pod that a test wrote
    try:
        with urllib.request.urlopen(request, timeout=timeout):  # noqa: S310 - as above
            return True
    except (OSError, urllib.error.URLError):
        return False


def _listens(address: tuple[str, int], timeout: float) -> bool:
    try:
        socket.create_connection(address, timeout).close()
    except OSError:
        return False
    return True
