"""What is wrong with a document, and where."""

from dataclasses import dataclass

from twgen.model.document import Document


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong at a path (`spec.rollout.steps[1]`) of a document that the caller knows."""

    path: str
    message: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong at a path of a document, in one sentence for the person who wrote it."""

    document: Document
    path: str
    message: str
