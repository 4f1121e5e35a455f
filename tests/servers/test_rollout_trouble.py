"""Rollouts of a cluster in trouble: servers that go, answers that get lost, kills, clocks, missing rights."""

import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.workflowservice.v1 import (
    DescribeWorkerDeploymentRequest,
)
from temporalio.service import RPCError

from testing.faults import Trouble, forwarding
from testing.forking import Forked, forker
from testing.kubernetes.api import Object
from testing.processes import eventually
from tests.servers.live import (
    ENVIRONMENT,
    Document,
    autoscaler_document,
    worker_container,
    worker_document,
)
from tests.servers.pods import config_map
from tests.servers.rollouts import IDENTITY, SOON, Story, gates_of, outlast, settled, side_by_side
from twgen.versioning.names import INTENT_HASH

pytestmark = pytest.mark.server

PAUSE = 30.0
"""The shortest of a step."""
CLOCK = """\
import sys
from datetime import timedelta
from pathlib import Path
from twgen.cli import settings

right, ahead = settings.clock, Path(sys.argv.pop(1))
settings.clock = lambda: right() + timedelta(seconds=int(ahead.read_text()))
from twgen.__main__ import main

main()
"""
"""The program, its clock ahead by as many seconds as a file says."""


def applied(story: Story, **variables: str) -> None:
    """Apply what is rendered, with these variables in the Job's container."""
    manifests = list(story.manifests())
    for item in manifests:
        if item["kind"] == "Job":
            [container] = item["spec"]["template"]["spec"]["containers"]
            container["env"] += [{"name": name, "value": value} for name, value in variables.items()]
    story.cluster.apply(manifests, "--force-conflicts")


def describe_ramp(story: Story, build_id: str, **options: Any) -> None:
    story.describe(build_id, **options)
    specs = story.folder / "specs.yaml"
    specs.write_text(specs.read_text().replace("10m", f"{PAUSE:g}s"))


def jump(ahead: Path, seconds: int) -> None:
    """Put the clock ahead by as many seconds; whoever reads it never finds half of a number."""
    (new := ahead.with_suffix(".new")).write_text(str(seconds))
    new.replace(ahead)


def ramped_at(story: Story) -> float:
    """When the share of the ramp changed last, by the server's clock."""
    changed = story.described().routing_config.ramping_version_percentage_changed_time
    return float(changed.ToMilliseconds() / 1000)


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
        eventually(lambda: "; looking again" in story.log(), SOON)
        outlast(PAUSE)
        assert story.share("v2") == 25, "nothing tells whether its intent still stands"
        way.revive()
        story.stands("Settled", "v2")


@side_by_side
def test_rollout_that_is_killed_after_each_of_its_requests_loses_nothing(story: Story) -> None:
    settled(story)
    arguments = without_its_job(story, gate="GateWorkflow", steps=())
    for number in count(1):
        silent = Trouble(lost_answer=number, hangs=True)
        with forwarding(story.temporal.address, silent) as way, (story.folder / "log").open("ab") as log:
            via = ("--via", f"{story.temporal.address}={way.address}")
            process = forker("kubernetes.client").start(
                "twgen.__main__:main", [*arguments, *via], story.folder, ENVIRONMENT, [log.fileno()] * 3
            )
            eventually(lambda process=process, way=way: way.lost or ended(process) is not None, SOON)
            process.send(signal.SIGKILL)
            code = process.wait()
        assert code in {0, -signal.SIGKILL}, (story.folder / "log").read_text()
        if code == 0:
            break
    assert story.share("v2") == 100
    assert story.described().manager_identity == IDENTITY
    assert story.replicas() == {"v1": 1, "v2": 1}
    eventually(lambda: gates_of(story, "v2") == 1, SOON)


@side_by_side
def test_rollout_whose_clock_jumps_waits_behind_and_cuts_no_pause_short_ahead(story: Story) -> None:
    settled(story)
    arguments = without_its_job(story, steps=(25, 50))
    jump(ahead := story.folder.parent / "ahead", -3600)
    command = [sys.executable, "-P", "-c", CLOCK, str(ahead), *arguments]
    with (story.folder.parent / "log").open("wb") as log:
        process = subprocess.Popen(command, env=ENVIRONMENT, stdout=log, stderr=log)
    try:
        eventually(lambda: story.share("v2") == 25, SOON)
        outlast(PAUSE)
        assert story.share("v2") == 25, "by its clock an hour of the pause is left"
        jump(ahead, 0)
        eventually(lambda: story.share("v2") == 50, SOON)
        began = ramped_at(story)
        jump(ahead, 3600)
        assert process.wait(SOON) == 0
    finally:
        process.terminate()
        process.wait()
    assert story.share("v2") == 100
    current = story.described().routing_config.current_version_changed_time
    assert current.ToMilliseconds() / 1000 - began >= PAUSE
    assert "ahead of another one: the pauses" in (story.folder.parent / "log").read_text()
    assert story.replicas() == {"v1": 1, "v2": 1}


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
    story.cluster.apply([item for item in manifests if item["kind"] == "Role"], "--force-conflicts")
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


def ended(process: Forked) -> int | None:
    """How a process has ended; None: it has not."""
    with suppress(TimeoutError):
        return process.wait(0.05)
    return None


def without_its_job(story: Story, **options: Any) -> Sequence[str]:
    """Apply v2 without the Job of its rollout, and wait for its worker; the Job's arguments."""
    describe_ramp(story, "v2", **options)
    manifests = story.manifests()
    story.cluster.apply([item for item in manifests if item["kind"] != "Job"], "--force-conflicts")
    [job] = [item for item in manifests if item["kind"] == "Job"]
    [container] = job["spec"]["template"]["spec"]["containers"]

    def polls() -> bool:
        found = {version.deployment_version.build_id for version in story.described().version_summaries}
        return "v2" in found

    eventually(polls, SOON)
    token = story.cluster.token("greeter-rollout", story.namespace)
    kubeconfig = story.cluster.write_kubeconfig(story.namespace, token, namespace=story.namespace)
    return [*container["args"], "--kubeconfig", str(kubeconfig)]
