"""Credentials that secured servers require, and that their clients use."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from testing.credentials import Authority, Certificate, KeyIssuer
from testing.temporal_configuration import Demands

_EVERYTHING = ("temporal-system:admin",)


class Security(Enum):
    """The security of a server. All except the first include TLS."""

    NONE = "none"
    TLS = "TLS"
    MUTUAL_TLS = "mTLS"
    API_KEY = "API key"


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials of a secured server's clients, with their issuers."""

    authority: Authority
    client: Certificate
    issuer: KeyIssuer


def new_credentials(folder: Path) -> Credentials:
    """Create credentials for one server, with their files in the folder."""
    authority = Authority(folder, "authority")
    return Credentials(authority, authority.client(), KeyIssuer())


def demands(folder: Path, security: Security, given: Credentials) -> Demands:
    """The requirements for the server's configuration."""
    key_set = folder / "keys.json"
    key_set.write_text(given.issuer.published())
    return Demands(
        given.authority.server() if security is not Security.NONE else None,
        given.authority.file if security is Security.MUTUAL_TLS else None,
        key_set if security is Security.API_KEY else None,
    )


def administrator_options(security: Security, given: Credentials) -> Mapping[str, Any]:
    """The options of `temporalio.service.ConnectConfig` for a client with all permissions."""
    from temporalio.service import TLSConfig

    if security is Security.NONE:
        return {"tls": False}
    ours = security is Security.MUTUAL_TLS
    tls = TLSConfig(
        server_root_ca_cert=given.authority.file.read_bytes(),
        client_cert=given.client.certificate.read_bytes() if ours else None,
        client_private_key=given.client.key.read_bytes() if ours else None,
    )
    key = given.issuer.api_key(_EVERYTHING) if security is Security.API_KEY else None
    return {"tls": tls, "api_key": key}
