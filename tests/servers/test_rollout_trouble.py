"""Rollouts of a cluster in trouble: servers that go, answers that get lost, missing rights."""

import re
import time
from collections.abc import Mapping
from dataclasses import replace

import pytest
from temporalio.api.workflowservice.v1 import (
    DescribeWorkerDeploymentRequest,
)
from temporalio.service import RPCError

from testing.faults import Trouble, forwarding
from testing.kubernetes.api import Object
from testing.processes import eventually
from testing.servers import NEWEST, temporal_server
from tests.servers.live import (
    Document,
    autoscaler_document,
    worker_container,
    worker_document,
)
from tests.servers.pods import config_map
from tests.servers.rollouts import PAUSE, SOON, Story, describe_ramp, gates_of, outlast, ramped_at, settled
from tests.servers.side_by_side import side_by_side
from twgen.versioning.names import INTENT_HASH

pytestmark = pytest.mark.server


def applied(story: Story, **variables: str) -> None:
    """Apply what is rendered, with these variables in the Job's container."""
    manifests = list(story.manifests())
    for item in manifests:
        if item["kind"] == "Job":
            [container] = item["spec"]["template"]["spec"]["containers"]
            container["env"] += [{"name": name, "value": value} for name, value in variables.items()]
    story.cluster.apply(manifests)


TROUBLES: Mapping[str, Trouble] = {
    "Temporal's answers get lost": Trouble(lost_every=11),
    "Temporal hears late": Trouble(slow_every=25, slow_by=6),
    "the API server's answers are cut": Trouble(answer_bytes=100_000),
}


@pytest.mark.parametrize("trouble", list(TROUBLES))
@side_by_side
def test_rollout_in_trouble_makes_each_step_once_and_settles(story: Story, trouble: str) -> None:
    settled(story)
    describe_ramp(story, "v2", gate="GateWorkflow")
    api, temporal = story.cluster.address.removeprefix("https://"), story.temporal.address
    with forwarding(temporal if "Temporal" in trouble else api, TROUBLES[trouble]) as way:
        if "Temporal" in trouble:
            # a request that is late comes after nobody waits for it any more
            applied(story, TWGEN_VIA=f"{temporal}={way.address}", TWGEN_TIMEOUT="4s")
        else:
            applied(story, KUBERNETES_SERVICE_PORT=way.address.rpartition(":")[2])
        eventually(lambda: story.share("v2") == 25, 2 * SOON)
        began = ramped_at(story)
        eventually(lambda: story.share("v2") == 100, 2 * SOON)
        current = story.described().routing_config.current_version_changed_time
        assert current.ToMilliseconds() / 1000 - began >= PAUSE
        story.stands("Settled", "v2")
        assert way.lost or way.connections > 1 or way.requests > (TROUBLES[trouble].slow_every or 0)
    eventually(lambda: gates_of(story, "v2") == 1, SOON)
    assert story.replicas() == {"v1": 1, "v2": 1}


@side_by_side
def test_rollout_without_its_api_server_changes_nothing_and_goes_on_when_it_is_back(story: Story) -> None:
    settled(story)
    describe_ramp(story, "v2")
    with forwarding(story.cluster.address.removeprefix("https://"), Trouble()) as way:
        applied(story, KUBERNETES_SERVICE_PORT=way.address.rpartition(":")[2])
        eventually(lambda: story.share("v2") == 25, SOON)
        way.die()
        eventually(lambda: "; trying again" in story.log(), SOON)
        outlast(PAUSE)
        assert story.share("v2") == 25, "nothing tells whether its intent still stands"
        way.revive()
        story.stands("Settled", "v2")


@side_by_side
def test_job_settles_inside_a_read_limit_of_one_call_a_second_and_does_not_hammer(place: Story) -> None:
    settings = {"frontend.globalNamespaceWorkerDeploymentReadRPS": 1}
    with temporal_server(place.folder.parent, NEWEST, settings=settings) as server:
        story = replace(place, temporal=server)
        settled(story)
        describe_ramp(story, "v2")
        before, began = server.calls(), time.monotonic()
        story.apply()
        story.stands("Settled", "v2")
        calls, seconds = server.calls() - before, time.monotonic() - began
    reads = calls["DescribeWorkerDeployment"] + calls["DescribeWorkerDeploymentVersion"]
    # a refused call is made again, ever later; the others are those of a rollout without a limit
    assert 0 < reads < seconds, (calls, seconds)


WAITS = {
    ("get", "configmaps"),
    ("get", "secrets"),
    ("list", "pods"),
    ("list", "jobs"),
    ("list", "deployments"),
    ("patch", "deployments"),
}
"""Rights without which it would not be safe, or not possible, to go on."""
GOES_ON = {
    ("create", "configmaps"),
    ("patch", "configmaps"),
    ("create", "events"),
    ("delete", "jobs"),
    ("list", "horizontalpodautoscalers"),
}
LOGGED = {("get", "configmaps"), ("create", "configmaps"), ("patch", "configmaps"), ("create", "events")}
"""Those that only the log tells of; an Event of the intent tells of all others."""


@side_by_side
def test_right_that_a_job_lacks_is_told_and_stops_it_only_where_it_would_not_be_safe_to_go_on(
    story: Story,
) -> None:
    rights = {f"{verb}-{resource}": (verb, resource) for verb, resource in WAITS | GOES_ON}
    documents: list[Document] = []
    for name in rights:
        worker = worker_document(name, "v1", steps=())
        container = worker_container("v1", f"{story.namespace}-{name}")
        worker["spec"]["template"]["spec"]["containers"] = [container]
        reference = {"secretKeyRef": {"name": "question", "key": "json"}}
        worker["spec"]["rollout"]["gate"] = {"workflowType": "AskedGateWorkflow", "inputFrom": reference}
        del worker["spec"]["replicas"]
        documents += [worker, autoscaler_document(name, f"{name}-scale")]
    story.write(*documents)
    question = config_map(story.namespace, "question", {"json": '{"passes": true}'}, "Secret")
    manifests = story.manifests()
    jobs = [item for item in manifests if item["kind"] == "Job"]
    [last] = [job for job in jobs if job["metadata"]["name"].startswith("delete-jobs-")]
    older = {**last, "metadata": {**last["metadata"], "name": "older", "annotations": {INTENT_HASH: "older"}}}
    story.cluster.apply(
        [
            *(lacking(item, rights) for item in manifests if item["kind"] != "Job"),
            {**older, "spec": {**last["spec"], "suspend": True}},
            question,
        ]
    )
    scaled = ("deployment/patch-deployments-v1", "--namespace", story.namespace)
    story.cluster.kubectl("scale", *scaled, "--replicas=0")
    story.cluster.apply(jobs)

    def is_told(name: str) -> bool:
        verb, resource = right = rights[name]
        events = [
            event["message"]
            for event in story.listed("/api/v1", "events")
            if (event["involvedObject"]["name"], event["reason"]) == (f"{name}-rollout", "LookFailed")
        ]
        pods = [pod["metadata"]["name"] for pod in story.pods(f"twgen.io/rollout={name}")]
        logs = [story.node.logs(story.namespace, pod) for pod in pods]
        said = "".join(logs if right in LOGGED else events)
        assert re.search(f"{verb} (resource .{resource}|on {resource})", said), said or name
        return True

    for name, right in rights.items():
        eventually(lambda name=name: is_told(name), SOON)
        if right in GOES_ON:
            eventually(lambda name=name: current(story, name) == "v1", SOON)
        else:
            assert current(story, name) == "", name
    story.cluster.apply([item for item in manifests if item["kind"] == "Role"])
    for name in rights:
        eventually(lambda name=name: current(story, name) == "v1", SOON)


def lacking(manifest: Object, rights: Mapping[str, tuple[str, str]]) -> Object:
    """The Role of a worker without the right that its name says; any other manifest as it is."""
    if manifest["kind"] != "Role":
        return manifest
    verb, resource = rights[manifest["metadata"]["name"].removesuffix("-rollout")]
    rules = [
        {
            **rule,
            "verbs": [kept for kept in rule["verbs"] if kept != verb or resource not in rule["resources"]],
        }
        for rule in manifest["rules"]
    ]
    assert rules != manifest["rules"], manifest["metadata"]["name"]
    return {**manifest, "rules": [rule for rule in rules if rule["verbs"]]}


def current(story: Story, name: str) -> str:
    """The build ID that is current of one of several workers."""
    request = DescribeWorkerDeploymentRequest(
        namespace="default", deployment_name=f"{story.namespace}/{name}"
    )
    try:
        found = story.temporal.ask("describe_worker_deployment", request).worker_deployment_info
    except RPCError:
        return ""
    return str(found.routing_config.current_deployment_version.build_id)
