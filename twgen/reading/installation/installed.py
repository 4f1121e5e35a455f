"""Reads the Argo CD installation (with its plugin, settings and Applications) and the tick installation."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from difflib import get_close_matches
from http import HTTPStatus
from typing import Any

from twgen.clients.argocd import asked_since, refused_objects
from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient, listed, path_of
from twgen.errors import InvalidInput, StateUnavailable
from twgen.model.diagnosis import ArgoApplication, ArgoInstallation, Plugin, TickInstallation
from twgen.model.operator import Operator, TickSettings
from twgen.model.paths import value_at
from twgen.planning.diagnosis.argocd import PLUGIN, seconds_of
from twgen.planning.diagnosis.rights import service_account
from twgen.reading.hooks import APPLICATION_API
from twgen.reading.installation.cluster import pods_that_wait
from twgen.reading.kubernetes import read_config_map, read_list, read_path
from twgen.records.operator_config import parse_operator
from twgen.versioning.build_ids import image_tag
from twgen.versioning.names import DEPLOYMENT_API, is_dns_name
from twgen.yaml.reader import read_documents

_OWN = {"argocd-repo-server", "argocd-server", "repo-server", "server"}
"""The names of Argo CD's own containers in its manifests and its Helm chart."""
_BY_PATH = "argocd.argoproj.io/manifest-generate-paths"
_TOKENS = "/var/run/secrets/kubernetes.io/serviceaccount"
_FAILED = {"Failed", "Error"}
_ARGOCD_SERVER = "TWGEN_ARGOCD_SERVER"
_TICK = "twgen-tick"
"""The name of tick's Deployment or CronJob in deploy/tick."""
_FALSE = {"", "0", "f", "false", "n", "no", "off"}
_LEADS_TO_POD = {
    "Deployment": (DEPLOYMENT_API, ("spec", "template")),
    "CronJob": ("batch/v1", ("spec", "jobTemplate", "spec", "template")),
}
_LONGEST_ERROR = 500
_AROUND = re.compile(r".*exit status \d+: ")
Object = Mapping[str, Any]


async def read_argocd(
    client: KubernetesClient, namespace: str, deadline: Deadline
) -> tuple[ArgoInstallation, Mapping[str, str]]:
    """Read the Argo CD installation in a namespace. Also returns an error for each part that was not read.

    Raises StateUnavailable if Argo CD does not exist there or cannot be read.
    """
    deployments = await read_list(client, path_of(DEPLOYMENT_API, "Deployment", namespace), deadline)
    deployments.sort(key=lambda item: str(item["metadata"]["name"]))
    servers = [
        item for item in deployments if item["metadata"]["name"].endswith(("repo-server", "argocd-server"))
    ]
    containers = [container for item in servers for container in _containers(item)]
    if not containers:
        raise StateUnavailable(f"there is no repo-server in namespace {namespace}")
    own = [container for container in containers if container["name"] in _OWN or _is_argocd(container)]
    tags = (image_tag(str(container.get("image"))) for container in own)
    argocd = ArgoInstallation(next(filter(None, tags), ""), None, namespace=namespace)
    repo_server = next((item for item in servers if item["metadata"]["name"].endswith("repo-server")), None)
    not_checked: dict[str, str] = {}
    if repo_server:
        labels = value_at(repo_server, "spec", "selector", "matchLabels") or {}
        pod = value_at(repo_server, "spec", "template", "spec") or {}
        container = next((item for item in _containers(repo_server) if item["name"] == PLUGIN), {})
        argocd = replace(
            argocd,
            plugin=await _plugin(client, namespace, pod, container, deadline) if container else None,
            pods=await pods_that_wait(client, namespace, labels, deadline),
            operator=await _mounted_operator(client, namespace, pod, container, deadline),
        )
    try:
        settings: dict[str, str] = {}
        for name in ("argocd-cm", "argocd-cmd-params-cm"):
            settings |= (await read_config_map(client, namespace, name, deadline)).get("data") or {}
        argocd = replace(argocd, settings=settings)
    except StateUnavailable as error:
        not_checked["Argo CD's settings"] = str(error)
    try:
        # if the account lacks permission for all namespaces, only Argo CD's own namespace is read
        path = path_of(APPLICATION_API, "Application")
        status, answer = await client.ask("GET", path, deadline)
        if status != HTTPStatus.OK:
            path = path_of(APPLICATION_API, "Application", namespace)
            answer = await read_path(client, path, deadline, may_be_absent=True) or {"items": []}
        items = listed(path, answer)
        argocd = replace(argocd, applications=tuple(_application(item) for item in items if _plugin_of(item)))
    except StateUnavailable as error:
        not_checked["Argo CD's Applications"] = str(error)
    return argocd, not_checked


async def _plugin(
    client: KubernetesClient, namespace: str, pod: Object, container: Object, deadline: Deadline
) -> Plugin:
    mounts = {mount.get("mountPath") for mount in container.get("volumeMounts") or ()}
    missing = []
    for name in _config_maps(pod, container):
        status, _ = await client.ask("GET", path_of("v1", "ConfigMap", namespace, name), deadline)
        if status == HTTPStatus.NOT_FOUND:
            missing.append(name)
    settings = (item for item in container.get("env") or () if item.get("name") == "TWGEN_TIMEOUT")
    return Plugin(
        image=str(container.get("image")),
        account=service_account(namespace, pod.get("serviceAccountName") or "default"),
        mounts_token=_TOKENS in mounts,
        has_token=_TOKENS in mounts or pod.get("automountServiceAccountToken") is not False,
        timeout=next((str(item.get("value")) for item in settings), ""),
        missing=tuple(missing),
    )


def _config_maps(pod: Object, container: Object) -> Iterable[str]:
    """The names of the ConfigMaps that a container mounts.

    The container's Secrets are not checked: checking a Secret's existence requires the permission to read its
    content, which `twgen doctor` should not need.
    """
    mounted = {mount.get("name") for mount in container.get("volumeMounts") or ()}
    for volume in pod.get("volumes") or ():
        name = value_at(volume, "configMap", "name")
        if name and volume.get("name") in mounted:
            yield str(name)


async def _mounted_operator(
    client: KubernetesClient, namespace: str, pod: Object, container: Object, deadline: Deadline
) -> Operator | None:
    """The OperatorConfig from a container's mounted ConfigMaps, or None if none is readable and valid."""
    for name in _config_maps(pod, container):
        _, answer = await client.ask("GET", path_of("v1", "ConfigMap", namespace, name), deadline)
        text = value_at(answer, "data", "operator.yaml")
        with suppress(InvalidInput):
            for document in read_documents(text) if isinstance(text, str) else ():
                operator, problems = parse_operator(document)
                if operator and not problems:
                    return replace(operator, file=f"ConfigMap {namespace}/{name}")
    return None


def _containers(deployment: Object) -> Sequence[Object]:
    return value_at(deployment, "spec", "template", "spec", "containers") or ()


def _is_argocd(container: Object) -> bool:
    return str(container.get("image")).partition("@")[0].partition(":")[0].endswith("/argocd")


def _plugin_of(application: Object) -> str:
    """The plugin name in the Application's sources that is twgen's, or is probably a misspelling of it."""
    sources = [value_at(application, "spec", "source"), *(value_at(application, "spec", "sources") or ())]
    names = [str(value_at(source, "plugin", "name") or "") for source in sources if source]
    exact = next((name for name in names if name == PLUGIN or name.startswith(f"{PLUGIN}-")), "")
    return exact or next(iter(get_close_matches(PLUGIN, names, n=1, cutoff=0.75)), "")


def _application(item: Object) -> ArgoApplication:
    policy = value_at(item, "spec", "syncPolicy")
    automated = value_at(policy, "automated")
    options = automated if isinstance(automated, Mapping) else {}
    return ArgoApplication(
        name=f"{item['metadata']['namespace']}/{item['metadata']['name']}",
        plugin=_plugin_of(item),
        is_automated=automated is not None and options.get("enabled") is not False,
        prunes=bool(options.get("prune")),
        heals=bool(options.get("selfHeal")),
        renders_by_path=_BY_PATH in (value_at(item, "metadata", "annotations") or {}),
        sync_options=frozenset(map(str, value_at(policy, "syncOptions") or ())),
        errors=tuple(_errors(item)),
        asked_since=asked_since(item),
    )


def _errors(application: Object) -> Iterable[str]:
    """Argo CD's errors about an Application, from the Application's conditions and last sync."""
    for condition in value_at(application, "status", "conditions") or ():
        kind = str(condition.get("type"))
        if kind.endswith("Error") or kind == "SharedResourceWarning":
            yield f"{kind}: {_gist(condition.get('message'))}"
    operation = value_at(application, "status", "operationState")
    failures = refused_objects(application).items()
    if refused := [f"{kind} {name}: {_gist(message)}" for (_, kind, name), message in failures]:
        yield f"its last sync failed: {'; '.join(refused)}"
    elif value_at(operation, "phase") in _FAILED:
        yield f"its last sync failed: {_gist(value_at(operation, 'message'))}"


def _gist(text: Any) -> str:
    """The message in one line. If a render failed, only twgen's own part of the message is kept."""
    line = _AROUND.sub("", " ".join(str(text).split()))
    return line if len(line) <= _LONGEST_ERROR else f"{line[: _LONGEST_ERROR - 1]}…"


async def read_tick(client: KubernetesClient, deadline: Deadline) -> TickInstallation | None:
    """The cluster's tick, found by its name in deploy/tick, or None if it is not installed.

    Raises StateUnavailable if Deployments or CronJobs cannot be listed. Also raises it if there are several
    ticks, because one of them may belong to another team.
    """
    ticks: list[TickInstallation] = []
    for kind, (api_version, to_pod) in _LEADS_TO_POD.items():
        query = {"fieldSelector": f"metadata.name={_TICK}"}
        for item in await read_list(client, path_of(api_version, kind), deadline, query):
            namespace, template = item["metadata"]["namespace"], value_at(item, *to_pod)
            [container, *_] = value_at(template, "spec", "containers")
            variables = await _variables(client, namespace, container, deadline)
            everywhere = variables.get("TWGEN_ALL_NAMESPACES", "").lower()
            every = seconds_of(variables.get("TWGEN_EVERY", ""))
            labels = value_at(template, "metadata", "labels") or {}
            account = value_at(template, "spec", "serviceAccountName") or "default"
            home = variables.get("TWGEN_NAMESPACE")
            may: TickSettings | None = TickSettings()
            if variables.get("TWGEN_OPERATOR_CONFIG"):
                pod = template["spec"]
                operator = await _mounted_operator(client, namespace, pod, container, deadline)
                may = operator.tick if operator else None
            tick = TickInstallation(
                name=f"{kind} {namespace}/{_TICK}",
                image=str(container.get("image")),
                account=service_account(namespace, account),
                namespace="" if everywhere not in _FALSE else home if is_dns_name(home) else None,
                every=None if every is None else timedelta(seconds=every),
                pods=await pods_that_wait(client, namespace, labels, deadline) if labels else (),
                may=may,
                asks_argocd=_ARGOCD_SERVER in variables or _ARGOCD_SERVER in str(container.get("env")),
            )
            ticks.append(tick)
    if len(ticks) > 1:
        raise StateUnavailable(f"there are several: {', '.join(tick.name for tick in ticks)}")
    return ticks[0] if ticks else None


async def _variables(
    client: KubernetesClient, namespace: str, container: Object, deadline: Deadline
) -> Mapping[str, str]:
    """A container's environment variables with literal values or values from readable ConfigMaps."""
    variables: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        if name := value_at(source, "configMapRef", "name"):
            _, answer = await client.ask("GET", path_of("v1", "ConfigMap", namespace, name), deadline)
            variables |= value_at(answer, "data") or {}
    literals = {variable["name"]: variable.get("value") for variable in container.get("env") or ()}
    return variables | {name: str(text) for name, text in literals.items() if text is not None}
