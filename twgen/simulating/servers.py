"""What Temporal servers do differently; `tests/servers/test_simulation_against_temporal.py` checks it."""

from dataclasses import dataclass

NEWEST = "1.32.0"
_UNKNOWN = (99, 0)


@dataclass(frozen=True, slots=True)
class Server:
    """The ways of one server."""

    version: str
    tells_when_current: bool
    """A version carries `lastCurrentAt`."""
    tells_update_state: bool
    """Routing says whether its last change has reached every task queue."""
    pinned_start_drains: bool
    """A workflow that is started pinned to an inactive or drained version makes that version Draining."""


def server_of(version: str) -> Server:
    """The ways of a server, by its version; one that does not say its version is taken for the newest."""
    release = _release(version)
    return Server(
        version=version or NEWEST,
        tells_when_current=release >= (1, 30),
        tells_update_state=release >= (1, 31),
        pinned_start_drains=release >= (1, 32),
    )


def _release(version: str) -> tuple[int, ...]:
    numbers = [part for part in version.split(".")[:2] if part.isdigit()]
    return tuple(int(part) for part in numbers) if len(numbers) > 1 else _UNKNOWN
