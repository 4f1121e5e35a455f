"""Requests of the page and of commands that are judged by a state of minutes ago, on a real API server."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from urllib3 import request

from testing.kubernetes.cluster import Cluster
from testing.processes import eventually
from tests.servers.live import ENVIRONMENT, TWGEN
from tests.servers.test_page import SETTLED, record, with_job
from tests.terminal import terminal
from twgen.cli.settings import clock
from twgen.model.plan import Phase
from twgen.model.rollout import Request, Verb
from twgen.model.status import RolloutStatus
from twgen.records.rollout_status import parse_pending, write_request
from twgen.versioning.names import ABORT_REQUEST, REQUEST, rollout_status_name

pytestmark = pytest.mark.server


def ramping(cluster: Cluster, namespace: str) -> RolloutStatus:
    """The status of a rollout that a Job works on, and whose operator permits everything."""
    worker, permits = f"{namespace}/pay", (Verb.PROMOTE, Verb.RETRY)
    status = replace(SETTLED, worker=worker, phase=Phase.WAITING, reason="RampPaused", percentage=25)
    status = replace(status, target="v3", permits=permits)
    record(cluster, namespace, status)
    with_job(cluster, namespace)
    return status


def path_of(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps/{rollout_status_name('pay')}"


def aborts(cluster: Cluster, namespace: str, annotation: str = ABORT_REQUEST) -> None:
    """A colleague aborts the rollout."""
    asked = write_request(Request("theirs", Verb.ABORT, "v3", clock(), "ben"))
    cluster.api.patch(path_of(namespace), {"metadata": {"annotations": {annotation: asked}}})


def waiting(cluster: Cluster, namespace: str) -> list[str]:
    found = cluster.api.get(path_of(namespace))
    return [f"{each.request.verb} by {each.request.by}" for each in parse_pending(found) if each.request]


@pytest.mark.parametrize("annotation", [ABORT_REQUEST, REQUEST])
def test_press_on_a_page_that_has_not_seen_an_abort_is_refused(
    cluster: Cluster, namespace: str, annotation: str
) -> None:
    status = ramping(cluster, namespace)
    options = ("-n", namespace, "--no-browser", "--interval", "10m", "--kubeconfig", cluster.kubeconfig)
    command = [TWGEN, "dashboard", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as served:
        try:
            assert served.stdout
            url = served.stdout.readline().strip()
            origin = {"Origin": url.partition("/?")[0], "Content-Type": "application/json"}

            def press(verb: Verb) -> tuple[int, str]:
                body = {"worker": status.worker, "verb": verb, "target": "v3", "reason": "RampPaused"}
                answer = request("POST", url, body=json.dumps(body), headers=origin, retries=False)
                return answer.status, answer.data.decode()

            aborts(cluster, namespace, annotation)
            code, why = press(Verb.PROMOTE)
            assert (code, waiting(cluster, namespace)) == (409, ["Abort by ben"]), why
            assert "was not requested: Abort of v3, requested by ben waits for its answer" in why
        finally:
            served.terminate()


def test_promotion_that_is_confirmed_after_an_abort_is_refused(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    ramping(cluster, namespace)
    options = ("--full", "-n", namespace, "--kubeconfig", cluster.kubeconfig)
    command = [TWGEN, "promote", "worker/pay", *options]
    with terminal(command, tmp_path, 200, ENVIRONMENT) as shown:
        eventually(lambda: "with all traffic at once" in shown.text)
        aborts(cluster, namespace)
        shown.types("y\n")
        assert shown.end() == 1
    assert "Abort of v3, requested by ben waits for its answer" in shown.text
    assert waiting(cluster, namespace) == ["Abort by ben"]
