"""Jobs that carry out the intents of one worker in a modelled cluster, where intents change and Pods die."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from tests.executing.api_server import AUTOSCALERS, DEPLOYMENTS, INTENT, JOBS, PODS, STATUS, ApiServer
from tests.executing.pod import BUILD_IDS, Pod
from tests.executing.server import DEEDS, Server
from tests.executing.trouble import GATED, ME
from tests.planning.situations import MAIN, RAMPS, live
from tests.planning.times import HOUR, MINUTE, SECOND
from tests.strategies import AUTOSCALER
from twgen.clients.deadline import Deadline
from twgen.errors import TwgenError
from twgen.executing.cluster import restart_job
from twgen.model.plan import WorkerPlan
from twgen.model.rollout import AnswerState, Driver, Request, Verb
from twgen.model.spec import Rollout, RolloutStep, Strategy, WorkerSpec
from twgen.model.times import format_time
from twgen.records.intent import Intent, write_intent
from twgen.records.rollout_status import annotation_of, write_request
from twgen.versioning.names import (
    INTENT_HASH,
    REQUEST_ANNOTATIONS,
    MarkKey,
    attached_resource_name,
    rollout_labels,
    rollout_selector,
    selector_labels,
)

SHORT = tuple(RolloutStep(share, length * MINUTE) for share, length in ((5, 2), (25, 3), (50, 1)))
"""Steps that are over soon."""


def _scaled(spec: WorkerSpec, build_id: str, **rollout: Any) -> WorkerSpec:
    """The same worker with an autoscaler."""
    strategy = replace(spec.rollout, **rollout)
    return replace(spec, build_id=build_id, rollout=strategy, attached=(AUTOSCALER,), replicas=None)


SPECS: Mapping[str, WorkerSpec] = {
    "gated": _scaled(GATED, "v3", steps=SHORT),
    "other steps": _scaled(
        GATED, "v3", steps=(RolloutStep(10, MINUTE), RolloutStep(60, 2 * MINUTE)), gate=None
    ),
    "newer": _scaled(RAMPS, "v4", steps=SHORT[1:]),
    "back": replace(_scaled(RAMPS, "v1"), rollout=Rollout(Strategy.ALL_AT_ONCE)),
}
"""What Git says at one time or another."""
REQUESTS = {f"request {verb}" for verb in Verb}
HANDS = {
    *("kill", "copy", "annotate", "go on", "another image", "made again", "gone for a while"),
    *("forget", "damage"),
}
INTERRUPTIONS = (*(f"apply {name}" for name in SPECS), *sorted(HANDS | REQUESTS), *DEEDS)
PERMITTED = (Verb.PROMOTE, Verb.RETRY)
_HOLD_FOR = 20 * MINUTE
_LINGERS = 20 * SECOND
"""From the end of a Job to the end of its Pods."""


@dataclass
class Cluster(Server):
    """A modelled Temporal beside the cluster of one worker, whose Jobs run Pods."""

    troubles: list[str] = field(default_factory=list)
    """Met by whichever Pod asks next."""
    images: int = 0
    """How often the operator has named another one for the Jobs."""
    driver: Driver = Driver.JOB
    """Hook: a sync waits for the end of the Job before, which has a time limit."""
    beside: list[str] = field(default_factory=list)
    """Troubles, too: met when one reads its intent beside its looks, or tells how it goes."""
    requested: int = 0
    plans: list[WorkerPlan] = field(default_factory=list)
    """The last of every Pod that ended by itself."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.model.polled("v4", [MAIN])
        self.api = ApiServer()
        self.running: dict[str, asyncio.Task[None]] = {}
        self._late: set[str] = set()
        for build_id in BUILD_IDS:
            manifest = live(build_id, 0 if build_id == "v4" else 3)
            self.api.put(f"{DEPLOYMENTS}/{manifest['metadata']['name']}", manifest)
            self._attach(build_id, "cpu")
            self._attach(build_id, "old")

    def _attach(self, build_id: str, template: str) -> None:
        name = attached_resource_name("payments", template, build_id)
        labels = {**selector_labels("payments", build_id), "app.kubernetes.io/managed-by": "twgen"}
        owners = [{"uid": f"uid-{build_id}"}]
        metadata = {"name": name, "labels": labels, "ownerReferences": owners}
        self.api.put(f"{AUTOSCALERS}/{name}", {"metadata": metadata})

    def serving(self) -> set[str]:
        """The Deployments that have Pods."""
        return {item["metadata"]["name"] for item in self.api.listed(DEPLOYMENTS) if item["spec"]["replicas"]}

    async def make_again(self, pause: timedelta) -> None:
        """Delete the intent, and apply it again after a while."""
        del self.api.objects[INTENT]
        self.api.objects.pop(STATUS, None)  # it goes with its owner
        await self.sleep(pause)
        await self.sync(self.name)

    async def sync(self, name: str) -> None:
        """Apply an intent as Argo CD does."""
        if self.driver is Driver.HOOK:
            while not all(running.done() for running in self.running.values()):
                await self.sleep(5 * SECOND)
            if self.running:
                self.end_job(self.job_name)
        self.apply(name)

    def apply(self, name: str) -> None:
        """The intent, its Job, and no other one."""
        self.name = name
        spec = SPECS[name]
        intent = Intent("shop", "payments", ME, spec.build_id, ({"spec": name},), requests=PERMITTED)
        manifest = write_intent(intent)
        annotations = {MarkKey.PAUSED: "true"} if self.is_paused else {}
        self.api.put(INTENT, manifest)
        self.api.annotate(INTENT, **annotations)
        for job in self.api.listed(JOBS):
            if job["metadata"]["annotations"][INTENT_HASH] != intent.hash:
                self.end_job(job["metadata"]["name"])
        if f"{JOBS}/{self.job_name}" not in self.api.objects:
            metadata = {
                "name": self.job_name,
                "labels": rollout_labels("payments"),
                "annotations": {INTENT_HASH: intent.hash},
            }
            self._create_job({"metadata": metadata, "spec": {"template": {"metadata": {}}}})

    def _create_job(self, manifest: Mapping[str, Any]) -> None:
        metadata = {**manifest["metadata"], "creationTimestamp": format_time(self.model.now)}
        self.api.put(f"{JOBS}/{metadata['name']}", {**manifest, "metadata": metadata})
        self.start_pod()

    async def ask(
        self,
        method: str,
        path: str,
        deadline: Deadline,
        *,
        query: Any = None,
        body: Any = None,
    ) -> tuple[int, Mapping[str, Any]]:
        """As a person's KubernetesClient."""
        if method == "DELETE":
            self.end_job(path.rpartition("/")[2])
        if method == "POST":
            assert body["metadata"]["name"] == self.job_name, "it starts what Git does not name"
            self._create_job(body)
        return (201, {}) if method == "POST" else await self.api.ask(method, path, deadline, query=query)

    @property
    def job_name(self) -> str:
        """Of the Job that was rendered last."""
        return (
            "payments"
            if self.driver is Driver.HOOK
            else f"payments-{self.name.replace(' ', '-')}-{self.images}"
        )

    @property
    def is_paused(self) -> bool:
        """The intent is annotated so."""
        found = self.api.objects.get(INTENT)
        return bool(found) and MarkKey.PAUSED in found["metadata"].get("annotations", {})

    def start_pod(self) -> None:
        """Let the Job of the newest intent run a Pod, another one if it runs already."""
        job = self.api.objects.get(f"{JOBS}/{self.job_name}")
        if not job:
            return
        spec = SPECS[self.name]
        intent = Intent("shop", "payments", ME, spec.build_id, ({"spec": self.name},), requests=PERMITTED)
        path = f"{PODS}/pod-{len(self.running)}"
        owners = [{"uid": job["metadata"]["uid"]}]
        metadata = {
            **job["metadata"],
            "name": path.rpartition("/")[2],
            "uid": path,
            "ownerReferences": owners,
        }
        self.api.put(path, {"metadata": metadata, "status": {"phase": "Running"}})
        self.running[path] = self.start(self._run(path, spec, intent, job["metadata"]))
        if self.driver is Driver.HOOK:
            self.start(self._limit(path))

    async def _limit(self, path: str) -> None:
        await self.sleep(_HOLD_FOR)
        self._late.add(path)
        self.running[path].cancel()

    async def _run(self, path: str, spec: WorkerSpec, intent: Intent, job: Mapping[str, Any]) -> None:
        phase, is_over = "Failed", False
        try:
            pod = Pod(self, spec, troubles=self.troubles, intent=intent, since=job["creationTimestamp"])
            if plan := await pod.carrying_out():
                self.plans.append(plan)
            phase, is_over = "Succeeded", True
        except asyncio.CancelledError:
            is_over = path in self._late
        except TwgenError:
            is_over = True
        except Exception:  # what no Pod may do: the test fails by it, and nobody is to wait for this one
            self.api.put(path, {**self.api.objects[path], "status": {"phase": phase}})
            raise
        self.api.put(path, {**self.api.objects[path], "status": {"phase": phase}})
        stands = self.api.objects.get(f"{JOBS}/{job['name']}")
        if is_over and stands and stands["metadata"]["uid"] == job["uid"]:
            ended = {"type": "Complete" if phase == "Succeeded" else "Failed", "status": "True"}
            self.api.put(f"{JOBS}/{job['name']}", {**stands, "status": {"conditions": [ended]}})
        if not is_over:
            with suppress(asyncio.CancelledError):
                await self.sleep(10 * SECOND)
            stands = self.api.objects.get(f"{JOBS}/{self.job_name}")
            if stands and stands["metadata"]["uid"] == job["uid"]:
                self.start_pod()

    def end_job(self, name: str) -> None:
        """Delete a Job; its Pods end a little later."""
        job = self.api.objects.pop(f"{JOBS}/{name}", None)
        if not job:
            return
        self.start(self._end_pods(job["metadata"]["uid"]))

    async def _end_pods(self, job_uid: str) -> None:
        await self.sleep(_LINGERS)
        for path, running in self.running.items():
            if self.api.objects[path]["metadata"]["ownerReferences"] == [{"uid": job_uid}]:
                running.cancel()

    async def _interrupt(self, deed: str) -> None:
        if deed in {"made again", "gone for a while"}:
            await self.make_again((1 if deed == "made again" else 40) * SECOND)
        elif deed in {"forget", "damage"}:
            self.damage(is_deleted=deed == "forget")
        elif deed in REQUESTS:
            self.request(Verb(deed.partition(" ")[2]))
        elif deed in {"annotate", "go on"}:
            self.api.annotate(INTENT, **{MarkKey.PAUSED: "true" if deed == "annotate" else None})

    def damage(self, *, is_deleted: bool) -> None:
        """Delete the status of its rollout, or write another phase into it."""
        found = self.api.objects.pop(STATUS, None)
        if found and not is_deleted:
            self.api.put(STATUS, {**found, "data": {**found["data"], "phase": "Settled"}})

    def request(self, verb: Verb) -> str:
        """Ask for something, as anyone does who may patch the status; the ID of the request."""
        if STATUS not in self.api.objects or SPECS[self.name].build_id != "v3":
            return ""  # nothing to annotate, or a version whose metadata is not modelled
        self.requested += 1
        request = Request(f"r{self.requested}", verb, "v3", self.model.now, "a person")
        self.api.annotate(STATUS, **{annotation_of(verb): write_request(request)})
        return request.id

    def taken(self, verb: Verb) -> set[str]:
        """The IDs of the requests of a verb that were carried out, be it in part."""
        return {
            answer["request"]["id"]
            for answer in self.api.answers
            if answer["state"] == AnswerState.TAKEN and answer["request"]["verb"] == verb
        }

    def ends(self) -> Counter[str]:
        """How often each request was answered, by its ID."""
        finals = (answer for answer in self.api.answers if answer["state"] != AnswerState.TAKEN)
        return Counter(answer["request"]["id"] for answer in finals)

    async def life(self, first: str, deeds: Sequence[tuple[int, str]]) -> None:
        """Begin with an intent; then each deed so many seconds after the one before; at last let it go on."""
        await self.sync(first)
        for pause, deed in deeds:
            await self.sleep(pause * SECOND)
            if deed.startswith("apply "):
                await self.sync(deed.removeprefix("apply "))
            elif deed == "kill" and self.running:
                self.running[max(self.running, key=lambda path: int(path.rpartition("-")[2]))].cancel()
            elif deed == "copy":
                self.start_pod()
            elif deed == "another image":
                self.images += 1
                await self.sync(self.name)
            else:
                await self._do(deed) if deed in DEEDS else await self._interrupt(deed)
        await self.sleep(10 * MINUTE)
        self.api.annotate(INTENT, **{MarkKey.PAUSED: None})
        if STATUS in self.api.objects:
            self.api.annotate(STATUS, **dict.fromkeys(REQUEST_ANNOTATIONS))
        # what people did to a rollout that had ended, or made it end; each gate may fail once more
        for _ in range(2 + len(self.gates_end_as)):
            for deed in ("resume", "retry", "release"):
                await self._do(deed)
            spec = SPECS[self.name]
            await restart_job(self, spec.namespace, rollout_selector(spec.name), Deadline(9))
            await self.sleep(HOUR)
