"""ID tokens of a provider: used while they last, then renewed by the refresh token."""

import json
from base64 import b64encode, urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest

from tests.clients.tls_server import Served, ask, kubeconfig, serving, session, session_of
from twgen.errors import StateUnavailable

PAST, FUTURE = 1_500_000_000, 4_100_000_000


def token(**claims: Any) -> str:
    parts = ({"alg": "none"}, claims)
    return (
        ".".join(urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode() for each in parts) + ".s"
    )


def user(served: Served, **more: str) -> dict[str, Any]:
    config = {"idp-issuer-url": f"{served.address}/realm/", "client-id": "kubectl", **more}
    return {"auth-provider": {"name": "oidc", "config": config}}


def offered(served: Served, answer: dict[str, str], status: int = 200) -> None:
    """Let the provider renew tokens with this answer."""
    found = {"token_endpoint": f"{served.address}/token"}
    served.answers["/realm/.well-known/openid-configuration"] = (200, found)
    served.answers["/token"] = (status, answer)


@pytest.mark.parametrize("claims", [{"exp": FUTURE}, {}])
def test_token_that_lasts_is_sent_as_it_is(tmp_path: Path, claims: dict[str, int]) -> None:
    with serving(tmp_path, plain=True) as served:
        lasting = token(**claims)
        config = user(served, **{"id-token": lasting})
        assert ask(session_of(tmp_path, {"server": served.address}, config)) == 200
    assert served.authorizations == [f"Bearer {lasting}"]


@pytest.mark.parametrize("secret", ["", "s/cret"])
def test_token_that_has_ended_is_renewed_as_the_client(tmp_path: Path, secret: str) -> None:
    renewed = token(exp=FUTURE)
    with serving(tmp_path, plain=True) as served:
        offered(served, {"id_token": renewed, "refresh_token": "next"})
        more = {"id-token": token(exp=PAST), "refresh-token": "now", "client-secret": secret}
        opened = session_of(tmp_path, {"server": served.address}, user(served, **more))
        ask(opened)
        ask(opened)
    _, asked, *requests = served.authorizations
    assert requests == [f"Bearer {renewed}"] * 2
    assert asked == (f"Basic {b64encode(b'kubectl:s%2Fcret').decode()}" if secret else "")
    assert served.bodies[1] == "grant_type=refresh_token&refresh_token=now&client_id=kubectl"


def test_refresh_token_that_the_provider_replaced_is_used_next(tmp_path: Path) -> None:
    with serving(tmp_path, plain=True) as served:
        offered(served, {"id_token": token(exp=PAST), "refresh_token": "second"})
        opened = session_of(tmp_path, {"server": served.address}, user(served, **{"refresh-token": "first"}))
        ask(opened)
    forms = [body for body in served.bodies if body]
    assert ["refresh_token=first" in forms[0], "refresh_token=second" in forms[1]] == [True, True]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"id-token": token(exp=PAST)}, "there is no refresh-token: log in again"),
        ({"id-token": "opaque"}, "is not a JSON Web Token"),
        ({"id-token": token(exp="soon")}, "is not a JSON Web Token"),
        ({"refresh-token": "the-refresh-token"}, "cannot be renewed .*/token answers with 400"),
    ],
)
def test_token_that_cannot_be_had_is_an_error_without_the_secrets(
    tmp_path: Path, more: dict[str, str], told: str
) -> None:
    with serving(tmp_path, plain=True) as served:
        offered(served, {"error": "invalid_grant"}, 400)
        file = kubeconfig(tmp_path / "config", {"server": served.address}, user(served, **more))
        with pytest.raises(StateUnavailable, match=rf"is not configured: its OIDC .*{told}") as failed:
            session(file, tmp_path)
    assert "the-refresh-token" not in str(failed.value)


def test_provider_is_trusted_by_the_authority_of_the_kubeconfig_alone(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        assert served.authority
        offered(served, {"id_token": token(exp=FUTURE)})
        cluster = {"server": served.address, "certificate-authority": str(served.authority.file)}
        more = {"refresh-token": "now"}
        with pytest.raises(StateUnavailable, match="certificate verify failed"):
            session_of(tmp_path, cluster, user(served, **more))
        more["idp-certificate-authority"] = "ca.crt"
        assert ask(session_of(tmp_path, cluster, user(served, **more))) == 200
