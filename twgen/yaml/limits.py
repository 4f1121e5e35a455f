"""What a text may cost at most: generous for people's files, out of reach for an attack."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What one read accepts: bytes of text, levels of nesting, documents, and keys and list items in all.

    `expansion` is how many characters writing out the aliases may add.
    """

    bytes: int = 64 * 2**20
    depth: int = 100
    documents: int = 100_000
    nodes: int = 10_000_000
    expansion: int = 8 * 2**20


DEFAULT = Limits()
