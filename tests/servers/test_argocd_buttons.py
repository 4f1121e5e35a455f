"""Buttons of Argo CD, pressed over its API by accounts that may and by accounts that may not."""

import re
import time
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
from twgen.yaml.reader import read_documents

pytestmark = pytest.mark.server
_ROOT = Path(__file__).parents[2]
A_LOOK = 20.0
"""Seconds, shorter than from one look of a Job to the next, which would see it without being asked."""
ACCOUNTS = ("on-call", "leads", "guest")


def install(argo: ArgoCD) -> None:
    """The buttons as they are installed, the roles of the page, and three accounts."""
    [config_map] = read_documents((_ROOT / "deploy" / "actions" / "argocd-cm.yaml").read_text())
    maps = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    accounts = {f"accounts.{name}": "apiKey" for name in ACCOUNTS}
    argo.cluster.api.patch(f"{maps}/argocd-cm", {"data": config_map["data"] | accounts})
    page = (_ROOT / "docs" / "buttons.md").read_text()
    [text] = re.findall(r"^```yaml\n(data:\n  policy.csv.*?)^```$", page, re.MULTILINE | re.DOTALL)
    [roles] = read_documents(text)
    policy = roles["data"]["policy.csv"].replace("shop/*", "default/*")
    guest = "p, guest, applications, get, default/*, allow\n"
    argo.cluster.api.patch(f"{maps}/argocd-rbac-cm", {"data": {"policy.csv": policy + guest}})


def press(server: ArgoServer, story: ApplicationStory, token: str, verb: str) -> int:
    """The status that the press of a button is answered with."""
    body = {
        "name": story.application.name,
        "namespace": story.namespace,
        "resourceName": "greeter-rollout-status",
        "version": "v1",
        "kind": "ConfigMap",
        "action": f"twgen-{verb}",
    }
    path = f"/api/v1/applications/{story.application.name}/resource/actions/v2"
    status, text = server.answer(token, "POST", path, body)
    assert status in {HTTPStatus.OK, HTTPStatus.FORBIDDEN}, text
    return status


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
        assert press(server, story, guest, "abort") == HTTPStatus.FORBIDDEN
        assert press(server, story, on_call, "promote") == HTTPStatus.FORBIDDEN
        began = time.monotonic()
        assert press(server, story, on_call, "abort") == HTTPStatus.OK
        eventually(lambda: story.share("v2") == 0, SOON)
        assert time.monotonic() - began < A_LOOK
        story.application.refresh("hard")
        story.application.synced(commit)
        outlast(20)
        assert story.share("v2") == 0, "neither a sync nor self-heal brings it back"
        [answer] = events(story, "Request")
        assert answer["reason"] == "RequestDone"
        assert answer["message"].startswith("Abort of v2, requested by Argo CD: no longer send 25%")
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
            return "it is to take a request: Retry of v2" in ended.stdout

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
        assert press(server, story, on_call, "retry") == HTTPStatus.FORBIDDEN
        asks("true")
        assert press(server, story, leads, "retry") == HTTPStatus.OK
        # the Job has ended: tick deletes it, and Argo CD's self-heal creates it again
        eventually(takes_the_retry, SOON)
        story.reaches("v2", 25)
        eventually(lambda: story.status()["reason"] == "UntilPromoted", SOON)
        assert press(server, story, on_call, "promote") == HTTPStatus.FORBIDDEN
        story.application.refresh("hard")
        story.application.synced(commit)
        assert story.share("v2") == 25, "only a person ends the step"
        assert press(server, story, leads, "promote") == HTTPStatus.OK
        story.stands("Settled", "v2")
        assert story.share("v2") == 100

        def answered() -> set[str]:
            return {event["message"].partition(",")[0] for event in events(story, "RequestDone")}

        eventually(lambda: answered() == {"Retry of v2", "Promote of v2"}, SOON)
