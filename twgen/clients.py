"""Opens clients: every call to Temporal goes through here, within one deadline."""

import asyncio
import random
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from twgen.errors import OutOfTime, StateUnavailable, TwgenError
from twgen.model.connection import Connection

if TYPE_CHECKING:
    from temporalio.runtime import Runtime
    from temporalio.service import RPCError, ServiceClient

_AT_ONCE = 8
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0
_FAREWELL = 0.05
_TIMEOUT_EXPIRED = "Timeout expired"
_RETRIED = {"UNAVAILABLE", "RESOURCE_EXHAUSTED"}
_EXPIRED = {"CANCELLED", "DEADLINE_EXCEEDED"}
_ADVICE = {
    "PERMISSION_DENIED": "does not permit it: check the credentials",
    "UNAUTHENTICATED": "asks for other credentials: check them",
    "UNAVAILABLE": "is not available: try again when it is up",
    "RESOURCE_EXHAUSTED": "limits the rate of calls: try again later or raise --timeout",
    "UNIMPLEMENTED": "is too old: twgen needs server 1.29.1 or newer",
}
_OTHER_ADVICE = "answered with an error: look into its log"


@dataclass(frozen=True, slots=True)
class Call:
    """One call of Temporal's WorkflowService: the method in snake case, and its request as protobuf."""

    connection: Connection
    namespace: str
    method: str
    request: Any
    may_be_absent: bool = False
    """What is asked for may not exist: the answer is None then, and no error."""


class TemporalClients:
    """Clients for any number of Temporal servers, and one deadline for all that is asked of them.

    `timeout` is in seconds, from entering the context. `allow_unlisted` permits a connection for which the
    operator has no profile.
    """

    def __init__(self, timeout: float, *, allow_unlisted: bool = False) -> None:
        self._timeout = timeout
        self._allow_unlisted = allow_unlisted
        self._runner = asyncio.Runner()
        self._deadline = 0.0
        self._connecting: dict[str, asyncio.Task[ServiceClient]] = {}

    def __enter__(self) -> Self:
        self._deadline = self._runner.get_loop().time() + self._timeout
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.close()
        if kind:
            # threads of the SDK whose calls were cut need the interpreter once more; without it they panic
            time.sleep(_FAREWELL)

    def ask(self, calls: Iterable[Call]) -> list[Any]:
        """The answers in the order of the calls, at most 8 asked at a time; the first failure fails all.

        Raises StateUnavailable when a server refuses or cannot be reached, OutOfTime after the deadline.
        """
        return self._runner.run(self._ask_all(list(calls)))

    async def _ask_all(self, calls: list[Call]) -> list[Any]:
        for call in calls:
            self._refuse_unusable(call)
        free = asyncio.Semaphore(_AT_ONCE)
        tasks = [asyncio.create_task(self._ask_in_turn(call, free)) for call in calls]
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _refuse_unusable(self, call: Call) -> None:
        connection = call.connection
        if connection.secret_name or connection.tls_server_name:
            raise StateUnavailable(
                f"{_server(call)}: connection {connection.name!r} needs TLS or credentials, "
                "which this version cannot use: take a snapshot elsewhere and pass it with --snapshot"
            )
        if not self._allow_unlisted:
            raise StateUnavailable(
                f"{_server(call)}: no profile of the operator matches this address and namespace: "
                "add one, or pass --allow-unlisted-connections for local work"
            )

    async def _ask_in_turn(self, call: Call, free: asyncio.Semaphore) -> Any:
        async with free:
            try:
                async with asyncio.timeout_at(self._deadline):
                    return await self._ask_until_answered(call)
            except TimeoutError:
                raise self._out_of_time(call) from None

    async def _ask_until_answered(self, call: Call) -> Any:
        from temporalio.service import RPCError

        client = await self._client(call)
        pause = _FIRST_PAUSE
        while True:
            try:
                return await getattr(client.workflow_service, call.method)(call.request, retry=False)
            except RPCError as error:
                if call.may_be_absent and _is_absent(error):
                    return None
                # jitter: many renders start together and must not come back together
                wait = pause * random.uniform(0.5, 1.5)  # noqa: S311 - not for secrets
                if error.status.name not in _RETRIED or self._remaining() <= wait:
                    raise self._failure(call, error) from error
            await asyncio.sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _client(self, call: Call) -> "ServiceClient":
        address = call.connection.host_port
        if address not in self._connecting:
            self._connecting[address] = asyncio.create_task(_connect(address))
        try:
            # one call that is cut must not cut the connection of the others
            return await asyncio.shield(self._connecting[address])
        except (RuntimeError, ValueError) as error:
            if _TIMEOUT_EXPIRED in str(error):
                raise self._out_of_time(call) from error
            raise StateUnavailable(
                f"{_server(call)} cannot be reached: check the address of connection "
                f"{call.connection.name!r} ({_reason(error)})"
            ) from error

    def _failure(self, call: Call, error: "RPCError") -> TwgenError:
        status = error.status.name
        if status in _EXPIRED:
            return self._out_of_time(call)
        if _names_unknown_namespace(error):
            return StateUnavailable(
                f"{_server(call)}: the server has no such namespace: check workerOptions.temporalNamespace"
            )
        advice = _ADVICE.get(status, _OTHER_ADVICE)
        return StateUnavailable(f"{_server(call)}: the server {advice} ({status}: {_one_line(error)})")

    def _out_of_time(self, call: Call) -> OutOfTime:
        return OutOfTime(
            f"{_server(call)} did not answer within {self._timeout:g} s: "
            "check the server and the network, or raise --timeout"
        )

    def _remaining(self) -> float:
        return self._deadline - self._runner.get_loop().time()


async def _connect(address: str) -> "ServiceClient":
    from temporalio.service import ConnectConfig, ServiceClient

    return await ServiceClient.connect(ConnectConfig(target_host=address, runtime=_silent_runtime()))


@cache
def _silent_runtime() -> "Runtime":
    from temporalio.runtime import Runtime, TelemetryConfig

    # the core of the SDK would log to stdout, between the manifests
    return Runtime(telemetry=TelemetryConfig(logging=None))


def _is_absent(error: "RPCError") -> bool:
    return error.status.name == "NOT_FOUND" and not _names_unknown_namespace(error)


def _names_unknown_namespace(error: "RPCError") -> bool:
    from temporalio.api.errordetails.v1 import NamespaceNotFoundFailure

    return any(detail.Is(NamespaceNotFoundFailure.DESCRIPTOR) for detail in error.grpc_status.details)


def _server(call: Call) -> str:
    return f"Temporal at {call.connection.host_port}, namespace {call.namespace!r}"


def _reason(error: Exception) -> str:
    # the core of the SDK prints its whole error value, headers included, around the reason
    quoted = re.search(r'(?:message|error): "([^"]*)"', str(error))
    return quoted[1] if quoted else _one_line(error)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
