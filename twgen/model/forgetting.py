"""The outcome of deleting the records of old versions in Temporal."""

from twgen.model.values import dataclass


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """The versions whose records `twgen forget` deleted in Temporal, and the versions that remain."""

    worker: str
    """The name of the Worker Deployment in Temporal: namespace/worker, such as shop/payments."""
    deleted: tuple[str, ...]
    """The build IDs of the versions whose records were deleted. The version that drained first comes
    first."""
    refused: tuple[str, ...]
    """The versions that Temporal did not delete, each with its build ID and the reason."""
