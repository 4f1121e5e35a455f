"""Which cluster, and as whom: what a kubeconfig or the Pod's own account says."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from twgen.errors import StateUnavailable
from twgen.model.values import dataclass

if TYPE_CHECKING:
    from urllib3 import PoolManager

    from twgen.clients.logins.contexts import Context
    from twgen.clients.logins.proofs import Login


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """A kubeconfig and one of its contexts, or the account of the Pod that this runs in."""

    kubeconfig: str = ""
    """Files joined by `:`, as KUBECONFIG has them; empty: the Pod's own account."""
    context: str = ""
    """Empty: the current one."""

    @property
    def described(self) -> str:
        """The cluster, for people."""
        if not self.kubeconfig:
            return "the cluster of this Pod"
        return f"context {self.context!r} of {self.kubeconfig}" if self.context else self.kubeconfig


class Session(NamedTuple):
    """An API server, and how it is reached."""

    host: str
    """Its address, with a path if it is served under one."""
    pool: "PoolManager"
    login: "Login"

    def authorization(self) -> Mapping[str, str]:
        """The header that says who asks, with a token that is renewed when it is due.

        Raises StateUnavailable when it cannot be.
        """
        from twgen.clients.logins.contexts import Unusable

        try:
            header = self.login.header()
        except (Unusable, OSError) as error:
            raise StateUnavailable(f"the token for {self.host} cannot be renewed: {_reason(error)}") from None
        return {"Authorization": header} if header else {}


def open_session(access: ClusterAccess, folder: str) -> Session:
    """The way to an API server; raises StateUnavailable when the settings are not there or wrong.

    Runs the login program that a kubeconfig may name. Certificates and keys that stand in the kubeconfig
    itself are written to files in the folder, where the TLS library wants them.
    """
    from twgen.clients.logins.contexts import Unusable, context_of_files, context_of_pod
    from twgen.clients.logins.proofs import login_of

    try:
        found = context_of_files(access.kubeconfig, access.context) if access.kubeconfig else context_of_pod()
        login = login_of(found)
        server = _server(found)
        return Session(server, _pool(server, found, login, Path(folder)), login)
    except (Unusable, OSError, TypeError, AttributeError, ValueError) as error:
        raise StateUnavailable(
            f"Kubernetes ({access.described}) is not configured: {_reason(error)}; "
            "correct it, or pass --no-cluster"
        ) from None


def _server(context: "Context") -> str:
    from twgen.clients.logins.contexts import Unusable

    server = str(context.cluster.fields.get("server") or "").rstrip("/")
    if not server:
        raise Unusable("its cluster has no server")
    return server if "://" in server else f"https://{server}"


def _pool(server: str, context: "Context", login: "Login", folder: Path) -> "PoolManager":
    from twgen.clients.logins.transport import pool_to

    (cluster, user), certificate = context, None
    pem, key = login.proof.certificate, login.proof.key
    if server.startswith("https"):
        pem, key = pem or user.content("client-certificate"), key or user.content("client-key")
    if pem and key:
        certificate = (_written(folder / "tls.crt", pem), _written(folder / "tls.key", key))
    return pool_to(
        server,
        authority=cluster.content("certificate-authority").decode(),
        is_verified=not cluster.fields.get("insecure-skip-tls-verify"),
        server_name=cluster.fields.get("tls-server-name") or "",
        certificate=certificate,
        proxy=cluster.fields.get("proxy-url") or "",
    )


def _written(file: Path, content: bytes) -> Path:
    file.touch(mode=0o600)
    file.write_bytes(content)
    return file


def _reason(error: Exception) -> str:
    from twgen.clients.logins.contexts import Unusable

    # other errors of these types can quote what they cannot take, and that may be a token
    if not isinstance(error, Unusable | OSError):
        return "not a kubeconfig"
    return " ".join(str(error).split())
