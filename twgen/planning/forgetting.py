"""Selects the records of drained versions that can be deleted from Temporal."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from twgen.errors import NegativeAnswer
from twgen.model.policy import MOST_VERSIONS
from twgen.model.spec import WorkerSpec
from twgen.model.times import later
from twgen.model.values import dataclass
from twgen.model.world import WorkerWorld
from twgen.planning.routing.target import Target
from twgen.planning.versions.facts import VersionFacts, version_facts

KEPT = 5
"""By default, twgen keeps the records of this many of the newest drained versions."""
_NEARLY_FULL = 0.75
_TRIED_AGAIN_AFTER = timedelta(hours=1)
_LONGEST_WAIT = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class OldRecord:
    """A version whose record can be deleted, unless workflows still need the version."""

    build_id: str
    drained_for: timedelta


def old_records(spec: WorkerSpec, world: WorkerWorld, now: datetime, keep: int) -> tuple[OldRecord, ...]:
    """The drained versions without pods, except the newest `keep`. The longest drained version comes first.

    Versions with open workflows are skipped. Raises NegativeAnswer if no cluster was read, because then any
    version might have pods.
    """
    if world.deployments is None:
        raise NegativeAnswer(
            f"{spec.worker_deployment}: no cluster was read, so its versions may have pods: use --kubeconfig"
        )
    drained = [facts for facts in version_facts(spec, world, now) if _is_over(facts)]
    older = sorted(drained, key=_created, reverse=True)[keep:]
    idle = (facts for facts in older if not facts.open_workflows)
    records = (OldRecord(facts.build_id, facts.drained_for or timedelta()) for facts in idle)
    return tuple(sorted(records, key=lambda record: (-record.drained_for, record.build_id)))


def records_to_forget(target: Target) -> tuple[OldRecord, ...]:
    """The records that the policy no longer keeps. Empty unless twgen is the manager of the worker."""
    spec, world, keep = target.spec, target.world, target.spec.policy.keep_records
    if keep is None or not target.is_ours or world.deployments is None or world.rollout.is_paused:
        return ()
    return old_records(spec, world, target.now, keep)


class NextTry(NamedTuple):
    """When twgen retries the deletion of a record after a failure."""

    at: datetime
    wait: timedelta

    @classmethod
    def after(cls, before: "NextTry | None", now: datetime) -> "NextTry":
        """The next try. The first wait is an hour, and each later wait is twice as long, up to a day."""
        wait = min(before.wait * 2, _LONGEST_WAIT) if before else _TRIED_AGAIN_AFTER
        return cls(later(now, wait), wait)


def without_workflows(
    records: Sequence[OldRecord], open_workflows: Mapping[str, int]
) -> tuple[OldRecord, ...]:
    """The records of versions on which no open workflows were counted."""
    return tuple(record for record in records if open_workflows.get(record.build_id) == 0)


def full_warnings(spec: WorkerSpec, world: WorkerWorld, now: datetime) -> tuple[str, ...]:
    """A warning if Temporal will soon accept no new version, and deleting old records would make room."""
    registered = len(world.temporal.versions) if world.temporal else 0
    if registered < MOST_VERSIONS * _NEARLY_FULL or world.deployments is None:
        return ()
    old = old_records(spec, world, now, spec.policy.keep_records or KEPT)
    if not old:
        return ()
    command = f"twgen forget worker/{spec.name} -n {spec.namespace}"
    why = f"{len(old)} of them drained long ago: `{command}` deletes their records"
    return (f"Temporal knows {registered} of at most {MOST_VERSIONS} versions, and {why}",)


def _is_over(facts: VersionFacts) -> bool:
    # the record of a serverless version also contains how Temporal starts its workers
    is_serverless = facts.version is not None and facts.version.serverless
    is_needed = facts.is_target or facts.live or facts.terminating or is_serverless
    # within the rollback window, a rollback makes the version current again immediately
    kept_for = max(facts.both_delays, facts.spec.policy.rollback_window)
    return facts.drained_for is not None and facts.drained_for > kept_for and not is_needed


def _created(facts: VersionFacts) -> tuple[bool, datetime, str]:
    created = facts.version.created_at if facts.version else None
    # a version of unknown age counts as the newest
    return created is None, created or facts.now, facts.build_id
