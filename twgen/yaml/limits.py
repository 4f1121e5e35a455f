"""Limits on the cost of reading: generous for people's files, too low for an attack."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one text (`text_bytes`, `depth`, `anchors`), and of all texts of a run together.

    `depth` counts levels of nesting, `anchors` is for one document, `nodes` counts keys and list items, and
    `expansion` characters that written-out aliases add. `remedy` is what to do when a total is reached.
    """

    text_bytes: int = 16 * 2**20
    depth: int = 100
    anchors: int = 10_000
    bytes: int = 48 * 2**20
    documents: int = 30_000
    nodes: int = 1_000_000
    expansion: int = 8 * 2**20
    remedy: str = "read fewer files at once"


DEFAULT = Limits()
"""With these, the most expensive accepted input needs less than 512 MiB of memory."""
WORLD = Limits(
    text_bytes=52 * 2**20, bytes=52 * 2**20, nodes=2_600_000, remedy="no server or snapshot may have more"
)
"""For the world from a server or a snapshot, which has every live Deployment: 20,000 versions need
491 MiB."""


@dataclass(slots=True)
class Budget:
    """The limits of a run, and the cost of its texts so far."""

    limits: Limits = DEFAULT
    bytes: int = 0
    documents: int = 0
    nodes: int = 0
    expansion: int = 0
    is_spent: bool = False
    """A total was reached: nothing more can be read."""

    def spent(self, total: str) -> str:
        """Return the message for a reached total, and remember that it was reached."""
        self.is_spent = True
        return f"more than {total} in all: {self.limits.remedy}"
