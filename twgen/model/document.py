"""A document as it was read, before anything is known about it."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML or JSON document: its value, the file it stands in and its place there, from 0."""

    source: str
    index: int
    value: Any
