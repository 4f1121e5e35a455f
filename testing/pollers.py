"""Polls for many versions without a process for each, for tests that never run a workflow."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from testing.background import Background
from testing.workers import DeployedWorker

if TYPE_CHECKING:
    from temporalio.service import ServiceClient

_POLL = timedelta(seconds=70)
"""A server returns an empty answer after a minute."""
_PAUSE = 1.0


@contextmanager
def polled(address: str, versions: Iterable[tuple[DeployedWorker, str]]) -> Iterator[None]:
    """Poll for workflow tasks of these versions, given by worker and build ID, until the block ends."""
    background = Background()
    try:
        background.run(_begin(address, [worker.poll_request(build_id) for worker, build_id in versions]))
        yield
    finally:
        background.close()


async def _begin(address: str, requests: Iterable[Any]) -> None:
    from temporalio.service import ConnectConfig, ServiceClient

    client = await ServiceClient.connect(ConnectConfig(target_host=address))
    # the event loop keeps only weak references to tasks
    _POLLING.update(asyncio.create_task(_poll(client, request)) for request in requests)


_POLLING = set[asyncio.Task[None]]()


async def _poll(client: "ServiceClient", request: Any) -> None:
    from temporalio.service import RPCError

    while True:
        with suppress(RPCError):
            await client.workflow_service.poll_workflow_task_queue(request, retry=False, timeout=_POLL)
        await asyncio.sleep(_PAUSE)
