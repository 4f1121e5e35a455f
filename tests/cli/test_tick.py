"""`twgen tick` over a modelled cluster and Temporal, and an Argo CD that is asked over HTTP."""

import asyncio
import json
import re
import socket
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from click.testing import CliRunner, Result
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from urllib3 import request

from testing.processes import free_ports
from tests.executing import argocd
from tests.executing.api_server import DEPLOYMENTS, INTENT, JOBS, STATUS
from tests.executing.argocd import Served, tracked
from tests.executing.calls import ME, RAMP, Recorded
from tests.planning.situations import DAY, SPEC
from tests.strategies import NOW
from twgen.cli.live import Connections, Servers
from twgen.cli.main import twgen
from twgen.cli.serving import Board, Exposed, serving
from twgen.cli.settings import settings_of
from twgen.cli.tick import ProjectPrometheus, _Checks, turned
from twgen.clients.kubernetes import KubernetesClient
from twgen.errors import InvalidInput, StateUnavailable
from twgen.model.operator import Operator, PrometheusServer
from twgen.records.intent import write_intent
from twgen.versioning.names import INTENT_HASH, TRACKING_ID, rollout_labels
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

BOTH = pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
OPERATOR = "apiVersion: twgen.io/v1alpha1\nkind: OperatorConfig\nrollout: {image: twgen}\n"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    application = {"status": {"sync": {"status": "Synced"}}}
    with argocd.serving(Served({"pay": application}, {"pay": [tracked("payments")]})) as server:
        monkeypatch.setenv("ARGOCD_AUTH_TOKEN", server.token)
        yield server


def run(recorded: Recorded, *arguments: str) -> Result:
    recorded.loop.close()  # a loop whose time jumps would not wait for an answer over HTTP
    with (
        patch.object(Servers, "_open", lambda servers, _: recorded.opened(servers, asyncio.Runner())),
        patch("twgen.cli.live.clock", recorded.now),
        patch("twgen.cli.tick.clock", recorded.now),
    ):
        return CliRunner().invoke(twgen, arguments)


def tick(recorded: Recorded, served: Served, *arguments: str) -> str:
    ended = run(recorded, "tick", "-n", "shop", "--argocd-server", served.address, *arguments)
    if ended.exception and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    return ended.stdout


def apply(recorded: Recorded, folder: Path) -> None:
    """Render it as things are, and apply its intent, as Argo CD does."""
    (folder / "specs.yaml").write_text(write_documents(recorded.intent.documents))
    (folder / "operator.yaml").write_text(OPERATOR)
    files = str(folder / "specs.yaml"), "--operator-config", str(folder / "operator.yaml")
    ended = run(recorded, "render", *files, "--identity", ME, "-q")
    assert not ended.exception, ended.exception
    [intent] = [item for item in read_documents(ended.stdout_bytes) if item["kind"] == "ConfigMap"]
    recorded.api.put(INTENT, intent)
    recorded.api.annotate(INTENT, **{TRACKING_ID: "pay:/ConfigMap:shop/payments-rollout"})


def a_job(recorded: Recorded, **conditions: str) -> str:
    path = f"{JOBS}/payments-rollout-1"
    metadata = {
        "name": "payments-rollout-1",
        "namespace": "shop",
        "labels": rollout_labels("payments"),
        "annotations": {INTENT_HASH: recorded.api.objects[INTENT]["metadata"]["annotations"][INTENT_HASH]},
        "creationTimestamp": "2026-11-20T12:00:00Z",
    }
    told = [{"type": name, "status": "True", "lastTransitionTime": at} for name, at in conditions.items()]
    recorded.api.put(path, {"metadata": metadata, "status": {"conditions": told}})
    return path


BY_HAND = {
    "apiVersion": "twgen.io/v1alpha1",
    "kind": "RolloutPolicy",
    "metadata": {"name": "payments", "namespace": "shop"},
    "spec": {"driver": "None"},
}


def by_hand(rollout: Mapping[str, Any], current: str) -> Recorded:
    """A worker whose policy says that a person rolls it out."""
    recorded = Recorded(rollout, current=current)
    recorded.intent = replace(recorded.intent, documents=(*recorded.intent.documents, BY_HAND))
    recorded.api.put(INTENT, write_intent(recorded.intent))
    return recorded


def test_status_of_a_worker_that_a_person_rolls_out_is_kept(served: Served, tmp_path: Path) -> None:
    recorded = by_hand(RAMP, current="v1")
    apply(recorded, tmp_path)
    assert tick(recorded, served) == ""
    first = recorded.api.objects[STATUS]
    assert (first["data"]["phase"], first["data"]["settled"]) == ("Waiting", "")
    assert "the driver is None: run `twgen rollout` to make the change" in first["data"]["message"]
    [owner] = first["metadata"]["ownerReferences"]
    assert owner["uid"] == recorded.api.objects[INTENT]["metadata"]["uid"]
    shown = run(recorded, "status", "--from-cluster", "-n", "shop").stdout
    assert shown.startswith("shop/payments: Waiting")
    recorded.loop.at += 600
    tick(recorded, served)
    assert recorded.api.objects[STATUS] == first, "nothing is news but the time"
    recorded.model.set_current("v3")
    tick(recorded, served)
    then = recorded.api.objects[STATUS]["data"]
    assert (then["phase"], then["settled"]) == ("Settled", recorded.intent.hash)
    assert then["since"] > first["data"]["since"]
    recorded.loop.at += 2 * DAY.total_seconds()
    assert tick(recorded, served) == "pay: refreshed, because a new render of shop/payments would differ\n"


def test_status_that_may_not_be_kept_is_told_with_what_it_needs(served: Served, tmp_path: Path) -> None:
    recorded = by_hand(RAMP, current="v1")
    apply(recorded, tmp_path)
    ask = recorded.api.ask

    async def refuse(method: str, *arguments: Any, **more: Any) -> Any:
        forbidden = 403, {"message": "configmaps is forbidden"}
        return forbidden if method == "PATCH" else await ask(method, *arguments, **more)

    recorded.api.ask = refuse  # type: ignore[method-assign]
    ended = run(recorded, "tick", "-n", "shop", "--argocd-server", served.address)
    assert ended.exit_code == 0, "what needs no right is done, and an install without it is none that fails"
    assert re.search(r"permissions in deploy/tick/statuses\? \(.*is forbidden\)", ended.stderr)


@pytest.mark.parametrize("is_first", [True, False])
def test_status_of_a_job_that_took_over_during_a_look_is_left_alone(
    served: Served, tmp_path: Path, *, is_first: bool
) -> None:
    recorded = by_hand(RAMP, current="v1")
    apply(recorded, tmp_path)
    if not is_first:
        tick(recorded, served)
        recorded.model.set_current("v3")
    ask, taken = (
        recorded.api.ask,
        {"metadata": {"name": "payments-rollout-status"}, "data": {"phase": "Moving"}},
    )

    async def take_over(method: str, path: str, *arguments: Any, **more: Any) -> Any:
        if method == "PATCH":
            recorded.api.put(STATUS, taken)
        return await ask(method, path, *arguments, **more)

    recorded.api.ask = take_over  # type: ignore[method-assign]
    assert tick(recorded, served) == ""
    assert recorded.api.objects[STATUS]["data"] == taken["data"]


def test_person_rolls_out_the_intent_of_such_a_worker_until_another_one_stands() -> None:
    recorded = by_hand(RAMP, current="v1")
    assert recorded.run().exit_code == 0
    assert recorded.api.objects[STATUS]["data"]["phase"] == "Settled"
    stopped = by_hand(RAMP, current="v1")
    stopped.later = [(70, lambda at: at.api.annotate(INTENT, **{INTENT_HASH: "another"}))]
    ended = stopped.run()
    assert ended.exit_code == 0
    assert "its intent has changed" in ended.output
    assert stopped.model.routing.current is not None
    assert stopped.model.routing.current.build_id == "v1"


def test_render_is_as_wanted_until_a_version_has_drained_for_long_enough(
    served: Served, tmp_path: Path
) -> None:
    recorded = Recorded(RAMP, current="v3")
    apply(recorded, tmp_path)
    assert tick(recorded, served) == ""
    assert served.refreshed == []
    recorded.loop.at += 2 * DAY.total_seconds()
    assert tick(recorded, served) == "pay: refreshed, because a new render of shop/payments would differ\n"
    assert served.refreshed == ["/api/v1/applications/pay?refresh=hard"]
    apply(recorded, tmp_path)
    assert tick(recorded, served) == ""


def test_settled_rollouts_cost_one_describe_each_and_two_lists(served: Served, tmp_path: Path) -> None:
    recorded = Recorded(RAMP, current="v3")
    apply(recorded, tmp_path)
    a_job(recorded, Complete="2026-11-20T12:00:00Z")
    recorded.calls.clear()
    tick(recorded, served)
    told = [call.split()[2] if call.split()[2] != "LIST" else call.split()[3] for call in recorded.calls]
    assert sorted(told) == sorted([
        "/api/v1/namespaces/shop/configmaps",
        JOBS,
        "DescribeWorkerDeployment",
        "/apis/apps/v1/namespaces/shop/deployments",
    ])  # fmt: skip
    assert served.asked == ["/api/v1/applications/pay"]


@pytest.mark.parametrize(
    ("conditions", "is_deleted"),
    [
        ({"Complete": "2026-11-20T12:00:00Z"}, True),
        ({"Failed": "2026-11-20T12:00:00Z"}, True),
        ({}, False),
    ],
)
def test_job_that_ended_is_deleted_when_its_target_has_lost_the_traffic(
    served: Served, tmp_path: Path, conditions: dict[str, str], *, is_deleted: bool
) -> None:
    recorded = Recorded(RAMP)
    apply(recorded, tmp_path)
    path = a_job(recorded, **conditions)
    said = tick(recorded, served)
    assert (path not in recorded.api.objects) is is_deleted
    assert ("deleted Job payments-rollout-1, which has ended" in said) is is_deleted
    assert not any("Set" in call or "Start" in call for call in recorded.calls), (
        "it changes nothing in Temporal"
    )


def test_intent_that_cannot_be_used_is_told_and_stops_nothing_else(served: Served, tmp_path: Path) -> None:
    recorded = Recorded(RAMP, current="v3")
    apply(recorded, tmp_path)
    broken: dict[str, Any] = {**recorded.api.objects[INTENT], "data": {}}
    broken["metadata"] = {**broken["metadata"], "name": "broken"}
    recorded.api.put(f"{INTENT}-broken", broken)
    recorded.loop.at += 2 * DAY.total_seconds()
    with pytest.raises(StateUnavailable, match="ConfigMap shop/broken has no worker"):
        tick(recorded, served)
    assert served.refreshed == ["/api/v1/applications/pay?refresh=hard"]


def test_broken_status_is_told_and_hides_no_other(served: Served) -> None:
    recorded = Recorded({"strategy": "AllAtOnce"}, current="")
    recorded.run()
    broken = {**recorded.api.objects[STATUS], "metadata": {**recorded.api.objects[STATUS]["metadata"]}}
    broken["metadata"]["name"] = "broken"
    recorded.api.put(f"{STATUS}-broken", {**broken, "data": {**broken["data"], "status.json": "[]"}})
    told = run(recorded, "status", "--from-cluster", "-n", "shop")
    assert told.stdout.startswith("shop/payments: Settled")
    assert "ConfigMap shop/broken does not contain the status of a rollout: delete it" in told.stderr
    with pytest.raises(StateUnavailable, match="ConfigMap shop/broken does not contain the status"):
        tick(recorded, served)


def served_metrics(recorded: Recorded, *options: str) -> str:
    """What tick serves after one look."""
    (port,) = free_ports(1)
    told: list[str] = []

    async def ask(_: timedelta) -> None:
        url = f"http://127.0.0.1:{port}/metrics"
        answer = await asyncio.to_thread(request, "GET", url, retries=False)
        told.append(answer.data.decode())
        raise KeyboardInterrupt

    with patch("twgen.cli.tick.sleep", ask):
        run(recorded, "tick", "-n", "shop", "--every", "1s", "--metrics", f"127.0.0.1:{port}", *options)
    return told[0]


def test_settled_worker_that_nobody_serves_any_more_is_seen() -> None:
    recorded = Recorded({"strategy": "AllAtOnce"}, current="")
    recorded.run()
    unserved = 'twgen_rollout_unserved{namespace="shop",worker="payments"}'
    assert f"{unserved} 0.0" in served_metrics(recorded)
    [path] = [path for path in recorded.api.objects if path.startswith(DEPLOYMENTS)]
    status = {"replicas": 3, "observedGeneration": 1}
    recorded.api.put(path, {**recorded.api.objects[path], "status": status})
    now = served_metrics(recorded)
    assert f"{unserved} 1.0" in now
    assert 'twgen_rollout_phase{namespace="shop",phase="Settled",worker="payments"} 1.0' in now


def test_change_that_its_rollout_has_long_failed_to_make_is_told() -> None:
    ramping: dict[str, Any] = {}
    in_a_pause = 60, lambda recorded: ramping.update(deepcopy(recorded.api.objects[STATUS]))
    recorded = Recorded(RAMP, later=[in_a_pause])
    recorded.run()
    recorded.api.put(STATUS, ramping)
    a_job(recorded)
    recorded.loop.at = 61
    failing = 'twgen_rollout_failing{namespace="shop",worker="payments"}'
    assert f"{failing} 0.0" in served_metrics(recorded)
    recorded.loop.at += DAY.total_seconds()
    assert f"{failing} 1.0" in served_metrics(recorded)


def test_one_of_two_ticks_looks_after_a_worker(tmp_path: Path) -> None:
    recorded = by_hand(RAMP, current="v1")
    apply(recorded, tmp_path)
    written = []
    for shard in ("0", "1"):
        text = served_metrics(recorded, "--shards", "2", "--shard", shard)
        assert f'twgen_tick_shards{{shard="{shard}"}} 2.0' in text
        is_told = 'worker="payments"' in text
        written.append((is_told, recorded.api.objects.pop(STATUS, None) is not None))
    assert sorted(written) == [(False, False), (True, True)]


def test_first_of_several_ticks_tells_of_a_worker_that_nobody_knows() -> None:
    recorded = Recorded({"strategy": "AllAtOnce"}, current="v3")
    recorded.run()
    del recorded.api.objects[INTENT]
    told = [served_metrics(recorded, "--shards", "3", "--shard", str(shard)) for shard in range(3)]
    assert ['worker="payments"' in text for text in told] == [True, False, False]


def test_what_goes_on_serves_how_rollouts_go_and_whether_it_still_looks() -> None:
    recorded = Recorded({"strategy": "AllAtOnce"}, current="")
    recorded.run()
    once = run(recorded, "status", "--from-cluster", "-n", "shop", "-o", "openmetrics")
    assert 'twgen_rollout_reason{namespace="shop",reason="Settled",worker="payments"} 1.0' in once.stdout
    (port,) = free_ports(1)
    told: list[tuple[int, str]] = []

    async def ask(_: timedelta) -> None:
        if len(told) == 4:
            raise KeyboardInterrupt
        for path in ("metrics", "healthz"):
            url = f"http://127.0.0.1:{port}/{path}"
            answer = await asyncio.to_thread(request, "GET", url, retries=False)
            told.append((answer.status, answer.data.decode()))
        recorded.api.objects.clear()
        recorded.api.ask = refuse  # type: ignore[method-assign]

    async def refuse(*_: Any, **__: Any) -> tuple[int, dict[str, Any]]:
        return 503, {"message": "overloaded"}

    with patch("twgen.cli.tick.sleep", ask):
        run(recorded, "tick", "-n", "shop", "--every", "1s", "--metrics", f"127.0.0.1:{port}")
    [(status, first), health, (_, second), _] = told
    assert (status, health) == (200, (200, "ok\n"))
    samples = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(first)
        for sample in family.samples
    }
    assert samples["twgen_rollout_phase", "Settled", "payments", "shop"] == 1
    assert samples["twgen_rollout_phase", "Blocked", "payments", "shop"] == 0
    assert samples["twgen_rollout_percentage", "payments", "shop"] == 100
    assert samples["twgen_versions", "Current", "payments", "shop"] == 1
    assert samples[("twgen_tick_looks_total",)] == 1
    assert "twgen_tick_errors_total 1.0" in second
    assert 'twgen_rollout_percentage{namespace="shop",worker="payments"} 100.0' in second, "it is kept"


@pytest.mark.parametrize(("is_broken", "opened"), [(False, 1), (True, 3)])
def test_after_a_failure_credentials_are_read_anew(opened: int, *, is_broken: bool) -> None:
    recorded = Recorded({"strategy": "AllAtOnce"}, current="v3")
    recorded.api.objects.clear()
    if is_broken:
        metadata = {"name": "broken", "namespace": "shop", "labels": rollout_labels("payments")}
        recorded.api.put(f"{INTENT}-broken", {"metadata": metadata})
    connections, pauses = [], []

    def open_(servers: Servers, _: object) -> object:
        connections.append(recorded.opened(servers, asyncio.Runner()))
        return connections[-1]

    async def pause(length: timedelta) -> None:
        pauses.append(length.total_seconds())
        if len(pauses) == 3:
            raise KeyboardInterrupt

    recorded.loop.close()
    with (
        patch.object(Servers, "_open", open_),
        patch("twgen.cli.live.clock", recorded.now),
        patch("twgen.cli.tick.clock", recorded.now),
        patch("twgen.cli.tick.sleep", pause),
    ):
        CliRunner().invoke(twgen, ["tick", "-n", "shop", "--every", "1s"])
    assert (len(connections), pauses) == (opened, [1, 1, 1])


def test_specs_have_the_metrics_of_a_cluster_but_for_what_nobody_has_followed() -> None:
    recorded = Recorded({"strategy": "AllAtOnce"}, current="")
    recorded.run()
    example = Path(__file__).parents[2] / "examples" / "three-versions"
    told = ["status", str(example), "--snapshot", str(example / "snapshot.yaml"), "-o", "openmetrics"]
    of_specs, of_cluster = (
        {sample.name for family in text_string_to_metric_families(text) for sample in family.samples}
        for text in (CliRunner().invoke(twgen, told).stdout, served_metrics(recorded))
    )
    followed = {name for name in of_cluster if name.startswith("twgen_tick_")}
    assert of_specs == of_cluster - followed - {"twgen_rollout_unchanged_seconds"}


@pytest.mark.parametrize(
    ("address", "asked"),
    [
        ("127.0.0.1:0", ("127.0.0.1",)),
        pytest.param("[::1]:0", ("[::1]",), marks=BOTH),
        pytest.param("[::]:0", ("[::1]", "127.0.0.1"), marks=BOTH),
        pytest.param(":0", ("[::1]", "127.0.0.1"), marks=BOTH),
    ],
)
def test_metrics_are_served_where_the_address_says(address: str, asked: tuple[str, ...]) -> None:
    exposed = Exposed(Board(60))
    with serving("--metrics", address, exposed.answer) as port:
        for host in asked:
            answer = request("GET", f"http://{host}:{port}/metrics", retries=False, timeout=30)
            assert (answer.status, answer.data) == (200, b"# EOF\n")


def test_client_that_says_nothing_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twgen.cli.serving._PATIENCE", 1)
    with serving("--metrics", "127.0.0.1:0", Exposed(Board(60)).answer) as port:
        for said in (b"", b"GET /metrics HTTP/1.1\r\nHost"):
            with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
                client.sendall(said)
                assert client.recv(1) == b""


def test_health_ends_when_looks_do() -> None:
    exposed = Exposed(Board(60))
    assert exposed.answer({"PATH_INFO": "/healthz"}).status.startswith("503")
    assert exposed.answer({"PATH_INFO": "/secret"}).status.startswith("404")
    with pytest.raises(InvalidInput, match=r"--metrics here: cannot listen there"):
        serving("--metrics", "here", exposed.answer).__enter__()


def test_page_is_there_once_a_look_was_done() -> None:
    exposed = Exposed(Board(60))
    assert exposed.answer({"PATH_INFO": "/"}).status.startswith("503")
    exposed.board.show((), NOW)
    exposed.board.failure = "Temporal is away"
    page = exposed.answer({"PATH_INFO": "/"})
    assert (page.status, b'data-refreshed-every="60"' in page.body) == ("200 OK", True)
    told = json.loads(exposed.answer({"PATH_INFO": "/", "HTTP_ACCEPT": "application/json"}).body)
    assert (told["failure"], told["fleet"] in page.body.decode()) == ("Temporal is away", True)


def test_page_and_health_do_not_wait_for_the_end_of_a_long_first_check() -> None:
    recorded = by_hand(RAMP, current="v1")
    (port,) = free_ports(1)
    told: list[tuple[int, int]] = []

    class Slow(_Checks):
        async def read(self, *workers: Any, **more: Any) -> Any:
            statuses = []
            for path in ("", "healthz"):
                url = f"http://127.0.0.1:{port}/{path}"
                statuses.append((await asyncio.to_thread(request, "GET", url, retries=False)).status)
            told.append((statuses[0], statuses[1]))
            if len(told) == 2:
                raise KeyboardInterrupt
            return await super().read(*workers, **more)

    with patch("twgen.cli.tick._Checks", Slow):
        run(recorded, "tick", "-n", "shop", "--every", "1s", "--metrics", f"127.0.0.1:{port}")
    assert told == [(200, 503), (200, 200)]


def test_no_worker_is_among_the_last_in_every_look() -> None:
    looks = [turned(range(40), look) for look in range(4)]
    assert all(sorted(look) == [*range(40)] for look in looks)
    for worker in range(40):
        assert min(look.index(worker) for look in looks) < 10
    assert turned([], 3) == []


def test_without_a_namespace_or_a_token_nothing_is_asked() -> None:
    for arguments, told in (
        (["tick"], "give -n NAMESPACE, or -A"),
        (["tick", "-A", "--metrics", ":0"], "--metrics needs --every"),
        (["tick", "-A", "--shards", "3", "--shard", "3"], "--shard must be below --shards (3)"),
        (["tick", "-A", "--shard", "1"], "--shard must be below --shards (1)"),
        (["tick", "-A", "--shards", "3"], "--shards 3 needs --shard"),
        (["status", "-o", "openmetrics", "-w"], "cannot be used with -w"),
        (["tick", "-A", "--argocd-server", "https://a"], "needs a token"),
        (
            ["tick", "-A", "--argocd-server", "http://", "--argocd-token-file", "token"],
            "--argocd-server: 'http://' is not an address such as https://argocd.example.com",
        ),
    ):
        ended = CliRunner().invoke(twgen, arguments, env={"ARGOCD_AUTH_TOKEN": "", "TWGEN_SHARD": ""})
        assert isinstance(ended.exception, InvalidInput)
        assert told in str(ended.exception)


@pytest.mark.parametrize(
    ("interval", "told"), [("1m", ["warning: a check took 90 s, longer than --every"]), ("2m", [])]
)
def test_look_that_takes_longer_than_the_interval_is_told(interval: str, told: list[str]) -> None:
    async def stop(_: timedelta) -> None:
        raise KeyboardInterrupt

    moment = [0]

    class Slow(_Checks):
        async def check(self) -> list[str]:
            moment[0] += 90
            return await super().check()

    with (
        patch("twgen.cli.tick.time", SimpleNamespace(monotonic=lambda: moment[0])),
        patch("twgen.cli.tick._Checks", Slow),
        patch("twgen.cli.tick.sleep", stop),
    ):
        recorded = Recorded({"strategy": "AllAtOnce"}, current="v3")
        ended = run(recorded, "tick", "-n", "shop", "--every", interval)
    assert [line.rpartition(":")[0] for line in ended.stderr.splitlines() if "took" in line] == told


def test_bug_in_a_check_is_said_once_with_its_place_and_checks_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recorded({"strategy": "AllAtOnce"}, current="v3")
    pauses: list[timedelta] = []

    async def pause(length: timedelta) -> None:
        pauses.append(length)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    def broken(*_: object) -> None:
        raise KeyError("secret-token")

    monkeypatch.setattr("twgen.cli.tick.sleep", pause)
    monkeypatch.setattr("twgen.cli.tick.specs_of_intents", broken)
    ended = run(recorded, "tick", "-n", "shop", "--every", "1s")
    [line] = [line for line in ended.stderr.splitlines() if line.startswith("warning: ")]
    assert line.startswith("warning: a check: a bug (KeyError at twgen/cli/tick.py:")
    assert len(pauses) == 3


def test_worker_may_use_the_prometheus_servers_of_its_project_and_those_of_options_alone() -> None:
    servers = tuple(
        PrometheusServer(name, f"https://{name}.example.com", projects)
        for name, projects in (("open", ("*",)), ("shop", ("shop",)), ("mail", ("mail",)))
    )
    given = PrometheusServer("given", "https://given.example.com")
    settings: Any = SimpleNamespace(
        operator=Operator(prometheus=servers, file="op.yaml"), prometheus=(given,)
    )
    refreshes: Any = SimpleNamespace(projects={"shop/payments": "shop", "shop/forged": ""})

    def usable(worker: str, argocd: Any = refreshes) -> tuple[list[str], str]:
        clients = ProjectPrometheus(settings, argocd).of(replace(SPEC, name=worker))
        return [server.name for server in clients.usable], clients.remedy

    assert usable("payments") == (
        ["open", "shop", "given"],
        "the operator must list Argo CD project 'shop' in `prometheus` of op.yaml",
    )
    for worker, asked in (("forged", refreshes), ("new", refreshes), ("payments", None)):
        names, remedy = usable(worker, asked)
        assert names == ["open", "given"]
        assert remedy.startswith("tick does not know the worker's Argo CD project")


def test_clients_that_are_replaced_are_closed_and_so_are_all_at_the_end(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("{}")
    closed: list[KubernetesClient] = []

    def close(client: KubernetesClient) -> None:
        closed.append(client)

    with (
        patch.object(KubernetesClient, "close", close),
        Servers(settings_of({"kubeconfig": str(config), "quiet": True})) as servers,
    ):

        async def story(opened: Connections) -> list[KubernetesClient | None]:
            second = servers.renewed(opened)
            assert closed == [opened.kubernetes]
            return [opened.kubernetes, second.kubernetes, servers.renewed(second).kubernetes]

        made = servers.run((), story)
        assert closed == made[:2]
    assert {*made} == {*closed}
    assert None not in made
