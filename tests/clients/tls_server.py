"""An API server that says yes to all, over TLS, and kubeconfigs for it."""

import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from testing.credentials import Authority
from twgen.clients.kubeconfig import ClusterAccess
from twgen.clients.logins import Session, open_session


@dataclass
class Served:
    """Where it is, and what it was asked."""

    address: str = ""
    authority: Authority | None = None
    answers: dict[str, tuple[int, Mapping[str, Any]]] = field(default_factory=dict)
    """By path; any other is answered with an empty object."""
    authorizations: list[str] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)


@contextmanager
def serving(folder: Path, *, asks_for_certificates: bool = False, plain: bool = False) -> Iterator[Served]:
    """A server with a certificate of an authority of its own, in the folder."""
    served = Served()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.authorizations.append(self.headers.get("Authorization", ""))
            served.bodies.append(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())
            status, document = served.answers.get(self.path, (200, {}))
            content = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET  # noqa: N815 - http.server's name

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Say nothing of a client that does not trust it."""

    with Server(("127.0.0.1", 0), Handler) as server:
        served.address = f"http://127.0.0.1:{server.server_port}"
        if not plain:
            served.authority = Authority(folder, "ca")
            own = served.authority.server()
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(own.certificate, own.key)
            if asks_for_certificates:
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(served.authority.file)
            server.socket = context.wrap_socket(server.socket, server_side=True)
            served.address = served.address.replace("http", "https")
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()


def kubeconfig(file: Path, cluster: Mapping[str, Any], user: Mapping[str, Any] | None = None) -> Path:
    """A file with one context, called `here`."""
    document = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "here",
        "users": [{"name": "u", "user": user}] if user is not None else [],
    }
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(document))
    return file


def session(file: Path | str, folder: Path, context: str = "") -> Session:
    """The way that a kubeconfig describes."""
    return open_session(ClusterAccess(str(file), context), str(folder))


def session_of(folder: Path, cluster: Mapping[str, Any], user: Mapping[str, Any] | None = None) -> Session:
    """The way that a kubeconfig in this folder describes."""
    return session(kubeconfig(folder / "config", cluster, user), folder)


def ask(session: Session) -> int:
    """The status of one request."""
    answer = session.pool.request(
        "GET", f"{session.host}/api", headers=session.authorization(), retries=False
    )
    return answer.status
