"""Through which proxy a server is reached."""

from collections.abc import Iterator
from typing import Any

import pytest
from urllib3.contrib.socks import SOCKSProxyManager

from twgen.clients.http import pool_to

VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Without any proxy of this machine."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


def proxy(server: str, **settings: Any) -> str:
    pool = pool_to(server, **settings)
    return str(pool.proxy_url if isinstance(pool, SOCKSProxyManager) else pool.proxy or "")


def test_proxy_of_the_kubeconfig_comes_first(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("HTTPS_PROXY", "http://other:1")
    environment.setenv("NO_PROXY", "*")
    assert proxy("https://api", proxy="http://ours:3128") == "http://ours:3128"
    assert proxy("https://api", proxy="socks5://ours:1080") == "socks5://ours:1080"


@pytest.mark.parametrize(
    ("server", "found"),
    [
        ("https://api.example.com:6443", "http://secure:1"),
        ("http://api.example.com", "http://all:1"),
        ("https://api.example.org", ""),
        ("https://sub.api.example.org", ""),
        ("https://notapi.example.org.example.com", "http://secure:1"),
        ("https://10.1.2.3:6443", ""),
        ("https://10.2.2.3:6443", "http://secure:1"),
        ("https://one.example.net:6443", ""),
        ("https://one.example.net:6444", "http://secure:1"),
    ],
)
def test_proxy_of_the_environment_is_used_but_for_those_that_it_exempts(
    environment: pytest.MonkeyPatch, server: str, found: str
) -> None:
    environment.setenv("HTTPS_PROXY", "http://secure:1")
    environment.setenv("ALL_PROXY", "http://all:1")
    environment.setenv("NO_PROXY", ".api.example.org, 10.1.0.0/16,,one.example.net:6443")
    assert proxy(server) == found


def test_everything_may_be_exempt(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("HTTPS_PROXY", "http://secure:1")
    environment.setenv("NO_PROXY", "*")
    assert proxy("https://api") == ""


def test_account_of_a_proxy_goes_to_it() -> None:
    pool = pool_to("https://api", proxy="http://ana:word@ours:3128")
    assert pool.proxy_headers == {"proxy-authorization": "Basic YW5hOndvcmQ="}
