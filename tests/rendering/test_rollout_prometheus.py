"""What the Job of a rollout is told and given of the Prometheus that its metrics name."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.rendering.test_rollout import JOB, SPEC, of_kind, rendered
from tests.strategies import with_policy
from twgen.errors import InvalidInput
from twgen.model.analysis import Analysis, Metric, NoData, OnFailure, PrometheusQuery
from twgen.model.operator import PrometheusServer
from twgen.model.rollout import Driver
from twgen.model.spec import WorkerSpec
from twgen.records.intent import intent_of, parse_intent

SHARED = PrometheusServer(
    "shared",
    "https://prometheus.example.com",
    projects=("payments",),
    bearer_token_file="/etc/of-the-repo-server/token",  # noqa: S106 - the name of a file
    ca_file="/etc/of-the-repo-server/ca.crt",
    headers={"X-Scope-OrgID": "payments"},
    secret_name="prometheus",  # noqa: S106 - its name
)
OPEN = PrometheusServer("open", "http://open:9090")
JOBS = replace(JOB, prometheus=(SHARED, OPEN))


def measured(*servers: str) -> WorkerSpec:
    """The worker whose metrics name these; an empty name is none."""
    metrics = tuple(
        Metric(f"m{number}", PrometheusQuery("q", name, None, 1.0, timedelta(minutes=1), 0, NoData.WAIT))
        for number, name in enumerate(servers)
    )
    return with_policy(SPEC, analysis=Analysis(metrics, OnFailure.ABORT, timedelta()))


def pod_of(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    pod: dict[str, Any] = of_kind("Job", manifests)["spec"]["template"]["spec"]
    return pod


def test_intent_has_the_servers_that_its_metrics_name_and_no_file_of_the_operator() -> None:
    manifests = rendered(measured("shared"), JOBS)
    told = of_kind("ConfigMap", manifests)["data"]["prometheus"]
    assert told == (
        '{"headers": {"X-Scope-OrgID": "payments"}, "name": "shared", "secretName": "prometheus",'
        ' "url": "https://prometheus.example.com"}\n'
    )
    intent = parse_intent(of_kind("ConfigMap", manifests))
    bare = PrometheusServer("shared", SHARED.url, headers=SHARED.headers, secret_name="prometheus")  # noqa: S106
    assert intent.prometheus == (bare,)
    assert intent == intent_of(measured("shared"), "twgen/me", prometheus=JOBS.prometheus)
    assert "repo-server" not in str(manifests)


def test_pod_has_the_secret_of_its_namespace_as_files_and_waits_for_none() -> None:
    pod = pod_of(rendered(measured("open", "shared"), JOBS))
    [container] = pod["containers"]
    [volume] = [item for item in pod["volumes"] if "secret" in item]
    keys = ("token", "username", "password", "ca.crt")
    assert volume["secret"] == {
        "secretName": "prometheus",
        "items": [{"key": key, "path": key} for key in keys],
        "optional": True,
    }
    [mount] = [item for item in container["volumeMounts"] if item["name"] == volume["name"]]
    assert (mount["mountPath"], mount["readOnly"]) == ("/etc/twgen/rollout/prometheus/shared", True)


def test_metric_without_a_name_may_mean_every_server_and_the_job_says_so() -> None:
    intent = parse_intent(of_kind("ConfigMap", rendered(measured(""), JOBS)))
    assert [server.name for server in intent.prometheus] == ["shared", "open"]


def test_intent_has_the_named_servers_first_and_no_more_than_are_read() -> None:
    many = tuple(PrometheusServer(f"s{number}", "http://a") for number in range(50))
    jobs = replace(JOB, prometheus=many)
    intent = parse_intent(of_kind("ConfigMap", rendered(measured("", "s49"), jobs)))
    assert [server.name for server in intent.prometheus] == ["s49", *(f"s{number}" for number in range(19))]


@pytest.mark.parametrize("names", [(), ("unknown",)])
def test_worker_that_needs_no_server_has_the_intent_and_the_job_that_it_would_have_without(
    names: tuple[str, ...],
) -> None:
    spec = measured(*names)
    assert rendered(spec, JOBS) == rendered(spec, JOB)
    assert intent_of(spec, "twgen/me", prometheus=(SHARED,)).hash == intent_of(spec, "twgen/me").hash


def test_another_address_is_another_intent_and_another_job() -> None:
    moved = replace(JOB, prometheus=(SHARED._replace(url="https://other.example.com"), OPEN))
    before, after = rendered(measured("shared"), JOBS), rendered(measured("shared"), moved)
    names = {of_kind("Job", made)["metadata"]["name"] for made in (before, after)}
    assert len(names) == 2
    renamed = replace(JOB, prometheus=(SHARED._replace(projects=("*",), ca_file="/other"), OPEN))
    assert rendered(measured("shared"), renamed) == before, "it has nothing else to do"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("prometheus.example.com", "evil.example.com", "was edited by hand"),
        ('"prometheus"', '"other-secret"', "was edited by hand"),
        ('"payments"', '"other"', "was edited by hand"),
        ("https://", "file://", "prometheus: url: 'file://prometheus.example.com' is not an address"),
        ("{", "", "prometheus: is not JSON"),
    ],
)
def test_server_of_an_intent_that_was_edited_by_hand_is_refused(old: str, new: str, why: str) -> None:
    manifest = of_kind("ConfigMap", rendered(measured("shared"), JOBS))
    told = manifest["data"]["prometheus"]
    edited = {**manifest, "data": {**manifest["data"], "prometheus": told.replace(old, new, 1)}}
    assert edited != manifest
    with pytest.raises(InvalidInput, match=why):
        parse_intent(edited)


def test_server_that_was_taken_out_of_an_intent_or_put_into_it_is_noticed() -> None:
    manifest = of_kind("ConfigMap", rendered(measured("shared"), JOBS))
    line = manifest["data"].pop("prometheus")
    with pytest.raises(InvalidInput, match="was edited by hand"):
        parse_intent(manifest)
    without = of_kind("ConfigMap", rendered(SPEC, JOBS))
    without["data"]["prometheus"] = line
    with pytest.raises(InvalidInput, match="was edited by hand"):
        parse_intent(without)


def test_intent_that_a_person_carries_out_has_the_servers_too() -> None:
    spec = measured("open")
    spec = with_policy(spec, driver=Driver.NONE, analysis=spec.policy.analysis)
    assert parse_intent(of_kind("ConfigMap", rendered(spec, JOBS))).prometheus == (OPEN,)
