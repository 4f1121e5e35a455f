"""The tests' own Temporal client, which is independent of the program under test."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from testing.background import Background

if TYPE_CHECKING:
    from temporalio.runtime import Runtime
    from temporalio.service import ServiceClient

_CALL_WITHIN = timedelta(seconds=60)
_AT_ONCE = 16


class Asker:
    """One connection to a server, which can be used from any thread until it is closed.

    `options` are for `temporalio.service.ConnectConfig`.
    """

    def __init__(self, address: str, options: Mapping[str, Any]) -> None:
        self._address = address
        self._options = options
        self._background = Background()
        self._connected: ServiceClient | None = None

    def ask(self, method: str, requests: Sequence[Any], *, retry: bool = True) -> list[Any]:
        """Send requests to a method of the WorkflowService, several at a time; returns the answers.

        Raises the SDK's RPCError, or its RuntimeError if it cannot connect. Without `retry`, it raises the
        first error, even a transient one.
        """
        return self._background.run(self._ask(method, requests, retry=retry))

    def close(self) -> None:
        """Close the connection."""
        self._connected = None
        self._background.close()

    async def _ask(self, method: str, requests: Sequence[Any], *, retry: bool) -> list[Any]:
        if not self._connected:
            self._connected = await self._connect()
        call = getattr(self._connected.workflow_service, method)
        free = asyncio.Semaphore(_AT_ONCE)

        async def answer(request: Any) -> Any:
            async with free:
                return await call(request, retry=retry, timeout=_CALL_WITHIN)

        return await asyncio.gather(*map(answer, requests))

    async def _connect(self) -> "ServiceClient":
        from temporalio.service import ConnectConfig, ServiceClient

        config = ConnectConfig(target_host=self._address, runtime=_silent_runtime(), **self._options)
        return await ServiceClient.connect(config)


def succeeds(change: Callable[[], object]) -> bool:
    """Whether a change succeeds; False if the server rejects it or cannot be reached yet."""
    from temporalio.service import RPCError

    try:
        change()
    except (RPCError, RuntimeError):
        return False
    return True


@cache
def _silent_runtime() -> "Runtime":
    from temporalio.runtime import Runtime, TelemetryConfig

    return Runtime(telemetry=TelemetryConfig(logging=None))
