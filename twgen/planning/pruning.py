"""Which records of drained versions Temporal no longer needs to keep."""

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
"""The newest drained versions that stay unless a person says another number."""
_NEARLY_FULL = 0.75
_TRIED_AGAIN_AFTER = timedelta(hours=1)
_LONGEST_WAIT = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class OldRecord:
    """A version whose record may be deleted, unless workflows still need it."""

    build_id: str
    drained_for: timedelta


def old_records(spec: WorkerSpec, world: WorkerWorld, now: datetime, keep: int) -> tuple[OldRecord, ...]:
    """The drained versions of a worker without pods, longest drained first, but for the newest `keep`.

    One on which this look has counted open workflows is not old. Raises NegativeAnswer without a cluster:
    what was not read may have pods.
    """
    if world.deployments is None:
        raise NegativeAnswer(
            f"{spec.worker_deployment}: no cluster was read, so its versions may have pods: give --kubeconfig"
        )
    drained = [facts for facts in version_facts(spec, world, now) if _is_over(facts)]
    older = sorted(drained, key=_created, reverse=True)[keep:]
    idle = (facts for facts in older if not facts.open_workflows)
    records = (OldRecord(facts.build_id, facts.drained_for or timedelta()) for facts in idle)
    return tuple(sorted(records, key=lambda record: (-record.drained_for, record.build_id)))


def records_to_prune(target: Target) -> tuple[OldRecord, ...]:
    """The records that the policy of a worker no longer keeps, as long as its manager may delete them."""
    spec, world, keep = target.spec, target.world, target.spec.policy.keep_records
    if keep is None or not target.is_ours or world.deployments is None or world.rollout.is_paused:
        return ()
    return old_records(spec, world, target.now, keep)


class NextTry(NamedTuple):
    """When a record that was not deleted is tried again."""

    at: datetime
    wait: timedelta

    @classmethod
    def after(cls, before: "NextTry | None", now: datetime) -> "NextTry":
        """An hour later, and twice as long each further time, up to a day."""
        wait = min(before.wait * 2, _LONGEST_WAIT) if before else _TRIED_AGAIN_AFTER
        return cls(later(now, wait), wait)


def without_workflows(
    records: Sequence[OldRecord], open_workflows: Mapping[str, int]
) -> tuple[OldRecord, ...]:
    """The records on which no open workflow was counted; one that was not counted stays."""
    return tuple(record for record in records if open_workflows.get(record.build_id) == 0)


def full_warnings(spec: WorkerSpec, world: WorkerWorld, now: datetime) -> tuple[str, ...]:
    """A warning if Temporal soon takes no new version, and old records could make room."""
    registered = len(world.temporal.versions) if world.temporal else 0
    if registered < MOST_VERSIONS * _NEARLY_FULL or world.deployments is None:
        return ()
    old = old_records(spec, world, now, spec.policy.keep_records or KEPT)
    if not old:
        return ()
    command = f"twgen prune worker/{spec.name} -n {spec.namespace}"
    why = f"{len(old)} of them have been drained for long: `{command}` deletes their records"
    return (f"Temporal knows {registered} of at most {MOST_VERSIONS} versions, and {why}",)


def _is_over(facts: VersionFacts) -> bool:
    # its record also says how Temporal starts its workers
    is_serverless = facts.version is not None and facts.version.serverless
    is_needed = facts.is_target or facts.live or facts.terminating or is_serverless
    # a rollback within the window goes to the version that was current, at once
    kept_for = max(facts.both_delays, facts.spec.policy.rollback_window)
    return facts.drained_for is not None and facts.drained_for > kept_for and not is_needed


def _created(facts: VersionFacts) -> tuple[bool, datetime, str]:
    created = facts.version.created_at if facts.version else None
    # of unknown age: as if it were the newest
    return created is None, created or facts.now, facts.build_id
