"""Which of several ticks looks after a worker."""

from hashlib import sha256
from typing import NamedTuple

from twgen.model.spec import WorkerSpec


class Shard(NamedTuple):
    """One of the ticks that share the workers of a cluster, by their Temporal namespaces.

    A namespace limits the calls to it, so all of its workers have the same tick.
    """

    number: int
    """From 0."""
    total: int

    def has(self, spec: WorkerSpec) -> bool:
        """It looks after this worker; each worker has exactly one of them."""
        place = f"{spec.connection.host_port}/{spec.temporal_namespace}"
        digest = sha256(place.encode()).digest()
        return int.from_bytes(digest[:8], "big") % self.total == self.number

    @property
    def is_first(self) -> bool:
        """It also tells of workers whose Temporal namespace is unknown."""
        return self.number == 0


ALL = Shard(0, 1)
"""The only tick, which has every worker."""
