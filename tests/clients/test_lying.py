"""An API server that lies: a render ends with one line, and never takes a lie for an empty cluster."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import active_count
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testing.forking import forker
from tests.cli.conftest import TWGEN
from tests.clients.grpc import refusing
from tests.clients.lying import TOKEN, WRONG_ITEMS, Item, Lying, listing, live_deployments, lying
from tests.clients.tls_server import authority, encoded, kubeconfig
from twgen.clients.deadline import Deadline
from twgen.clients.kubeconfig import ClusterAccess
from twgen.clients.kubernetes import KubernetesClient, wrong_answer, wrong_object
from twgen.errors import OutOfTime, StateUnavailable
from twgen.records.snapshot import parse_snapshot
from twgen.versioning.names import TWGEN_API

EXAMPLE = Path(__file__).parents[2] / "examples" / "three-versions"
LIST = "/apis/apps/v1/namespaces/shop/deployments"
LIES = {
    "huge": "answers with more than 54525952 bytes",
    "hugepages": "answers with more than 54525952 bytes",
    "pages": "its list has more than 100000 objects",
    "gzipbomb": "sent a compressed answer, although twgen asked for an uncompressed one",
    "redir2": "twgen does not follow redirects: set the address that it redirects to (302)",
    "redir3": "twgen does not follow redirects: set the address that it redirects to (307)",
    "redirsame": "twgen does not follow redirects: set the address that it redirects to (308)",
    "echo": "(401: refused: Authorization: Bearer ... was sent)",
    "echo500": "(500: refused: Authorization: Bearer ... was sent)",
    "echohtml": "(401: <html>refused: Authorization: Bearer ... was sent</html>)",
    "podlist": "it is of kind 'PodList' of 'v1', not a list of deployments of apps/v1",
    "kindother": "it is of kind 'ReplicaSetList' of 'apps/v1', not a list of deployments",
    "group": "it is of kind 'DeploymentList' of 'extensions/v1beta1', not a list",
    "noitems": "the answer of the API server is not a list of objects",
    "nolabel": "listed it for the label temporal.io/deployment-name, but it does not have that label",
    "labelsnull": "listed it for the label temporal.io/deployment-name, but it does not have that label",
    "nospec": "Deployment shop/payments-v1-4-2-458f: spec is required",
    "repstr": "spec.replicas must be a whole number, not a string",
    "repbig": "spec.replicas must be a whole number, not a fraction",
    "badtime": "metadata.creationTimestamp must be a time",
    "deepjson": "the answer is not from an API server: check its address",
    "itemkind": "shop/payments-v1-4-2-458f is of kind 'ReplicaSet', not one of deployments",
    "double": "payments-v1-4-2-458f is listed twice",
    "noname": "metadata.name is required",
    "elsewhere": "shop-2/payments-v1-4-2-458f is not in namespace shop",
    "twice": "the answer is not from an API server: check its address",
    "notfinite": "the answer is not from an API server: check its address",
    "cut": "the answer is not from an API server: check its address",
}
"""What is said of each."""
MANY_PAGES = {"hugepages", "pages"}
LARGE = {"huge", "gzipbomb", *MANY_PAGES}
MOST_MEMORY = 200
"""MiB: of answers a render may hold 52, twice while it joins their parts."""
MEASURED = """
import json, resource, subprocess, sys, tempfile
with tempfile.TemporaryFile("w+") as stdout:
    ended = subprocess.run(sys.argv[1:], stdout=stdout, stderr=subprocess.PIPE, text=True)
    stdout.seek(0)
    told = {"code": ended.returncode, "stdout": stdout.read(), "stderr": ended.stderr}
told["memory"] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
print(json.dumps(told))
"""
"""Runs a program and says what it took: of a child, the kernel counts what its parent had before it."""


class Ended(NamedTuple):
    """How a render ended."""

    code: int
    stdout: str
    stderr: str
    seconds: float
    memory: int = 0
    """MiB, as the kernel counts them; 0: nobody looked."""


def trusting(folder: Path, lie: Lying) -> Path:
    """A kubeconfig that trusts it, with a token."""
    cluster = {"server": lie.address, "certificate-authority-data": encoded(authority().file)}
    return kubeconfig(folder / "kubeconfig", cluster, {"token": TOKEN})


@pytest.fixture(scope="module")
def items() -> list[Item]:
    return live_deployments((EXAMPLE / "twgen.lock" / "shop.payments.yaml").read_text())


@pytest.fixture
def render(tmp_path: Path) -> Iterator[Callable[[Lying], Ended]]:
    """Render the example with that cluster and a Temporal that knows nothing of it."""
    specs = tmp_path / "specs"
    shutil.copytree(EXAMPLE, specs)
    with refusing() as temporal:
        connection = specs / "connection.yaml"
        connection.write_text(connection.read_text().replace("temporal.example.com:7233", temporal))

        def render_(lie: Lying) -> Ended:
            path = trusting(tmp_path, lie)
            arguments = ["render", str(specs), "--kubeconfig", str(path), "--timeout", "20s"]
            arguments += ["--allow-unlisted-connections", "-o", "json", "-q"]
            environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}  # noqa: TID251 - of a child
            began = time.monotonic()
            if lie.mode not in LARGE:
                forked = forker().run(arguments, tmp_path, environment)
                return Ended(forked.returncode, forked.stdout, forked.stderr, time.monotonic() - began)
            command = [sys.executable, "-c", MEASURED, TWGEN, *arguments]
            ended = subprocess.run(command, capture_output=True, check=True, timeout=120, env=environment)
            return Ended(**json.loads(ended.stdout), seconds=time.monotonic() - began)

        yield render_


def test_api_server_that_tells_the_truth_is_believed(
    render: Callable[[Lying], Ended], items: list[Item]
) -> None:
    with lying("truth", items) as lie:
        ended = render(lie)
    assert ended.code == 0, ended.stderr
    assert items[0]["metadata"]["name"] in ended.stdout
    assert [sent for _, sent in lie.asked] == [f"Bearer {TOKEN}"]


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        pytest.param(mode, told, marks=[pytest.mark.heavy] if mode in MANY_PAGES else [])
        for mode, told in LIES.items()
    ],
)
def test_lie_is_one_line_and_no_manifest(
    mode: str, told: str, render: Callable[[Lying], Ended], items: list[Item]
) -> None:
    with lying("empty", items) as other, lying(mode, items, other.address) as lie:
        ended = render(lie)
    assert (ended.code, ended.stdout) == (3, "")
    [line] = ended.stderr.splitlines()
    assert told in line
    assert TOKEN not in line
    assert other.asked == [], "a redirect was followed"
    assert len(lie.asked) == {"hugepages": 6, "pages": 200}.get(mode, 1)
    assert (ended.memory > 0) == (mode in LARGE)
    assert ended.memory < MOST_MEMORY
    assert ended.seconds < 60


def test_list_of_nothing_is_believed(render: Callable[[Lying], Ended], items: list[Item]) -> None:
    for mode in ("empty", "itemsnull"):
        with lying(mode, items) as lie:
            assert render(lie).code == 0


def test_answer_in_trouble_is_asked_for_again_and_a_write_is_not(tmp_path: Path, items: list[Item]) -> None:
    async def ask(lie: Lying) -> tuple[int, int]:
        access = ClusterAccess(str(trusting(tmp_path, lie)))
        with closing(KubernetesClient(access)) as client:
            found = await client.deployments("shop", "a", Deadline(60))
            status, _ = await client.ask("POST", "/api/v1/namespaces/shop/events", Deadline(60), body={})
            return len(found), status

    with lying("trouble", items) as lie:
        assert asyncio.run(ask(lie)) == (len(items), 503)
    assert len(lie.asked) == 4


@pytest.mark.parametrize("mode", ["slow", "slowpages"])
def test_deadline_is_for_all_that_a_list_takes_and_nobody_goes_on_after_it(
    mode: str, tmp_path: Path, items: list[Item]
) -> None:
    before = active_count()
    with lying(mode, items) as lie:
        access = ClusterAccess(str(trusting(tmp_path, lie)))
        began = time.monotonic()
        with closing(KubernetesClient(access)) as client, pytest.raises(OutOfTime, match=r"within 1 s"):
            asyncio.run(client.deployments("shop", "a", Deadline(1)))
        assert 0.9 < time.monotonic() - began < 10
        time.sleep(1)
        asked = len(lie.asked)
        time.sleep(1)
        assert len(lie.asked) == asked
        if mode == "slowpages":
            assert 1 < asked < 8
    assert active_count() <= before + 1, "a thread of the client goes on"


def test_server_that_is_in_trouble_for_good_is_told(tmp_path: Path, items: list[Item]) -> None:
    with lying("troubled", items) as lie:
        access = ClusterAccess(str(trusting(tmp_path, lie)))
        with closing(KubernetesClient(access)) as client, pytest.raises(StateUnavailable, match=r"\(503: \)"):
            asyncio.run(client.deployments("shop", "a", Deadline(4)))
    assert len(lie.asked) > 1


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
VALUES = (
    SCALARS
    | st.lists(SCALARS, max_size=2)
    | st.dictionaries(st.text(max_size=5), SCALARS, max_size=2)
    | st.lists(st.dictionaries(st.sampled_from(("name", "value")), SCALARS), max_size=2)
)


def _places(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield path
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _places(inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _places(inner, (*path, index))


@given(data=st.data())
def test_deployment_of_an_answer_is_refused_exactly_when_that_of_a_snapshot_is(data: st.DataObject) -> None:
    one = live_deployments((EXAMPLE / "twgen.lock" / "shop.payments.yaml").read_text())[0]
    item = json.loads(json.dumps(one))
    place = data.draw(st.sampled_from([path for path in _places(item) if path]))
    inner = item
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = data.draw(VALUES)
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", **item}
    worker = {"name": "shop/payments", "temporalNamespace": "default", "deployments": [manifest]}
    taken = "2026-11-21T12:00:00Z"
    _, findings = parse_snapshot(
        {"apiVersion": TWGEN_API, "kind": "Snapshot", "takenAt": taken, "workers": [worker]}
    )
    told = wrong_object(LIST, item)
    assert bool(told) >= bool(findings), findings
    assert bool(told) == bool(findings) or "is not in namespace" in told


@pytest.mark.parametrize(
    ("path", "kind", "version"),
    [
        (LIST, "DeploymentList", "apps/v1"),
        ("/apis/apps/v1/deployments", "DeploymentList", "apps/v1"),
        ("/api/v1/configmaps", "ConfigMapList", "v1"),
        ("/api/v1/namespaces/shop/pods", "PodList", "v1"),
        ("/apis/policy/v1/namespaces/shop/poddisruptionbudgets", "PodDisruptionBudgetList", "policy/v1"),
        ("/apis/networking.k8s.io/v1/networkpolicies", "NetworkPolicyList", "networking.k8s.io/v1"),
        ("/apis/argoproj.io/v1alpha1/applications", "ApplicationList", "argoproj.io/v1alpha1"),
    ],
)
def test_list_is_of_the_kind_that_its_path_names(path: str, kind: str, version: str) -> None:
    assert not wrong_answer(path, listing([], kind, version))
    assert wrong_answer(path, listing([], kind.removesuffix("List"), version))
    assert wrong_answer(path, listing([], kind, "v2"))
    assert wrong_answer(path, {})


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({}, ""),
        ({"kind": "Secret"}, "it is of kind 'Secret' of 'v1', not configmaps of v1"),
        ({"kind": "ConfigMapList"}, "it is of kind 'ConfigMapList' of 'v1', not configmaps of v1"),
        ({"metadata": {"name": "other", "namespace": "shop"}}, "shop/other is another object"),
        ({"metadata": {"name": "a", "namespace": "else"}}, "else/a is not in namespace shop"),
        ({"metadata": None}, "configmaps: metadata is required"),
        (
            {"data": {"a": 1}},
            "ConfigMap shop/a: data.a must be a string, not a whole number; put it in quotes",
        ),
    ],
)
def test_object_is_the_one_that_its_path_names(changed: Item, told: str) -> None:
    one = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a", "namespace": "shop"}}
    assert wrong_answer("/api/v1/namespaces/shop/configmaps/a", one | changed) == told


@pytest.mark.parametrize(
    ("path", "answer", "told"),
    [
        ("/apis/apps", {"kind": "APIGroup", "versions": [{"groupVersion": "apps/v1"}]}, ""),
        ("/apis/apps", {"kind": "APIGroup", "versions": [{}]}, "versions[0].groupVersion is required"),
        ("/api/v1", {"kind": "APIResourceList", "resources": []}, ""),
        (
            "/apis/apps/v1",
            {"kind": "APIResourceList", "resources": 1},
            "resources must be a list, not a whole number",
        ),
        ("/apis/apps/v1", {"kind": "Status"}, "it is of kind 'Status', not APIResourceList"),
    ],
)
def test_what_an_api_server_says_of_itself_is_that(path: str, answer: Item, told: str) -> None:
    assert wrong_answer(path, answer) == told


def test_every_wrong_item_is_among_the_lies() -> None:
    assert set(WRONG_ITEMS) <= LIES.keys()
