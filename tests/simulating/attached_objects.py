"""The attached objects of one worker as they are in a cluster, and what a sync and a rollout do to them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.strategies import BUDGET
from twgen.model.operator import GroupKind
from twgen.model.plan import VersionPlan, WorkerVersions
from twgen.planning.cluster_changes import AttachedInCluster, left_over, swaps, unowned
from twgen.rendering.deployments import attached_manifest
from twgen.versioning.names import NOT_PRUNED


@dataclass
class Objects:
    """The attached objects in the cluster, by kind and name."""

    live: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def sync(self, rendered: Iterable[dict[str, Any]], deployments: set[str]) -> None:
        """Apply those that are rendered, and prune others as Argo CD does: nothing that has an owner."""
        named = {(one["kind"], one["metadata"]["name"]): one for one in rendered}
        made = {key: one for key, one in named.items() if key[0] != "Deployment"}
        kept = {
            key: one
            for key, one in self.live.items()
            if _owners(one) or NOT_PRUNED in str(one["metadata"]["annotations"])
        }
        # Kubernetes deletes what has lost its owner
        self.live = {
            key: one
            for key, one in (kept | made).items()
            if not (owners := _owners(one)) or owners & deployments
        }

    def look_after(self, worker: WorkerVersions) -> list[VersionPlan]:
        """Do what the Job of a rollout does to them; the versions that have lost what was replaced."""
        found = {
            key: AttachedInCluster(
                GroupKind.of(one), "", one["apiVersion"], key[1], "", frozenset(_owners(one))
            )
            for key, one in self.live.items()
        }
        seen = list(found.values())
        gone, given, swapped = set(left_over(worker, seen)), list(unowned(worker, seen)), []
        for swap in swaps(worker, seen):
            gone |= set(swap.old)
            swapped.append(swap.version)
            for resource in swap.following:
                made = attached_manifest(worker.spec, swap.version, resource)
                self.live[made["kind"], made["metadata"]["name"]] = made
        for owning in given:
            metadata = self.live[owning.item.kind.kind, owning.item.name]["metadata"]
            metadata["ownerReferences"] = [{"uid": owning.uid}]
        self.live = {key: one for key, one in self.live.items() if found.get(key) not in gone}
        return swapped

    def of(self, what: Literal["autoscaler", "budget"], deployment: str, build_id: str) -> list[str]:
        """Those of a version."""
        if what == "autoscaler":
            scaled = {
                name: one["spec"]["scaleTargetRef"]["name"]
                for (_, name), one in self.live.items()
                if "scaleTargetRef" in one["spec"]
            }
            return [name for name, target in scaled.items() if target == deployment]
        return [
            name
            for (kind, name), one in self.live.items()
            if kind == BUDGET.kind
            and one["spec"]["selector"]["matchLabels"].get("temporal.io/build-id") == build_id
        ]


def _owners(manifest: Mapping[str, Any]) -> set[str]:
    return {owner["uid"] for owner in manifest["metadata"].get("ownerReferences", ())}
