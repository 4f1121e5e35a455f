"""An event loop in a separate thread, for clients and servers that tests use from plain functions."""

import asyncio
from collections.abc import Coroutine
from threading import Thread
from typing import Any, TypeVar

Answer = TypeVar("Answer")


class Background:
    """Runs coroutines until it is closed. It can be used from any thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Run a coroutine; returns its result or raises its error."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """Cancel all running coroutines, and end the thread."""
        self.run(_cancel_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
