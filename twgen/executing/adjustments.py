"""The changes of a rollout in its cluster: replicas, attached objects, old Jobs."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from twgen.errors import OutOfTime, StateUnavailable
from twgen.executing.cluster import ClusterWriter
from twgen.model.plan import WorkerPlan, WorkerVersions
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
"""The number of looks for which a settled rollout waits for a swap."""


class Adjustments:
    """Makes the changes of a rollout; none is made twice, so that it does not fight another client."""

    def __init__(
        self,
        writer: ClusterWriter,
        attached: Callable[[], Awaitable[list[AttachedInCluster]]],
        say: Callable[[str], None],
        tell_failure: Callable[[str], Awaitable[None]] | None = None,
        *,
        has_hook: bool = False,
    ) -> None:
        """With a hook no sync applies the autoscalers, so this class does."""
        self._writer = writer
        self._attached = attached
        self._say = say
        self._tell_failure = tell_failure
        self._has_hook = has_hook
        self._made: set[tuple[str, int]] = set()
        self._settled = ""
        """The attached objects at the last look that had nothing to do about them; empty: none yet."""
        self._applied: dict[tuple[Any, str], Any] = {}
        """The applied manifests, by kind and name."""
        self._tries = 0
        self._failures: set[str] = set()

    async def make(self, plan: WorkerPlan, rollout: RolloutInCluster) -> bool:
        """Make the changes of a plan; a failed one is logged once, and tried again at the next look.

        True: the rollout may continue; False: another look is due soon. Raises StateUnavailable or OutOfTime
        if the target cannot get its autoscaler, without which it gets no traffic.
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
        # Argo CD prunes objects without an owner, and the account may be unable to list them
        if plan.spec.policy.owner_references is not OwnerReferences.RENDER:
            return True
        return await self._look_after_attached(plan.versions)

    async def _look_after_attached(self, worker: WorkerVersions) -> bool:
        wanted = repr(
            [
                (each.build_id, each.attached, each.leaving, each.replaced, each.action, each.live.uid)
                for each in worker.versions
                if each.live
            ]
        )
        if wanted == self._settled:
            return True
        listed = await self._try(self._attached())
        if not listed:
            return True
        live = [*listed[0]]
        old = list(left_over(worker, live, has_hook=self._has_hook))
        for item in old:
            done = f"deleted {item.kind.kind} {item.name}: its template was removed"
            await self._try(self._writer.delete(item.path, item.uid), done)
        swapping = list(swaps(worker, live))
        are_swapped = all([await self._swap(worker, swap, live) for swap in swapping])
        new = await self._apply_autoscalers(worker, live)
        given = list(unowned(worker, live, has_hook=self._has_hook))
        for owning in given:
            owned = f"{owning.item.kind.kind} {owning.item.name}"
            done = f"Deployment {owning.deployment} now owns {owned}, which is deleted with it"
            await self._try(self._writer.own(owning), done)
        there = {(item.kind, item.name) for item in live}
        are_there = all(
            named in there
            for version in worker.versions
            if version.live
            for named, _ in resources_of(worker, version, version.attached)
        )
        self._settled = wanted if are_there and not (old or swapping or new or given) else ""
        self._tries = 0 if are_swapped else self._tries + 1
        return are_swapped or self._tries >= _MOST_TRIES

    async def _swap(self, worker: WorkerVersions, swap: Swap, live: list[AttachedInCluster]) -> bool:
        """Delete the old objects, and attach the ones that replace them at once; True: all of it is done.

        Two autoscalers stop each other, and a pod with two budgets cannot be evicted.
        """
        names = " and ".join(item.name for item in swap.version.following) or "nothing"
        new = [attached_manifest(worker.spec, swap.version, resource) for resource in swap.following]
        for manifest in new:
            # the old object stays if the new one would be refused; KEDA refuses one next to an autoscaler
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
            live += made
        return bool(await self._try(self._writer.say_gone(swap.version.deployment, swap.gone)))

    async def _apply_autoscalers(
        self, worker: WorkerVersions, live: list[AttachedInCluster]
    ) -> Sequence[str]:
        """Apply the changed autoscalers that no sync applies; their names."""
        new = []
        for version in worker.versions if self._has_hook else ():
            is_target = version.build_id == worker.spec.build_id
            attached = resources_of(worker, version, version.attached) if version.live else ()
            for named, resource in attached:
                if not is_applied_by_hook(worker.spec, resource):
                    continue
                manifest = attached_manifest(worker.spec, version, resource)
                is_there = any((item.kind, item.name) == named for item in live)
                if is_there and self._applied.get(named) == manifest:
                    continue
                done = f"applied {manifest['kind']} {manifest['metadata']['name']}"
                if is_target and not is_there:
                    made = [await self._writer.attach(manifest)]
                    self._say(done)
                else:
                    made = await self._try(self._writer.attach(manifest), done)
                new.append(named[1])
                if made:
                    self._applied[named] = manifest
                    live += [] if is_there else made
        return new

    async def _try(self, work: Awaitable[_Result], done: str = "") -> list[_Result]:
        """Its result; empty: it failed. After a timeout the next look shows whether it was done."""
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
