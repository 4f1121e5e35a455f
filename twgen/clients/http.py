"""Sends one HTTP request and reads the whole response, within a size limit and a deadline."""

import os
import re
import ssl
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from twgen.clients.deadline import Deadline
from twgen.errors import StateUnavailable
from twgen.model.credentials import remember
from twgen.reporting.printable import said
from twgen.yaml.reader import read_json
from twgen.yaml.source import Budget, YamlError

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager

TOKEN = re.compile("[!-~]+")
"""The pattern for a credential that is allowed in an HTTP header."""
_CHUNK = 2**16
_LEAST_WAIT = 0.1
_BEGINNING = 2**18
_LONGEST_OF_STRANGERS = 200
"""Messages show at most this many characters of an unexpected response."""
_REDIRECTS = range(HTTPStatus.MULTIPLE_CHOICES, HTTPStatus.BAD_REQUEST)


class Unreachable(StateUnavailable):
    """The response is missing or incomplete."""

    is_refused = False
    """Whether the server refused the connection, so that nothing was sent."""


class Unreadable(StateUnavailable):
    """The response is too large, or is not JSON within the limits. A smaller response may be readable."""


class HttpRequest(NamedTuple):
    """One request, with the limits for its response."""

    subject: str
    """The server and the requested object, as text for messages."""
    method: str
    url: str
    headers: Mapping[str, str | tuple[str, ...]]
    """The header values by name. A header with several values is sent once for each value."""
    deadline: Deadline
    """The deadline for the whole response."""
    most_bytes: int
    bytes_before: int = 0
    """The number of bytes in earlier pages, which count towards `most_bytes`."""
    body: bytes | None = None
    to_reach_it: str = ""
    """Advice if the server cannot be reached, worded as the end of a sentence."""
    to_shorten_it: str = ""
    """Advice if the response is too long, worded as the end of a sentence."""
    of_proxy: str = ""
    """The Authorization header for the proxy, which the proxy may repeat in a response."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The request's credentials, which must not appear in messages."""
        return *_secrets_of(str(self.headers.get("Authorization", ""))), *_secrets_of(self.of_proxy)

    def safe(self, text: str) -> str:
        """Make text from the server safe to print, and remove the request's credentials from it."""
        return said(text, self.secrets)


class HttpAnswer(NamedTuple):
    """The response to a request."""

    request: HttpRequest
    status: int
    headers: Mapping[str, str]
    content: bytes

    def document(self, budget: Budget) -> dict[str, Any] | None:
        """The response as a JSON object, or None if it is not a JSON object or exceeds the budget."""
        value = json_of(self.content, budget)
        return value if isinstance(value, dict) else None

    def message(self, document: Any, field: str) -> str:
        """A field of the document, made safe to print.

        Without a document, this is the beginning of the response's text.
        """
        if isinstance(document, dict):
            return self.request.safe(str(document.get(field) or ""))
        return self.request.safe(self.content[:_BEGINNING].decode(errors="replace"))[:_LONGEST_OF_STRANGERS]


def _secrets_of(authorization: str) -> tuple[str, ...]:
    scheme, _, proof = authorization.partition(" ")
    if scheme != "Basic":
        return (proof or scheme,)
    return proof, b64decode(proof).decode(errors="replace").partition(":")[2]


def json_of(content: bytes | str, budget: Budget) -> Any:
    """Parse JSON. Returns None if it is not JSON, or exceeds the limits that also apply to files."""
    try:
        return read_json(content.decode() if isinstance(content, bytes) else content, budget)
    except (YamlError, UnicodeDecodeError, RecursionError):
        return None


def answer_to(request: HttpRequest, pool: "PoolManager") -> HttpAnswer:
    """Send the request once.

    Raises the deadline's error after the deadline, Unreachable if no complete response arrives, and
    StateUnavailable if the response is too large, compressed or a redirect.
    """
    from urllib3 import HTTPHeaderDict, Timeout
    from urllib3.exceptions import HTTPError, NewConnectionError
    from urllib3.exceptions import TimeoutError as Late

    if of_proxy := (getattr(pool, "proxy_headers", None) or {}).get("proxy-authorization"):
        request = request._replace(of_proxy=of_proxy)
    remember(request.secrets)
    headers = HTTPHeaderDict({"Accept": "application/json"})
    # compressed responses are rejected: a megabyte can decompress to a gigabyte
    for name, values in (*request.headers.items(), ("Accept-Encoding", "identity")):
        headers.discard(name)
        for value in (values,) if isinstance(values, str) else values:
            headers.add(name, value)
    try:
        # a redirect could send the credentials to another host, or return another host's response
        answer = pool.urlopen(
            request.method,
            request.url,
            redirect=False,
            body=request.body,
            headers=headers,
            timeout=Timeout(total=max(_LEAST_WAIT, request.deadline.remaining)),
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
            raise request.deadline.missed(request.subject) from error
        raise _unreachable(request, error) from error
    return HttpAnswer(request, answer.status, answer.headers, content)


def _chunks(request: HttpRequest, answer: "BaseHTTPResponse") -> Iterator[bytes]:
    if answer.status in _REDIRECTS:
        raise StateUnavailable(
            f"{request.subject} redirects to another address, and twgen does not follow redirects: set the"
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
        if request.deadline.remaining < 0:
            raise request.deadline.missed(request.subject)
        yield chunk


def _unreachable(request: HttpRequest, error: Exception) -> Unreachable:
    from urllib3.exceptions import NewConnectionError

    innermost: BaseException = error
    # a proxy error stores its cause in `original_error`
    while isinstance(
        cause := getattr(innermost, "reason", getattr(innermost, "original_error", None)), BaseException
    ):
        innermost = cause
    reason = request.safe(str(innermost))[:_LONGEST_OF_STRANGERS]
    if "IncompleteRead" in reason:
        reason = "the answer was cut short"  # the original text contains a byte count that varies
    failed = Unreachable(f"{request.subject} cannot be reached{request.to_reach_it} ({reason})")
    failed.is_refused = isinstance(innermost, NewConnectionError)
    return failed


_CONNECTIONS_OF_POOL = 16
_PORTS = {"http": 80, "https": 443}
_PROXIES = ("http", "https", "socks5", "socks5h")
_SUCH_A_PROXY = "a URL such as http://proxy.example.com:3128"
_SCHEME = re.compile("[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_NOT_IN_ADDRESS = re.compile(r"[\x00-\x20\x7f\\]")


class NoProxy(StateUnavailable):
    """A proxy setting cannot be used. The message does not show its value, which may contain a password."""


def tls_context(authorities: Path | str = "", *, is_verified: bool = True) -> ssl.SSLContext:
    """A TLS context that trusts the certificates in a file or, without a file, the system's authorities.

    Raises OSError if the file cannot be read or contains no certificate.
    """
    from urllib3.util import create_urllib3_context

    context = create_urllib3_context()
    # since Python 3.13, this flag is on by default, but it rejects many clusters' certificate authorities
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not is_verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authorities:
        context.load_verify_locations(authorities)
        # as in Go, the file may contain an intermediate authority, or the server's own certificate
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    else:
        context.load_default_certs()
    return context


def pool_trusting(server: str, file: Path | str) -> "PoolManager":
    """Connections to a server that trust the certificates in a file or, without a file, the system's.

    Raises StateUnavailable if the file contains no certificates, or if the proxy setting cannot be used.
    """
    if not file and not server.startswith("https://"):
        return pool_to(server, None)
    try:
        context = tls_context(file)
    except OSError as error:
        why = "it has no PEM certificate" if isinstance(error, ssl.SSLError) else error.strerror
        raise StateUnavailable(f"{file}: cannot read the trusted certificates ({why})") from None
    return pool_to(server, context)


def pool_to(
    server: str, context: ssl.SSLContext | None, *, server_name: str = "", proxy: str = ""
) -> "PoolManager":
    """Connections to a server. `context` is None for plain HTTP.

    If `proxy` is empty, the environment may set a proxy. Raises NoProxy if the proxy cannot be used.
    `server_name` is the name in the server's certificate, if it differs from the host.
    """
    from urllib3 import PoolManager, ProxyManager, make_headers

    settings: dict[str, Any] = {"ssl_context": context, "maxsize": _CONNECTIONS_OF_POOL}
    if server_name:
        settings["server_hostname"] = server_name
    if not (through := checked_proxy(proxy, "proxy-url") if proxy else proxy_to(server)):
        return PoolManager(**settings)
    address = urlsplit(through)
    user, password = unquote(address.username or ""), unquote(address.password or "")
    if through.startswith("socks5"):
        from urllib3.contrib.socks import SOCKSProxyManager

        # as in Go, the proxy resolves the server's name, because only the proxy's network may know the name
        through = through.replace("socks5://", "socks5h://")
        return SOCKSProxyManager(through, username=user or None, password=password or None, **settings)
    # urllib3 encodes user and password as Latin-1, but Go encodes them as UTF-8
    both = f"{user}:{password}".encode().decode("latin-1")
    headers = make_headers(proxy_basic_auth=both) if user else None
    return ProxyManager(through, proxy_headers=headers, **settings)


def address_of(url: str) -> SplitResult | None:
    """The parts of a URL, or None if it is invalid or has no host."""
    try:
        address = urlsplit(url)
        is_usable = address.port != 0 and bool(address.hostname)
    except ValueError:  # the port is not a number up to 65535, or brackets are not closed
        return None
    return address if is_usable and not _NOT_IN_ADDRESS.search(url) else None


def checked_proxy(url: str, setting: str) -> str:
    """Check and normalize a proxy URL. Raises NoProxy with the setting's name in the message."""
    from urllib3.exceptions import LocationParseError
    from urllib3.util import parse_url

    address = address_of(url)
    if address is None or not url.isascii() or not _SCHEME.match(url):
        raise NoProxy(f"{setting} is not {_SUCH_A_PROXY}")
    if address.scheme not in _PROXIES:
        raise NoProxy(f"{setting} begins with {address.scheme}://, which is not one of {', '.join(_PROXIES)}")
    try:
        parse_url(url)
    except LocationParseError:
        raise NoProxy(f"{setting} is not {_SUCH_A_PROXY}") from None
    return f"{address.scheme}{url[len(address.scheme) :]}"


def proxy_to(server: str) -> str:
    """The proxy that HTTPS_PROXY or HTTP_PROXY sets for a server, or empty if none applies.

    Servers on this machine are reached without a proxy. ALL_PROXY is not read.
    """
    address = urlsplit(server)
    setting = f"{address.scheme.upper()}_PROXY"
    host, port = (address.hostname or "").lower(), address.port or _PORTS[address.scheme]
    proxy = _variable(setting)
    # in a CGI program, a request can set HTTP_PROXY through its Proxy header
    if not proxy or (setting == "HTTP_PROXY" and _variable("REQUEST_METHOD")) or _is_direct(host, port):
        return ""
    return checked_proxy(proxy if _SCHEME.match(proxy) else f"http://{proxy}", setting)


def _variable(name: str) -> str:
    own = os.environ  # noqa: TID251 - the usual variables of HTTP clients
    return own.get(name) or own.get(name.lower()) or ""


def _is_direct(host: str, port: int) -> bool:
    """Whether to connect without a proxy, because the host is this machine or NO_PROXY lists it.

    An entry in NO_PROXY is a host, a domain that begins with a dot, or a network, each with an optional port.
    """
    try:
        address = ip_address(host)
    except ValueError:
        address = None
    if host == "localhost" or (address and address.is_loopback):
        return True
    for entry in _variable("NO_PROXY").lower().split(","):
        name, own_port = entry.strip(), ""
        if matched := re.fullmatch(r"\[([^\]]*)\]:(\d+)|([^:]*):(\d+)", name):
            name, own_port = matched[1] or matched[3] or "", matched[2] or matched[4]
        if (name, own_port) == ("*", ""):
            return True
        if not name or own_port not in {"", str(port)}:
            continue
        name = name.removeprefix("*") if name.startswith("*.") else name
        if address is None:
            if f".{host}".endswith(f".{name.lstrip('.')}") and host != name[1:]:
                return True
        else:
            with suppress(ValueError):  # the entry is a name, not a network
                if address in ip_network(name, strict=False):
                    return True
    return False
