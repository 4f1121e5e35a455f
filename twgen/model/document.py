"""A document as it was read, before anything is known about it."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML or JSON document, or one item of a Kubernetes List in it."""

    source: str
    """Its file, or `-`."""
    index: int
    """Its place in the file, from 0."""
    value: Any
    path: str = ""
    """Where an item stands in the file's document: `items[2]`."""
