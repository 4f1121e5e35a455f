"""A plan names the fields in which a new target differs from the current version."""

from dataclasses import replace
from typing import Any

import pytest

from tests.planning.situations import SPEC, live, routing, situation, temporal, version
from tests.specs.parsing import CONNECTION, parsed, worker
from tests.strategies import NOW
from twgen.model.operator import Caller
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import VersionStatus
from twgen.model.world import World
from twgen.planning.plan import make_plan, with_differences
from twgen.rendering.deployments import target_deployment

CURRENT = temporal(version("v1", VersionStatus.CURRENT), traffic=routing("v1"))
WORKER = {"name": "worker", "image": "pay:1", "env": [{"name": "MODE", "value": "fast"}]}


def spec_with(labels: dict[str, str], *containers: dict[str, Any], **metadata: Any) -> WorkerSpec:
    """A worker with these pods, whose connection has an API key."""
    pods = {"metadata": {"labels": labels, **metadata}, "spec": {"containers": list(containers)}}
    options = {"connectionRef": {"name": "temporal"}, "temporalNamespace": "default"}
    keyed = {**CONNECTION, "spec": {**CONNECTION["spec"], "apiKeySecretRef": {"name": "key", "key": "k"}}}
    specs = parsed(worker(template=pods, workerOptions=options), keyed)
    assert specs.problems == ()
    return specs.workers[0]


BEFORE = replace(spec_with({"helm.sh/chart": "pay-1.0.0"}, WORKER), build_id="v1")


def told(world: World, spec: WorkerSpec = SPEC) -> tuple[str, ...]:
    [worker] = with_differences(make_plan([spec], world, NOW, Caller("me", forced=True))).workers
    return worker.differs


def differences(after: WorkerSpec, deployment: dict[str, Any] | None = None) -> tuple[str, ...]:
    deployed = target_deployment(BEFORE) if deployment is None else deployment
    deployed["metadata"] |= {"uid": "u", "generation": 1}
    return told(situation(CURRENT, [deployed]), after)


@pytest.mark.parametrize(
    ("after", "field"),
    [
        pytest.param(
            spec_with({"helm.sh/chart": "pay-1.1.0"}, WORKER),
            "metadata.labels['helm.sh/chart'] (pay-1.0.0 → pay-1.1.0)",
            id="a label of the chart",
        ),
        pytest.param(
            spec_with({"helm.sh/chart": "pay-1.0.0"}, {**WORKER, "image": "pay:2"}),
            "spec.containers[worker].image (pay:1 → pay:2)",
            id="an image",
        ),
        pytest.param(
            spec_with({"helm.sh/chart": "pay-1.0.0"}, {**WORKER, "image": f"pay:{'2' * 50}"}),
            "spec.containers[worker].image",
            id="a long image",
        ),
        pytest.param(
            spec_with(
                {"helm.sh/chart": "pay-1.0.0"}, {**WORKER, "env": [{"name": "MODE", "value": "secret"}]}
            ),
            "spec.containers[worker].env[MODE].value",
            id="a variable, whose value may be secret",
        ),
        pytest.param(
            spec_with({"helm.sh/chart": "pay-1.0.0"}, WORKER, annotations={"checksum/config": "5f2c"}),
            "metadata.annotations",
            id="a checksum",
        ),
        pytest.param(
            spec_with({"helm.sh/chart": "pay-1.0.0"}, WORKER, {"name": "proxy", "image": "envoy:1"}),
            "spec.containers[proxy]",
            id="a sidecar",
        ),
        pytest.param(
            spec_with({"helm.sh/chart": "pay-1.0.0"}, {"name": "worker", "image": "pay:1"}),
            "spec.containers[worker].env",
            id="a variable that is gone",
        ),
    ],
)
def test_field_that_makes_a_new_version_is_named_without_a_value_that_may_be_secret(
    after: WorkerSpec, field: str
) -> None:
    assert differences(after) == (field,)


def test_defaults_of_an_api_server_and_the_injection_are_no_difference() -> None:
    served = target_deployment(BEFORE)
    pod = served["spec"]["template"]["spec"]
    pod |= {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler"}
    pod["containers"][0] |= {"imagePullPolicy": "IfNotPresent", "terminationMessagePolicy": "File"}
    moved = replace(BEFORE.connection, host_port="elsewhere:7233")
    assert differences(replace(BEFORE, build_id="v3", connection=moved), served) == ()


def test_ledger_tells_if_the_deployment_is_gone() -> None:
    changed = spec_with({"helm.sh/chart": "pay-1.1.0"}, WORKER)
    found = told(situation(CURRENT, [], {"v1": target_deployment(BEFORE)}), changed)
    assert found == ("metadata.labels['helm.sh/chart'] (pay-1.0.0 → pay-1.1.0)",)


def test_target_that_is_current_and_a_current_version_that_nothing_records_have_no_difference() -> None:
    current = temporal(version("v3", VersionStatus.CURRENT), traffic=routing("v3"))
    assert told(situation(current, [live("v3")])) == ()
    assert told(situation(CURRENT, [])) == ()
