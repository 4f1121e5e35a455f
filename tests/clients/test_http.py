"""Through which proxy a server is reached, and whom a connection trusts."""

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from urllib3.contrib.socks import SOCKSProxyManager

from tests.clients.tls_server import authority, serving
from twgen.clients.http import NoProxy, pool_to, pool_trusting
from twgen.errors import StateUnavailable

VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "request_method")
PROXY = "http://proxy.corp:3128"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Without any proxy of this machine."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


def proxy(server: str, own: str = "") -> str:
    pool = pool_to(server, None, proxy=own)
    return str(pool.proxy_url if isinstance(pool, SOCKSProxyManager) else pool.proxy or "")


def test_proxy_of_the_kubeconfig_comes_first(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("HTTPS_PROXY", "http://other:1")
    environment.setenv("NO_PROXY", "*")
    assert proxy("https://api", "http://ours:3128") == "http://ours:3128"
    assert proxy("https://127.0.0.1:6443", "http://ours:3128") == "http://ours:3128"


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
def test_socks_proxy_looks_up_the_name_of_the_server(scheme: str) -> None:
    pool = pool_to("https://api", None, proxy=f"{scheme}://ours:1080")
    assert isinstance(pool, SOCKSProxyManager)
    assert pool.connection_pool_kw["_socks_options"]["rdns"]


@pytest.mark.parametrize(
    ("server", "variables", "found"),
    [
        ("https://api.example.com:6443", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://api.example.com", {"https_proxy": PROXY}, PROXY),
        ("https://api.example.com", {"HTTPS_PROXY": PROXY, "https_proxy": "http://other:1"}, PROXY),
        ("https://api.example.com", {"HTTP_PROXY": PROXY}, ""),
        ("http://api.example.com", {"HTTP_PROXY": PROXY}, PROXY),
        ("http://api.example.com", {"HTTP_PROXY": PROXY, "REQUEST_METHOD": "GET"}, ""),
        ("https://api.example.com", {"ALL_PROXY": PROXY}, ""),
        ("https://api.example.com", {"HTTPS_PROXY": "proxy.corp:3128"}, PROXY),
        ("https://api.example.com", {"HTTPS_PROXY": PROXY.upper()}, PROXY),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://127.9.9.9:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://[::1]:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://localhost:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://localhost.example.com:6443", {"HTTPS_PROXY": PROXY}, PROXY),
    ],
)
def test_proxy_of_the_environment_is_for_its_scheme_and_never_for_this_machine(
    environment: pytest.MonkeyPatch, server: str, variables: dict[str, str], found: str
) -> None:
    for name, value in variables.items():
        environment.setenv(name, value)
    assert proxy(server) == found


@pytest.mark.parametrize(
    ("server", "exempt", "is_direct"),
    [
        ("https://api.example.org", "api.example.org", True),
        ("https://API.example.org", "api.Example.org", True),
        ("https://sub.api.example.org", "api.example.org", True),
        ("https://notapi.example.org", "api.example.org", False),
        ("https://example.com", ".example.com", False),
        ("https://a.example.com", ".example.com", True),
        ("https://example.com", "*.example.com", False),
        ("https://a.example.com", "*.example.com", True),
        ("https://api.example.com", "api.example.com:443", True),
        ("https://api.example.com:6443", "api.example.com:443", False),
        ("https://api.example.com:6443", " x, ,api.example.com:6443", True),
        ("https://10.1.2.3:6443", "10.1.0.0/16", True),
        ("https://10.2.2.3:6443", "10.1.0.0/16", False),
        ("https://10.1.2.3:6443", "10.1.2.3:6443", True),
        ("https://10.1.2.3:6443", "10.1.2.3:443", False),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", True),
        ("https://[fd00::1]:6443", "fd00::/8", True),
        ("https://api.example.com", "*", True),
        ("https://api.example.com:8080", "*:8080", False),
        ("https://api.example.com", ",,", False),
    ],
)
def test_server_is_exempt_from_the_proxy_by_the_rules_of_go(
    environment: pytest.MonkeyPatch, server: str, exempt: str, *, is_direct: bool
) -> None:
    environment.setenv("HTTPS_PROXY", PROXY)
    environment.setenv("NO_PROXY", exempt)
    assert proxy(server) == ("" if is_direct else PROXY)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("ftp://ana:the-password@proxy:1", "HTTPS_PROXY begins with ftp://, which is not one of http,"),
        ("http://ana:the-password@proxy:99999", "HTTPS_PROXY is not a URL such as"),
        ("http://ana:the password@proxy:1", "HTTPS_PROXY is not a URL such as"),
        ("http://[::1", "HTTPS_PROXY is not a URL such as"),
        ("http://ana:passwordą@proxy:1", "HTTPS_PROXY is not a URL such as"),
    ],
)
def test_odd_proxy_is_named_by_its_variable_and_never_shown(
    environment: pytest.MonkeyPatch, value: str, told: str
) -> None:
    environment.setenv("HTTPS_PROXY", value)
    with pytest.raises(NoProxy, match=told) as refused:
        proxy("https://api.example.com")
    assert "password" not in str(refused.value)


def test_account_of_a_proxy_goes_to_it() -> None:
    pool = pool_to("https://api", None, proxy="http://ana:word@ours:3128")
    assert pool.proxy_headers == {"proxy-authorization": "Basic YW5hOndvcmQ="}
    pool = pool_to("https://api", None, proxy="http://ana:p%40ss%3A@ours:3128")
    assert pool.proxy_headers == {"proxy-authorization": f"Basic {b64encode(b'ana:p@ss:').decode()}"}
    pool = pool_to("https://api", None, proxy="http://ana:p%C4%85ss@ours:3128")
    assert pool.proxy_headers == {"proxy-authorization": f"Basic {b64encode('ana:pąss'.encode()).decode()}"}
    pool = pool_to("https://api", None, proxy="SOCKS5://ana:p%40ss%3A@ours:1080")
    options = pool.connection_pool_kw["_socks_options"]
    assert (options["username"], options["password"]) == ("ana", "p@ss:")


def test_own_authorities_are_trusted_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "not").write_text("nothing\n")
    with serving() as served:
        with pool_trusting(served.address, authority().file) as pool:
            assert pool.request("GET", served.address).status == 200
        for file, told in (("not", "it has no PEM certificate"), ("absent", "No such file")):
            with pytest.raises(StateUnavailable, match=rf"{file}: cannot read the trusted .*{told}"):
                pool_trusting(served.address, tmp_path / file)
