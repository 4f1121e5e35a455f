"""Authenticating to an API server, with a kubeconfig or the account of a Pod.

The Kubernetes client can do this too, but twgen needs nothing else from it: with its dependencies it was
150 of 234 MB of an installation, and half of the CPU time of a live start.
"""

import json
import os
import subprocess
import sys
import time
from base64 import b64encode, urlsafe_b64decode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode

from twgen.clients.http import Request, answer_to, pool_to
from twgen.clients.kubeconfig import (
    ClusterAccess,
    Context,
    Entry,
    Unusable,
    context_of_files,
    context_of_pod,
)
from twgen.errors import OutOfTime, StateUnavailable, TwgenError
from twgen.model.credentials import remember
from twgen.yaml.limits import WORLD, Budget

if TYPE_CHECKING:
    from urllib3 import PoolManager

_FILE_IS_READ_AGAIN_AFTER = 60.0
_MARGIN = 30.0
"""Seconds before its end at which a token is renewed: the request must arrive with it."""
_EXTENSION = "client.authentication.k8s.io/exec"
_PROVIDER_SECONDS = 20.0
_PROVIDER_BYTES = 2**20


class Proof(NamedTuple):
    """The value of the header Authorization, or a certificate with its key as PEM."""

    header: str = ""
    lasts: float | None = None
    """Seconds until it must be renewed; None: it never is."""
    certificate: bytes = b""
    key: bytes = b""


class Login:
    """A proof that is made again when it is due, by one thread at a time."""

    def __init__(self, make: Callable[[], Proof]) -> None:
        self._make = make
        self._lock = Lock()
        self._renew_at: float | None = None
        self.proof = self._renewed()

    def header(self) -> str:
        """The header as it must be now; raises Unusable or OSError if it cannot be renewed."""
        with self._lock:
            if self._renew_at is not None and time.monotonic() >= self._renew_at:
                self.proof = self._renewed()
            return self.proof.header

    def _renewed(self) -> Proof:
        proof = self._make()
        self._renew_at = None if proof.lasts is None else time.monotonic() + proof.lasts
        return proof


class Session(NamedTuple):
    """An API server, and how it is reached."""

    host: str
    """Its address, with a path if it is served under one."""
    pool: "PoolManager"
    login: Login

    def authorization(self) -> Mapping[str, str]:
        """The Authorization header, renewed when it is due; raises StateUnavailable if it cannot be."""
        try:
            header = self.login.header()
        except (Unusable, OSError) as error:
            raise StateUnavailable(f"the token for {self.host} cannot be renewed: {_reason(error)}") from None
        except UnicodeDecodeError:
            raise StateUnavailable(f"the token for {self.host} cannot be renewed: it is not text") from None
        return {"Authorization": header} if header else {}


def open_session(access: ClusterAccess, folder: str) -> Session:
    """The way to an API server; raises StateUnavailable if the settings are missing or wrong.

    Runs the login program that a kubeconfig may name. Certificates and keys inside the kubeconfig are written
    to files in the folder, since the TLS library reads only files.
    """
    try:
        context = (
            context_of_files(access.kubeconfig, access.context) if access.kubeconfig else context_of_pod()
        )
        return _session(context, Path(folder))
    except (Unusable, OSError, TypeError, AttributeError, ValueError) as error:
        raise StateUnavailable(
            f"Kubernetes ({access.described}) is not configured: {_reason(error)}; "
            "correct it, or pass --no-cluster"
        ) from None


def _session(context: Context, folder: Path) -> Session:
    (cluster, user), login, certificate = context, _login(context), None
    server = str(cluster.fields.get("server") or "").rstrip("/")
    if not server:
        raise Unusable("its cluster has no server")
    server = server if "://" in server else f"https://{server}"
    pem, key = login.proof.certificate, login.proof.key
    if server.startswith("https"):
        pem, key = pem or user.content("client-certificate"), key or user.content("client-key")
    if pem and key:
        certificate = folder / "tls.crt", folder / "tls.key"
        for file, content in zip(certificate, (pem, key), strict=True):
            file.touch(mode=0o600)
            file.write_bytes(content)
    pool = pool_to(
        server,
        authority=cluster.content("certificate-authority").decode(),
        is_verified=not cluster.fields.get("insecure-skip-tls-verify"),
        server_name=cluster.fields.get("tls-server-name") or "",
        certificate=certificate,
        proxy=cluster.fields.get("proxy-url") or "",
    )
    return Session(server, pool, login)


def _reason(error: Exception) -> str:
    # other errors of these types can quote the text that they reject, and that may be a token
    return " ".join(str(error).split()) if isinstance(error, Unusable | OSError) else "not a kubeconfig"


def _login(context: Context) -> Login:
    user = context.user.fields
    if provider := user.get("auth-provider"):
        if provider.get("name") != "oidc":
            raise Unusable(
                f"auth-provider {provider.get('name')!r} is not supported: use a login program (exec)"
            )
        return Login(_OidcTokens(Entry(provider.get("config") or {}, context.user.folder)).proof)
    if token_file := context.user.path("tokenFile"):
        return Login(lambda: _from_file(token_file))
    if token := user.get("token"):
        return Login(lambda: Proof(f"Bearer {token}"))
    if program := user.get("exec"):
        return Login(lambda: _from_program(program, context))
    if "username" in user and "password" in user:
        pair = f"{user['username']}:{user['password']}".encode()
        return Login(lambda: Proof(f"Basic {b64encode(pair).decode()}"))
    return Login(Proof)


def _seconds_until(end: datetime) -> float:
    # the server's clock is unknown, so this machine's clock is used
    now = datetime.now(UTC)  # noqa: TID251
    return max(0.0, (end - now).total_seconds() - _MARGIN)


def _from_file(path: Path) -> Proof:
    token = path.read_text().strip()
    if not token:
        raise Unusable(f"{path} is empty")
    return Proof(f"Bearer {token}", _FILE_IS_READ_AGAIN_AFTER)


def _from_program(program: Mapping[str, Any], context: Context) -> Proof:
    try:
        status = _run(program, context)
        end = status.get("expirationTimestamp")
        lasts = _seconds_until(datetime.fromisoformat(end)) if end else None
        if token := status.get("token"):
            return Proof(f"Bearer {token}", lasts)
        if (certificate := status.get("clientCertificateData")) and (key := status.get("clientKeyData")):
            return Proof("", None, certificate.encode(), key.encode())
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        hint = program.get("installHint") if isinstance(error, FileNotFoundError) else ""
        raise Unusable(f"its login failed ({hint or error})") from None
    raise Unusable("its login failed (exec: the program returned no token, and no certificate with its key)")


def _run(program: Mapping[str, Any], context: Context) -> Mapping[str, Any]:
    """The status of the credential that a login program prints."""
    is_interactive = (
        program.get("interactiveMode") != "Never" and sys.stdin is not None and sys.stdin.isatty()
    )
    spec: dict[str, Any] = {"interactive": is_interactive}
    if program.get("provideClusterInfo"):
        spec["cluster"] = _described(context.cluster)
    version = program["apiVersion"]
    request = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
    variables = {item["name"]: item["value"] for item in program.get("env") or ()}
    command = str(program["command"])
    # a relative path is relative to the kubeconfig; a bare name is looked for on PATH
    program_file = str(context.user.folder / command) if os.sep in command else command
    result = subprocess.run(  # noqa: S603 - the kubeconfig is the person's own
        [program_file, *map(str, program.get("args") or ())],
        stdin=None if is_interactive else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None if is_interactive else subprocess.PIPE,
        env={**os.environ, **variables, "KUBERNETES_EXEC_INFO": json.dumps(request)},  # noqa: TID251 - it is handed on
        text=True,
        check=False,
    )
    if result.returncode:
        raise Unusable(
            f"its login failed (exec: process returned {result.returncode}. {(result.stderr or '').strip()})"
        )
    answer = json.loads(result.stdout)
    if answer["apiVersion"] != version:
        raise Unusable(f"its login failed (exec: it answers as {answer['apiVersion']}, not as {version})")
    status: Mapping[str, Any] = answer["status"]
    return status


def _described(cluster: Entry) -> dict[str, Any]:
    """The cluster, in the form that a login program expects."""
    names = "server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url"
    described = {name: cluster.fields[name] for name in names if name in cluster.fields}
    if authority := cluster.content("certificate-authority"):
        described["certificate-authority-data"] = b64encode(authority).decode()
    for extension in cluster.fields.get("extensions") or ():
        if extension["name"] == _EXTENSION:
            described["config"] = extension["extension"]
    return described


class _OidcTokens:
    """The ID token of an `auth-provider` named oidc; the refresh token renews it, and no file is changed."""

    def __init__(self, provider: Entry) -> None:
        self._provider = provider
        self._token = str(provider.fields.get("id-token") or "")
        self._refresh = str(provider.fields.get("refresh-token") or "")

    def proof(self) -> Proof:
        if self._token and (present := _from_jwt(self._token)).lasts != 0:
            return present
        if not self._refresh:
            raise Unusable("its OIDC token has expired, and there is no refresh-token: log in again")
        try:
            self._renew()
        except TwgenError as error:
            raise Unusable(f"its OIDC token cannot be renewed ({error})") from None
        return _from_jwt(self._token)

    def _renew(self) -> None:
        fields = self._provider.fields
        client, secret = str(fields.get("client-id") or ""), str(fields.get("client-secret") or "")
        remember((self._refresh, secret))
        issuer = str(fields.get("idp-issuer-url") or "").rstrip("/")
        provider = self._answer("GET", f"{issuer}/.well-known/openid-configuration", {}, None)
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        form = {"grant_type": "refresh_token", "refresh_token": self._refresh, "client_id": client}
        if secret:
            pair = f"{quote(client, safe='')}:{quote(secret, safe='')}".encode()
            headers["Authorization"] = f"Basic {b64encode(pair).decode()}"
        renewed = self._answer("POST", str(provider.get("token_endpoint")), headers, urlencode(form).encode())
        if not renewed.get("id_token"):
            raise Unusable("its OIDC token cannot be renewed (the provider sent no id_token)")
        self._token = str(renewed["id_token"])
        self._refresh = str(renewed.get("refresh_token") or self._refresh)

    def _answer(self, method: str, url: str, headers: dict[str, str], body: bytes | None) -> dict[str, Any]:
        request = Request(
            subject=url,
            method=method,
            url=url,
            headers=headers,
            ends=time.monotonic() + _PROVIDER_SECONDS,
            late=OutOfTime(f"{url} did not answer within {_PROVIDER_SECONDS:.0f} s"),
            most_bytes=_PROVIDER_BYTES,
            body=body,
        )
        authority = self._provider.content("idp-certificate-authority").decode()
        answer = answer_to(request, pool_to(url, authority=authority))
        document = answer.document(Budget(WORLD))
        if answer.status != HTTPStatus.OK or document is None:
            raise Unusable(f"its OIDC token cannot be renewed ({url} answers with {answer.status})")
        return document


def _from_jwt(token: str) -> Proof:
    """The proof of an ID token; it lasts 0 seconds if it must be renewed."""
    try:
        _, claims, _ = token.split(".")
        end = json.loads(urlsafe_b64decode(claims + "=" * (-len(claims) % 4))).get("exp")
        lasts = None if end is None else _seconds_until(datetime.fromtimestamp(float(end), UTC))
    except (ValueError, TypeError, AttributeError):
        raise Unusable("its OIDC id-token is not a JSON Web Token") from None
    return Proof(f"Bearer {token}", lasts)
