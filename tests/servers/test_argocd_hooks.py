"""Rollouts by hooks of Argo CD: beside autoscaler and gate, and with a Temporal that goes away."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest

from testing.argocd.argocd import ArgoCD
from testing.faults import Forwarder, Trouble, forwarding
from testing.local_node.node import LocalNode
from testing.processes import eventually
from testing.servers import TemporalServer
from tests.servers.gitops import (
    SOON,
    ApplicationStory,
    attached,
    is_protected,
    new_story,
    uid,
)
from tests.servers.live import PATIENT, autoscaler_document, policy_document, run
from tests.servers.rollouts import PAUSE, last_word, outlast
from tests.servers.side_by_side import (
    APPLICATIONS_AT_ONCE,
    Told,
    kind_of_story,
    side_by_side,
    told_side_by_side,
)
from twgen.yaml.reader import read_documents

pytestmark = pytest.mark.server
PAGE = Path(__file__).parents[2] / "docs" / "jobs.md"
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
RAMP = {"strategy": "Progressive", "steps": [{"rampPercentage": 25, "pauseDuration": f"{PAUSE:g}s"}]}


@dataclass(frozen=True, slots=True)
class Hooked:
    """A worker in Git that a hook rolls out."""

    gitops: ApplicationStory
    way: Forwarder
    """By which its workers, its hook and its renders reach Temporal."""

    def loses_temporal_in_mid_ramp(self, hold_for: str) -> str:
        """Let v2 follow v1, and Temporal be gone when v2 has a quarter; the commit."""
        story, address = self.gitops, self.way.address
        policy = policy_document("greeter", driver="Hook")
        story.commit("v1", policy, steps=(), address=address)
        story.application.create(retry={"limit": 0})
        story.stands("Settled", "v1")
        holds = policy_document("greeter", driver="Hook", holdFor=hold_for)
        commit = story.commit("v2", holds, spec={"rollout": RAMP}, address=address)
        story.application.refresh()
        story.ramps_to("25")
        self.way.die()
        return commit

    def serves(self, build_id: str) -> bool:
        """It has its pods, and is protected."""
        found = self.gitops.deployment(build_id)
        return bool(found) and found["spec"]["replicas"] == 1 and is_protected(found)

    def is_said(self) -> str:
        """The message of the status, once that tells that Temporal is away."""

        def said() -> str:
            message = self.gitops.status()["message"]
            assert f"Temporal at {self.way.address}" in message, message
            return message

        return eventually(said, SOON)


@contextmanager
def told_of_hooks(
    request: pytest.FixtureRequest, argo: ArgoCD, node: LocalNode, temporal: TemporalServer
) -> Iterator[Told]:
    """The stories of a module side by side, each with a way to Temporal of its own."""
    addresses, adding = [temporal.address], Lock()

    def begin(test: pytest.Function, tell: Callable[..., None]) -> None:
        with forwarding(temporal.address, Trouble()) as way, new_story(argo, node, temporal) as story:
            with adding:
                addresses.append(way.address)
                argo.configure(addresses)
            tell(Hooked(story, way) if kind_of_story(test) is Hooked else story)

    with told_side_by_side(request, begin, APPLICATIONS_AT_ONCE) as told:
        yield told


@pytest.fixture(scope="module")
def told_stories(
    request: pytest.FixtureRequest, argo: ArgoCD, node: LocalNode, newest_temporal: TemporalServer
) -> Iterator[Told]:
    with told_of_hooks(request, argo, node, newest_temporal) as told:
        yield told


@side_by_side
def test_one_line_of_a_policy_makes_a_hook_of_a_rollout_with_autoscaler_and_gate(story: Hooked) -> None:
    gitops, address = story.gitops, story.way.address
    [written] = [block for block in BLOCKS if "holdFor" in block]
    [policy] = read_documents(written)
    policy["metadata"]["name"] = policy["spec"]["workerRef"]["name"] = gitops.worker_name
    more = (policy, autoscaler_document(gitops.worker_name))
    gitops.commit("v1", *more, steps=(), address=address)
    gitops.application.create()
    gitops.stands("Settled", "v1")
    rollout = {**RAMP, "gate": {"workflowType": "GateWorkflow"}}
    commit = gitops.commit("v2", *more, spec={"rollout": rollout}, address=address)
    gitops.application.refresh()
    gitops.ramps_to("25")
    eventually(gitops.waits_for_its_hook, SOON)
    assert set(attached(gitops, "v2")) == {"HorizontalPodAutoscaler"}, "its traffic may need more pods"

    eventually(lambda: gitops.application.operation()["phase"] == "Succeeded", SOON)
    ended = gitops.application.operation()["syncResult"]
    assert ended["revision"] == commit
    hooks = {one["hookType"]: one["hookPhase"] for one in ended["resources"] if "hookType" in one}
    assert hooks == {"Sync": "Succeeded", "PostSync": "Succeeded"}
    assert gitops.share("v2") == 100, "the sync ended no earlier"
    gate = WorkflowExecution(workflow_id=f"test-{gitops.worker.name}:v2-{gitops.task_queue}")
    request = DescribeWorkflowExecutionRequest(namespace="default", execution=gate)
    info = gitops.temporal.ask("describe_workflow_execution", request).workflow_execution_info
    assert info.status == WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED
    for build_id in ("v1", "v2"):
        assert set(attached(gitops, build_id)) == {"HorizontalPodAutoscaler"}
        assert is_protected(gitops.deployment(build_id) or {})


@side_by_side
def test_hook_that_loses_temporal_for_less_than_hold_for_says_so_and_goes_on_by_itself(story: Hooked) -> None:
    gitops = story.gitops
    commit = story.loses_temporal_in_mid_ramp("5m")
    kept = [uid(gitops.deployment(build_id)) for build_id in ("v1", "v2")]
    story.is_said()
    job = gitops.running_job()
    eventually(gitops.waits_for_its_hook, SOON)
    operation = gitops.application.operation()
    outlast(PAUSE)
    assert uid(gitops.running_job()) == uid(job)
    assert gitops.share("v2") == 25, "nobody has seen that its pause is over"
    assert story.serves("v1")
    assert story.serves("v2")

    story.way.revive()
    status = gitops.stands("Settled", "v2")
    assert "Temporal at" not in status["message"]
    assert gitops.share("v2") == 100
    eventually(lambda: gitops.application.operation()["phase"] == "Succeeded", SOON)
    ended = gitops.application.operation()
    assert (ended["startedAt"], ended["syncResult"]["revision"]) == (operation["startedAt"], commit)
    assert [uid(gitops.deployment(build_id)) for build_id in ("v1", "v2")] == kept


@side_by_side
def test_hook_that_finds_no_temporal_until_hold_for_is_over_fails_with_a_sentence_and_takes_nothing_away(
    story: Hooked,
) -> None:
    gitops = story.gitops
    commit = story.loses_temporal_in_mid_ramp("2m")
    kept = [uid(gitops.deployment(build_id)) for build_id in ("v1", "v2")]
    story.is_said()
    eventually(lambda: gitops.application.operation()["phase"] == "Failed", SOON)
    [hook] = [one for one in gitops.application.operation()["syncResult"]["resources"] if "hookType" in one]
    assert "failed with exit code 4" in hook["message"]
    away = f"Temporal at {story.way.address}"
    [pod] = gitops.cluster.list("pods", gitops.namespace, "twgen.io/rollout=greeter")
    for told in (last_word(pod), gitops.stands("Blocked", "v2")["message"]):
        assert "is not settled within 2m" in told
        assert away in told
    assert (gitops.share("v1"), gitops.share("v2")) == (75, 25)
    assert story.serves("v1")
    assert story.serves("v2")

    story.way.revive()
    gitops.application.sync()
    gitops.stands("Settled", "v2")
    assert gitops.share("v2") == 100
    gitops.application.synced(commit)
    assert [uid(gitops.deployment(build_id)) for build_id in ("v1", "v2")] == kept


@side_by_side
def test_hook_goes_on_where_a_hard_refresh_without_temporal_ends_its_sync(story: Hooked) -> None:
    gitops = story.gitops
    commit = story.loses_temporal_in_mid_ramp("5m")
    away = f"Temporal at {story.way.address}"
    gitops.application.refresh("hard")
    gitops.application.fails_with(away)
    for _ in range(3):  # as often as it takes until Argo CD keeps the error
        gitops.application.refresh("hard")
    assert gitops.share("v2") == 25
    assert story.serves("v1")
    assert story.serves("v2")

    story.way.revive()
    gitops.stands("Settled", "v2")
    assert gitops.share("v2") == 100
    # a sync is compared once more when its hook has ended
    eventually(lambda: gitops.application.operation()["phase"] == "Error", SOON)
    assert "ComparisonError" in gitops.application.operation()["message"]
    assert story.serves("v2")
    gitops.application.refresh("hard")
    gitops.application.sync()
    gitops.application.synced(commit)


@side_by_side
def test_revert_in_mid_ramp_waits_for_the_hook_of_two_workers_until_a_person_ends_the_sync(
    story: Hooked,
) -> None:
    gitops, address = story.gitops, story.way.address
    other = replace(gitops, worker_name="mailer")
    policy = {**policy_document("greeter", driver="Hook", holdFor="1h")}
    del policy["spec"]["workerRef"]
    more = (policy, autoscaler_document("greeter"))

    def commit(build_id: str, **spec: object) -> str:
        [_, mailer] = other.documents(build_id, steps=(), address=address)
        return gitops.commit_documents(
            f"both {build_id}", *gitops.documents(build_id, *more, address=address, spec=spec), mailer
        )

    first = commit("v1")
    gitops.application.create(retry={"limit": 0})
    for worker in (gitops, other):
        worker.stands("Settled", "v1")
    gitops.application.synced(first)
    commit(
        "v2", rollout={"strategy": "Progressive", "steps": [{"rampPercentage": 25, "pauseDuration": "20m"}]}
    )
    gitops.application.refresh()
    gitops.ramps_to("25")
    other.stands("Settled", "v2")
    commit("v1")
    gitops.application.refresh()
    outlast(PAUSE)
    assert gitops.waits_for_its_hook()
    assert (gitops.share("v2"), other.share("v2")) == (25, 100)
    gitops.application.terminate()
    for worker in (gitops, other):
        worker.stands("Settled", "v1")
        assert worker.share("v1") == 100


@side_by_side
def test_hook_of_a_commit_whose_first_render_failed_comes_with_a_sync_by_hand(story: Hooked) -> None:
    """Argo CD from 3.5 on takes such a commit for one that was synced before, and runs no hook of it."""
    gitops, address = story.gitops, story.way.address
    policy = policy_document("greeter", driver="Hook")
    first = gitops.commit("v1", policy, steps=(), address=address)
    gitops.application.create()
    gitops.stands("Settled", "v1")
    gitops.application.synced(first)  # while a sync goes on, Argo CD looks once more after it
    story.way.die()
    commit = gitops.commit("v2", policy, steps=(), address=address)
    gitops.application.refresh("hard")
    gitops.application.fails_with(f"Temporal at {address}")
    story.way.revive()
    gitops.application.refresh("hard")
    gitops.application.synced(commit)
    assert gitops.application.operation()["operation"]["sync"]["resources"], "a part of it, so without hooks"
    options = ("-n", gitops.namespace, "--kubeconfig", str(gitops.cluster.kubeconfig), *PATIENT)
    told = run(gitops.argo.folder, "status", "--from-cluster", options=options, takes_paths=False)
    assert "it has no Job yet" in told.stdout, told

    def is_told() -> bool:
        told = run(gitops.argo.folder, "status", "--from-cluster", options=options, takes_paths=False)
        assert "Blocked" in told.stdout, told
        command = f"run `argocd app sync {gitops.application.name}`"
        return f"Argo CD applied this commit without its hooks; {command}" in told.stdout

    eventually(is_told, SOON)
    told = run(gitops.argo.folder, "doctor", options=options, takes_paths=False)
    assert told.code == 1
    assert "Argo CD applied this commit without its hooks" in told.stdout, told
    assert gitops.share("v1") == 100
    gitops.application.sync()
    gitops.stands("Settled", "v2")
    assert gitops.share("v2") == 100
