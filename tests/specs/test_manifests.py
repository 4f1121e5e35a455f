"""The Pods of rollouts are checked as strictly as those of workers."""

from typing import Any

import pytest

from tests.specs.parsing import CONNECTION, budget, parsed, policy, told, worker
from twgen.cluster.marks import recorded_annotations
from twgen.model.operator import Operator, RolloutPod
from twgen.specs.manifests import hooks_beside_jobs, refusals_of_pod
from twgen.versioning.names import REQUEST_ANNOTATIONS


def refused(**pod: Any) -> list[str]:
    found = refusals_of_pod(Operator(rollout=RolloutPod(**pod)))
    return [f"{item.path}: {item.message}" for item in found]


def test_pod_of_which_nothing_is_said_is_right() -> None:
    assert refused() == []


@pytest.mark.parametrize(
    ("pod", "path"),
    [
        ({"labels": {"a b": "c"}}, "rollout.labels"),
        ({"annotations": {"a b": "c"}}, "rollout.annotations"),
        ({"labels": {"twgen.io/rollout": "mine"}}, "rollout.labels['twgen.io/rollout']: is set by twgen"),
        (
            {"labels": {"temporal.io/build-id": "v1"}},
            "rollout.labels['temporal.io/build-id']: is reserved for the pods",
        ),
        ({"node_selector": {"a": "b c"}}, "rollout.nodeSelector"),
        ({"tolerations": ({"key": "a", "operator": "Is"},)}, "rollout.tolerations[0].operator"),
        ({"tolerations": ({"operator": "Exists", "value": "a"},)}, "rollout.tolerations[0]"),
        ({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}, "rollout.resources."),
    ],
)
def test_what_an_api_server_would_refuse_is_told_at_its_path(pod: dict[str, Any], path: str) -> None:
    [told] = refused(**pod)
    assert told.startswith(path)


@pytest.mark.parametrize(
    "image", ["${REGISTRY}/twgen:1", "{{ .Values.image }}", "registry.example.com/Tools/Twgen:1"]
)
def test_image_that_no_node_finds_is_refused(image: str) -> None:
    [told] = refusals_of_pod(Operator(rollout=RolloutPod(image=image)))
    assert (told.path, image in told.message) == ("rollout.image", True)


POD = {"containers": [{"name": "w", "image": "payments:v3"}]}


def worker_with(annotations: dict[str, str]) -> dict[str, Any]:
    return worker(template={"metadata": {"annotations": annotations}, "spec": POD})


def budget_with(annotations: dict[str, str]) -> dict[str, Any]:
    document = budget()
    document["spec"]["template"]["metadata"] = {"annotations": annotations}
    return document


@pytest.mark.parametrize("name", ["argocd.argoproj.io/hook", "helm.sh/hook"])
def test_hook_on_a_template_is_refused_since_argocd_would_delete_the_pods(name: str) -> None:
    annotations = {name: "PreSync"}
    path = f"spec.template.metadata.annotations['{name}']"
    for documents in ([worker_with(annotations)], [worker(), budget_with(annotations)]):
        [problem] = told(parsed(*documents, CONNECTION).problems)
        assert problem.startswith(f"{path}: Argo CD would delete this object, pods included")


ACTED_ON = {
    "helm.sh/resource-policy": (
        "Argo CD never prunes an object with this annotation, so old versions would stay"
    ),
    "deployment.kubernetes.io/revision": "Kubernetes itself sets this annotation on each Deployment",
    "keel.sh/policy": "Keel would change the images of all versions, even of those with open workflows",
}


@pytest.mark.parametrize("name", ACTED_ON)
def test_annotation_by_which_somebody_else_acts_on_a_version_is_warned_of(name: str) -> None:
    annotations = {name: "keep", "prometheus.io/scrape": "true", "keel.shop/policy": "a"}
    told_of = f"spec.template.metadata.annotations['{name}']: {ACTED_ON[name]}: remove it"
    assert told(parsed(worker_with(annotations), CONNECTION).warnings) == [told_of]
    on_budget = told(parsed(worker(), budget_with(annotations), CONNECTION).warnings)
    assert on_budget == ([told_of] if name == "helm.sh/resource-policy" else [])


@pytest.mark.parametrize("field", ["deploymentAnnotations", "deploymentLabels"])
def test_policy_that_gives_keel_the_deployments_is_warned_of(field: str) -> None:
    [doubt] = told(parsed(worker(), policy(**{field: {"keel.sh/policy": "minor"}}), CONNECTION).warnings)
    assert doubt == f"spec.{field}['keel.sh/policy']: {ACTED_ON['keel.sh/policy']}: remove it"
    revision = policy(**{field: {"deployment.kubernetes.io/revision": "2"}})
    [refused] = parsed(worker(), revision, CONNECTION).problems
    assert refused.message == "is set by twgen or Argo CD: remove it"


def test_wave_on_a_template_is_refused_beside_a_tracked_job_alone() -> None:
    wave = {"argocd.argoproj.io/sync-wave": "5"}
    found = parsed(worker_with(wave), budget_with(wave), CONNECTION)
    assert found.problems == ()
    assert len(list(hooks_beside_jobs([], found.workers))) == 2
    assert list(hooks_beside_jobs([], parsed(worker(), budget(), CONNECTION).workers)) == []


@pytest.mark.parametrize(
    ("annotations", "is_refused"),
    [
        ({"helm.sh/hook": "test"}, False),
        ({"helm.sh/hook": "test, test-success", "argocd.argoproj.io/sync-wave": "5"}, False),
        ({"helm.sh/hook": "test,pre-install"}, True),
        ({"helm.sh/hook": "pre-upgrade"}, True),
        ({"helm.sh/hook": "test", "argocd.argoproj.io/hook": "PostSync"}, True),
        ({"helm.sh/hook": "post-delete,pre-rollback"}, False),
        ({"helm.sh/hook": "post-delete,post-upgrade"}, True),
        ({"helm.sh/hook": "postupgrade"}, True),
        ({"helm.sh/hook": "pre-upgrade", "argocd.argoproj.io/hook": "PostDelete"}, False),
        ({"argocd.argoproj.io/hook": "Skip"}, False),
        ({"argocd.argoproj.io/hook": "SyncFail"}, True),
        ({"argocd.argoproj.io/hook": "PreDelete,PreSync"}, True),
    ],
)
def test_object_that_is_in_no_sync_keeps_none_waiting(
    annotations: dict[str, str],
    is_refused: bool,  # noqa: FBT001 - what pytest is given
) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "test", "annotations": annotations},
    }
    found = parsed(worker(), CONNECTION, pod)
    assert bool(list(hooks_beside_jobs(found.passthrough, found.workers))) is is_refused


def test_hook_of_a_recorded_deployment_is_not_rendered_again() -> None:
    hook = {"argocd.argoproj.io/hook": "Sync", "helm.sh/hook": "test", "team": "shop"}
    assert recorded_annotations({"metadata": {"annotations": hook}}) == {"team": "shop"}


@pytest.mark.parametrize("name", REQUEST_ANNOTATIONS)
def test_request_to_a_rollout_in_a_manifest_is_refused(name: str) -> None:
    metadata = {"name": "payments-rollout-status", "namespace": "shop", "annotations": {name: "{}"}}
    status = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    expected = f"metadata.annotations['{name}']: is a request to a rollout, which must not be in a manifest"
    for documents in ([status], [worker(), CONNECTION, {**status, "kind": "Secret"}]):
        [problem] = told(parsed(*documents).problems)
        assert problem == f"{expected}: remove it"


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("argocd.argoproj.io/sync-wave", "remove it; with hooks or waves, each sync would wait"),
        ("argocd.argoproj.io/hook", "remove it; with hooks or waves, each sync would wait"),
        ("reloader.stakater.com/auto", "write it into spec.deploymentAnnotations of a RolloutPolicy"),
        ("configmap.reloader.stakater.com/reload", "write it into spec.deploymentAnnotations"),
        ("team.example.com/owner", ""),
        ("kubectl.kubernetes.io/last-applied-configuration", ""),
    ],
)
def test_annotation_of_a_worker_that_reaches_no_object_is_warned_of(name: str, remedy: str) -> None:
    value = worker()
    value["metadata"]["annotations"] = {name: "1"}
    found = told(parsed(value, CONNECTION).warnings)
    why = "has no effect, because this document itself is not applied"
    assert [f"metadata.annotations['{name}']: {why}: {remedy}" in warning for warning in found] == (
        [True] if remedy else []
    )
