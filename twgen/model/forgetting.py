"""The outcome of deleting the records of old versions in Temporal."""

from twgen.model.values import dataclass


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """The records of versions that `twgen forget` deleted in Temporal, and those that Temporal kept."""

    worker: str
    """The worker: namespace/worker."""
    deleted: tuple[str, ...]
    """The versions whose records were deleted, longest drained first: build IDs."""
    refused: tuple[str, ...]
    """The versions that Temporal did not delete, each with its build ID and the reason."""
