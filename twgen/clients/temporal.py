"""All calls to Temporal, inside their deadlines and under the server's own rate limits."""

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
"""Seconds of the first try and of the second: under load, the SDK's core sometimes waits for ever if a server
closes the connection that it is opening."""
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
"""By a part of the server's text: these errors have no codes of their own."""
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
_NO_SERVER = (
    "cannot be reached: check the address of connection {connection!r}; from outside its network,"
    " forward a port and give --via"
)
# the core of the SDK prints its whole error value, headers included, around the reason
_REASON = re.compile(
    r'(?:message|error): "((?:[^"\\]|\\.)*)"'
    r"|(InvalidCertificate\(\w+|InconsistentKeys\(\w+|\w+ParseError|\w+Presented)"
)
_PASSING = {"UNAVAILABLE", "RESOURCE_EXHAUSTED"}
"""Statuses of a server that may answer the same call in a moment."""
_NEEDS_CONNECTION = {"UNAUTHENTICATED", "PERMISSION_DENIED", "UNAVAILABLE"}
"""Statuses that a new connection, with renewed credentials, may fix."""
_EXPIRED = {"CANCELLED", "DEADLINE_EXCEEDED"}


class _Rate(NamedTuple):
    """Calls a second for one namespace of one server, and how many at once after a rest."""

    name: str
    calls: float
    at_once: float


# a little below a server's default limits, because other clients share them; and evenly, since a burst slows
# down each answer
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
    """One call of Temporal's WorkflowService about a worker."""

    spec: InTemporal
    name: str
    """In Temporal's API, such as `DescribeWorkerDeployment`."""
    fields: Mapping[str, Any]
    """The fields of the request, without its namespace."""
    value: Callable[[Any], Answer]
    """Makes a value of the answer; of None if `may_be_absent` and it is absent."""
    may_be_absent: bool = False
    is_retried: bool = True
    """It changes nothing, so it is repeated after a failure that passes."""

    @property
    def method(self) -> str:
        """The name of the call in snake case."""
        return re.sub("(?<=[a-z])(?=[A-Z])", "_", self.name).lower()

    @property
    def request(self) -> Any:
        """As protobuf."""
        from temporalio.api.workflowservice import v1

        request = getattr(v1, f"{self.name}Request")(**self.fields)
        if "namespace" in request.DESCRIPTOR.fields_by_name:
            request.namespace = self.spec.temporal_namespace
        return request


def subject_of(spec: InTemporal) -> str:
    """The subject of a call about a worker, for people."""
    name, source = spec.worker_deployment, spec.document.source
    return f"{name} of {source}" if source else name


class TemporalClients:
    """Connections to any number of Temporal servers, each with the credentials of its profile.

    They outlive a reading, and belong to the event loop that first used them. A connection that is broken, or
    whose credentials a server rejects, is dropped: the next call connects with the `profiles` of that time,
    since a key or a certificate may have been renewed. `via` has the addresses to use instead of others,
    `ca_files` the file with the certificates of a Secret that a Connection trusts: a profile overrides it.
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
        """By address, once known; an outdated one only makes a plan slower."""
        self._connecting: dict[tuple[str, str, str], asyncio.Task[ServiceClient]] = {}
        self._sent: dict[str, None] = {}
        """The keys and headers of all connections, which no message shows."""
        self._limiters: dict[tuple[str, str, str], AsyncLimiter] = {}

    def profile_of(self, spec: InTemporal) -> Profile | None:
        """The profile that calls about a worker use (None: none); raises StateUnavailable when none may."""
        self._profiles, connection = self._profiles or self._load(), spec.connection
        if connection.ca_secret in self._ca_files:  # the trusted certificates are known without a profile
            connection = replace(connection, ca_secret="")
        return self._profiles.of(connection, spec.temporal_namespace, subject_of(spec))

    async def ask(self, call: Call[Answer], deadline: Deadline) -> Answer:
        """The value of the answer.

        Raises StateUnavailable when the server refuses or cannot be reached, OutOfTime after the deadline.
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
                    call.is_retried and isinstance(error, RPCError) and error.status.name in _PASSING
                )
            ),
            # many renders start together and must not come back together
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

            # before the waiting calls resume: a late one would drop the connection that another has opened
            opening.add_done_callback(forget_failure)
            self._connecting[key] = opening
        try:
            # one cancelled call must not cancel the connection for the others
            return await asyncio.shield(self._connecting[key])
        except (RuntimeError, ValueError) as error:
            if is_expired(error):
                raise deadline.missed(self._subject(call)) from error
            connection = replace(connection, ca_secret="") if ca_file else connection
            text = without_credentials(str(error), tuple(self._sent))
            is_via = connection.host_port in self._via
            raise unreachable(self._subject(call), connection, key[1], text, is_via=is_via) from error

    def _forget(self, client: "ServiceClient") -> None:
        """Connect again at the next call, unless another call has already."""
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
            # the certificate is for the address of the profile
            options["tls"] = replace(tls, domain=tls.domain or address.rpartition(":")[0].strip("[]"))
        target = self._via.get(address, address)
        config = ConnectConfig(target_host=target, runtime=_silent_runtime(), **options)
        for seconds in _CONNECTED_WITHIN:
            # a connection that hangs would delay every later call
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

    # the core of the SDK would log to stdout, between the manifests
    return Runtime(telemetry=TelemetryConfig(logging=None))


class Busy(StateUnavailable):
    """The server limits the rate of calls; it may answer the same call later."""


class OneAtATime(StateUnavailable):
    """The server runs another batch operation in this namespace, and only one at a time."""


def is_expired(error: Exception) -> bool:
    """The SDK stopped waiting, which it calls cancelled."""
    status = getattr(error, "status", None)
    return status.name in _EXPIRED if status else "Timeout expired" in str(error)


def _names_unknown_namespace(error: "RPCError") -> bool:
    """NOT_FOUND, since there is no such namespace."""
    from temporalio.api.errordetails.v1 import NamespaceNotFoundFailure

    return any(detail.Is(NamespaceNotFoundFailure.DESCRIPTOR) for detail in error.grpc_status.details)


def refusal(server: str, error: "RPCError", secrets: tuple[str, ...] = ()) -> TwgenError:
    """The error for a server's own error: StateUnavailable, or OwnedBySomebodyElse of a change."""
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
    advice = _ADVICE.get(status, "answered with an error: look at its log")
    # FAILED_PRECONDITION: the server's own workflow for a worker or a version has failed
    if "due to unexpected workflow task failure" in str(error):
        advice = "could not make this change: try again"
    unavailable = Busy if status == "RESOURCE_EXHAUSTED" else StateUnavailable
    return unavailable(f"{server}: the server {advice} ({status}: {text})")


def unreachable(
    server: str, connection: Connection, profile: str, error: str, *, is_via: bool
) -> StateUnavailable:
    """The error for a connection that could not be made, with the names of its Connection and its profile.

    `error` is the text of the SDK's core, without credentials. `is_via`: another address was used than the
    Connection's. The Connection has no `ca_secret` if its certificates were read from a file.
    """
    reasons = [quoted.replace('\\"', '"') or name for quoted, name in _REASON.findall(error)]
    no_connection = next((advice for sign, advice in _NO_CONNECTION.items() if sign in error), "")
    no_server = "cannot be reached: is the port that --via names still forwarded?" if is_via else _NO_SERVER
    advice = (no_connection or no_server).format(
        connection=connection.name, profile=f"profile {profile!r}" if profile else "a profile"
    )
    if connection.ca_secret and _NOT_TRUSTED in error:
        advice += (
            f", or give --ca-file {connection.ca_secret}=FILE with the certificates that its"
            " Connection trusts"
        )
    if reasons:
        advice += f" ({said(reasons[-1].replace('(', ': '))})"
    elif not no_connection:
        advice += f" ({said(error)})"
    return StateUnavailable(f"{server} {advice}")
