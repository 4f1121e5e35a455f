"""What a rollout changes in its cluster beside the traffic, and has changed already."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from twgen.errors import OutOfTime, StateUnavailable
from twgen.executing.cluster import ClusterWriter
from twgen.model.plan import VersionPlan, WorkerPlan, WorkerVersions
from twgen.model.policy import OwnerReferences
from twgen.model.rollout import RolloutInCluster
from twgen.planning.cluster_changes import (
    AttachedInCluster,
    Swap,
    left_over,
    replica_changes,
    resources_of,
    swaps,
    unowned,
)
from twgen.planning.drivers import is_applied_by_hook
from twgen.rendering.attached import attached_manifest

_Result = TypeVar("_Result")
_MOST_TRIES = 60
"""How many looks a rollout that is settled waits for a swap."""


class Adjustments:
    """What a rollout has changed in its cluster; nothing is changed twice, so that it fights nobody."""

    def __init__(
        self,
        writer: ClusterWriter,
        attached: Callable[[], Awaitable[list[AttachedInCluster]]],
        say: Callable[[str], None],
        tell_failure: Callable[[str], Awaitable[None]] | None = None,
        *,
        has_hook: bool = False,
    ) -> None:
        """With a hook no sync applies the autoscalers, so this does."""
        self._writer = writer
        self._attached = attached
        self._say = say
        self._tell_failure = tell_failure
        self._has_hook = has_hook
        self._made: set[tuple[str, int]] = set()
        self._settled = ""
        """What was attached, when a look found nothing to do about it; empty: none has yet."""
        self._applied: dict[tuple[Any, str], Any] = {}
        """The manifests that were applied, by kind and name."""
        self._tries = 0
        self._failures: set[str] = set()

    async def make(self, plan: WorkerPlan, rollout: RolloutInCluster) -> bool:
        """Make the changes that the plan wants; a failure is tried again at the next look, and logged once.

        Returns whether the rollout may continue; if not, another look is due soon. Raises StateUnavailable or
        OutOfTime if the target cannot get its autoscaler: it gets no traffic without one.
        """
        for job in rollout.older_jobs:
            await self._try(self._writer.delete_job(job))
        if plan.is_held:
            return True
        for change in replica_changes(plan.versions):
            key = change.deployment, change.replicas
            done = (
                f"set the replicas of Deployment {change.deployment} to {change.replicas}: {change.because}"
            )
            if key not in self._made and await self._try(self._writer.scale(change), done):
                self._made.add(key)
        # Argo CD prunes objects without an owner, and the account might not be allowed to list them
        if plan.spec.policy.owner_references is not OwnerReferences.RENDER:
            return True
        return await self._look_after_attached(plan.versions)

    async def _look_after_attached(self, worker: WorkerVersions) -> bool:
        told = [
            (
                version.build_id,
                version.attached,
                version.leaving,
                version.replaced,
                version.action,
                version.live.uid,
            )
            for version in worker.versions
            if version.live
        ]
        if repr(told) == self._settled:
            return True
        listed = await self._try(self._attached())
        if not listed:
            return True
        found = [*listed[0]]
        old = list(left_over(worker, found, has_hook=self._has_hook))
        for item in old:
            done = f"deleted {item.kind.kind} {item.name}: its template was removed"
            await self._try(self._writer.delete(item.path, item.uid), done)
        swapping = list(swaps(worker, found))
        are_swapped = True
        for swap in swapping:
            are_swapped = await self._swap(worker, swap, found) and are_swapped
        new = await self._apply_autoscalers(worker, found)
        given = list(unowned(worker, found, has_hook=self._has_hook))
        for owning in given:
            owned = f"{owning.item.kind.kind} {owning.item.name}"
            done = f"Deployment {owning.deployment} now owns {owned}, which is deleted with it"
            await self._try(self._writer.own(owning), done)
        there = {(item.kind, item.name) for item in found}
        are_there = all(
            named in there
            for version in worker.versions
            if version.live
            for named, _ in resources_of(worker, version, version.attached)
        )
        self._settled = repr(told) if are_there and not (old or swapping or new or given) else ""
        self._tries = 0 if are_swapped else self._tries + 1
        return are_swapped or self._tries >= _MOST_TRIES

    async def _swap(self, worker: WorkerVersions, swap: Swap, found: list[AttachedInCluster]) -> bool:
        """Delete what goes, and attach at once what takes its place; whether all of that is done.

        Two autoscalers stop each other, and no pod that has two budgets can be evicted.
        """
        names = " and ".join(item.name for item in swap.version.following) or "nothing"
        new = [attached_manifest(worker.spec, swap.version, resource) for resource in swap.following]
        for manifest in new:
            # the old object stays if the new one would be refused; KEDA accepts none next to an autoscaler
            is_asked = manifest["kind"] != "ScaledObject"
            if is_asked and not await self._try(self._writer.attach(manifest, dry_run=True)):
                return False
        for item in swap.old:
            done = f"deleted {item.kind.kind} {item.name}: its template was removed, and {names} replaces it"
            if item.is_going or await self._try(self._writer.delete(item.path, item.uid), done) != [True]:
                return False
        for manifest in new:
            made = await self._try(self._writer.attach(manifest), f"applied {manifest['metadata']['name']}")
            if not made:
                return False
            found += made
        return bool(await self._try(self._writer.say_gone(swap.version.deployment, swap.gone)))

    async def _apply_autoscalers(
        self, worker: WorkerVersions, found: list[AttachedInCluster]
    ) -> Sequence[str]:
        """Apply the autoscalers that no sync applies, as they are by now; the names of those."""
        new = []
        for version in worker.versions if self._has_hook else ():
            attached = resources_of(worker, version, version.attached) if version.live else ()
            for named, resource in attached:
                if not is_applied_by_hook(worker.spec, resource):
                    continue
                manifest = attached_manifest(worker.spec, version, resource)
                is_there = any((item.kind, item.name) == named for item in found)
                if is_there and self._applied.get(named) == manifest:
                    continue
                made = await self._attach(worker, version, manifest, is_there=is_there)
                new.append(named[1])
                if made:
                    self._applied[named] = manifest
                    found += [] if is_there else made
        return new

    async def _attach(
        self, worker: WorkerVersions, version: VersionPlan, manifest: Any, *, is_there: bool
    ) -> list[AttachedInCluster]:
        done = f"applied {manifest['kind']} {manifest['metadata']['name']}"
        if version.build_id != worker.spec.build_id or is_there:
            return await self._try(self._writer.attach(manifest), done)
        made = await self._writer.attach(manifest)
        self._say(done)
        return [made]

    async def _try(self, work: Awaitable[_Result], done: str = "") -> list[_Result]:
        """What comes of it; empty: it failed. Whether what timed out was done, the next look tells."""
        try:
            result = await work
        except (StateUnavailable, OutOfTime) as error:
            if str(error) not in self._failures:
                self._failures.add(str(error))
                self._say(str(error))
            if self._tell_failure:
                await self._tell_failure(str(error))
            return []
        if done:
            self._say(done)
        return [result]
