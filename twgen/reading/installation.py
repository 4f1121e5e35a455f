"""Reading what an installation is made of: rights, clocks, Argo CD and what rollouts left."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

from twgen.clients.deadline import Deadline, monotonic
from twgen.clients.kubernetes import KubernetesClient, listed
from twgen.errors import StateUnavailable
from twgen.model.diagnosis import ArgoApplication, ArgoInstallation, Refusal, Right, Severity
from twgen.model.paths import value_at
from twgen.model.reasons.routing import RoutingReason
from twgen.model.status import RolloutStatus
from twgen.model.times import later
from twgen.planning.diagnosis import PLUGIN
from twgen.reading.rollout import read_path

_NO_ROLLOUTS = "`status --from-cluster`, `dashboard` and `tick` see no rollout"
_NO_ROLLOUTS = "`status --from-cluster`, `dashboard` and `tick` see no rollout"
_NO_JOB = "`retry` and `resume` start no Job again"
RIGHTS = (
    Right("list", "apps", "deployments", "every version counts as possibly there", Severity.PROBLEM),
    Right("list", "", "pods", "nobody is told why a Pod waits or crashes", Severity.ADVICE),
    Right("list", "", "configmaps", _NO_ROLLOUTS, Severity.ADVICE),
    Right("list", "batch", "jobs", "replays are not seen, nor Jobs that have ended", Severity.ADVICE),
    Right("delete", "batch", "jobs", _NO_JOB, Severity.ADVICE),
    Right("create", "batch", "jobs", _NO_JOB, Severity.ADVICE),
)
"""What whoever runs twgen needs in the namespace of a worker."""
_OWN = {"argocd-repo-server", "argocd-server", "repo-server", "server"}
"""What its own containers are called, by its manifests and by its Helm chart."""
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_ARGOCD_API = "/apis/argoproj.io/v1alpha1"
_BY_PATH = "argocd.argoproj.io/manifest-generate-paths"


async def read_refusals(
    client: KubernetesClient, namespaces: Iterable[str], deadline: Deadline
) -> tuple[Refusal, ...]:
    """The rights that the account lacks in namespaces, the empty one for all.

    Raises StateUnavailable or OutOfTime.
    """
    refused = []
    for namespace in sorted(set(namespaces)):
        for right in RIGHTS:
            asked = {
                "namespace": namespace,
                "verb": right.verb,
                "group": right.group,
                "resource": right.resource,
            }
            review = {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": asked},
            }
            status, answer = await client.ask("POST", _REVIEWS, deadline, body=review)
            if status not in {HTTPStatus.OK, HTTPStatus.CREATED}:
                raise StateUnavailable(f"{_REVIEWS} cannot be asked: {answer.get('message') or status}")
            if not value_at(answer, "status", "allowed"):
                refused.append(Refusal(namespace, right))
    return tuple(refused)


def clock_ahead(client: KubernetesClient, now: datetime) -> timedelta | None:
    """By how much the API server's clock is ahead; None: it has said nothing yet."""
    if not client.heard:
        return None
    said, at = client.heard
    return later(said, timedelta(seconds=monotonic() - at)) - now


async def read_argocd(client: KubernetesClient, namespace: str, deadline: Deadline) -> ArgoInstallation:
    """The Argo CD of a namespace; raises StateUnavailable where there is none, or it may not be read."""
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    found = {
        item["metadata"]["name"]: item
        for item in listed(deployments, await read_path(client, deployments, deadline))
    }
    containers = [
        container
        for name, item in sorted(found.items())
        for container in value_at(item, "spec", "template", "spec", "containers") or ()
        if name.endswith(("repo-server", "argocd-server"))
    ]
    if not containers:
        raise StateUnavailable(f"there is no repo-server in namespace {namespace}")
    settings: dict[str, str] = {}
    for name in ("argocd-cm", "argocd-cmd-params-cm"):
        path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
        settings |= value_at(await read_path(client, path, deadline, may_be_absent=True), "data") or {}
    applications = await _applications(client, namespace, deadline)
    return ArgoInstallation(
        version=_tag_of([one for one in containers if one["name"] in _OWN or _is_argocd(one)]),
        sidecar_image=next((str(one.get("image")) for one in containers if one["name"] == PLUGIN), ""),
        settings=settings,
        applications=tuple(_application(item) for item in applications if _plugin_of(item)),
    )


async def _applications(
    client: KubernetesClient, namespace: str, deadline: Deadline
) -> list[Mapping[str, Any]]:
    """Those of all namespaces; where only those of Argo CD's own may be read, these."""
    everywhere = f"{_ARGOCD_API}/applications"
    status, answer = await client.ask("GET", everywhere, deadline)
    if status == HTTPStatus.OK:
        return listed(everywhere, answer)
    path = f"{_ARGOCD_API}/namespaces/{namespace}/applications"
    return listed(path, await read_path(client, path, deadline, may_be_absent=True) or {"items": []})


def left_alone(statuses: Iterable[RolloutStatus]) -> Mapping[str, str]:
    """The workers whose traffic nobody moves any more, and why, by what their rollouts left."""
    return {
        status.worker: status.message for status in statuses if status.reason == RoutingReason.ROLLOUT_ENDED
    }


def _is_argocd(container: Mapping[str, Any]) -> bool:
    return str(container.get("image")).partition("@")[0].partition(":")[0].endswith("/argocd")


def _tag_of(containers: Sequence[Mapping[str, Any]]) -> str:
    """The version that the tag of the first image tells; empty: none does."""
    for container in containers:
        image = str(container.get("image")).partition("@")[0]
        _, has_tag, tag = image.rpartition("/")[2].partition(":")
        if has_tag:
            return tag
    return ""


def _plugin_of(application: Mapping[str, Any]) -> str:
    """The name of twgen's plugin, where one of its sources has it."""
    sources = [value_at(application, "spec", "source"), *(value_at(application, "spec", "sources") or ())]
    names = (str(value_at(source, "plugin", "name") or "") for source in sources if source)
    return next((name for name in names if name == PLUGIN or name.startswith(f"{PLUGIN}-")), "")


def _application(item: Mapping[str, Any]) -> ArgoApplication:
    automated = value_at(item, "spec", "syncPolicy", "automated")
    told = automated if isinstance(automated, Mapping) else {}
    return ArgoApplication(
        name=f"{item['metadata']['namespace']}/{item['metadata']['name']}",
        plugin=_plugin_of(item),
        is_automated=automated is not None and told.get("enabled") is not False,
        prunes=bool(told.get("prune")),
        heals=bool(told.get("selfHeal")),
        renders_by_path=_BY_PATH in (value_at(item, "metadata", "annotations") or {}),
    )
