"""The meaning of a failed call to Temporal, in one line that says what to do."""

import re
from typing import TYPE_CHECKING

from twgen.errors import OwnedBySomebodyElse, StateUnavailable, TwgenError
from twgen.model.spec import Connection
from twgen.reporting.printable import said

if TYPE_CHECKING:
    from temporalio.service import RPCError

_ADVICE = {
    "INVALID_ARGUMENT": "rejected a value of the spec: correct the spec",
    "PERMISSION_DENIED": "does not permit it: check the credentials",
    "UNAUTHENTICATED": "requires valid credentials: check them",
    "UNAVAILABLE": "is not available: try again when it is up",
    "RESOURCE_EXHAUSTED": "limits the rate of calls: try again later or raise --timeout",
    "UNIMPLEMENTED": "is too old: twgen needs server 1.29.1 or newer",
}
_CONFLICTS = {
    "ManagerIdentity '": "nothing was changed: another manager owns the worker",
    "conflict token mismatch": "nothing was changed: another client changed the traffic at the same time",
    "Workflow execution is already running": "nothing was started: the same operation was started at"
    " the same time",
    "already running": "nothing was started: another client started the gate at the same time",
}
"""By a part of the server's text: such an error has no code of its own."""
_LOST = "due to unexpected workflow task failure"
"""The server's own workflow for a worker or a version has failed a change: FAILED_PRECONDITION."""
_ONE_BATCH = "Max concurrent batch operations"
_OTHER_ADVICE = "answered with an error: look at its log"
_HANGS_UP = (
    "closed the connection: it may require TLS, or a client certificate other than the one in {profile}"
)
_NOT_TRUSTED = "InvalidCertificate"
_NO_CONNECTION = {
    "PermissionDenied": "does not permit it: check the credentials of {profile}",
    "Unauthenticated": "requires valid credentials: check the credentials of {profile}",
    _NOT_TRUSTED: "has a certificate that is not trusted: check server_ca_cert_path and server_name"
    " of {profile}",
    "ParseError": "was not asked: client_key_path of {profile} is not a private key",
    "NoCertificatesPresented": "was not asked: client_cert_path of {profile} is not a certificate",
    "KeyMismatch": "was not asked: client_cert_path and client_key_path of {profile} do not belong together",
    "client cert": "was not asked: {profile} needs both client_cert_path and client_key_path",
    "InvalidContentType": "does not use TLS, but {profile} requires it: correct the address; if the"
    " server is meant to run without TLS, remove the key and tls from {profile}",
    "fatal alert": "does not accept the client certificate: check client_cert_path of {profile}",
    "broken pipe": _HANGS_UP,
    "operation was canceled": _HANGS_UP,
}
"""What to do about an error of the SDK's core, by a part of its text."""
_NOBODY_THERE = (
    "cannot be reached: check the address of connection {connection!r}; from outside its network,"
    " forward a port and give --via"
)
_NOBODY_FORWARDS = "cannot be reached: is the port that --via names still forwarded?"
# the core of the SDK prints its whole error value, headers included, around the reason
_REASON = re.compile(
    r'(?:message|error): "((?:[^"\\]|\\.)*)"'
    r"|(InvalidCertificate\(\w+|InconsistentKeys\(\w+|\w+ParseError|\w+Presented)"
)
IS_PASSING = {"UNAVAILABLE", "RESOURCE_EXHAUSTED"}
"""Statuses of a server that may answer the same call in a moment."""
NEEDS_CONNECTION = {"UNAUTHENTICATED", "PERMISSION_DENIED", "UNAVAILABLE"}
"""Statuses that a new connection, with renewed credentials, may mend."""
_EXPIRED = {"CANCELLED", "DEADLINE_EXCEEDED"}


class OneAtATime(StateUnavailable):
    """The server runs another batch operation in this namespace, and only one at a time."""


def is_expired(error: Exception) -> bool:
    """The SDK stopped waiting, which it calls cancelled."""
    status = getattr(error, "status", None)
    return status.name in _EXPIRED if status else "Timeout expired" in str(error)


def names_unknown_namespace(error: "RPCError") -> bool:
    """NOT_FOUND, since there is no such namespace."""
    from temporalio.api.errordetails.v1 import NamespaceNotFoundFailure

    return any(detail.Is(NamespaceNotFoundFailure.DESCRIPTOR) for detail in error.grpc_status.details)


def refusal(server: str, error: "RPCError", secrets: tuple[str, ...] = ()) -> TwgenError:
    """The error for a server's own error: StateUnavailable, or OwnedBySomebodyElse of a change."""
    text, status = said(str(error), secrets), error.status.name
    for sign, conflict in _CONFLICTS.items():
        if sign in str(error):
            return OwnedBySomebodyElse(f"{server}: {conflict} ({text})")
    if names_unknown_namespace(error):
        return StateUnavailable(
            f"{server}: the server has no such namespace: check workerOptions.temporalNamespace"
        )
    if _ONE_BATCH in str(error):
        return OneAtATime(
            f"{server}: another batch operation is running in this namespace: try again when it has ended"
        )
    is_lost = _LOST in str(error)
    advice = "could not make this change: try again" if is_lost else _ADVICE.get(status, _OTHER_ADVICE)
    return StateUnavailable(f"{server}: the server {advice} ({status}: {text})")


def unreachable(
    server: str, connection: Connection, profile: str, error: str, *, is_via: bool
) -> StateUnavailable:
    """The error for a connection that could not be made, with the names of its Connection and its profile.

    `error` is the text of the SDK's core, without credentials. `is_via`: another address was used than the
    Connection's. The Connection has no `ca_secret` if its certificates were read from a file.
    """
    reasons = [quoted.replace('\\"', '"') or named for quoted, named in _REASON.findall(error)]
    known = next((advice for sign, advice in _NO_CONNECTION.items() if sign in error), "")
    advice = (known or (_NOBODY_FORWARDS if is_via else _NOBODY_THERE)).format(
        connection=connection.name, profile=f"profile {profile!r}" if profile else "a profile"
    )
    if connection.ca_secret and _NOT_TRUSTED in error:
        advice += (
            f", or give --ca-file {connection.ca_secret}=FILE with the certificates that its"
            " Connection trusts"
        )
    if reasons:
        advice += f" ({said(reasons[-1].replace('(', ': '))})"
    elif not known:
        advice += f" ({said(error)})"
    return StateUnavailable(f"{server} {advice}")
