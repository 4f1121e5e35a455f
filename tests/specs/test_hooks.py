"""Hooks and waves that a version would get from its templates."""

from typing import Any

import pytest

from tests.specs.parsing import CONNECTION, budget, parsed, told, worker
from twgen.cluster.marks import recorded_annotations
from twgen.specs.hooks import hooks_beside_jobs

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
        assert problem.startswith(f"{path}: Argo CD would delete what it is on, pods included")


def test_wave_on_a_template_is_refused_beside_a_tracked_job_alone() -> None:
    wave = {"argocd.argoproj.io/sync-wave": "5"}
    found = parsed(worker_with(wave), budget_with(wave), CONNECTION)
    assert found.problems == ()
    assert len(list(hooks_beside_jobs([], found.workers))) == 2
    assert list(hooks_beside_jobs([], parsed(worker(), budget(), CONNECTION).workers)) == []


def test_hook_of_a_recorded_deployment_is_not_rendered_again() -> None:
    hook = {"argocd.argoproj.io/hook": "Sync", "helm.sh/hook": "test", "team": "shop"}
    assert recorded_annotations({"metadata": {"annotations": hook}}) == {"team": "shop"}
