"""What a failed call to Temporal means, in one line that says what to do."""

import re
from typing import TYPE_CHECKING

from twgen.errors import StateUnavailable

if TYPE_CHECKING:
    from temporalio.service import RPCError

_ADVICE = {
    "PERMISSION_DENIED": "does not permit it: check the credentials",
    "UNAUTHENTICATED": "asks for other credentials: check them",
    "UNAVAILABLE": "is not available: try again when it is up",
    "RESOURCE_EXHAUSTED": "limits the rate of calls: try again later or raise --timeout",
    "UNIMPLEMENTED": "is too old: twgen needs server 1.29.1 or newer",
}
_OTHER_ADVICE = "answered with an error: look into its log"
_RETRIED = {"UNAVAILABLE", "RESOURCE_EXHAUSTED"}
_EXPIRED = {"CANCELLED", "DEADLINE_EXCEEDED"}
_TIMEOUT_EXPIRED = "Timeout expired"


def is_expired(error: Exception) -> bool:
    """The SDK gave up waiting, which it calls cancelled."""
    status = getattr(error, "status", None)
    return status.name in _EXPIRED if status else _TIMEOUT_EXPIRED in str(error)


def is_passing(error: "RPCError") -> bool:
    """The same call may succeed in a moment."""
    return error.status.name in _RETRIED


def is_absent(error: "RPCError") -> bool:
    """What was asked for does not exist, though its namespace does."""
    return error.status.name == "NOT_FOUND" and not _names_unknown_namespace(error)


def refusal(server: str, error: "RPCError") -> StateUnavailable:
    """The error of a server that answered with one."""
    if _names_unknown_namespace(error):
        return StateUnavailable(
            f"{server}: the server has no such namespace: check workerOptions.temporalNamespace"
        )
    status = error.status.name
    advice = _ADVICE.get(status, _OTHER_ADVICE)
    return StateUnavailable(f"{server}: the server {advice} ({status}: {_one_line(error)})")


def unreachable(server: str, connection: str, error: Exception) -> StateUnavailable:
    """The error of a connection that could not be made."""
    # the core of the SDK prints its whole error value, headers included, around the reason
    quoted = re.search(r'(?:message|error): "([^"]*)"', str(error))
    reason = quoted[1] if quoted else _one_line(error)
    return StateUnavailable(
        f"{server} cannot be reached: check the address of connection {connection!r} ({reason})"
    )


def _names_unknown_namespace(error: "RPCError") -> bool:
    from temporalio.api.errordetails.v1 import NamespaceNotFoundFailure

    return any(detail.Is(NamespaceNotFoundFailure.DESCRIPTOR) for detail in error.grpc_status.details)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
