"""`twgen tick` beside a real Argo CD, as an account of it that may get applications and nothing else."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

import pytest

from testing.argocd.argocd import ArgoCD
from testing.argocd.server import ArgoServer
from testing.argocd.tick import install_account
from testing.faults import Forwarder, Trouble, forwarding
from testing.local_node.node import LocalNode
from testing.processes import eventually
from testing.servers import TemporalServer
from tests.servers.gitops import (
    SOON,
    ApplicationStory,
    attached,
    budget_document,
    is_protected,
    new_story,
    uid,
)
from tests.servers.live import (
    Document,
    Ended,
    autoscaler_document,
    in_namespace,
    policy_document,
    run,
)
from tests.servers.side_by_side import APPLICATIONS_AT_ONCE, Told, side_by_side, told_side_by_side
from tests.servers.ticks import tick_account, ticking
from twgen.records.intent import parse_intent, write_intent
from twgen.versioning.names import PLAN_HASH, TAKEN_OVER, TRACKING_ID

MORE = (autoscaler_document("greeter"), budget_document("greeter"))
ROLLS_OUT: Document = {"tick": {"rollouts": True}}
KINDS = {"HorizontalPodAutoscaler", "PodDisruptionBudget"}
pytestmark = pytest.mark.server


@dataclass(frozen=True, slots=True)
class Account:
    """An Argo CD whose operator has installed tick's account as the page says."""

    server: ArgoServer
    token: str = field(repr=False)
    way: Forwarder
    """To Temporal, by another address; it may be gone."""


@dataclass(frozen=True, slots=True)
class Ticking:
    """A worker in Git beside which tick may run."""

    gitops: ApplicationStory
    account: Account

    def tick(self, code: int = 0, namespace: str = "") -> Ended:
        """One look at a namespace, by default that of the worker."""
        options = [
            *("-n", namespace or self.gitops.namespace, "--kubeconfig", str(self.gitops.cluster.kubeconfig)),
            *("--argocd-server", self.account.server.address),
        ]
        variables = {"ARGOCD_AUTH_TOKEN": self.account.token}
        ended = run(self.gitops.argo.folder, "tick", options=options, variables=variables, takes_paths=False)
        assert ended.code == code, ended
        return ended

    def ticks_until(self, reached: Callable[[], object]) -> None:
        """Look again and again, until it is so."""

        def so() -> object:
            self.tick()
            return reached()

        eventually(so, SOON)

    def hand_over(self, delete_delay: str = "1s") -> str:
        """Let v2 follow v1 on which a workflow is open; the commit."""
        sunset = {"sunset": {"scaledownDelay": "1s", "deleteDelay": delete_delay}}
        self.gitops.commit("v1", *MORE, steps=(), spec=sunset)
        self.gitops.application.create()
        self.gitops.stands("Settled", "v1")
        self.gitops.worker.start("WaitingWorkflow", self.gitops.namespace)
        commit = self.gitops.commit("v2", *MORE, steps=(), spec=sunset)
        self.gitops.application.refresh()
        self.gitops.stands("Settled", "v2")
        # a sync that waits for its hook is left alone by tick
        self.gitops.application.synced(commit)
        self.ticks_until(lambda: self.tick().stdout == "")
        self.gitops.application.synced(commit)
        return commit

    def serves(self, build_id: str) -> bool:
        """It has its pods, and is protected."""
        found = self.gitops.deployment(build_id)
        return bool(found) and found["spec"]["replicas"] == 1 and is_protected(found)


@pytest.fixture(scope="module")
def account(argo: ArgoCD, newest_temporal: TemporalServer) -> Iterator[Account]:
    name = install_account(argo)
    with forwarding(newest_temporal.address, Trouble()) as way, argo.server() as server:
        argo.configure([newest_temporal.address, way.address])
        yield Account(server, server.token(name), way)


@pytest.fixture(scope="module")
def told_stories(
    request: pytest.FixtureRequest,
    argo: ArgoCD,
    node: LocalNode,
    newest_temporal: TemporalServer,
    account: Account,
) -> Iterator[Told]:
    """The stories of this module side by side, each in a namespace and a repository of its own."""

    def begin(_: pytest.Function, tell: Callable[..., None]) -> None:
        with new_story(argo, node, newest_temporal) as story:
            tell(Ticking(story, account))

    with told_side_by_side(request, begin, APPLICATIONS_AT_ONCE) as told:
        yield told


@side_by_side
def test_version_that_drains_goes_to_zero_and_then_with_all_it_has_while_only_time_passes(
    story: Ticking,
) -> None:
    gitops = story.gitops
    commit = story.hand_over()
    assert set(attached(gitops, "v1")) == KINDS
    gitops.worker.finish(gitops.namespace)
    gitops.worker.drains("v1")
    gitops.application.refresh()
    assert story.serves("v1"), "Argo CD keeps its render without tick"

    # one refresh: the next would take away what is looked at here
    assert eventually(lambda: story.tick().stdout, SOON).count("would differ") == 1
    eventually(lambda: gitops.replicas("v1") == 0, SOON)
    found = gitops.deployment("v1")
    assert found
    assert not is_protected(found)
    assert set(attached(gitops, "v1")) == KINDS
    story.ticks_until(lambda: gitops.deployment("v1") is None and not attached(gitops, "v1"))
    found = gitops.application.synced(commit)
    assert found["status"]["sync"]["revision"] == commit
    story.ticks_until(lambda: story.tick().stdout == "")


@side_by_side
def test_each_delay_of_a_version_is_followed_by_a_refresh_of_a_tick_that_goes_on(story: Ticking) -> None:
    gitops, account = story.gitops, story.account
    story.hand_over(delete_delay="20s")
    (folder := gitops.argo.folder / f"tick-of-{gitops.namespace}").mkdir()
    (token := folder / "token").write_text(account.token)
    options = ("--argocd-server", account.server.address, "--argocd-token-file", str(token))
    with ticking(gitops.cluster.kubeconfig, gitops.namespace, folder, {}, *options):
        gitops.worker.finish(gitops.namespace)
        gitops.worker.drains("v1")
        eventually(lambda: gitops.replicas("v1") == 0, SOON)
        began = monotonic()
        eventually(lambda: gitops.deployment("v1") is None, SOON)
        assert monotonic() - began < 90, "20 s, a check, a render and a sync"
    assert (folder / "tick.log").read_text().count("would differ") == 2


@side_by_side
def test_versioned_deployment_deleted_by_hand_comes_back_whole_after_one_look(story: Ticking) -> None:
    gitops = story.gitops
    # what a hook's Job applies comes back with the next sync
    gitops.commit("v1", *MORE, policy_document("greeter", driver="Job"), steps=())
    gitops.application.create()
    gitops.stands("Settled", "v1")
    found = gitops.deployment("v1")
    assert found
    gone = found["metadata"]["uid"]
    gitops.application.refresh("hard")  # before the first sync there was no owner to name
    story.ticks_until(lambda: attached(gitops, "v1") == dict.fromkeys(KINDS, gone))
    story.ticks_until(lambda: story.tick().stdout == "")

    gitops.cluster.kubectl("delete", "deployment/greeter-v1", "--namespace", gitops.namespace)

    def made() -> str:
        again = gitops.deployment("v1")
        return again["metadata"]["uid"] if again and again["metadata"]["uid"] != gone else ""

    uid = eventually(made, SOON)
    told = eventually(lambda: story.tick().stdout, SOON)
    assert told.splitlines() == [
        f"{gitops.namespace}: refreshed, because a new render of {gitops.worker.name} would differ"
    ]
    eventually(lambda: attached(gitops, "v1") == dict.fromkeys(KINDS, uid), SOON)
    assert gitops.share("v1") == 100


@side_by_side
def test_error_that_argocd_has_cached_is_gone_after_one_look(story: Ticking) -> None:
    gitops, way = story.gitops, story.account.way
    policy = policy_document("greeter", driver="Job")
    gitops.commit("v1", policy, steps=(), address=way.address)
    gitops.application.create()
    gitops.stands("Settled", "v1")
    before = gitops.deployment("v1")
    way.die()
    commit = gitops.commit("v2", policy, steps=(), address=way.address)

    def is_cached() -> bool:
        gitops.application.refresh()
        return any("(cached)" in error for error in gitops.application.errors())

    eventually(is_cached, SOON)
    assert way.address in story.tick(code=3).stderr
    way.revive()
    assert is_cached(), "Argo CD goes on to tell the error"
    # what Temporal could not be asked while it was away is asked anew by the look after it
    told = eventually(lambda: story.tick().stdout, SOON)
    assert f"{gitops.namespace}: refreshed, because its last render failed: " in told
    gitops.application.synced(commit)
    gitops.stands("Settled", "v2")
    kept = gitops.deployment("v1")
    assert before
    assert kept
    assert kept["metadata"]["uid"] == before["metadata"]["uid"]


@side_by_side
def test_drained_version_that_gets_work_again_gets_its_pods_at_the_same_commit(story: Ticking) -> None:
    gitops = story.gitops
    commit = story.hand_over(delete_delay="1h")
    gitops.worker.finish(gitops.namespace)
    gitops.worker.drains("v1")
    story.ticks_until(lambda: gitops.replicas("v1") == 0)
    gitops.worker.start("WaitingWorkflow", f"{gitops.namespace}-again", pinned_to="v1")
    story.ticks_until(lambda: story.serves("v1"))
    gitops.worker.finish(f"{gitops.namespace}-again")
    assert gitops.application.synced(commit)["status"]["sync"]["revision"] == commit


@contextmanager
def tick_that_rolls_out(story: Ticking) -> Iterator[Path]:
    """A tick with the rights that the docs name for rollouts; its log."""
    gitops, account = story.gitops, story.account
    (folder := gitops.argo.folder / f"tick-of-{gitops.namespace}").mkdir()
    (token := folder / "token").write_text(account.token)
    options = ("--argocd-server", account.server.address, "--argocd-token-file", str(token))
    rights = tick_account(gitops.cluster, gitops.namespace, folder, "tick", ["statuses", "rollouts"])
    with rights as kubeconfig, ticking(kubeconfig, gitops.namespace, folder, ROLLS_OUT, *options):
        try:
            yield folder / "tick.log"
        except BaseException as error:
            error.add_note((folder / "tick.log").read_text())
            raise


@side_by_side
def test_rollout_whose_hook_argocd_skipped_is_carried_out_by_tick_until_a_hook_comes(story: Ticking) -> None:
    gitops = story.gitops
    more = (policy_document("greeter", driver="Hook", holdFor="1h"), autoscaler_document("greeter"))
    first = gitops.commit("v1", *more, steps=())
    gitops.application.create(retry={"limit": 0})
    gitops.stands("Settled", "v1")
    gitops.application.synced(first)

    def skip_hook_of(build_id: str, pause: str) -> None:
        """Commit what cannot be rendered, and then its repair: Argo CD takes that for synced before."""
        gitops.commit(build_id, *more, spec={"minReadySeconds": "none"})
        gitops.application.refresh("hard")
        gitops.application.fails_with("minReadySeconds")
        steps = [{"rampPercentage": 25, "pauseDuration": pause}]
        commit = gitops.commit(build_id, *more, spec={"rollout": {"strategy": "Progressive", "steps": steps}})
        gitops.application.refresh("hard")
        gitops.application.synced(commit)
        assert gitops.application.operation()["operation"]["sync"]["resources"], "it ran no hook"

    with tick_that_rolls_out(story) as log:
        skip_hook_of("v2", "30s")
        gitops.reaches("v2", 100)
        says = "Argo CD applied v2 without its hooks, so tick carries out its rollout"
        assert f"{gitops.worker.name}: {says}" in log.read_text()
        assert gitops.jobs() == [], "the Job of v1 ran for another intent"
        assert set(attached(gitops, "v2")) == {"HorizontalPodAutoscaler"}
        eventually(lambda: gitops.status()["phase"] == "Settled", SOON)
        [event] = [
            one for one in gitops.cluster.list("events", gitops.namespace) if one["reason"] == "HookSkipped"
        ]
        assert event["message"] == says

        skip_hook_of("v3", "60s")
        gitops.reaches("v3", 25)
        gitops.application.sync()
        job = gitops.running_job()
        eventually(lambda: "its hook carries out its rollout again" in log.read_text(), SOON)
        gitops.reaches("v3", 100)
        eventually(lambda: gitops.status()["phase"] == "Settled", SOON)
        assert [uid(one) for one in gitops.jobs()] == [uid(job)]
        intent = gitops.cluster.get("configmap", "greeter-rollout", gitops.namespace)
        assert TAKEN_OVER not in intent["metadata"]["annotations"]


@side_by_side
def test_intent_that_somebody_forged_refreshes_no_application(story: Ticking) -> None:
    gitops, name = story.gitops, story.gitops.application.name
    gitops.settled()
    story.ticks_until(lambda: story.tick().stdout == "")
    elsewhere = f"{gitops.namespace}-elsewhere"
    gitops.cluster.create_namespace(elsewhere)
    intent = parse_intent(gitops.cluster.get("configmap", "greeter-rollout", gitops.namespace))
    documents = tuple(in_namespace(elsewhere, *map(dict, intent.documents)))
    forged = write_intent(replace(intent, namespace=elsewhere, documents=documents))
    # Argo CD would prune one that names itself
    tracked = {TRACKING_ID: f"{name}:/ConfigMap:{gitops.namespace}/greeter-rollout", PLAN_HASH: "forged"}
    forged["metadata"]["annotations"] |= tracked
    gitops.cluster.apply([forged])
    for _ in range(2):
        gitops.application.refresh()
        ended = story.tick(code=3, namespace=elsewhere)
        assert ended.stdout == ""
        assert f"ConfigMap {elsewhere}/greeter-rollout names application {name}" in ended.stderr
    assert gitops.cluster.get("configmap", "greeter-rollout", elsewhere)
    assert story.tick().stdout == ""


@side_by_side
def test_account_of_tick_may_get_applications_and_nothing_else(story: Ticking) -> None:
    gitops, server, token = story.gitops, story.account.server, story.account.token
    gitops.settled()
    path = f"/api/v1/applications/{gitops.application.name}"
    assert server.request(token, "GET", path) == 200
    before = gitops.application.get()["spec"]
    of_deployment = "resourceName=greeter-v1&version=v1&group=apps&kind=Deployment"
    patch = {"name": gitops.application.name, "patch": '{"spec": {"project": "x"}}', "patchType": "merge"}
    refused = {
        (method, more): server.request(token, method, f"{path}{more}", body)
        for method, more, body in (
            ("POST", "/sync", {"prune": True}),
            ("POST", "/rollback", {"id": 1}),
            ("PATCH", "", patch),
            ("PUT", "/spec", before),
            ("DELETE", "", None),
            ("DELETE", "/operation", None),
            ("DELETE", f"/resource?namespace={gitops.namespace}&{of_deployment}", None),
            ("GET", "/logs?container=worker", None),
        )
    }
    assert {asked for asked, status in refused.items() if status != 403} == set(), list(refused.values())
    assert gitops.application.get()["spec"] == before
    everything = (
        *("clusters", "projects", "applications", "applicationsets", "repositories", "write-repositories"),
        *("certificates", "accounts", "gpgkeys", "logs", "exec"),
    )
    actions = ("get", "create", "update", "delete", "sync", "override", "action", "invoke")
    permitted = {
        (resource, action)
        for resource in everything
        for action in actions
        if server.permits(token, action, resource)
    }
    assert permitted == {("applications", "get")}
