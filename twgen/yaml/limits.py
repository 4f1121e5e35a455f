"""What reading may cost at most: generous for people's files, out of reach for an attack."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What one text may cost (`text_bytes`, `depth`, `anchors`), and what all texts of a run may together.

    `depth` is levels of nesting, `anchors` those of one document, `nodes` keys and list items, `expansion`
    the characters that writing out the aliases adds. `remedy` is what to do when a total is reached.
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
"""With these, the most expensive input that is accepted stays below 512 MiB of memory."""


WORLD = Limits(
    text_bytes=52 * 2**20, bytes=52 * 2**20, nodes=2_600_000, remedy="no server or snapshot may have more"
)
"""What a server, or a snapshot, tells of the world: it holds every live Deployment, and 20,000 versions need
491 MiB."""


@dataclass(slots=True)
class Budget:
    """The limits of a run, and what its texts have cost so far."""

    limits: Limits = DEFAULT
    bytes: int = 0
    documents: int = 0
    nodes: int = 0
    expansion: int = 0
    is_spent: bool = False
    """A total was reached: nothing more can be read."""

    def spent(self, what: str) -> str:
        """Say which total is reached, and remember it."""
        self.is_spent = True
        return f"more than {what} in all: {self.limits.remedy}"
