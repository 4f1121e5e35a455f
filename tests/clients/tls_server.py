"""An API server that says yes to all, over TLS, and kubeconfigs for it."""

import asyncio
import json
import ssl
import tempfile
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from testing.credentials import Authority
from twgen.clients.deadline import Deadline
from twgen.clients.kubeconfig import ClusterAccess
from twgen.clients.kubernetes import KubernetesClient

PLACE = "/api/v1/namespaces/shop/configmaps/x"
# a test may have a temporary folder of its own, and look at what is left there
_TEMPORARY = tempfile.gettempdir()
_FOUND = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "shop"}}


@cache
def authority() -> Authority:
    """The authority of all servers of this process."""
    return Authority(Path(tempfile.mkdtemp(prefix="authority-", dir=_TEMPORARY)), "ca")


def secure(server: ThreadingHTTPServer, *, trusts: Authority | None = None) -> None:
    """Let a server speak TLS; it may ask for a certificate that an authority has signed, and need none."""
    own = authority().server()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.certificate, own.key)
    if trusts:
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(trusts.file)
    # a client that does not trust it must not hold up the others
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)


@dataclass
class Asked:
    """One request."""

    authorization: str
    impersonated: list[tuple[str, str]]
    certificate: str
    """The serial number of the client's certificate; empty: it showed none."""
    accept: str
    """The kinds of answers that it takes."""


@dataclass
class Served:
    """Where it is, how it answers, and what it was asked."""

    address: str = ""
    statuses: list[int] = field(default_factory=list)
    """Of the next answers; then 200."""
    refused: str = ""
    """This Authorization is answered with 401."""
    asked: list[Asked] = field(default_factory=list)

    @property
    def authorizations(self) -> list[str]:
        """The Authorization of each request."""
        return [one.authorization for one in self.asked]

    @property
    def cluster(self) -> dict[str, Any]:
        """The fields of a cluster that trust it."""
        return {"server": self.address, "certificate-authority-data": encoded(authority().file)}


@contextmanager
def serving(*, plain: bool = False) -> Iterator[Served]:
    """A server with a certificate of the authority, which accepts clients' certificates of it too."""
    served = Served()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            shown = None if plain else self.connection.getpeercert()
            headers = [(name, text) for name, text in self.headers.items() if name.startswith("Impersonate")]
            certificate = str(shown["serialNumber"]) if shown else ""
            authorization, accept = self.headers.get("Authorization", ""), self.headers["Accept"]
            served.asked.append(Asked(authorization, headers, certificate, accept))
            status = served.statuses.pop(0) if served.statuses else 200
            if served.refused and served.asked[-1].authorization == served.refused:
                status = 401
            failure = {"kind": "Status", "message": "no"}
            content = json.dumps(_FOUND if status == 200 else failure).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Say nothing of a client that does not trust it."""

    with Server(("127.0.0.1", 0), Handler) as server:
        served.address = f"http://127.0.0.1:{server.server_port}"
        if not plain:
            secure(server, trusts=authority())
            served.address = served.address.replace("http", "https")
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()


def encoded(file: Path) -> str:
    """The content of a file, as a kubeconfig has it."""
    return b64encode(file.read_bytes()).decode()


def kubeconfig(file: Path, cluster: Mapping[str, Any], user: Mapping[str, Any] | None = None) -> Path:
    """A file with one context, called `here`."""
    context = {"cluster": "c", "user": "u"} if user is not None else {"cluster": "c"}
    document = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "contexts": [{"name": "here", "context": context}],
        "current-context": "here",
        "users": [{"name": "u", "user": user}] if user is not None else [],
    }
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(document))
    return file


def ask(
    kubeconfig: Path | str,
    times: int = 1,
    *,
    at_once: int = 1,
    seconds: float = 20,
    before: Callable[[int], object] = lambda _: None,
) -> list[int]:
    """The statuses of requests of one client; `before` is called with the number of each turn, from 0."""

    async def ask_all() -> list[int]:
        statuses = []
        with closing(KubernetesClient(ClusterAccess(str(kubeconfig)))) as client:
            for number in range(times):
                before(number)
                requests = [client.ask("GET", PLACE, Deadline(seconds)) for _ in range(at_once)]
                statuses += [status for status, _ in await asyncio.gather(*requests)]
        return statuses

    return asyncio.run(ask_all())
