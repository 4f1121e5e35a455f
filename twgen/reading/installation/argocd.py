"""Reading an Argo CD: its version, its plugin, its settings and its Applications."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from http import HTTPStatus
from typing import Any, NamedTuple

from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient, listed
from twgen.cluster.applications import asked_since
from twgen.errors import InvalidInput, StateUnavailable
from twgen.model.diagnosis import ArgoApplication, ArgoInstallation, Plugin
from twgen.model.operator import Operator
from twgen.model.paths import value_at
from twgen.planning.diagnosis.argocd import PLUGIN
from twgen.planning.diagnosis.rights import service_account
from twgen.reading.installation.pods import pods_that_wait
from twgen.reading.kubernetes import config_map_path, read_list, read_path
from twgen.records.operator_config import parse_operator
from twgen.yaml.reader import read_documents

_OWN = {"argocd-repo-server", "argocd-server", "repo-server", "server"}
"""What its own containers are called, by its manifests and by its Helm chart."""
_API = "/apis/argoproj.io/v1alpha1"
_BY_PATH = "argocd.argoproj.io/manifest-generate-paths"
_TOKENS = "/var/run/secrets/kubernetes.io/serviceaccount"
_FAILED = {"Failed", "Error"}
_LONGEST_ERROR = 500
_AROUND = re.compile(r".*exit status \d+: ")
Object = Mapping[str, Any]


class Partly(NamedTuple):
    """What was read of an Argo CD, and why other parts of it were not."""

    argocd: ArgoInstallation
    not_checked: Mapping[str, str]


async def read_argocd(client: KubernetesClient, namespace: str, deadline: Deadline) -> Partly:
    """The Argo CD of a namespace; raises StateUnavailable where there is none, or it may not be read."""
    deployments = await read_list(client, f"/apis/apps/v1/namespaces/{namespace}/deployments", deadline)
    deployments.sort(key=lambda item: str(item["metadata"]["name"]))
    servers = [
        item for item in deployments if item["metadata"]["name"].endswith(("repo-server", "argocd-server"))
    ]
    containers = [container for item in servers for container in _containers(item)]
    if not containers:
        raise StateUnavailable(f"there is no repo-server in namespace {namespace}")
    own = [one for one in containers if one["name"] in _OWN or _is_argocd(one)]
    argocd = ArgoInstallation(_tag_of(own), None, namespace=namespace)
    repo_server = next((item for item in servers if item["metadata"]["name"].endswith("repo-server")), None)
    not_checked: dict[str, str] = {}
    if repo_server:
        labels = value_at(repo_server, "spec", "selector", "matchLabels") or {}
        pod = value_at(repo_server, "spec", "template", "spec") or {}
        container = next((one for one in _containers(repo_server) if one["name"] == PLUGIN), {})
        argocd = replace(
            argocd,
            plugin=await _plugin(client, repo_server, deadline),
            pods=await pods_that_wait(client, namespace, labels, deadline),
            operator=await mounted_operator(client, namespace, pod, container, deadline),
        )
    try:
        argocd = replace(argocd, settings=await _settings(client, namespace, deadline))
    except StateUnavailable as error:
        not_checked["settings of Argo CD"] = str(error)
    try:
        found = await _applications(client, namespace, deadline)
        argocd = replace(argocd, applications=tuple(_application(item) for item in found if _plugin_of(item)))
    except StateUnavailable as error:
        not_checked["Applications of Argo CD"] = str(error)
    return Partly(argocd, not_checked)


async def _settings(client: KubernetesClient, namespace: str, deadline: Deadline) -> dict[str, str]:
    settings: dict[str, str] = {}
    for name in ("argocd-cm", "argocd-cmd-params-cm"):
        path = config_map_path(namespace, name)
        settings |= value_at(await read_path(client, path, deadline, may_be_absent=True), "data") or {}
    return settings


async def _plugin(client: KubernetesClient, repo_server: Object, deadline: Deadline) -> Plugin | None:
    container = next((one for one in _containers(repo_server) if one["name"] == PLUGIN), None)
    if not container:
        return None
    pod, namespace = value_at(repo_server, "spec", "template", "spec"), repo_server["metadata"]["namespace"]
    mounts = {mount.get("mountPath") for mount in container.get("volumeMounts") or ()}
    missing = []
    for name in _config_maps(pod, container):
        status, _ = await client.ask("GET", config_map_path(namespace, name), deadline)
        if status == HTTPStatus.NOT_FOUND:
            missing.append(name)
    return Plugin(
        image=str(container.get("image")),
        account=service_account(namespace, pod.get("serviceAccountName") or "default"),
        mounts_token=_TOKENS in mounts,
        has_token=_TOKENS in mounts or pod.get("automountServiceAccountToken") is not False,
        timeout=next(
            (
                str(variable.get("value"))
                for variable in container.get("env") or ()
                if variable.get("name") == "TWGEN_TIMEOUT"
            ),
            "",
        ),
        missing=tuple(missing),
    )


def _config_maps(pod: Object, container: Object) -> Iterable[str]:
    """The ConfigMaps that a container mounts.

    Not its Secrets: whoever may ask whether one is there may read it, and that is not the doctor's to want.
    """
    mounted = {mount.get("name") for mount in container.get("volumeMounts") or ()}
    for volume in pod.get("volumes") or ():
        name = value_at(volume, "configMap", "name")
        if name and volume.get("name") in mounted:
            yield str(name)


async def mounted_operator(
    client: KubernetesClient, namespace: str, pod: Object, container: Object, deadline: Deadline
) -> Operator | None:
    """The OperatorConfig of a ConfigMap that a container mounts, if it may be read and is valid."""
    for name in _config_maps(pod, container):
        _, answer = await client.ask("GET", config_map_path(namespace, name), deadline)
        text = value_at(answer, "data", "operator.yaml")
        with suppress(InvalidInput):
            for document in read_documents(text) if isinstance(text, str) else ():
                operator, problems = parse_operator(document)
                if operator and not problems:
                    return replace(operator, file=f"ConfigMap {namespace}/{name}")
    return None


async def _applications(client: KubernetesClient, namespace: str, deadline: Deadline) -> list[Object]:
    """Those of all namespaces; where only those of Argo CD's own may be read, these."""
    everywhere = f"{_API}/applications"
    status, answer = await client.ask("GET", everywhere, deadline)
    if status == HTTPStatus.OK:
        return listed(everywhere, answer)
    path = f"{_API}/namespaces/{namespace}/applications"
    return listed(path, await read_path(client, path, deadline, may_be_absent=True) or {"items": []})


def _containers(deployment: Object) -> Sequence[Object]:
    return value_at(deployment, "spec", "template", "spec", "containers") or ()


def _is_argocd(container: Object) -> bool:
    return str(container.get("image")).partition("@")[0].partition(":")[0].endswith("/argocd")


def _tag_of(containers: Sequence[Object]) -> str:
    """The version that the tag of the first image tells; empty: none does."""
    for container in containers:
        image = str(container.get("image")).partition("@")[0]
        _, has_tag, tag = image.rpartition("/")[2].partition(":")
        if has_tag:
            return tag
    return ""


def _plugin_of(application: Object) -> str:
    """The name of twgen's plugin, or what is meant for it, where one of its sources has it."""
    sources = [value_at(application, "spec", "source"), *(value_at(application, "spec", "sources") or ())]
    names = [str(value_at(source, "plugin", "name") or "") for source in sources if source]
    known = next((name for name in names if name == PLUGIN or name.startswith(f"{PLUGIN}-")), "")
    return known or next(iter(get_close_matches(PLUGIN, names, n=1, cutoff=0.75)), "")


def _application(item: Object) -> ArgoApplication:
    policy = value_at(item, "spec", "syncPolicy")
    automated = value_at(policy, "automated")
    told = automated if isinstance(automated, Mapping) else {}
    return ArgoApplication(
        name=f"{item['metadata']['namespace']}/{item['metadata']['name']}",
        plugin=_plugin_of(item),
        is_automated=automated is not None and told.get("enabled") is not False,
        prunes=bool(told.get("prune")),
        heals=bool(told.get("selfHeal")),
        renders_by_path=_BY_PATH in (value_at(item, "metadata", "annotations") or {}),
        sync_options=frozenset(map(str, value_at(policy, "syncOptions") or ())),
        errors=tuple(_errors(item)),
        asked_since=asked_since(item),
    )


def _errors(application: Object) -> Iterable[str]:
    """What Argo CD says against an Application: conditions that are errors, and what a sync could not do."""
    for condition in value_at(application, "status", "conditions") or ():
        kind = str(condition.get("type"))
        if kind.endswith("Error") or kind == "SharedResourceWarning":
            yield f"{kind}: {_gist(condition.get('message'))}"
    operation = value_at(application, "status", "operationState")
    refused = [
        f"{one.get('kind')} {one.get('name')}: {_gist(one.get('message'))}"
        for one in value_at(operation, "syncResult", "resources") or ()
        if one.get("status") == "SyncFailed"
    ]
    if refused:
        yield f"its last sync failed: {'; '.join(refused)}"
    elif value_at(operation, "phase") in _FAILED:
        yield f"its last sync failed: {_gist(value_at(operation, 'message'))}"


def _gist(text: Any) -> str:
    """A message in one line; of a render that failed what twgen itself has said, at its end."""
    line = _AROUND.sub("", " ".join(str(text).split()))
    return line if len(line) <= _LONGEST_ERROR else f"{line[: _LONGEST_ERROR - 1]}…"
