"""What people request of a rollout by name, with no more than a kubeconfig."""

import json
import time
from pathlib import Path

import pytest

from testing.kubernetes.api import Object
from testing.processes import eventually
from tests.servers.live import PATIENT, Ended, run
from tests.servers.rollouts import PAUSE, SOON, Story, describe_ramp, outlast, settled
from tests.servers.side_by_side import side_by_side

pytestmark = pytest.mark.server
_RBAC = "rbac.authorization.k8s.io/v1"
A_LOOK = 20.0
"""Seconds, shorter than from one look of a Job to the next, which would see it without being asked."""
STATUS = "greeter-rollout-status"

PERMITS = {"rollout": {"image": "registry.example.com/twgen:testing", "requests": ["Promote", "Retry"]}}


def ramping(story: Story) -> None:
    """Version v2 has its first share, and its step pauses."""
    settled(story)
    describe_ramp(story, "v2")
    story.apply()
    eventually(lambda: story.share("v2") == 25, SOON)
    story.stands("Waiting", "v2")


def kubeconfig(story: Story, name: str, *verbs: str) -> Path:
    """Of an account that may do this to the status of the rollout, and nothing else."""
    cluster, namespace = story.cluster, story.namespace
    metadata = {"name": name, "namespace": namespace}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [STATUS], "verbs": list(verbs)}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    objects: list[Object] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": _RBAC, "kind": "Role", "metadata": metadata, "rules": [rule]},
        {
            "apiVersion": _RBAC,
            "kind": "RoleBinding",
            "metadata": metadata,
            "subjects": [subject],
            "roleRef": reference,
        },
    ]
    cluster.apply(objects)
    cluster.await_rights(name, namespace, rule)
    return cluster.write_kubeconfig(
        f"{namespace}-{name}", cluster.token(name, namespace), namespace=namespace
    )


def by_name(story: Story, file: Path, verb: str, *more: str) -> Ended:
    options = (*more, "--kubeconfig", str(file), "-n", story.namespace, *PATIENT)
    return run(story.folder, verb, "worker/greeter", options=options, takes_paths=False)


def completed(story: Story, file: Path, word: str) -> list[str]:
    """The names that a shell gets for this beginning of a word."""
    words = f"twgen abort -n {story.namespace} --kubeconfig {file} {word}"
    variables = {"_TWGEN_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": "6"}
    ended = run(story.folder, options=(), variables=variables, takes_paths=False)
    assert (ended.code, ended.stderr) == (0, ""), ended
    return [line.removeprefix("plain,") for line in ended.stdout.splitlines() if line.startswith("plain,")]


def answers(story: Story) -> list[str]:
    """The Events that tell of requests."""
    events = story.listed("/api/v1", "events")
    return [event["reason"] for event in events if event["reason"].startswith("Request")]


@side_by_side
def test_ramp_is_aborted_within_seconds_by_an_account_that_may_patch_the_status_alone(
    story: Story,
) -> None:
    ramping(story)
    on_call = kubeconfig(story, "on-call", "get", "patch")
    assert completed(story, story.cluster.kubeconfig, "wor") == ["worker/greeter"]
    assert completed(story, story.cluster.kubeconfig, "worker/x") == []
    assert completed(story, on_call, "worker/") == [], "it may not list, and the shell is told nothing"
    dry = by_name(story, on_call, "abort", "--dry-run")
    assert (dry.code, dry.stdout) == (0, ""), dry
    assert dry.stderr == f"{story.namespace}/greeter: would request Abort of v2, now Waiting at 25%\n"
    began = time.monotonic()
    ended = by_name(story, on_call, "abort")
    assert ended.code == 0, ended
    assert time.monotonic() - began < A_LOOK
    assert story.share("v2") == 0
    did = "stop sending 25% of new workflows to v2, until `twgen retry` or a new build ID"
    assert ended.stdout == f"{story.namespace}/greeter: Done: {did}\n"
    story.apply()
    outlast(PAUSE)
    assert story.share("v2") == 0, "a sync changes nothing about it"
    again = by_name(story, on_call, "abort", "-o", "json")
    assert (again.code, json.loads(again.stdout)["state"]) == (1, "Refused")
    assert "v2 is already aborted" in again.stderr
    faster = by_name(story, on_call, "retry")
    assert faster.code == 1
    assert "does not permit Retry by request" in faster.stderr
    assert answers(story) == ["RequestDone"]
    status = json.loads(
        story.run("status", "worker/greeter", "-n", story.namespace, "-o", "json", is_of_specs=False).stdout
    )
    assert status["workers"][0]["request"]["state"] == "Done"


@side_by_side
def test_account_that_may_only_read_the_status_is_told_which_right_it_lacks(story: Story) -> None:
    ramping(story)
    ended = by_name(story, kubeconfig(story, "reader", "get"), "abort")
    assert ended.code == 3, ended
    assert f"you need permission to patch ConfigMap {STATUS}" in ended.stderr
    assert story.share("v2") == 25
    stranger = by_name(story, kubeconfig(story, "stranger", "delete"), "abort")
    assert stranger.code == 3, stranger


@side_by_side
def test_pause_and_promotion_by_name_are_obeyed_through_a_killed_job(place: Story) -> None:
    place.operator.update(PERMITS)
    story = place
    ramping(story)
    mine = kubeconfig(story, "lead", "get", "patch")
    assert by_name(story, mine, "pause").code == 0
    pod = story.running_pod()["metadata"]["name"]
    story.cluster.kubectl("delete", "pod", pod, "--namespace", story.namespace, "--wait=false")
    outlast(PAUSE)
    assert story.share("v2") == 25
    planned = story.run("plan", "worker/greeter", "-n", story.namespace, is_of_specs=False)
    assert "v2" in planned.stdout, planned
    promoted = by_name(story, mine, "promote")
    assert promoted.code == 0, promoted
    assert story.share("v2") == 100
    story.stands("Settled", "v2")
    late = by_name(story, mine, "abort")
    assert (late.code, late.stdout) == (1, "")
    assert "the rollout of v2 is settled: to go back, commit the spec of an older version" in late.stderr


@side_by_side
def test_request_to_a_job_that_has_ended_starts_it_again(place: Story) -> None:
    place.operator.update(PERMITS)
    ramping(place)
    mine = kubeconfig(place, "lead", "get", "patch")
    assert by_name(place, mine, "abort").code == 0
    place.job("Failed")
    retried = place.run("retry", "worker/greeter", "-n", place.namespace, is_of_specs=False)
    assert retried.code == 0, retried
    assert "Done: let the rollout of v2 continue" in retried.stdout
    place.stands("Settled", "v2")
