"""Connections to a server: TLS, and the proxy on the way."""

import ssl
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies

if TYPE_CHECKING:
    from urllib3 import PoolManager

_CONNECTIONS = 16


def pool_to(  # noqa: PLR0913 - each is a setting of a kubeconfig
    server: str,
    *,
    authority: str = "",
    is_verified: bool = True,
    server_name: str = "",
    certificate: tuple[Path, Path] | None = None,
    proxy: str = "",
) -> "PoolManager":
    """Connections that are kept; without an authority those of the system are trusted.

    Without a proxy it is the one that the variables HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY say.
    """
    from urllib3 import PoolManager, ProxyManager, make_headers
    from urllib3.util import parse_url

    context = _tls(authority, is_verified=is_verified)
    if certificate:
        # without a password here the library would ask for one at the terminal
        context.load_cert_chain(*certificate, password="")
    settings: dict[str, Any] = {"ssl_context": context, "maxsize": _CONNECTIONS}
    if server_name:
        settings["server_hostname"] = server_name
    if not (through := proxy or _proxy_to(server)):
        return PoolManager(**settings)
    if through.startswith("socks"):
        from urllib3.contrib.socks import SOCKSProxyManager

        return SOCKSProxyManager(through, **settings)
    account = parse_url(through).auth
    headers = make_headers(proxy_basic_auth=account) if account else None
    return ProxyManager(through, proxy_headers=headers, **settings)


def _tls(authority: str, *, is_verified: bool) -> ssl.SSLContext:
    from urllib3.util import create_urllib3_context

    context = create_urllib3_context()
    # from Python 3.13 on a default that refuses authorities which many clusters have
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not is_verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authority:
        context.load_verify_locations(cadata=authority)
    else:
        context.load_default_certs()
    return context


def _proxy_to(server: str) -> str:
    """The proxy that the environment names for a server; empty: none."""
    proxies, address = getproxies(), urlsplit(server)
    found = proxies.get(address.scheme) or proxies.get("all", "")
    return "" if _is_exempt(address.hostname or "", address.port, proxies.get("no", "")) else found


def _is_exempt(host: str, port: int | None, exempt: str) -> bool:
    for entry in (each.strip().lower() for each in exempt.split(",")):
        name = entry.removeprefix("*").lstrip(".")
        if entry == "*" or (
            name and (f".{host}".endswith(f".{name}") or f".{host}:{port}".endswith(f".{name}"))
        ):
            return True
        try:
            if ip_address(host) in ip_network(entry, strict=False):
                return True
        except ValueError:
            continue
    return False
