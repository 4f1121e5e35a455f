"""One request over HTTP and its whole answer: bounded in bytes and time, and from nowhere else."""

import time
from base64 import b64decode
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

from twgen.errors import StateUnavailable, TwgenError
from twgen.model.credentials import remember
from twgen.reporting.printable import said
from twgen.yaml.json_text import read_json
from twgen.yaml.limits import Budget
from twgen.yaml.source import YamlError

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager

_CHUNK = 2**16
_LEAST_WAIT = 0.1
_AUTHORIZATION = "Authorization"
_BEGINNING = 2**18
_LONGEST_OF_STRANGERS = 200
"""Characters of what is no answer of the server that was meant."""
_REDIRECTS = range(HTTPStatus.MULTIPLE_CHOICES, HTTPStatus.BAD_REQUEST)


class Unreachable(StateUnavailable):
    """No whole answer came, or nobody was there to be asked."""

    is_refused = False
    """Nothing was sent."""


class Request(NamedTuple):
    """What is asked, of whom in words for people, and what may come back."""

    who: str
    method: str
    url: str
    headers: Mapping[str, str]
    ends: float
    """When, on the monotonic clock, nobody waits for the answer any more."""
    late: TwgenError
    """What an answer is that has not ended then."""
    most_bytes: int
    bytes_before: int = 0
    """Of these, what the pages before it had."""
    body: bytes | None = None
    to_reach_it: str = ""
    """What to do where it cannot be reached, and below where it says too much: the end of a sentence."""
    to_shorten_it: str = ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What of it no message shows: a token, or a password."""
        scheme, _, proof = self.headers.get(_AUTHORIZATION, "").partition(" ")
        if scheme != "Basic":
            return (proof or scheme,)
        return proof, b64decode(proof).decode(errors="replace").partition(":")[2]

    def said(self, text: str) -> str:
        """What the server says, for people, but nothing of what it was sent."""
        return said(text, self.secrets)


class Answer(NamedTuple):
    """What came back for a request."""

    request: Request
    status: int
    headers: Mapping[str, str]
    content: bytes

    def document(self, budget: Budget) -> dict[str, Any] | None:
        """The JSON object that it is; None: it is something else, or more than the budget lets it be."""
        found = json_of(self.content, budget)
        return found if isinstance(found, dict) else None

    def told(self, document: Any, name: str) -> str:
        """What its document says in this field, for people; what is no document, how it begins."""
        if isinstance(document, dict):
            return self.request.said(str(document.get(name) or ""))
        return self.request.said(self.content[:_BEGINNING].decode(errors="replace"))[:_LONGEST_OF_STRANGERS]


def json_of(content: bytes | str, budget: Budget) -> Any:
    """The object or list of a text of JSON, as a file may have it; None: it is something else."""
    try:
        return read_json(content.decode() if isinstance(content, bytes) else content, budget)
    except (YamlError, UnicodeDecodeError, RecursionError):
        return None


def answer_to(request: Request, pool: "PoolManager") -> Answer:
    """Ask once.

    Raises what `late` is when the answer has not ended in time, Unreachable when it breaks off, and
    StateUnavailable when it is too large, packed or leads elsewhere.
    """
    from urllib3 import Timeout
    from urllib3.exceptions import HTTPError, NewConnectionError
    from urllib3.exceptions import TimeoutError as Late

    remember(request.secrets)
    seconds = max(_LEAST_WAIT, request.ends - time.monotonic())
    # nothing is unpacked: a megabyte can hold a gigabyte
    own = {"accept": "application/json", "accept-encoding": "identity"}
    headers = {name.lower(): text for name, text in request.headers.items()} | own
    try:
        # a redirect could take the credentials to another host, or bring what another says
        answer = pool.urlopen(
            request.method,
            request.url,
            redirect=False,
            body=request.body,
            headers=headers,
            timeout=Timeout(total=seconds),
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
            f"{request.who} redirects to another address, and twgen does not follow redirects: give the"
            f" address that it redirects to ({answer.status})"
        )
    if answer.headers.get("Content-Encoding", "identity") != "identity":
        raise StateUnavailable(
            f"{request.who} sent a compressed answer, although twgen asked for an uncompressed one"
        )
    size = request.bytes_before
    while chunk := answer.read1(_CHUNK, decode_content=False):
        size += len(chunk)
        if size > request.most_bytes:
            raise StateUnavailable(
                f"{request.who} answers with more than {request.most_bytes} bytes{request.to_shorten_it}"
            )
        if time.monotonic() > request.ends:
            raise request.late
        yield chunk


def _unreachable(request: Request, error: Exception) -> Unreachable:
    from urllib3.exceptions import NewConnectionError

    innermost: BaseException = error
    while isinstance(reason := getattr(innermost, "reason", None), BaseException):
        innermost = reason
    told = request.said(str(innermost))[:_LONGEST_OF_STRANGERS]
    if "IncompleteRead" in told:
        told = "the answer was cut short"  # after how many bytes would be news at every look
    failed = Unreachable(f"{request.who} cannot be reached{request.to_reach_it} ({told})")
    failed.is_refused = isinstance(innermost, NewConnectionError)
    return failed
