"""One request over HTTP and its whole answer, bounded in bytes and time."""

import re
import time
from base64 import b64decode
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

from twgen.errors import StateUnavailable, TwgenError
from twgen.model.credentials import remember
from twgen.reporting.printable import said
from twgen.yaml.limits import Budget
from twgen.yaml.reader import read_json
from twgen.yaml.source import YamlError

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager

TOKEN = re.compile("[!-~]+")
"""A credential that a header can hold."""
_CHUNK = 2**16
_LEAST_WAIT = 0.1
_BEGINNING = 2**18
_LONGEST_OF_STRANGERS = 200
"""Characters that are shown of an answer of another kind of server."""
_REDIRECTS = range(HTTPStatus.MULTIPLE_CHOICES, HTTPStatus.BAD_REQUEST)


class Unreachable(StateUnavailable):
    """The answer is missing or incomplete."""

    is_refused = False
    """Nothing was sent."""


class Unreadable(StateUnavailable):
    """The answer is too large, or is not JSON within the limits: a smaller one may be readable."""


class Request(NamedTuple):
    """One request, with the limits of its answer."""

    subject: str
    """The server and the subject of the request, for people."""
    method: str
    url: str
    headers: Mapping[str, str | tuple[str, ...]]
    """By name; a header with several values is sent several times."""
    ends: float
    """Until when the answer may take, on the monotonic clock."""
    late: TwgenError
    """Raised when it takes longer."""
    most_bytes: int
    bytes_before: int = 0
    """Bytes that earlier pages have used of these."""
    body: bytes | None = None
    to_reach_it: str = ""
    """What to do if the server cannot be reached: the end of a sentence."""
    to_shorten_it: str = ""
    """What to do if the answer is too long."""
    of_proxy: str = ""
    """The header that the proxy gets: it may return it in an answer."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The credentials in it, which no message shows."""
        return *_secrets_of(str(self.headers.get("Authorization", ""))), *_secrets_of(self.of_proxy)

    def safe(self, text: str) -> str:
        """A text of the server, for people, without the credentials of the request."""
        return said(text, self.secrets)


class Answer(NamedTuple):
    """The answer to a request."""

    request: Request
    status: int
    headers: Mapping[str, str]
    content: bytes

    def document(self, budget: Budget) -> dict[str, Any] | None:
        """Its JSON object; None: it is something else, or exceeds the budget."""
        value = json_of(self.content, budget)
        return value if isinstance(value, dict) else None

    def message(self, document: Any, field: str) -> str:
        """This field of its document, for people; without a document the beginning of its text."""
        if isinstance(document, dict):
            return self.request.safe(str(document.get(field) or ""))
        return self.request.safe(self.content[:_BEGINNING].decode(errors="replace"))[:_LONGEST_OF_STRANGERS]


def _secrets_of(authorization: str) -> tuple[str, ...]:
    scheme, _, proof = authorization.partition(" ")
    if scheme != "Basic":
        return (proof or scheme,)
    return proof, b64decode(proof).decode(errors="replace").partition(":")[2]


def json_of(content: bytes | str, budget: Budget) -> Any:
    """The object or list in a JSON text, within the limits of files; None: it is something else."""
    try:
        return read_json(content.decode() if isinstance(content, bytes) else content, budget)
    except (YamlError, UnicodeDecodeError, RecursionError):
        return None


def answer_to(request: Request, pool: "PoolManager") -> Answer:
    """Ask once.

    Raises `late` after `ends`, Unreachable without a whole answer, and StateUnavailable for an answer that is
    too large, compressed or a redirect.
    """
    from urllib3 import HTTPHeaderDict, Timeout
    from urllib3.exceptions import HTTPError, NewConnectionError
    from urllib3.exceptions import TimeoutError as Late

    if of_proxy := (getattr(pool, "proxy_headers", None) or {}).get("proxy-authorization"):
        request = request._replace(of_proxy=of_proxy)
    remember(request.secrets)
    headers = HTTPHeaderDict({"Accept": "application/json"})
    # nothing is unpacked: a megabyte can hold a gigabyte
    for name, values in (*request.headers.items(), ("Accept-Encoding", "identity")):
        headers.discard(name)
        for value in (values,) if isinstance(values, str) else values:
            headers.add(name, value)
    try:
        # a redirect could send the credentials to another host, or return another host's answer
        answer = pool.urlopen(
            request.method,
            request.url,
            redirect=False,
            body=request.body,
            headers=headers,
            timeout=Timeout(total=max(_LEAST_WAIT, request.ends - time.monotonic())),
            retries=False,
            preload_content=False,
        )
        try:
            content = b"".join(_chunks(request, answer))
        except BaseException:
            answer.close()
            raise
        answer.release_conn()
    except (HTTPError, OSError, ValueError) as error:
        if isinstance(error, Late) and not isinstance(error, NewConnectionError):
            raise request.late from error
        raise _unreachable(request, error) from error
    return Answer(request, answer.status, answer.headers, content)


def _chunks(request: Request, answer: "BaseHTTPResponse") -> Iterator[bytes]:
    if answer.status in _REDIRECTS:
        raise StateUnavailable(
            f"{request.subject} redirects to another address, and twgen does not follow redirects: give the"
            f" address that it redirects to ({answer.status})"
        )
    if answer.headers.get("Content-Encoding", "identity") != "identity":
        raise StateUnavailable(
            f"{request.subject} sent a compressed answer, although twgen asked for an uncompressed one"
        )
    size = request.bytes_before
    while chunk := answer.read1(_CHUNK, decode_content=False):
        size += len(chunk)
        if size > request.most_bytes:
            raise Unreadable(
                f"{request.subject} answers with more than {request.most_bytes} bytes{request.to_shorten_it}"
            )
        if time.monotonic() > request.ends:
            raise request.late
        yield chunk


def _unreachable(request: Request, error: Exception) -> Unreachable:
    from urllib3.exceptions import NewConnectionError

    innermost: BaseException = error
    # an error of a proxy has the other attribute
    while isinstance(
        cause := getattr(innermost, "reason", getattr(innermost, "original_error", None)), BaseException
    ):
        innermost = cause
    reason = request.safe(str(innermost))[:_LONGEST_OF_STRANGERS]
    if "IncompleteRead" in reason:
        reason = "the answer was cut short"  # its number of bytes would differ at every read
    failed = Unreachable(f"{request.subject} cannot be reached{request.to_reach_it} ({reason})")
    failed.is_refused = isinstance(innermost, NewConnectionError)
    return failed
