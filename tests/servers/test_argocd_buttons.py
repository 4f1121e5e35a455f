"""Buttons of Argo CD, pressed over its API by accounts that may and by accounts that may not."""

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from testing.argocd.argocd import IMAGE, NAMESPACE, ArgoCD
from testing.argocd.server import ArgoServer
from testing.local_node.node import LocalNode
from testing.processes import eventually
from testing.servers import TemporalServer
from tests.servers.gitops import ApplicationStory, new_story
from tests.servers.live import PATIENT, policy_document, run
from tests.servers.pods import config_map
from tests.servers.rollouts import SOON, outlast
from twgen.cli.settings import clock
from twgen.model.rollout import Request, Verb
from twgen.records.rollout_status import write_request
from twgen.versioning.names import ABORT_REQUEST
from twgen.yaml.reader import read_documents

pytestmark = pytest.mark.server
_ROOT = Path(__file__).parents[2]
PAGE = _ROOT / "docs" / "steer.md"
A_LOOK = 20.0
"""Seconds, shorter than from one look of a Job to the next, which would see it without being asked."""
ACCOUNTS = ("on-call", "leads", "guest")


def install(argo: ArgoCD) -> None:
    """The buttons as they are installed, the roles of the page, and three accounts."""
    [config_map] = read_documents((_ROOT / "deploy" / "actions" / "argocd-cm.yaml").read_text())
    maps = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    accounts = {f"accounts.{name}": "apiKey" for name in ACCOUNTS}
    argo.cluster.api.patch(f"{maps}/argocd-cm", {"data": config_map["data"] | accounts})
    page = PAGE.read_text()
    [text] = re.findall(r"^```yaml\n(data:\n  policy.csv.*?)^```$", page, re.MULTILINE | re.DOTALL)
    [roles] = read_documents(text)
    policy = roles["data"]["policy.csv"].replace("shop/*", "default/*")
    guest = "p, guest, applications, get, default/*, allow\n"
    argo.cluster.api.patch(f"{maps}/argocd-rbac-cm", {"data": {"policy.csv": policy + guest}})


def press(server: ArgoServer, story: ApplicationStory, token: str, verb: str) -> tuple[int, str]:
    """The answer to the press of a button, as the page shows it to scripts."""
    [text] = re.findall(r"^```json\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    name = story.application.name
    where = {"name": name, "namespace": story.namespace, "resourceName": "greeter-rollout-status"}
    body = {**json.loads(text), **where, "appNamespace": NAMESPACE, "action": f"twgen-{verb}"}
    path = f"/api/v1/applications/{name}/resource/actions/v2"
    return server.answer(token, "POST", path, body)


def events(story: ApplicationStory, begin: str) -> list[Any]:
    """Those whose reason begins so, about the rollout or about its application."""
    items = [
        item
        for namespace in (story.namespace, NAMESPACE)
        for item in story.cluster.api.get(f"/api/v1/namespaces/{namespace}/events")["items"]
    ]
    return [item for item in items if item["reason"].startswith(begin)]


def test_bad_version_is_back_at_zero_seconds_after_on_call_pressed_abort(
    argo: ArgoCD, node: LocalNode, newest_temporal: TemporalServer
) -> None:
    argo.configure([newest_temporal.address])
    install(argo)
    with argo.server() as server, new_story(argo, node, newest_temporal) as story:
        on_call, guest = map(server.token, ("on-call", "guest"))
        story.settled()
        commit = story.commit("v2")
        story.application.refresh()
        story.reaches("v2", 25)
        assert press(server, story, guest, "abort")[0] == HTTPStatus.FORBIDDEN
        assert press(server, story, on_call, "promote")[0] == HTTPStatus.FORBIDDEN
        began = time.monotonic()
        assert press(server, story, on_call, "abort")[0] == HTTPStatus.OK
        eventually(lambda: story.share("v2") == 0, SOON)
        assert time.monotonic() - began < A_LOOK
        story.application.refresh("hard")
        story.application.synced(commit)
        outlast(20)
        assert story.share("v2") == 0, "neither a sync nor self-heal brings it back"
        [answer] = events(story, "Request")
        assert answer["reason"] == "RequestDone"
        assert answer["message"].startswith("Abort of v2, requested by Argo CD: stop sending 25%")
        assert any("on-call" in event["message"] for event in events(story, "ResourceActionRan"))
        assert story.application.get()["status"]["sync"]["status"] == "Synced"


def test_leads_retry_a_failed_gate_and_promote_a_step_that_waits_for_a_person(
    argo: ArgoCD, node: LocalNode, newest_temporal: TemporalServer
) -> None:
    argo.configure([newest_temporal.address], rollout={"image": IMAGE, "requests": ["Promote", "Retry"]})
    install(argo)
    with argo.server() as server, new_story(argo, node, newest_temporal) as story:
        on_call, leads = map(server.token, ("on-call", "leads"))
        story.settled()

        def asks(passes: str) -> None:
            question = config_map(story.namespace, "question", {"json": f'{{"passes": {passes}}}'})
            story.cluster.apply([question])

        def takes_the_retry() -> bool:
            options = ("-n", story.namespace, "--kubeconfig", str(story.cluster.kubeconfig), *PATIENT)
            ended = run(argo.folder, "tick", options=options, takes_paths=False)
            assert ended.code == 0, ended
            return "a request is waiting: Retry of v2" in ended.stdout

        asks("false")
        reference = {"configMapKeyRef": {"name": "question", "key": "json"}}
        step = {"rampPercentage": 25, "pauseDuration": "30s"}
        gate = {"workflowType": "AskedGateWorkflow", "inputFrom": reference}
        rollout = {"strategy": "Progressive", "steps": [step], "gate": gate}
        policy = policy_document("greeter", steps=[{"rampPercentage": 25, "until": "Promoted"}])
        commit = story.commit("v2", policy, spec={"rollout": rollout})
        story.application.refresh()
        blocked = story.stands("Blocked", "v2")
        assert blocked["reason"] == "GateFailed"
        # one that has yet to end would take the request itself
        eventually(lambda: not story.active_jobs(), SOON)
        assert press(server, story, on_call, "retry")[0] == HTTPStatus.FORBIDDEN
        asks("true")
        assert press(server, story, leads, "retry")[0] == HTTPStatus.OK
        # the Job has ended: tick deletes it, and Argo CD's self-heal creates it again
        eventually(takes_the_retry, SOON)
        story.reaches("v2", 25)
        eventually(lambda: story.status()["reason"] == "UntilPromoted", SOON)
        assert press(server, story, on_call, "promote")[0] == HTTPStatus.FORBIDDEN
        story.application.refresh("hard")
        story.application.synced(commit)
        assert story.share("v2") == 25, "only a person ends the step"
        assert press(server, story, leads, "promote")[0] == HTTPStatus.OK
        story.stands("Settled", "v2")
        assert story.share("v2") == 100

        def answered() -> set[str]:
            return {event["message"].partition(",")[0] for event in events(story, "RequestDone")}

        eventually(lambda: answered() == {"Retry of v2", "Promote of v2"}, SOON)


@pytest.mark.parametrize("together", [False, True])
def test_abort_is_not_lost_when_another_button_follows_within_a_second(
    argo: ArgoCD, node: LocalNode, newest_temporal: TemporalServer, *, together: bool
) -> None:
    argo.configure([newest_temporal.address], rollout={"image": IMAGE, "requests": ["Promote", "Retry"]})
    install(argo)
    with argo.server() as server, new_story(argo, node, newest_temporal) as story:
        leads = server.token("leads")
        story.settled()
        story.commit("v2")
        story.application.refresh()
        story.reaches("v2", 25)

        def pressed(verb: str) -> tuple[int, str]:
            return press(server, story, leads, verb)

        if together:
            with ThreadPoolExecutor() as people:
                (promoted, _), (aborted, said) = people.map(pressed, ("promote", "abort"))
        else:
            (aborted, said), (promoted, why) = pressed("abort"), pressed("promote")
            assert promoted != HTTPStatus.OK
            assert "a request waits for its answer" in why
        assert aborted == HTTPStatus.OK, said
        eventually(lambda: story.share("v2") == 0, SOON)
        story.stands("Blocked", "v2")
        outlast(20)
        assert story.share("v2") == 0
        told = {event["message"].partition(",")[0]: event["reason"] for event in events(story, "Request")}
        refused = {"Promote of v2": "RequestRefused"} if promoted == HTTPStatus.OK else {}
        assert told == {"Abort of v2": "RequestDone"} | refused


def test_request_that_another_application_has_in_git_is_ignored(
    argo: ArgoCD, node: LocalNode, newest_temporal: TemporalServer
) -> None:
    argo.configure([newest_temporal.address])
    install(argo)
    with argo.server() as server, new_story(argo, node, newest_temporal) as story:
        story.settled()
        story.commit("v2")
        story.application.refresh()
        story.reaches("v2", 25)
        path = f"/api/v1/namespaces/{story.namespace}/configmaps/greeter-rollout-status"
        request = Request("from-git", Verb.ABORT, "v2", clock(), "a repository")
        metadata = {
            "name": "greeter-rollout-status",
            "namespace": story.namespace,
            "annotations": {ABORT_REQUEST: write_request(request)},
        }
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        story.cluster.api.apply(path, manifest)
        outlast(20)
        assert story.share("v2") == 25
        assert ABORT_REQUEST in story.cluster.api.get(path)["metadata"]["annotations"]
        assert press(server, story, server.token("on-call"), "abort")[0] == HTTPStatus.OK
        eventually(lambda: story.share("v2") == 0, SOON)
