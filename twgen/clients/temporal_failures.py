"""What a failed call to Temporal means, in one line that says what to do."""

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
"""Of the server's own words: such an error has no code of its own."""
_LOST = "due to unexpected workflow task failure"
"""Its own workflow of a worker or a version did not come to carry out a change: FAILED_PRECONDITION."""
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
_RETRIED = {"UNAVAILABLE", "RESOURCE_EXHAUSTED"}
_MENDED_BY_CONNECTING = {"UNAUTHENTICATED", "PERMISSION_DENIED", "UNAVAILABLE"}
_EXPIRED = {"CANCELLED", "DEADLINE_EXCEEDED"}
_TIMEOUT_EXPIRED = "Timeout expired"


class OneAtATime(StateUnavailable):
    """The server runs another batch operation in this namespace, and none beside it."""


def is_expired(error: Exception) -> bool:
    """The SDK gave up waiting, which it calls cancelled."""
    status = getattr(error, "status", None)
    return status.name in _EXPIRED if status else _TIMEOUT_EXPIRED in str(error)


def is_passing(error: "RPCError") -> bool:
    """The same call may succeed in a moment."""
    return error.status.name in _RETRIED


def is_asked_too_much(error: "RPCError") -> bool:
    """The namespace is out of its rate limit."""
    return error.status.name == "RESOURCE_EXHAUSTED"


def is_mended_by_connecting(error: "RPCError") -> bool:
    """A new connection may succeed, with credentials that were renewed since."""
    return error.status.name in _MENDED_BY_CONNECTING


def is_absent(error: "RPCError") -> bool:
    """What was asked for does not exist, though its namespace does."""
    return error.status.name == "NOT_FOUND" and not _names_unknown_namespace(error)


def refusal(server: str, error: "RPCError", secrets: tuple[str, ...] = ()) -> TwgenError:
    """The error of a server that answered with one: StateUnavailable, or OwnedBySomebodyElse of a change."""
    told = said(str(error), secrets)
    conflict = next((said for sign, said in _CONFLICTS.items() if sign in str(error)), "")
    if conflict:
        return OwnedBySomebodyElse(f"{server}: {conflict} ({told})")
    if _names_unknown_namespace(error):
        return StateUnavailable(
            f"{server}: the server has no such namespace: check workerOptions.temporalNamespace"
        )
    status = error.status.name
    advice = _ADVICE.get(status, _OTHER_ADVICE)
    if _ONE_BATCH in str(error):
        return OneAtATime(
            f"{server}: another batch operation is running in this namespace: try again when it has ended"
        )
    if _LOST in str(error):
        advice = "could not make this change: try again"
    return StateUnavailable(f"{server}: the server {advice} ({status}: {told})")


def unreachable(
    server: str, connection: Connection, profile: str, told: str, *, is_via: bool
) -> StateUnavailable:
    """The error of a connection that could not be made, with the names of its Connection and its profile.

    `told` is the error of the SDK's core, without credentials.
    `is_via`: it was to be made to another address than that of the Connection, which has no `ca_secret` where
    somebody said in which file its certificates are.
    """
    reasons = [quoted.replace('\\"', '"') or named for quoted, named in _REASON.findall(told)]
    advice = next((advice for sign, advice in _NO_CONNECTION.items() if sign in told), "")
    whose = f"profile {profile!r}" if profile else "a profile"
    nobody = _NOBODY_FORWARDS if is_via else _NOBODY_THERE
    advised = (advice or nobody).format(connection=connection.name, profile=whose)
    if connection.ca_secret and _NOT_TRUSTED in told:
        advised += (
            f", or give --ca-file {connection.ca_secret}=FILE with the certificates that its"
            " Connection trusts"
        )
    if reasons:
        advised += f" ({said(reasons[-1].replace('(', ': '))})"
    elif not advice:
        advised += f" ({said(told)})"
    return StateUnavailable(f"{server} {advised}")


def _names_unknown_namespace(error: "RPCError") -> bool:
    from temporalio.api.errordetails.v1 import NamespaceNotFoundFailure

    return any(detail.Is(NamespaceNotFoundFailure.DESCRIPTOR) for detail in error.grpc_status.details)
