"""Makes a rollout's changes in its cluster: to replicas, attached objects and old Jobs."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from twgen.errors import OutOfTime, StateUnavailable
from twgen.executing.cluster import ClusterWriter
from twgen.model.plan import VersionPlan, WorkerPlan, WorkerVersions
from twgen.model.policy import OwnerReferences
from twgen.model.rollout import RolloutInCluster
from twgen.planning.cluster_changes import (
    AttachedInCluster,
    AttachedRecord,
    Swap,
    attached_record,
    left_over,
    replica_changes,
    resources_of,
    swaps,
    unowned,
)
from twgen.planning.drivers import is_applied_by_hook
from twgen.rendering.deployments import attached_manifest

_Result = TypeVar("_Result")
_ATTACHED_STATE = attrgetter("build_id", "attached", "leaving", "replaced", "action", "live.uid")


class Adjustments:
    """Makes a rollout's changes in its cluster. Each change is made once, to avoid fighting other clients."""

    def __init__(
        self,
        writer: ClusterWriter,
        attached: Callable[[], Awaitable[list[AttachedInCluster]]],
        say: Callable[[str], None],
        report_failure: Callable[[str], Awaitable[None]],
        *,
        has_hook: bool = False,
    ) -> None:
        """`has_hook` means that a hook carries out the rollout, so this class must apply the autoscalers."""
        self._writer = writer
        self._attached = attached
        self._say = say
        self._report_failure = report_failure
        self._has_hook = has_hook
        self._made: set[tuple[str, int]] = set()
        self._settled = ""
        """The attached objects' state, as text, if no change is needed. Empty if a change may be needed."""
        self._applied: dict[tuple[Any, str], Any] = {}
        self._records: dict[str, AttachedRecord] = {}
        """The records written since the last read, by Deployment name."""
        self._tries = 0
        self._failures: set[str] = set()

    async def make(self, plan: WorkerPlan, rollout: RolloutInCluster) -> bool:
        """Make the planned changes. A failed change is logged once, and retried after the next read.

        Returns False if a change was not made: the rollout must then not end, and another read is due soon.
        Raises StateUnavailable or OutOfTime if the target's autoscaler cannot be applied, because the target
        must not get traffic without its autoscaler.
        """
        for job in rollout.older_jobs:
            await self._try(self._writer.delete_job(job))
        if plan.is_held:
            return True
        are_made = True
        for change in replica_changes(plan.versions):
            deployment, replicas = change.deployment, change.replicas
            sentence = f"set the replicas of Deployment {deployment} to {replicas}: {change.because}"
            is_made = (deployment, replicas) in self._made
            if not is_made and await self._try(self._writer.scale(change), sentence):
                self._made.add((deployment, replicas))
                is_made = True
            are_made &= is_made
        # without owner references, Argo CD prunes the attached objects, and the account might not have
        # permission to list them
        if plan.spec.policy.owner_references is OwnerReferences.RENDER:
            are_made &= await self._adjust_attached(plan.versions)
        self._tries = 0 if are_made else self._tries + 1
        # a settled rollout waits at most this many reads for a swap or a replica change
        return are_made or self._tries >= 60

    async def _adjust_attached(self, worker: WorkerVersions) -> bool:
        """Make the planned changes to attached objects. Returns whether all replacements are complete."""
        expected = repr([_ATTACHED_STATE(version) for version in worker.versions if version.live])
        if expected == self._settled:
            return True
        listed = await self._try(self._attached())
        if not listed:
            return True
        live = [*listed[0]]
        self._records = {}
        old = list(left_over(worker, live, has_hook=self._has_hook))
        for item in old:
            sentence = f"deleted {item.kind.kind} {item.name}: its template was removed"
            await self._try(self._writer.delete(item.path, item.uid), sentence)
        swapping = list(swaps(worker, live))
        are_swapped = all([await self._swap(worker, swap, live) for swap in swapping])
        new = await self._apply_autoscalers(worker, live)
        unowned_objects = list(unowned(worker, live, has_hook=self._has_hook))
        for owning in unowned_objects:
            owned = f"{owning.item.kind.kind} {owning.item.name}"
            sentence = f"Deployment {owning.deployment} now owns {owned}, which is deleted with it"
            await self._try(self._writer.own(owning), sentence)
        live_names = {(item.kind, item.name) for item in live}
        are_all_live = all(
            name in live_names
            for version in worker.versions
            if version.live
            for name, _ in resources_of(worker, version, version.attached)
        )
        self._settled = expected if are_all_live and not (old or swapping or new or unowned_objects) else ""
        return are_swapped

    async def _swap(self, worker: WorkerVersions, swap: Swap, live: list[AttachedInCluster]) -> bool:
        """Delete the old objects, and attach their replacements. Returns whether the work is complete.

        Old and new objects must not exist at the same time: two autoscalers block each other, and a pod with
        two disruption budgets cannot be evicted.
        """
        names = " and ".join(item.name for item in swap.version.following) or "nothing"
        new = [attached_manifest(worker.spec, swap.version, resource) for resource in swap.following]
        for manifest in new:
            # the old object is kept if the API server would reject the new object. There is no dry run for a
            # ScaledObject, because KEDA rejects it while the old autoscaler exists
            is_asked = manifest["kind"] != "ScaledObject"
            if is_asked and not await self._try(self._writer.attach(manifest, dry_run=True)):
                return False
        if not await self._try(self._remember(swap.version, swap.before)):
            return False
        for item in swap.old:
            text = f"deleted {item.kind.kind} {item.name}: its template was removed, and {names} replaces it"
            if item.is_going or await self._try(self._writer.delete(item.path, item.uid), text) != [True]:
                return False
        for manifest in new:
            attached = await self._try(
                self._writer.attach(manifest), f"applied {manifest['metadata']['name']}"
            )
            if not attached:
                return False
            live += attached
        return bool(await self._try(self._remember(swap.version, swap.after)))

    async def _apply_autoscalers(
        self, worker: WorkerVersions, live: list[AttachedInCluster]
    ) -> Sequence[str]:
        """Apply the changed autoscalers that Argo CD's sync does not apply. Returns their names."""
        new = []
        for version in worker.versions if self._has_hook else ():
            is_target = version.build_id == worker.spec.build_id
            attached = resources_of(worker, version, version.attached) if version.live else ()
            for name, resource in attached:
                if not is_applied_by_hook(worker.spec, resource):
                    continue
                manifest = attached_manifest(worker.spec, version, resource)
                is_there = any((item.kind, item.name) == name for item in live)
                if is_there and self._applied.get(name) == manifest:
                    continue
                if not is_there and version.live and version.live.replicas_are_synced:
                    continue  # Argo CD would reset the replicas until it applies a render without them
                sentence = f"applied {manifest['kind']} {manifest['metadata']['name']}"
                attaching = self._attach_recorded(version, manifest)
                if is_target and not is_there:
                    applied = [await attaching]
                    self._say(sentence)
                else:
                    applied = await self._try(attaching, sentence)
                new.append(name[1])
                if applied:
                    self._applied[name] = manifest
                    live += [] if is_there else applied
        return new

    async def _attach_recorded(self, version: VersionPlan, manifest: Mapping[str, Any]) -> AttachedInCluster:
        """Attach an object after recording its name on the Deployment."""
        name = f"{manifest['kind']}/{manifest['metadata']['name']}"
        if version.live and name not in version.live.attached:
            record = self._records.get(version.deployment, attached_record(version))
            await self._remember(version, record.adding(name))
        return await self._writer.attach(manifest)

    async def _remember(self, version: VersionPlan, record: AttachedRecord) -> None:
        """Write a record to the version's Deployment, unless the Deployment already has this record."""
        if record != self._records.get(version.deployment, attached_record(version)):
            await self._writer.remember(version.deployment, record)
            self._records[version.deployment] = record

    async def _try(self, work: Awaitable[_Result], sentence: str = "") -> list[_Result]:
        """Await the work, and return its result in a list. If the work fails, the list is empty.

        After a timeout, the next read shows whether the change was made.
        """
        try:
            result = await work
        except (StateUnavailable, OutOfTime) as error:
            if str(error) not in self._failures:
                self._failures.add(str(error))
                self._say(str(error))
            await self._report_failure(str(error))
            return []
        if sentence:
            self._say(sentence)
        return [result]
