"""Which Prometheus a command may ask: an option's, the operator's, and in a cluster that of an intent."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.test_argocd_settings import OPERATOR, plugin, refused
from tests.strategies import a_spec
from twgen.cli.environment import Terminal, environment
from twgen.cli.live import CommonPrometheus
from twgen.cli.rollout import mounted_prometheus
from twgen.cli.settings import Settings, settings_of
from twgen.errors import StateUnavailable
from twgen.model.operator import Application, Operator, PrometheusServer
from twgen.records.intent import intent_of

SHARED = PrometheusServer("shared", "https://prometheus.example.com", projects=("payments",))
METRIC = {
    "name": "errors",
    "prometheus": {"server": "shared", "query": "a{b='{{ .BuildID }}'}", "thresholdRange": {"max": 1}},
}


def at_a_terminal(*given: PrometheusServer, operator: tuple[PrometheusServer, ...] = ()) -> Settings:
    settings = settings_of({"prometheus": given, "quiet": True})
    return replace(settings, operator=Operator(prometheus=operator), environment=Terminal())


def measure(story: Path, metric: dict[str, Any]) -> None:
    """The worker of the story is measured by it."""
    [worker] = [
        document
        for file in (story / "specs").iterdir()
        if (document := json.loads(file.read_text()))["kind"]
        in {"WorkerDeployment", "TemporalWorkerDeployment"}
    ]
    policy = {
        "apiVersion": "twgen.io/v1alpha1",
        "kind": "RolloutPolicy",
        "metadata": {"name": "p", "namespace": worker["metadata"]["namespace"]},
        "spec": {"workerRef": {"name": worker["metadata"]["name"]}, "analysis": {"metrics": [metric]}},
    }
    (story / "specs" / "policy.json").write_text(json.dumps(policy))


@pytest.mark.parametrize(
    "text", ["shared", "shared=", "=http://a", "shared=a:9090", "Shared=http://a", "shared=http://me:you@a"]
)
def test_option_that_is_no_name_and_address_is_refused(run: Run, story: Path, text: str) -> None:  # noqa: ARG001
    ended = run("plan", "specs", "--prometheus", text)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "is not NAME=URL such as shared=http://127.0.0.1:9090: " in ended.stderr
    assert "you" not in ended.stderr


def test_name_that_is_given_twice_is_refused(run: Run, story: Path) -> None:  # noqa: ARG001
    ended = run("plan", "specs", "--prometheus", "shared=http://a", "--prometheus", "shared=http://b")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "two --prometheus options have the same name" in ended.stderr


def test_option_has_no_effect_beside_a_snapshot(run: Run, story: Path) -> None:  # noqa: ARG001
    ended = run("plan", "specs", "--snapshot", "snapshot.json", "--prometheus", "shared=http://a")
    assert "warning: --prometheus has no effect with --snapshot: no server is read\n" in ended.stderr


def test_person_may_ask_all_of_the_operators_and_an_option_goes_before_them() -> None:
    other, forwarded = (
        PrometheusServer("other", "http://other"),
        PrometheusServer("shared", "http://127.0.0.1"),
    )
    settings = at_a_terminal(forwarded, operator=(SHARED, other))
    servers = CommonPrometheus(settings.usable_prometheus(), "").of(a_spec())
    assert servers.called("shared") == forwarded
    assert servers.called("other") == other


def test_person_without_any_is_told_how_to_name_one() -> None:
    wanted = (
        "no Prometheus is available here: give --prometheus NAME=URL, or an --operator-config that lists it"
    )
    with pytest.raises(StateUnavailable, match=f"^{wanted}$"):
        CommonPrometheus((), Terminal().prometheus_remedy(Operator())).of(a_spec()).called("")


def test_project_of_argocd_asks_what_it_was_granted(monkeypatch: pytest.MonkeyPatch) -> None:
    operator = Operator(prometheus=(SHARED,), file="/etc/twgen/operator.yaml")
    monkeypatch.setenv("ARGOCD_APP_NAME", "pay")
    for project, may in (("payments", (SHARED,)), ("shop", ()), ("", ())):
        monkeypatch.setenv("ARGOCD_APP_PROJECT_NAME", project)
        environment.cache_clear()
        assert environment().prometheus(operator) == may
        assert operator.prometheus_of(Application("pay", project)) == may
    remedy = "the operator must list Argo CD project '' in `prometheus` of /etc/twgen/operator.yaml"
    assert environment().prometheus_remedy(operator) == remedy
    environment.cache_clear()


def test_application_of_argocd_cannot_name_a_server_itself(run: Run, story: Path) -> None:
    (story / "operator.json").write_text(json.dumps(OPERATOR))
    environment = plugin(story / "operator.json", {"name": "prometheus", "string": "shared=http://evil"})
    refused(run("render", "specs", env=environment), "'prometheus' is for the operator")


@pytest.mark.parametrize(("projects", "has_it"), [(["pay*"], True), (["shop"], False), ([], False)])
def test_job_is_given_what_the_project_may_use(
    run: Run,
    story: Path,
    projects: list[str],
    has_it: bool,  # noqa: FBT001 - a row
) -> None:
    server = {"name": "shared", "url": "http://a:9090", "projects": projects, "secretName": "prometheus"}
    (story / "operator.json").write_text(json.dumps(OPERATOR | {"prometheus": [server]}))
    measure(story, METRIC)
    ended = run(
        *("render", "specs", "--snapshot", "snapshot.json", "-o", "json"),
        env=plugin(story / "operator.json"),
    )
    assert ended.returncode == 0, ended.stderr
    items: list[dict[str, Any]] = json.loads(ended.stdout)["items"]
    [told] = [item["data"].get("prometheus") for item in items if item["kind"] == "ConfigMap"]
    assert bool(told) is has_it
    assert ("/etc/twgen/rollout/prometheus/shared" in ended.stdout) is has_it
    unusable = "spec.analysis.metrics[0].prometheus: cannot be measured: no Prometheus 'shared' is available"
    assert (unusable in ended.stderr) is not has_it


@pytest.mark.parametrize(("server", "may"), [("shared", True), ("shard", False), ("", True)])
def test_metric_of_a_prometheus_that_the_operator_does_not_have_is_warned_of(
    run: Run,
    story: Path,
    server: str,
    may: bool,  # noqa: FBT001 - a row
) -> None:
    asked = {"query": "a{b='{{ .BuildID }}'}", "thresholdRange": {"max": 1}}
    measure(story, {"name": "errors", "prometheus": asked | ({"server": server} if server else {})})
    operator = OPERATOR | {"prometheus": [{"name": "shared", "url": "http://a:9090"}]}
    (story / "operator.json").write_text(json.dumps(operator))
    for command in (("validate",), ("render", "--snapshot", "snapshot.json", "--identity", "me")):
        ended = run(*command, "specs", "--operator-config", "operator.json")
        assert ("policy.json" in ended.stderr and "cannot be measured" in ended.stderr) is not may, ended
        assert ended.returncode == 0
    assert "cannot be measured" not in run("validate", "specs").stderr, "nobody said which ones there are"


def test_job_reads_the_secret_that_its_pod_has_of_a_server() -> None:
    secured = SHARED._replace(secret_name="prometheus")  # noqa: S106 - its name
    plain = PrometheusServer("plain", "http://plain")
    intent = intent_of(a_spec(), "twgen/me")
    assert mounted_prometheus(intent) == []
    found = mounted_prometheus(replace(intent, prometheus=(secured, plain)))
    assert [server.secret_folder for server in found] == ["/etc/twgen/rollout/prometheus/shared", ""]


def test_command_without_such_metrics_imports_nothing_that_asks() -> None:
    program = (
        "import sys; import twgen.cli.rollout, twgen.cli.plan, twgen.cli.tick, twgen.rendering.manifests;"
        " print(sorted(name for name in sys.modules if name in ('prometheus_client', 'urllib3',"
        " 'twgen.clients.prometheus')))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
