"""Reading what is beside the workers of a cluster: its clock, its tick, and what nobody renders any more."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from twgen.clients.deadline import Deadline, monotonic
from twgen.clients.kubernetes import KubernetesClient
from twgen.cluster.deployments import live_deployment
from twgen.errors import StateUnavailable
from twgen.model.diagnosis import TickInstallation
from twgen.model.paths import value_at
from twgen.model.times import later
from twgen.planning.diagnosis.argocd import seconds_of
from twgen.planning.diagnosis.rights import service_account
from twgen.reading.installation.argocd import mounted_operator
from twgen.reading.installation.pods import pods_that_wait
from twgen.reading.kubernetes import config_map_path, read_list, read_path
from twgen.versioning.names import DEPLOYMENT_NAME_LABEL, is_dns_name, rollout_name

_TICK = "twgen-tick"
"""What deploy/tick calls it."""
_FALSE = {"", "0", "f", "false", "n", "no", "off"}
_LEADS_TO_POD = {
    "Deployment": ("/apis/apps/v1/deployments", ("spec", "template")),
    "CronJob": ("/apis/batch/v1/cronjobs", ("spec", "jobTemplate", "spec", "template")),
}


def clock_ahead(client: KubernetesClient, now: datetime) -> timedelta | None:
    """By how much the API server's clock is ahead; None: it has said nothing yet."""
    if not client.heard:
        return None
    said, at = client.heard
    return later(said, timedelta(seconds=monotonic() - at)) - now


async def read_tick(client: KubernetesClient, deadline: Deadline) -> TickInstallation | None:
    """The tick of a cluster, by the name that it is installed by; None: there is none.

    Raises StateUnavailable where that may not be asked, or there are several: one may be somebody else's.
    """
    ticks: list[TickInstallation] = []
    for kind, (path, to_pod) in _LEADS_TO_POD.items():
        named = {"fieldSelector": f"metadata.name={_TICK}"}
        for item in await read_list(client, path, deadline, named):
            namespace, template = item["metadata"]["namespace"], value_at(item, *to_pod)
            [container, *_] = value_at(template, "spec", "containers")
            variables = await _variables(client, namespace, container, deadline)
            everywhere = variables.get("TWGEN_ALL_NAMESPACES", "").lower()
            every = seconds_of(variables.get("TWGEN_EVERY", ""))
            labels = value_at(template, "metadata", "labels") or {}
            account = value_at(template, "spec", "serviceAccountName") or "default"
            own = variables.get("TWGEN_NAMESPACE")
            found = TickInstallation(
                name=f"{kind} {namespace}/{_TICK}",
                image=str(container.get("image")),
                account=service_account(namespace, account),
                namespace="" if everywhere not in _FALSE else own if is_dns_name(own) else None,
                every=None if every is None else timedelta(seconds=every),
                pods=await pods_that_wait(client, namespace, labels, deadline) if labels else (),
                drains=await _drains(client, namespace, template, variables, deadline),
            )
            ticks.append(found)
    if len(ticks) > 1:
        raise StateUnavailable(f"there are several: {', '.join(tick.name for tick in ticks)}")
    return ticks[0] if ticks else None


async def _drains(
    client: KubernetesClient,
    namespace: str,
    template: Mapping[str, Any],
    variables: Mapping[str, str],
    deadline: Deadline,
) -> bool | None:
    """Whether its OperatorConfig lets it end workflows; None: that cannot be read."""
    if not variables.get("TWGEN_OPERATOR_CONFIG"):
        return False
    pod = template["spec"]
    operator = await mounted_operator(client, namespace, pod, pod["containers"][0], deadline)
    return operator.tick.drains if operator else None


async def _variables(
    client: KubernetesClient, namespace: str, container: Mapping[str, Any], deadline: Deadline
) -> Mapping[str, str]:
    """The variables of a container that are written down, as far as they may be read."""
    found: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        if name := value_at(source, "configMapRef", "name"):
            _, answer = await client.ask("GET", config_map_path(namespace, name), deadline)
            found |= value_at(answer, "data") or {}
    own = {one["name"]: one.get("value") for one in container.get("env") or ()}
    return found | {name: str(text) for name, text in own.items() if text is not None}


async def read_strays(
    client: KubernetesClient, namespaces: Iterable[str], known: Collection[str], deadline: Deadline
) -> Mapping[str, tuple[str, ...]]:
    """The Deployments of versions that an Argo CD application tracks, by worker, but of known workers."""
    found: dict[str, list[str]] = defaultdict(list)
    for namespace in namespaces:
        path = f"/apis/apps/v1{f'/namespaces/{namespace}' if namespace else ''}/deployments"
        for item in await read_list(client, path, deadline, {"labelSelector": DEPLOYMENT_NAME_LABEL}):
            if not (live := live_deployment({"apiVersion": "apps/v1", "kind": "Deployment", **item})):
                continue
            home, worker = item["metadata"]["namespace"], live.recorded.worker_deployment
            # its pods may be told to be of any worker by whoever wrote them
            is_its_own = worker.partition("/")[0] == home and is_dns_name(worker.partition("/")[2])
            is_tracked = live.tracked_by and live.identity and live.protected
            if is_tracked and is_its_own and worker not in known:
                found[worker].append(live.name)
    strays = {}
    for worker, names in found.items():
        namespace, _, name = worker.partition("/")
        path = config_map_path(namespace, rollout_name(name))
        # an intent that cannot be read is one all the same
        if not await read_path(client, path, deadline, may_be_absent=True):
            strays[worker] = tuple(names)
    return strays
