"""The state of a rollout that a cluster carries out, and of its Jobs."""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from twgen.model.values import dataclass


class Driver(StrEnum):
    """The program that carries out a rollout in the cluster.

    | driver | begins it | begins it again | answers requests | writes the status |
    | --- | --- | --- | --- | --- |
    | Job | a sync | `tick` deletes the Job | the Job | the Job |
    | Hook | a sync | only a sync | the Job; then `tick` refuses them | the Job; then `tick` |
    | Tick | `tick` | `tick` | `tick` | `tick` |
    | None | a person or CI | only they | `tick` refuses them | `tick` |
    """

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
    """Identifies a Job, also if another one later gets the same name."""

    name: str
    uid: str


class EndedJob(NamedTuple):
    """A Job of a rollout that has ended. If a tracked Job is deleted, Argo CD creates it again."""

    job: JobReference
    ended_at: datetime
    is_hook: bool = False
    """Only a sync creates it again."""
    is_older: bool = False
    """It is older than its intent: the intent that it ran for was deleted."""


class RolloutMetadata(NamedTuple):
    """A rollout that `twgen tick` carries out, by the metadata of its ConfigMaps only."""

    namespace: str
    name: str
    """The name of the ConfigMap with the intent."""
    intent_hash: str
    uid: str
    """The UID of that ConfigMap."""
    request: str = ""
    """The request that waits for it, as it is written; empty: none."""
    status_version: str = ""
    """The resource version of the ConfigMap with its status; empty: there is none, or it is unknown."""

    @property
    def place(self) -> tuple[str, str]:
        """The namespace and the name of the intent."""
        return self.namespace, self.name

    def is_of(self, other: "RolloutMetadata") -> bool:
        """Both are about the same intent."""
        return (self.intent_hash, self.uid) == (other.intent_hash, other.uid)


@dataclass(frozen=True, slots=True)
class RolloutInCluster:
    """The state of a rollout in a cluster that matters while it runs."""

    is_superseded: bool = False
    """Its intent has changed or is gone, so another rollout must continue."""
    is_paused: bool = False
    """Its intent has the annotation `twgen.io/paused`."""
    older_jobs: tuple[JobReference, ...] = ()
    """The Jobs of earlier rollouts of the worker, also those that have ended."""
    older_pods: tuple[str, ...] = ()
    """The Pods of earlier rollouts of the worker that have not ended."""

    @property
    def is_stopped(self) -> bool:
        """It may change nothing now."""
        return self.is_superseded or self.is_paused or bool(self.older_pods)
