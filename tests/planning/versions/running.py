"""Two versions that run, and what a plan makes of them after a change."""

from typing import Any

from tests.planning.situations import SPEC, planned, routing, situation, temporal, version
from twgen.model.plan import VersionAction, VersionPlan, WorkerPlan
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import VersionStatus
from twgen.rendering.deployments import version_deployment

KEEP, UPDATE = VersionAction.KEEP, VersionAction.UPDATE
OWN_KEY = {"name": "TEMPORAL_API_KEY", "value": "of the team"}
Manifest = dict[str, Any]


def container(manifest: Manifest) -> Manifest:
    found: Manifest = manifest["spec"]["template"]["spec"]["containers"][0]
    return found


def plan(
    deployments: list[Manifest], spec: WorkerSpec = SPEC, ledger: dict[str, Manifest] | None = None
) -> WorkerPlan:
    says = temporal(
        version("v1", VersionStatus.DRAINING), version("v3", VersionStatus.CURRENT), traffic=routing("v3")
    )
    return planned(situation(says, deployments, ledger), spec)


def versions(worker: WorkerPlan) -> dict[str, VersionPlan]:
    return {item.build_id: item for item in worker.versions.versions}


def template(item: VersionPlan, spec: WorkerSpec = SPEC) -> Manifest:
    found: Manifest = version_deployment(spec, item, "me")["spec"]["template"]
    return found
