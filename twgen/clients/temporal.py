"""Makes all calls to Temporal, within their deadlines and below the server's rate limits."""

import asyncio
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from twgen.clients.deadline import Deadline
from twgen.clients.profiles import Profile, Profiles
from twgen.errors import OwnedBySomebodyElse, StateUnavailable, TwgenError
from twgen.model.credentials import remember, without_credentials
from twgen.model.spec import Connection, InTemporal
from twgen.model.values import dataclass
from twgen.reporting.printable import said

if TYPE_CHECKING:
    from aiolimiter import AsyncLimiter
    from temporalio.runtime import Runtime
    from temporalio.service import RPCError, ServiceClient

Answer = TypeVar("Answer")

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0
_CONNECTED_WITHIN = (5.0, 30.0)
"""The timeouts of the first and the second connection attempt, in seconds. Under load, the SDK core sometimes
hangs if the server closes the connection while it is being opened."""
_ADVICE = {
    "INVALID_ARGUMENT": "rejected a value in the spec: correct the spec",
    "PERMISSION_DENIED": "does not permit this call: check the credentials",
    "UNAUTHENTICATED": "requires valid credentials: check your credentials",
    "UNAVAILABLE": "is unavailable: try again later",
    "RESOURCE_EXHAUSTED": "limits the rate of calls: try again later or raise --timeout",
    "UNIMPLEMENTED": "is too old: twgen needs Temporal Server 1.29.1 or newer",
}
_CONFLICTS = {
    "ManagerIdentity '": "nothing was changed: another manager owns the worker",
    "conflict token mismatch": "nothing was changed: another client changed the traffic at the same time",
    "Workflow execution is already running": "nothing was started: the same operation was started at"
    " the same time",
    "already running": "nothing was started: another client started the gate at the same time",
}
"""The message for each known substring of a server's error text. These errors have no distinct codes."""
_HANGS_UP = (
    "closed the connection: it may require TLS, or a client certificate other than the one in {profile}"
)
_NOT_TRUSTED = "InvalidCertificate"
_NO_CONNECTION = {
    "PermissionDenied": "does not permit this call: check the credentials of {profile}",
    "Unauthenticated": "requires valid credentials: check the credentials of {profile}",
    _NOT_TRUSTED: "has a certificate that is not trusted: check server_ca_cert_path and server_name"
    " of {profile}",
    "ParseError": "was not contacted: client_key_path of {profile} is not a private key",
    "NoCertificatesPresented": "was not contacted: client_cert_path of {profile} is not a certificate",
    "KeyMismatch": "was not contacted: client_cert_path and client_key_path of {profile} do not belong"
    " together",
    "client cert": "was not contacted: {profile} needs both client_cert_path and client_key_path",
    "InvalidContentType": "does not use TLS, but {profile} requires it: correct the address; if the"
    " server is meant to run without TLS, remove the key and tls from {profile}",
    "fatal alert": "does not accept the client certificate: check client_cert_path of {profile}",
    "broken pipe": _HANGS_UP,
    "operation was canceled": _HANGS_UP,
}
"""The advice for each known substring of the SDK core's error text."""
_NO_SERVER = (
    "cannot be reached: check the address of connection {connection!r}; from outside its network,"
    " forward a port and pass --via"
)
# the SDK core's error text contains all headers, so only the reason is extracted from it
_REASON = re.compile(
    r'(?:message|error): "((?:[^"\\]|\\.)*)"'
    r"|(InvalidCertificate\(\w+|InconsistentKeys\(\w+|\w+ParseError|\w+Presented)"
)
_PASSING = {"UNAVAILABLE", "RESOURCE_EXHAUSTED"}
"""Transient statuses: the same call may succeed a moment later."""
_LOST = "due to unexpected workflow task failure"
"""Part of an error (FAILED_PRECONDITION) of the server's internal workflow for a worker or a version.

The server has not accepted the change then.
https://github.com/temporalio/temporal/blob/v1.32.0/service/history/workflow/update/abort_reason.go
"""
_NEEDS_CONNECTION = {"UNAUTHENTICATED", "PERMISSION_DENIED", "UNAVAILABLE"}
"""Statuses after which twgen reconnects, because the credentials may have been renewed."""
_EXPIRED = {"CANCELLED", "DEADLINE_EXCEEDED"}


class _Rate(NamedTuple):
    """A rate limit for calls to one namespace of a server."""

    name: str
    calls: float
    """The maximum number of calls per second."""
    at_once: float
    """The maximum number of calls that can start at once after a pause."""


# slightly lower than a server's default limits, because other clients share them; calls are spread evenly,
# because a burst slows down each response
# https://github.com/temporalio/temporal/blob/v1.32.0/service/frontend/configs/quotas.go
_DEPLOYMENT_READS = _Rate("deployments", 45, 8)
_VISIBILITY = _Rate("visibility", 9, 3)
_OTHERS = _Rate("others", 200, 16)
_RATES: Mapping[str, _Rate] = {
    "describe_worker_deployment": _DEPLOYMENT_READS,
    "describe_worker_deployment_version": _DEPLOYMENT_READS,
    "count_workflow_executions": _VISIBILITY,
    "list_worker_deployments": _VISIBILITY,
    "list_workflow_executions": _VISIBILITY,
}


@dataclass(frozen=True, slots=True)
class Call(Generic[Answer]):
    """A call to Temporal's WorkflowService for one worker."""

    spec: InTemporal
    name: str
    """The name of the method in Temporal's API, such as `DescribeWorkerDeployment`."""
    fields: Mapping[str, Any]
    """The request's fields, except the namespace."""
    value: Callable[[Any], Answer]
    """Converts the response. The response is None if the requested object does not exist and `may_be_absent`
    is true."""
    may_be_absent: bool = False
    is_retried: bool = True
    """Whether to retry the call after any transient error, which is only safe for calls that change nothing.

    A change that the server has lost is always retried.
    """

    @property
    def method(self) -> str:
        """The call's name in snake case."""
        return re.sub("(?<=[a-z])(?=[A-Z])", "_", self.name).lower()

    @property
    def request(self) -> Any:
        """The protobuf request."""
        from temporalio.api.workflowservice import v1

        request = getattr(v1, f"{self.name}Request")(**self.fields)
        if "namespace" in request.DESCRIPTOR.fields_by_name:
            request.namespace = self.spec.temporal_namespace
        return request


def subject_of(spec: InTemporal) -> str:
    """The worker's name and source file, for messages about calls."""
    name, source = spec.worker_deployment, spec.document.source
    return f"{name} of {source}" if source else name


class TemporalClients:
    """Connections to any number of Temporal servers, each with the credentials of its profile.

    Connections are reused, and belong to the event loop that first used them. A connection is dropped if it
    breaks or if the server rejects its credentials. The next call loads `profiles` again and reconnects,
    because a key or a certificate may have been renewed. `via` maps a server's address to the address that
    twgen connects to instead. `ca_files` maps the name of a Secret with trusted certificates to a file with
    them. If a profile has trusted certificates of its own, twgen ignores that file.
    """

    def __init__(
        self,
        profiles: Callable[[], Profiles],
        via: Mapping[str, str],
        ca_files: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._load = profiles
        self._profiles: Profiles | None = profiles()
        self._via = via
        self._ca_files = ca_files
        self.server_versions: dict[str, str] = {}
        """The known server versions, by address. An outdated version only makes planning slower."""
        self._connecting: dict[tuple[str, str, str], asyncio.Task[ServiceClient]] = {}
        self._sent: dict[str, None] = {}
        """The API keys and headers of all connections, which must not appear in messages."""
        self._limiters: dict[tuple[str, str, str], AsyncLimiter] = {}

    def profile_of(self, spec: InTemporal) -> Profile | None:
        """The profile for calls about a worker, or None if the calls need no profile.

        Raises StateUnavailable if there is no usable profile.
        """
        self._profiles, connection = self._profiles or self._load(), spec.connection
        if connection.ca_secret in self._ca_files:  # the file has the certificates, so no profile is needed
            connection = replace(connection, ca_secret="")
        return self._profiles.of(connection, spec.temporal_namespace, subject_of(spec))

    async def ask(self, call: Call[Answer], deadline: Deadline) -> Answer:
        """Make a call, and return the converted response.

        Raises StateUnavailable if the server rejects the call or cannot be reached, and OutOfTime after the
        deadline.
        """
        deadline = deadline.for_answer()
        return await deadline.bound(self._subject(call), self._answer(call, deadline))

    async def _answer(self, call: Call[Answer], deadline: Deadline) -> Answer:
        from aiolimiter import AsyncLimiter
        from temporalio.service import RPCError
        from tenacity import AsyncRetrying, retry_if_exception, wait_random_exponential

        client, request, refusals = await self._client(call, deadline), call.request, 0
        attempts = AsyncRetrying(
            retry=retry_if_exception(
                lambda error: (
                    isinstance(error, RPCError)
                    and (_LOST in str(error) or (call.is_retried and error.status.name in _PASSING))
                )
            ),
            # many renders start at the same time, so random pauses spread their retries
            wait=wait_random_exponential(_FIRST_PAUSE, _LONGEST_PAUSE),
            stop=lambda state: (
                state.upcoming_sleep >= deadline.remaining or refusals >= deadline.most_refusals
            ),
            reraise=True,
        )
        rate = _RATES.get(call.method, _OTHERS)
        key = (call.spec.connection.host_port, call.spec.temporal_namespace, rate.name)
        if key not in self._limiters:
            self._limiters[key] = AsyncLimiter(rate.at_once, rate.at_once / rate.calls)

        async def attempt() -> Any:
            nonlocal refusals
            await deadline.turn(self._limiters[key].acquire())
            try:
                return await getattr(client.workflow_service, call.method)(request, retry=False)
            except RPCError as error:
                refusals += error.status.name == "RESOURCE_EXHAUSTED"
                raise

        try:
            return call.value(await attempts(attempt))
        except RPCError as error:
            if error.status.name in _NEEDS_CONNECTION:
                self._forget(client)
            is_absent = error.status.name == "NOT_FOUND" and not _names_unknown_namespace(error)
            if call.may_be_absent and is_absent:
                return call.value(None)
            if is_expired(error):
                raise deadline.missed(self._subject(call)) from error
            raise refusal(self._subject(call), error, tuple(self._sent)) from error

    async def _client(self, call: Call[Any], deadline: Deadline) -> "ServiceClient":
        profile, connection = self.profile_of(call.spec), call.spec.connection
        ca_file = self._ca_files.get(connection.ca_secret, "")
        key = (connection.host_port, profile.name if profile else "", ca_file)
        if key not in self._connecting:
            opening = asyncio.create_task(self._connect(connection.host_port, profile, ca_file))

            def forget_failure(finished: "asyncio.Task[ServiceClient]") -> None:
                if finished.cancelled() or finished.exception():
                    del self._connecting[key]

            # this callback runs before the waiting calls resume. Afterwards, it would drop a connection that
            # one of these calls has opened
            opening.add_done_callback(forget_failure)
            self._connecting[key] = opening
        try:
            # if this call is cancelled, the connection attempt continues, because other calls wait for it
            return await asyncio.shield(self._connecting[key])
        except (RuntimeError, ValueError) as error:
            if is_expired(error):
                raise deadline.missed(self._subject(call)) from error
            connection = replace(connection, ca_secret="") if ca_file else connection
            text = without_credentials(str(error), tuple(self._sent))
            is_via = connection.host_port in self._via
            raise unreachable(self._subject(call), connection, key[1], text, is_via=is_via) from error

    def _forget(self, client: "ServiceClient") -> None:
        """Drop a connection, so that the next call reconnects.

        If another call has reconnected, do nothing.
        """
        for key, opened in list(self._connecting.items()):
            is_open = opened.done() and not opened.cancelled() and not opened.exception()
            if is_open and opened.result() is client:
                del self._connecting[key]
                self._profiles = None

    async def _connect(self, address: str, profile: Profile | None, ca_file: str) -> "ServiceClient":
        from temporalio.service import ConnectConfig, ServiceClient, TLSConfig

        options: dict[str, Any] = {"tls": False}
        if profile:
            options = dict(profile.connect_options())
            self._sent |= dict.fromkeys(profile.secrets)
            remember(profile.secrets)
        tls = options["tls"] if isinstance(options["tls"], TLSConfig) else TLSConfig()
        if ca_file and not tls.server_root_ca_cert:
            try:
                options["tls"] = tls = replace(tls, server_root_ca_cert=Path(ca_file).read_bytes())  # noqa: ASYNC240 - it is short
            except OSError as error:
                why = f"cannot read the trusted certificates ({error.strerror})"
                raise StateUnavailable(f"{ca_file}: {why}") from None
        if address in self._via and options["tls"]:
            # the server's certificate is issued for the profile's address, not for the --via address
            options["tls"] = replace(tls, domain=tls.domain or address.rpartition(":")[0].strip("[]"))
        target = self._via.get(address, address)
        config = ConnectConfig(target_host=target, runtime=_silent_runtime(), **options)
        for seconds in _CONNECTED_WITHIN:
            # a connection attempt that hangs would delay all later calls
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    return await ServiceClient.connect(config)
        raise RuntimeError(f"no answer within {_CONNECTED_WITHIN[-1]:g} s")

    def _subject(self, call: Call[Any]) -> str:
        address, namespace = call.spec.connection.host_port, call.spec.temporal_namespace
        via = f" via {self._via[address]}" if address in self._via else ""
        return f"Temporal at {address}{via}, namespace {namespace!r} (for {subject_of(call.spec)})"


@cache
def _silent_runtime() -> "Runtime":
    from temporalio.runtime import Runtime, TelemetryConfig

    # without this, the SDK core would write its log to stdout, between the manifests
    return Runtime(telemetry=TelemetryConfig(logging=None))


class Busy(StateUnavailable):
    """The server rejected a call because of a rate limit. The same call may succeed later."""


class OneAtATime(StateUnavailable):
    """The server already runs a batch operation in this namespace, and allows only one at a time."""


def is_expired(error: Exception) -> bool:
    """Whether the call timed out in the SDK, which may report the timeout as a cancellation."""
    status = getattr(error, "status", None)
    return status.name in _EXPIRED if status else "Timeout expired" in str(error)


def _names_unknown_namespace(error: "RPCError") -> bool:
    """Whether a NOT_FOUND error means that the namespace does not exist."""
    from temporalio.api.errordetails.v1 import NamespaceNotFoundFailure

    return any(detail.Is(NamespaceNotFoundFailure.DESCRIPTOR) for detail in error.grpc_status.details)


def refusal(server: str, error: "RPCError", secrets: tuple[str, ...] = ()) -> TwgenError:
    """Convert a server's error to StateUnavailable, or to OwnedBySomebodyElse if a change conflicts."""
    text, status = said(str(error), secrets), error.status.name
    for sign, conflict in _CONFLICTS.items():
        if sign in str(error):
            return OwnedBySomebodyElse(f"{server}: {conflict} ({text})")
    if _names_unknown_namespace(error):
        return StateUnavailable(
            f"{server}: the server has no such namespace: check workerOptions.temporalNamespace"
        )
    if "Max concurrent batch operations" in str(error):
        return OneAtATime(
            f"{server}: another batch operation is running in this namespace: try again when it has ended"
        )
    advice = _ADVICE.get(status, "answered with an error: check the server's log")
    if _LOST in str(error):
        advice = "could not make this change: try again"
    unavailable = Busy if status == "RESOURCE_EXHAUSTED" else StateUnavailable
    return unavailable(f"{server}: the server {advice} ({status}: {text})")


def unreachable(
    server: str, connection: Connection, profile: str, error: str, *, is_via: bool
) -> StateUnavailable:
    """The error for a failed connection. Its message contains the names of the Connection and the profile.

    `error` is the error text of the SDK's core, without credentials. `is_via` means that the address comes
    from --via, not from the Connection. If the trusted certificates were read from a file, the Connection has
    no `ca_secret`.
    """
    reasons = [quoted.replace('\\"', '"') or name for quoted, name in _REASON.findall(error)]
    no_connection = next((advice for sign, advice in _NO_CONNECTION.items() if sign in error), "")
    no_server = "cannot be reached: is the port forwarding for --via still running?" if is_via else _NO_SERVER
    advice = (no_connection or no_server).format(
        connection=connection.name, profile=f"profile {profile!r}" if profile else "a profile"
    )
    if connection.ca_secret and _NOT_TRUSTED in error:
        advice += (
            f", or pass --ca-file {connection.ca_secret}=FILE with the certificates that its"
            " Connection trusts"
        )
    if reasons:
        advice += f" ({said(reasons[-1].replace('(', ': '))})"
    elif not no_connection:
        advice += f" ({said(error)})"
    return StateUnavailable(f"{server} {advice}")
