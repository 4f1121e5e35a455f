"""Sends plain requests to a Kubernetes API server. It can be used from several threads."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

import urllib3

Object = dict[str, Any]

_TIMEOUT = urllib3.Timeout(connect=5.0, read=30.0)
_UNTIL_CLOSED = urllib3.Timeout(connect=5.0, read=None)
_NOT_FOUND = 404
_ERRORS = 400


class Refused(Exception):
    """The API server rejected a request: its status code and its message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class NotThere(Refused, LookupError):
    """The object does not exist. As a LookupError, it makes `eventually` try again."""


class Api:
    """One API server, with the account of a token.

    Every method takes a path such as `/api/v1/namespaces/default/pods`, and raises Refused or urllib3's
    HTTPError.
    """

    def __init__(self, address: str, authority: Path, token: str) -> None:
        self._address = address
        self._headers = {"Authorization": f"Bearer {token}"}
        self._pool = urllib3.PoolManager(maxsize=16, ca_certs=str(authority), retries=False)

    def is_ready(self) -> bool:
        """Whether the API server is ready; raises HTTPError until it listens."""
        answer = self._pool.request("GET", f"{self._address}/readyz", headers=self._headers, timeout=_TIMEOUT)
        return answer.status < _ERRORS

    def get(self, path: str) -> Object:
        """Read an object or a list."""
        return self._ask("GET", path)

    def find(self, path: str) -> Object | None:
        """Read an object; None if it does not exist."""
        try:
            return self.get(path)
        except NotThere:
            return None

    def create(self, path: str, document: Mapping[str, Any]) -> Object:
        """Create an object in the collection at the path."""
        return self._ask("POST", path, document)

    def patch(self, path: str, changes: Mapping[str, Any]) -> Object:
        """Merge changes into an object."""
        return self._ask("PATCH", path, changes, "application/merge-patch+json")

    def apply(self, path: str, document: Mapping[str, Any], *, is_stored: bool = True) -> Object:
        """Apply an object server-side as field manager `testing`; unknown fields are rejected."""
        query = "fieldValidation=Strict&fieldManager=testing&force=true" + "&dryRun=All" * (not is_stored)
        return self._ask("PATCH", f"{path}?{query}", document, "application/apply-patch+yaml")

    def delete(self, path: str, options: Mapping[str, Any] | None = None) -> Object:
        """Delete an object."""
        return self._ask("DELETE", path, options or {})

    def watch(self, path: str) -> "Watch":
        """Begin a watch; the path includes the query."""
        response = self._pool.request(
            "GET",
            f"{self._address}{path}",
            headers=self._headers,
            timeout=_UNTIL_CLOSED,
            preload_content=False,
        )
        if response.status >= _ERRORS:
            raise _refusal(response.status, response.data)
        return Watch(response)

    def close(self) -> None:
        """Close all connections."""
        self._pool.clear()

    def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, kind: str = "application/json"
    ) -> Object:
        response = self._pool.request(
            method,
            f"{self._address}{path}",
            body=None if body is None else json.dumps(body),
            headers={**self._headers, "Content-Type": kind},
            timeout=_TIMEOUT,
        )
        if response.status >= _ERRORS:
            raise _refusal(response.status, response.data)
        answer: Object = json.loads(response.data)
        return answer


class Watch:
    """The events of a watch, `{type, object}`, until the server, or `close` in another thread, ends it."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response
        self._lock = Lock()
        self._closing = False
        self._closed = False

    def __iter__(self) -> Iterator[Object]:
        line = b""
        try:
            for piece in self._response.stream(None):
                if self._closing:
                    return
                *lines, line = (line + piece).split(b"\n")
                yield from map(json.loads, lines)
        finally:
            with self._lock:
                self._closed = True
                self._response.close()

    def close(self) -> None:
        """End the watch. The iterating thread sees its end, or an HTTPError."""
        with self._lock:
            # set first: the shutdown makes ssl forget its session, and a read in progress returns encrypted
            # data https://github.com/python/cpython/blob/v3.11.7/Lib/ssl.py#L1351
            self._closing = True
            # if the server has ended it, the connection is back in the pool
            if not self._closed:
                with suppress(OSError, RuntimeError):
                    self._response.shutdown()


def _refusal(status: int, body: bytes) -> Refused:
    kind = NotThere if status == _NOT_FOUND else Refused
    try:
        return kind(status, str(json.loads(body)["message"]))
    except (ValueError, KeyError, TypeError):
        return kind(status, body[:500].decode(errors="replace"))
