"""What a cluster says of a rollout that is carried out in it, and of its Jobs."""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from twgen.model.values import dataclass


class Driver(StrEnum):
    """What runs a rollout in the cluster."""

    AUTO = "Auto"
    HOOK = "Hook"
    JOB = "Job"
    TICK = "Tick"
    NONE = "None"

    @property
    def has_job(self) -> bool:
        """A Job in the namespace of the worker runs it."""
        return self not in {Driver.TICK, Driver.NONE}


class JobReference(NamedTuple):
    """A Job, and no other one that has its name later."""

    name: str
    uid: str


class EndedJob(NamedTuple):
    """A Job of a rollout that has ended; Argo CD makes a tracked one again when it is gone."""

    job: JobReference
    ended_at: datetime
    is_hook: bool = False
    """Only a sync makes it again."""
    is_older: bool = False
    """Its intent was created after it: the intent that it ran for was deleted."""


class Glimpse(NamedTuple):
    """What the metadata of its ConfigMaps tells of a rollout that `twgen tick` carries out."""

    namespace: str
    name: str
    """Of the ConfigMap with the intent."""
    intent_hash: str
    uid: str
    """Of that ConfigMap."""
    is_asked: bool
    """Somebody requests something of it."""

    @property
    def place(self) -> tuple[str, str]:
        """The namespace and the name of the intent."""
        return self.namespace, self.name

    def is_of(self, other: "Glimpse") -> bool:
        """Both are of the same intent."""
        return (self.intent_hash, self.uid) == (other.intent_hash, other.uid)


@dataclass(frozen=True, slots=True)
class RolloutInCluster:
    """What a cluster says of the rollout that is carried out in it right now."""

    is_superseded: bool = False
    """Its intent has changed, or is gone: another rollout is wanted."""
    is_paused: bool = False
    """Somebody annotated its intent so."""
    older_jobs: tuple[JobReference, ...] = ()
    """Those of earlier rollouts of the worker, ended or not."""
    older_pods: tuple[str, ...] = ()
    """The Pods of earlier rollouts of the worker that have not ended."""
