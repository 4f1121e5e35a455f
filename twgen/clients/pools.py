"""Connections to a server that are kept: the authorities to trust, and the proxy, by the rules of Go.

https://pkg.go.dev/golang.org/x/net/http/httpproxy
"""

import os
import re
import ssl
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from twgen.errors import StateUnavailable

if TYPE_CHECKING:
    from urllib3 import PoolManager

_CONNECTIONS = 16
"""Of each pool."""
_PORTS = {"http": 80, "https": 443}
_PROXIES = ("http", "https", "socks5", "socks5h")
_SUCH_A_PROXY = "a URL such as http://proxy.example.com:3128"
_SCHEME = re.compile("[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_NOT_IN_ADDRESS = re.compile(r"[\x00-\x20\x7f\\]")


class NoProxy(StateUnavailable):
    """The setting of a proxy cannot be used. The message does not show it, since it may have a password."""


def tls_context(authorities: Path | str = "", *, is_verified: bool = True) -> ssl.SSLContext:
    """A context that trusts the certificates of a file, or the authorities of the system.

    Raises OSError if the file cannot be read, or has no certificate.
    """
    from urllib3.util import create_urllib3_context

    context = create_urllib3_context()
    # default since Python 3.13: it rejects the authorities of many clusters
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not is_verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authorities:
        context.load_verify_locations(authorities)
        # an authority may be an intermediate one, or the certificate of the server itself, as in Go
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    else:
        context.load_default_certs()
    return context


def pool_trusting(server: str, file: Path | str) -> "PoolManager":
    """Connections to a server whose certificate the authorities of a file, or of the system, have signed.

    Raises StateUnavailable if the file has no certificates, or no proxy can be used.
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
    """Connections to a server, with a TLS context unless it speaks plain HTTP.

    Without a proxy the environment decides; raises NoProxy if it names one that cannot be used.
    `server_name` is the name in the certificate of the server, if it is another one.
    """
    from urllib3 import PoolManager, ProxyManager, make_headers

    settings: dict[str, Any] = {"ssl_context": context, "maxsize": _CONNECTIONS}
    if server_name:
        settings["server_hostname"] = server_name
    if not (through := checked_proxy(proxy, "proxy-url") if proxy else proxy_to(server)):
        return PoolManager(**settings)
    address = urlsplit(through)
    user, password = unquote(address.username or ""), unquote(address.password or "")
    if through.startswith("socks5"):
        from urllib3.contrib.socks import SOCKSProxyManager

        # the proxy looks up the name of the server, as with Go: it may be known only there
        through = through.replace("socks5://", "socks5h://")
        return SOCKSProxyManager(through, username=user or None, password=password or None, **settings)
    # urllib3 encodes both as Latin-1, and Go as UTF-8
    both = f"{user}:{password}".encode().decode("latin-1")
    headers = make_headers(proxy_basic_auth=both) if user else None
    return ProxyManager(through, proxy_headers=headers, **settings)


def address_of(url: str) -> SplitResult | None:
    """The parts of a URL with a host; None: it is not such a URL."""
    try:
        address = urlsplit(url)
        is_usable = address.port != 0 and bool(address.hostname)
    except ValueError:  # the port is not a number up to 65535, or brackets are not closed
        return None
    return address if is_usable and not _NOT_IN_ADDRESS.search(url) else None


def checked_proxy(url: str, setting: str) -> str:
    """The URL of a proxy; raises NoProxy, with the name of the setting, if it is not one."""
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
    """The proxy that HTTPS_PROXY or HTTP_PROXY names for a server; empty: none.

    There is none for this machine itself. ALL_PROXY is not read.
    """
    address = urlsplit(server)
    setting = f"{address.scheme.upper()}_PROXY"
    host, port = (address.hostname or "").lower(), address.port or _PORTS[address.scheme]
    proxy = _variable(setting)
    # in a CGI program, HTTP_PROXY comes from the header Proxy of a request
    if not proxy or (setting == "HTTP_PROXY" and _variable("REQUEST_METHOD")) or _is_direct(host, port):
        return ""
    return checked_proxy(proxy if _SCHEME.match(proxy) else f"http://{proxy}", setting)


def _variable(name: str) -> str:
    own = os.environ  # noqa: TID251 - every HTTP client of a machine reads these variables
    return own.get(name) or own.get(name.lower()) or ""


class _Exempt(NamedTuple):
    """An entry of NO_PROXY: a host, a domain that begins with a dot, or a network; and a port, or none."""

    name: str
    port: str


def _exempt() -> Iterator[_Exempt]:
    for entry in _variable("NO_PROXY").lower().split(","):
        name, port = entry.strip(), ""
        if matched := re.fullmatch(r"\[([^\]]*)\]:(\d+)|([^:]*):(\d+)", name):
            name, port = matched[1] or matched[3] or "", matched[2] or matched[4]
        if name:
            yield _Exempt(name.removeprefix("*") if name.startswith("*.") else name, port)


def _is_direct(host: str, port: int) -> bool:
    """No proxy is used for this host."""
    try:
        address = ip_address(host)
    except ValueError:
        address = None
    if host == "localhost" or (address and address.is_loopback):
        return True
    for entry in _exempt():
        if entry == ("*", ""):
            return True
        if entry.port not in {"", str(port)}:
            continue
        if address is None:
            if f".{host}".endswith(f".{entry.name.lstrip('.')}") and host != entry.name[1:]:
                return True
        else:
            try:
                if address in ip_network(entry.name, strict=False):
                    return True
            except ValueError:  # a name
                continue
    return False
