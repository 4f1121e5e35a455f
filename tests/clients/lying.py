"""An API server of Kubernetes that lies: about what there is, where it is, and how much of it."""

import copy
import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Thread
from time import sleep
from typing import Any

from tests.clients.tls_server import secure
from twgen.yaml.reader import read_documents

TOKEN = "SECRETTOKEN-0123456789abcdef"  # noqa: S105
_MEGABYTE = 2**20
_DEEP = "what nests deep"
Item = dict[str, Any]


def live_deployments(ledger: str) -> list[Item]:
    """The Deployments that a ledger tells of, as an API server lists them."""
    versions = read_documents(ledger)[0]["versions"]
    return [{name: entry["deployment"][name] for name in ("metadata", "spec")} for entry in versions]


def _changed(change: Callable[[Item], object]) -> Callable[[list[Item]], list[Item]]:
    def change_one(items: list[Item]) -> list[Item]:
        items = copy.deepcopy(items)
        change(items[0])
        return items

    return change_one


WRONG_ITEMS: Mapping[str, Callable[[list[Item]], Any]] = {
    "nolabel": _changed(lambda item: item["metadata"].pop("labels")),
    "labelsnull": _changed(lambda item: item["metadata"].update(labels=None)),
    "nospec": _changed(lambda item: item.pop("spec")),
    "repstr": _changed(lambda item: item["spec"].update(replicas="three")),
    "repbig": _changed(lambda item: item["spec"].update(replicas=10**30)),
    "badtime": _changed(lambda item: item["metadata"].update(creationTimestamp="soon")),
    "deepjson": _changed(lambda item: item["spec"].update(minReadySeconds=_DEEP)),
    "itemkind": _changed(lambda item: item.update(kind="ReplicaSet")),
    "elsewhere": _changed(lambda item: item["metadata"].update(namespace="shop-2")),
    "noname": _changed(lambda item: item["metadata"].pop("name")),
}
"""What is wrong with one of the Deployments."""


@dataclass
class Lying:
    """What is answered to whatever is asked, and what was asked."""

    mode: str
    items: list[Item]
    elsewhere: str = ""
    """Another server, which answers that there is nothing."""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Paths, and the Authorization that came with each."""
    address: str = ""

    def answer(self, path: str) -> tuple[int, Mapping[str, str], Iterable[bytes]]:
        """The status, headers and parts of an answer."""
        echo = f"refused: Authorization: Bearer {TOKEN} was sent"
        again, there = f"{self.address}{path}&again", f"{self.elsewhere}{path}"
        # the first two tries of a reading, and every write
        is_late = self.mode == "trouble" and (len(self.asked) <= 2 or "events" in path)
        if is_late or self.mode == "troubled":
            return 503, {"Retry-After": "0"}, ()
        refusals: Mapping[str, tuple[int, Mapping[str, str], Iterable[bytes]]] = {
            "redir2": (302, {"Location": there}, ()),
            "redir3": (307, {"Location": there}, ()),
            "redirsame": (308, {"Location": again}, ()),
            "echo": (401, {}, _once({"kind": "Status", "message": echo})),
            "echo500": (500, {}, _once({"kind": "Status", "message": echo})),
            "echohtml": (401, {}, [f"<html>{echo}</html>".encode()]),
            "gzipbomb": (200, {"Content-Encoding": "gzip"}, [bomb()] if self.mode == "gzipbomb" else ()),
        }
        return refusals.get(self.mode) or (200, {}, self._list(path))

    def _list(self, path: str) -> Iterable[bytes]:
        more = {"metadata": {"continue": path[-200:]}}
        names = [{"name": f"page-{len(self.asked)}-{number}"} for number in range(9)]
        large = [
            {**self.items[0], "metadata": self.items[0]["metadata"] | name, "x": "y" * _MEGABYTE}
            for name in names
        ]
        lists: Mapping[str, Item] = {
            "podlist": listing([], kind="PodList", api_version="v1"),
            "kindother": listing([], kind="ReplicaSetList"),
            "group": listing([], api_version="extensions/v1beta1"),
            "itemsnull": listing(None),
            "double": listing([*self.items, self.items[0]]),
            "noitems": {"apiVersion": "apps/v1", "kind": "DeploymentList", "metadata": {}},
            "empty": listing([]),
            "pages": listing([]) | more,
            "hugepages": listing(large) | more,
        }
        texts = {
            "twice": b'{"kind": "DeploymentList", "apiVersion": "apps/v1", "items": [{}], "items": []}',
            "notfinite": b'{"kind": "DeploymentList", "apiVersion": "apps/v1", "items": [], "n": NaN}',
            "cut": b'{"kind": "DeploymentList", "apiVersion": "apps/v1", "items": [',
        }
        if self.mode == "slow":
            return (b'{"items": [' * (not n) + b" " * (not sleep(0.05)) for n in count())
        if self.mode == "slowpages":
            sleep(0.2)
            return _once(listing([]) | more)
        if self.mode == "huge":
            return (b'{"items": [' * (not n) + b" " * _MEGABYTE for n in count())
        if self.mode in texts:
            return [texts[self.mode]]
        wrong = WRONG_ITEMS.get(self.mode)
        return _once(listing(wrong(self.items)) if wrong else lists.get(self.mode, listing(self.items)))


@cache
def bomb() -> bytes:
    """A list of two gigabytes, packed."""
    blanks = gzip.compress(b" " * (16 * _MEGABYTE))
    return gzip.compress(b'{"kind": "DeploymentList", "apiVersion": "apps/v1", "items": [') + blanks * 128


def listing(items: list[Item] | None, kind: str = "DeploymentList", api_version: str = "apps/v1") -> Item:
    """A list as an API server writes it."""
    return {"kind": kind, "apiVersion": api_version, "metadata": {}, "items": items}


def _once(document: Any) -> Iterable[bytes]:
    return [json.dumps(document).replace(f'"{_DEEP}"', "[" * 5000 + "]" * 5000).encode()]


@contextmanager
def lying(mode: str, items: list[Item], elsewhere: str = "") -> Iterator[Lying]:
    """Serve it, at its `address`."""
    lie = Lying(mode, items, elsewhere)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            lie.asked.append((self.path, self.headers.get("Authorization", "")))
            status, headers, parts = lie.answer(self.path)
            self.send_response(status)
            for name, text in headers.items():
                self.send_header(name, text)
            self.end_headers()
            with suppress(OSError):  # whoever asked may be gone
                for part in parts:
                    self.wfile.write(part)

        def do_POST(self) -> None:
            # what is not read when it closes may reset the connection, and the answer with it
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        secure(server)
        server.daemon_threads = True
        lie.address = f"https://127.0.0.1:{server.server_port}"
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield lie
        server.shutdown()
