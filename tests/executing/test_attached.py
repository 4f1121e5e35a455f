"""What is attached to a version while its templates change: syncs and looks of a Job, in a model."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from tests.executing.api_server import AUTOSCALERS, BUDGETS, DEPLOYMENTS, SCALED_OBJECTS, ApiServer
from tests.held_replicas import HPA, ROLLOUT, HeldReplicas
from tests.planning.situations import NOW, RAMPS, live, routing, temporal, version
from tests.strategies import AUTOSCALER, BUDGET
from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient
from twgen.executing.adjustments import Adjustments
from twgen.executing.cluster import ClusterWriter
from twgen.model.operator import Caller, GroupKind
from twgen.model.plan import WorkerPlan
from twgen.model.rollout import Driver, RolloutInCluster
from twgen.model.spec import AttachedResource, WorkerSpec
from twgen.model.temporal import VersionStatus
from twgen.planning.plan import make_plan
from twgen.reading.objects import attached_objects
from twgen.records.intent import intent_of
from twgen.rendering.jobs import RolloutJobs
from twgen.rendering.manifests import render_manifests

ME = Caller("me", forced=True, drives=True)
VERSIONS = ("v1", "v3")
COLLECTIONS = {
    "HorizontalPodAutoscaler": AUTOSCALERS,
    "ScaledObject": SCALED_OBJECTS,
    "PodDisruptionBudget": BUDGETS,
}
SCALED_OBJECT = AttachedResource(
    "queue",
    {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "spec": {"scaleTargetRef": {}}},
    autoscales=True,
    scales_from_zero=True,
)
SCALERS = (
    None,
    AUTOSCALER,
    replace(AUTOSCALER, name="other"),
    SCALED_OBJECT,
    replace(SCALED_OBJECT, name="cpu"),
)
BUDGETS_OF = (None, BUDGET, replace(BUDGET, name="another"))
FORM = st.tuples(st.sampled_from(SCALERS), st.sampled_from(BUDGETS_OF))


class KilledError(Exception):
    """The Pod of a Job is killed."""


class Cluster:
    """A worker's two versions, what is attached to them, and how many calls its Pod still makes."""

    def __init__(self, driver: Driver) -> None:
        self.api, self.driver = ApiServer(), driver
        self.held = {f"payments-{build_id}": HeldReplicas(3) for build_id in VERSIONS}
        """By Deployment."""
        self.rendered: dict[str, int | None] = {}
        """The replicas in the manifests that Argo CD applied last, and applies again if they differ."""
        self.left = 999
        self.lasting: set[str] = set()
        """What the templates did before and do again."""
        for build_id in VERSIONS:
            manifest = live(build_id, 3)
            self.api.put(f"{DEPLOYMENTS}/{manifest['metadata']['name']}", manifest)
            self.resize(f"payments-{build_id}")

    def resize(self, name: str) -> None:
        """Show the replicas of a Deployment, and who holds them; there are never fewer pods."""
        held, manifest = self.held[name], self.api.objects[f"{DEPLOYMENTS}/{name}"]
        assert held.number >= 3
        manifest["spec"]["replicas"] = held.number
        manifest["metadata"]["managedFields"] = held.managed_fields()

    def spec_of(self, form: tuple[AttachedResource | None, AttachedResource | None]) -> WorkerSpec:
        attached = tuple(filter(None, form))
        return replace(RAMPS, attached=attached, replicas=None if form[0] else 3)

    def plan(self, spec: WorkerSpec) -> WorkerPlan:
        says = temporal(
            version("v1", VersionStatus.CURRENT),
            version(status=VersionStatus.RAMPING),
            traffic=routing("v1", ("v3", 5)),
        )
        [plan] = make_plan([spec], strategies.world(says, self.api.listed(DEPLOYMENTS)), NOW, ME).workers
        return plan

    def sync(self, spec: WorkerSpec, *, is_full: bool = True) -> None:
        """What Argo CD applies of a render."""
        jobs = RolloutJobs(self.driver, "image")
        for item in render_manifests([self.plan(spec).versions], [], ME.of, jobs):
            name, annotations = item["metadata"]["name"], item["metadata"].get("annotations", {})
            if item["kind"] == "Deployment":
                # another field manager holds the record of the Job
                attached = annotations.get("twgen.io/attached")
                self.api.annotate(f"{DEPLOYMENTS}/{name}", **annotations | {"twgen.io/attached": attached})
                self.rendered[name] = item["spec"].get("replicas")
                self.held[name].sync(self.rendered[name])
                self.resize(name)
            elif item["kind"] in COLLECTIONS and "argocd.argoproj.io/hook" not in annotations:
                asyncio.run(self._apply(f"{COLLECTIONS[item['kind']]}/{name}", item))
        if is_full:
            self.run_job(spec)

    async def _apply(self, path: str, item: Mapping[str, Any]) -> None:
        await self.api.ask("PATCH", path, None, query={}, body=item)
        self.check()

    def run_job(self, spec: WorkerSpec) -> None:
        intent = replace(
            intent_of(
                spec,
                "me",
                attached_kinds=[
                    GroupKind.of({"apiVersion": f"{group}/v1", "kind": kind})
                    for group, kind in (
                        ("autoscaling", "HorizontalPodAutoscaler"),
                        ("keda.sh", "ScaledObject"),
                        ("policy", "PodDisruptionBudget"),
                    )
                ],
            ),
            has_hook=self.driver is Driver.HOOK,
        )
        client = cast("KubernetesClient", self)

        async def attached() -> Any:
            return await attached_objects(client, intent, Deadline(9))

        said: list[str] = []

        async def report_failure(failure: str) -> None:
            said.append(failure)

        writer, has_hook = ClusterWriter(client, intent, 9), intent.has_hook
        adjustments = Adjustments(writer, attached, said.append, report_failure, has_hook=has_hook)

        async def looks() -> None:
            for _ in range(9):
                await adjustments.make(self.plan(spec), RolloutInCluster())
                for build_id in VERSIONS:
                    deeds = self.deeds(build_id)
                    assert all(deeds[deed] for deed in self.lasting), "a look left a version without"

        with suppress(KilledError):
            asyncio.run(looks())

    async def ask(
        self, method: str, path: str, deadline: object, *, query: Any = None, body: Any = None
    ) -> Any:
        """A call of the Pod; an object of KEDA goes when its operator lets it, and that comes by later."""
        if not self.left:
            raise KilledError
        self.left -= 1
        found = self.api.objects.get(path)
        if method == "GET" and query:
            for own, item in [*self.api.objects.items()]:
                if "going" in item["metadata"]:
                    item["metadata"]["going"] -= 1
                    if not item["metadata"]["going"]:
                        del self.api.objects[own]
        if method == "DELETE" and path.startswith(SCALED_OBJECTS) and found:
            found["metadata"] |= {"deletionTimestamp": "2026-11-21T12:00:00Z", "going": 7}
            return 200, found
        if (
            method == "PATCH"
            and path.startswith(SCALED_OBJECTS)
            and any(
                item["spec"]["scaleTargetRef"] == body["spec"]["scaleTargetRef"]
                for item in self.api.listed(AUTOSCALERS)
            )
        ):
            return 403, {"message": "the workload is already managed by the hpa"}
        answer = await self.api.ask(method, path, deadline, query=query, body=body)
        if method != "GET":
            if replicas := body.get("spec", {}).get("replicas"):
                self.held[body["metadata"]["name"]].set_by(ROLLOUT, replicas)
                self.resize(body["metadata"]["name"])
            self.check()
        return answer

    def deeds(self, build_id: str) -> dict[str, list[str]]:
        """What scales and what protects a version."""
        found: dict[str, list[str]] = {"replicas": [], "budget": []}
        for kind, collection in COLLECTIONS.items():
            for item in self.api.listed(collection, f"temporal.io/build-id={build_id}"):
                found["budget" if kind == "PodDisruptionBudget" else "replicas"].append(
                    f"{kind}/{item['metadata']['name']}"
                )
        return found

    def check(self) -> None:
        """No version has two of a deed, and Argo CD undoes nothing that an autoscaler decides."""
        for build_id in VERSIONS:
            deeds, name = self.deeds(build_id), f"payments-{build_id}"
            assert all(len(names) <= 1 for names in deeds.values()), (build_id, deeds)
            if deeds["replicas"]:
                assert self.rendered[name] is None
                self.held[name].set_by(HPA, 13 - self.held[name].number)
                self.resize(name)


@given(
    st.sampled_from((Driver.JOB, Driver.HOOK)),
    st.lists(st.tuples(FORM, st.integers(0, 40) | st.none(), st.booleans()), min_size=1, max_size=5),
)
def test_whatever_a_template_becomes_no_version_has_two_of_a_deed_and_at_last_it_has_what_git_says(
    driver: Driver, forms: list[tuple[Any, int | None, bool]]
) -> None:
    cluster = Cluster(driver)
    before: tuple[Any, Any] = None, None
    for number, (form, killed_after, is_next_at_once) in enumerate(forms, 1):
        spec = cluster.spec_of(form)
        both = zip(("replicas", "budget"), form, before, strict=True)
        before = form
        cluster.left = 999 if killed_after is None else killed_after
        cluster.lasting = {deed for deed, now, then in both if now and then and killed_after is None}
        cluster.sync(spec)
        cluster.lasting = set()
        cluster.left = 999
        if is_next_at_once and number < len(forms):
            before = None, None
            continue  # the next commit comes before another render
        for _ in range(4):  # whoever refreshes, and the Job that Kubernetes runs again
            cluster.sync(spec)
        for build_id in VERSIONS:
            has = {name for names in cluster.deeds(build_id).values() for name in names}
            wanted = next(item for item in cluster.plan(spec).versions.versions if item.build_id == build_id)
            assert not wanted.replaced
            assert has == {f"{item.kind}/{item.name}" for item in wanted.attached}
            assert len(has) == len(spec.attached)
            assert wanted.live
            assert wanted.replicas_are_external is (form[0] is not None)
