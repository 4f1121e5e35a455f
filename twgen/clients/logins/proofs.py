"""What a user of a kubeconfig shows an API server: a token, a password, or a certificate from a program."""

import json
import os
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from twgen.clients.logins.contexts import Context, Entry, Unusable

_FILE_IS_READ_AGAIN_AFTER = 60.0
_MARGIN = 30.0
"""Seconds before its end at which a token is renewed: the request must arrive with it."""
_EXTENSION = "client.authentication.k8s.io/exec"


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


def login_of(context: Context) -> Login:
    """The login of a context's user; raises Unusable or OSError."""
    user = context.user.fields
    if provider := user.get("auth-provider"):
        from twgen.clients.logins.oidc import OidcTokens

        if provider.get("name") != "oidc":
            raise Unusable(
                f"auth-provider {provider.get('name')!r} is not supported: use a login program (exec)"
            )
        return Login(OidcTokens(Entry(provider.get("config") or {}, context.user.folder)).proof)
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


def seconds_until(end: datetime) -> float:
    """How long a credential can be used that ends at a time; never negative."""
    # it ends by a clock, and which one a server has is not known: this machine's is the only one
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
        lasts = seconds_until(datetime.fromisoformat(end)) if end else None
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
    asked: dict[str, Any] = {"interactive": is_interactive}
    if program.get("provideClusterInfo"):
        asked["cluster"] = _described(context.cluster)
    version = program["apiVersion"]
    request = {"apiVersion": version, "kind": "ExecCredential", "spec": asked}
    variables = {item["name"]: item["value"] for item in program.get("env") or ()}
    command = str(program["command"])
    # a relative path is relative to the kubeconfig; a bare name is looked for on PATH
    found = str(context.user.folder / command) if os.sep in command else command
    ended = subprocess.run(  # noqa: S603 - the kubeconfig is the person's own
        [found, *map(str, program.get("args") or ())],
        stdin=None if is_interactive else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None if is_interactive else subprocess.PIPE,
        env={**os.environ, **variables, "KUBERNETES_EXEC_INFO": json.dumps(request)},  # noqa: TID251 - it is handed on
        text=True,
        check=False,
    )
    if ended.returncode:
        raise Unusable(
            f"its login failed (exec: process returned {ended.returncode}. {(ended.stderr or '').strip()})"
        )
    answer = json.loads(ended.stdout)
    if answer["apiVersion"] != version:
        raise Unusable(f"its login failed (exec: it answers as {answer['apiVersion']}, not as {version})")
    status: Mapping[str, Any] = answer["status"]
    return status


def _described(cluster: Entry) -> dict[str, Any]:
    """The cluster, in the form that a login program expects."""
    described = {
        name: cluster.fields[name]
        for name in ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url")
        if name in cluster.fields
    }
    if authority := cluster.content("certificate-authority"):
        described["certificate-authority-data"] = b64encode(authority).decode()
    for extension in cluster.fields.get("extensions") or ():
        if extension["name"] == _EXTENSION:
            described["config"] = extension["extension"]
    return described
