"""Every call to Temporal goes through here, within one deadline and under the server's own rate limits."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from twgen.clients.deadline import Deadline
from twgen.clients.profiles import Profile, Profiles
from twgen.clients.temporal_failures import is_absent, is_expired, is_passing, refusal, unreachable
from twgen.model.connection import Connection

if TYPE_CHECKING:
    from aiolimiter import AsyncLimiter
    from temporalio.runtime import Runtime
    from temporalio.service import RPCError, ServiceClient

_AT_ONCE = 8
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0


@dataclass(frozen=True, slots=True)
class _Rate:
    """So many calls in so many seconds, for one namespace of one server."""

    name: str
    calls: float
    seconds: float


# a little below what a server allows by default: the rest is for everybody else
# https://github.com/temporalio/temporal/blob/v1.32.0/service/frontend/configs/quotas.go
_DEPLOYMENT_READS = _Rate("deployments", 90, 2)
_VISIBILITY = _Rate("visibility", 9, 1)
_RATES: Mapping[str, _Rate] = {
    "describe_worker_deployment": _DEPLOYMENT_READS,
    "describe_worker_deployment_version": _DEPLOYMENT_READS,
    "count_workflow_executions": _VISIBILITY,
    "list_workflow_executions": _VISIBILITY,
}


@dataclass(frozen=True, slots=True)
class Call:
    """One call of Temporal's WorkflowService: the method in snake case, and its request as protobuf."""

    connection: Connection
    namespace: str
    method: str
    request: Any
    may_be_absent: bool = False
    """What is asked for may not exist: the answer is None then, and no error."""

    @property
    def server(self) -> str:
        """Who is asked, for people."""
        return f"Temporal at {self.connection.host_port}, namespace {self.namespace!r}"


class TemporalClients:
    """Clients for any number of Temporal servers, each with the credentials of its profile."""

    def __init__(self, deadline: Deadline, profiles: Profiles) -> None:
        self._deadline = deadline
        self._profiles = profiles
        self._runner = asyncio.Runner()
        self._connecting: dict[tuple[str, str], asyncio.Task[ServiceClient]] = {}
        self._limiters: dict[tuple[str, str, str], AsyncLimiter] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.close()

    def ask(self, calls: Iterable[Call]) -> list[Any]:
        """The answers in the order of the calls, at most 8 asked at a time; the first failure fails all.

        Raises StateUnavailable when a server refuses or cannot be reached, OutOfTime after the deadline.
        """
        return self._runner.run(self._ask_all(list(calls)))

    async def _ask_all(self, calls: list[Call]) -> list[Any]:
        # no call leaves before every call has its profile
        profiles = [self._profiles.of(call.connection, call.namespace) for call in calls]
        free = asyncio.Semaphore(_AT_ONCE)
        tasks = [
            asyncio.create_task(self._ask_in_turn(call, profile, free))
            for call, profile in zip(calls, profiles, strict=True)
        ]
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask_in_turn(self, call: Call, profile: Profile | None, free: asyncio.Semaphore) -> Any:
        async with free:
            try:
                async with asyncio.timeout_at(self._deadline.at):
                    return await self._ask_until_answered(call, profile)
            except TimeoutError:
                raise self._deadline.missed(call.server) from None

    async def _ask_until_answered(self, call: Call, profile: Profile | None) -> Any:
        from temporalio.service import RPCError
        from tenacity import AsyncRetrying, retry_if_exception, stop_before_delay, wait_random_exponential

        client = await self._client(call, profile)
        attempts = AsyncRetrying(
            retry=retry_if_exception(lambda error: isinstance(error, RPCError) and is_passing(error)),
            # many renders start together and must not come back together
            wait=wait_random_exponential(_FIRST_PAUSE, _LONGEST_PAUSE),
            stop=stop_before_delay(self._deadline.remaining),
            reraise=True,
        )
        try:
            return await attempts(self._ask_once, client, call)
        except RPCError as error:
            if call.may_be_absent and is_absent(error):
                return None
            raise self._failure(call, error) from error

    async def _ask_once(self, client: "ServiceClient", call: Call) -> Any:
        if rate := _RATES.get(call.method):
            await self._limiter(call, rate).acquire()
        return await getattr(client.workflow_service, call.method)(call.request, retry=False)

    def _limiter(self, call: Call, rate: _Rate) -> "AsyncLimiter":
        from aiolimiter import AsyncLimiter

        key = (call.connection.host_port, call.namespace, rate.name)
        if key not in self._limiters:
            self._limiters[key] = AsyncLimiter(rate.calls, rate.seconds)
        return self._limiters[key]

    async def _client(self, call: Call, profile: Profile | None) -> "ServiceClient":
        key = (call.connection.host_port, profile.name if profile else "")
        if key not in self._connecting:
            self._connecting[key] = asyncio.create_task(_connect(call.connection.host_port, profile))
        try:
            # one call that is cut must not cut the connection of the others
            return await asyncio.shield(self._connecting[key])
        except (RuntimeError, ValueError) as error:
            if is_expired(error):
                raise self._deadline.missed(call.server) from error
            raise unreachable(call.server, call.connection.name, key[1], error) from error

    def _failure(self, call: Call, error: "RPCError") -> Exception:
        return self._deadline.missed(call.server) if is_expired(error) else refusal(call.server, error)


async def _connect(address: str, profile: Profile | None) -> "ServiceClient":
    from temporalio.service import ConnectConfig, ServiceClient

    options = profile.connect_options() if profile else {"tls": False}
    return await ServiceClient.connect(
        ConnectConfig(target_host=address, runtime=_silent_runtime(), **options)
    )


@cache
def _silent_runtime() -> "Runtime":
    from temporalio.runtime import Runtime, TelemetryConfig

    # the core of the SDK would log to stdout, between the manifests
    return Runtime(telemetry=TelemetryConfig(logging=None))
