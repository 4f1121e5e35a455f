"""The one path of Argo CD's API that twgen asks, served over HTTP."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from time import sleep
from typing import Any

from twgen.versioning.names import rollout_name

PATH = "/api/v1/applications/"


@dataclass
class Served:
    """What is answered, and what was asked."""

    applications: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """By name; others are refused as Argo CD refuses what an account may not know."""
    resources: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    """What an application consists of, by its name; else the intent of a worker that is called like it."""
    rendered: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    """The manifests of an application's last render, by its name."""
    refused: str = ""
    """What a request has in its path that is refused as a server in trouble refuses; empty: none is."""
    token: str = "secret-token"  # noqa: S105
    status: int = 0
    """Answered to whatever is asked, unless 0."""
    body: bytes = b""
    """With that status."""
    headers: Mapping[str, str] = field(default_factory=dict)
    takes: float = 0
    """Seconds for every answer."""
    rendering_takes: float = 0
    """Seconds more for the answer to a hard refresh."""
    asked: list[str] = field(default_factory=list)
    most_at_once: int = 0
    address: str = ""
    _now: int = 0
    _lock: Lock = field(default_factory=Lock)

    @property
    def refreshed(self) -> list[str]:
        """What a hard refresh was asked of."""
        return [path for path in self.asked if "refresh=hard" in path]

    def answer(self, path: str, token: str) -> tuple[int, bytes]:
        """The status and the body for one request."""
        with self._lock:
            self.asked.append(path)
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        sleep(self.takes + ("refresh=hard" in path) * self.rendering_takes)
        with self._lock:
            self._now -= 1
        if self.status:
            return self.status, self.body
        if token != f"Bearer {self.token}":
            return 401, b'{"error": "x", "message": "invalid session"}'
        name, _, below = path.removeprefix(PATH).partition("?")[0].partition("/")
        if name not in self.applications:
            return 403, b'{"message": "permission denied"}'
        if self.refused and self.refused in path:
            return 503, b'{"message": "no endpoints"}'
        if below == "managed-resources":
            items = [
                {"kind": "ConfigMap", "targetState": json.dumps(item)} for item in self.rendered.get(name, ())
            ]
            return 200, json.dumps({"items": items or None}).encode()
        application = self.applications[name]
        if isinstance(status := application.get("status", {}), dict):
            status = {"resources": self.resources.get(name, [tracked(name)])} | status
        return 200, json.dumps({"metadata": {"name": name}, **application, "status": status}).encode()


def tracked(worker: str, namespace: str = "shop", **more: Any) -> Mapping[str, Any]:
    """What Argo CD says of an intent that it has rendered."""
    named = {"version": "v1", "kind": "ConfigMap", "namespace": namespace, "name": rollout_name(worker)}
    return {**named, "status": "Synced", **more}


@contextmanager
def serving(served: Served) -> Iterator[Served]:
    """Serve it, at its `address`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = served.answer(self.path, self.headers.get("Authorization", ""))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if status in {301, 307}:
                self.send_header("Location", f"{served.address}/elsewhere")
            for name, text in served.headers.items():
                self.send_header(name, text)
            self.end_headers()
            with suppress(BrokenPipeError):  # whoever asked may be gone
                self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served.address = f"http://127.0.0.1:{server.server_port}"
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield served
        server.shutdown()
