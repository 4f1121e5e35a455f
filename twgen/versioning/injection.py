"""Inject the variables and volumes with which pods connect to Temporal, exactly as the controller does."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from twgen.model.paths import value_at
from twgen.model.policy import EnvironmentNames
from twgen.model.spec import Connection, SecretKey
from twgen.model.values import dataclass
from twgen.versioning.build_ids import connection_hash

TLS_VOLUME = "temporal-tls"
TLS_FOLDER = "/etc/temporal/tls"
_CA_VOLUME = "temporal-tls-ca"
_CA_FOLDER = "/etc/temporal/tls-ca"

Pod = Mapping[str, Any]
"""The `spec` of a pod template."""


class _Names(NamedTuple):
    address: str
    build_id: str
    tls: str
    client_key: str
    client_certificate: str


_OLDER_TLS = ("", "TEMPORAL_TLS_KEY_PATH", "TEMPORAL_TLS_CERT_PATH")
# workers built for older controller releases read the older names
_NAMES = {
    EnvironmentNames.CURRENT: _Names(
        "TEMPORAL_ADDRESS",
        "TEMPORAL_WORKER_BUILD_ID",
        "TEMPORAL_TLS",
        "TEMPORAL_TLS_CLIENT_KEY_PATH",
        "TEMPORAL_TLS_CLIENT_CERT_PATH",
    ),
    EnvironmentNames.HOST_PORT: _Names("TEMPORAL_HOST_PORT", "WORKER_BUILD_ID", *_OLDER_TLS),
    EnvironmentNames.BINARY_CHECKSUM: _Names("TEMPORAL_HOST_PORT", "WORKER_BINARY_CHECKSUM", *_OLDER_TLS),
}
_ADDRESSES = tuple(dict.fromkeys(names.address for names in _NAMES.values()))
BUILD_IDS = frozenset(names.build_id for names in _NAMES.values())
ADDRESS = "TEMPORAL_ADDRESS"
NAMESPACE = "TEMPORAL_NAMESPACE"
DEPLOYMENT = "TEMPORAL_DEPLOYMENT_NAME"
"""The variables for address, namespace and Worker Deployment.

In older sets, the address variable has another name.
"""
TASK_QUEUE = "TEMPORAL_TASK_QUEUE"
"""The variable for a spec's `taskQueue`.

The variable is part of the pod template, whichever set of variable names (`environment`) the policy selects.
"""
_PLACES = frozenset({*_ADDRESSES, NAMESPACE, DEPLOYMENT})
_SERVER_NAME = "TEMPORAL_TLS_SERVER_NAME"
_API_KEY = "TEMPORAL_API_KEY"
TRUSTED = "TEMPORAL_TLS_SERVER_CA_CERT_PATH"
"""The variable with the path of the file that contains the trusted certificates."""
_CREDENTIALS = frozenset({_API_KEY, TLS_VOLUME}).union(
    *((names.client_key, names.client_certificate) for names in _NAMES.values())
)
"""The variables that contain a credential or its file path, and the mount that contains the file."""
_EVER_INJECTED = frozenset(
    {NAMESPACE, DEPLOYMENT, _SERVER_NAME, _API_KEY, TRUSTED, TLS_VOLUME, _CA_VOLUME}.union(*_NAMES.values())
) - {""}


class Identity(NamedTuple):
    """The identity of a version's pods in Temporal."""

    temporal_namespace: str
    worker_deployment: str
    build_id: str


@dataclass(frozen=True, slots=True)
class Injection:
    """The injected variables and mounts of each container, and the injected volumes of the pod."""

    variables: tuple[dict[str, Any], ...]
    mounts: tuple[dict[str, Any], ...] = ()
    volumes: tuple[dict[str, Any], ...] = ()
    holders: frozenset[str] | None = None
    """The only containers that get the credentials, or None if all containers get them."""

    @property
    def names(self) -> frozenset[str]:
        """The names of all injected variables and volumes. No variable has the same name as a volume."""
        return frozenset(item["name"] for item in (*self.variables, *self.volumes))

    def without_credentials(self) -> "Injection":
        """The injection for containers that do not get credentials."""
        variables, mounts = (
            tuple(item for item in items if item["name"] not in _CREDENTIALS)
            for items in (self.variables, self.mounts)
        )
        return replace(self, variables=variables, mounts=mounts)

    def of_build_id(self, build_id: str) -> "Injection":
        """The same injection with another version's build ID."""
        new = {name: {"name": name, "value": build_id} for name in BUILD_IDS}
        return replace(self, variables=tuple(new.get(item["name"], item) for item in self.variables))


class PodConnection(NamedTuple):
    """The Temporal settings in a pod template's variables. A setting is empty if no variable sets it."""

    address: str = ""
    temporal_namespace: str = ""
    worker_deployment: str = ""


def injection(
    connection: Connection,
    identity: Identity,
    names: EnvironmentNames,
    holders: Collection[str] | None = None,
) -> Injection:
    """The variables and volumes that the controller injects, in the same order.

    If `holders` is None, all containers get the credentials, as with the controller.
    """
    injected = _injection(connection, identity, names)
    return injected if holders is None else replace(injected, holders=frozenset(holders))


def _injection(connection: Connection, identity: Identity, names: EnvironmentNames) -> Injection:
    variable = _NAMES[names]
    plain = {
        variable.address: connection.host_port,
        NAMESPACE: identity.temporal_namespace,
        DEPLOYMENT: identity.worker_deployment,
        variable.build_id: identity.build_id,
    }
    if connection.tls_server_name:
        plain[_SERVER_NAME] = connection.tls_server_name
    secured = {variable.tls: "true"} if variable.tls else {}
    if connection.mutual_tls_secret:
        plain |= secured
        plain[variable.client_key] = f"{TLS_FOLDER}/tls.key"
        plain[variable.client_certificate] = f"{TLS_FOLDER}/tls.crt"
    variables = _variables(plain)
    if connection.api_key_secret:
        selector = {"name": connection.api_key_secret.name, "key": connection.api_key_secret.key}
        variables += ({"name": _API_KEY, "valueFrom": {"secretKeyRef": selector}},)
    if connection.mutual_tls_secret:
        return _with_secret(variables, TLS_VOLUME, TLS_FOLDER, connection.mutual_tls_secret)
    if connection.ca_secret:
        variables += _variables({**secured, TRUSTED: f"{_CA_FOLDER}/ca.crt"})
        return _with_secret(variables, _CA_VOLUME, _CA_FOLDER, connection.ca_secret)
    return Injection(variables)


def _variables(plain: Mapping[str, str]) -> tuple[dict[str, Any], ...]:
    # Go's encoder leaves out an empty value
    return tuple({"name": name, "value": value} if value else {"name": name} for name, value in plain.items())


def _with_secret(variables: tuple[dict[str, Any], ...], volume: str, folder: str, secret: str) -> Injection:
    mount = {"name": volume, "mountPath": folder}
    return Injection(variables, (mount,), ({"name": volume, "secret": {"secretName": secret}},))


def with_injection(pod: Pod, new: Injection, replacing: Iterable[str] = ()) -> dict[str, Any]:
    """The pod with the `new` injection instead of the variables and volumes that are named in `replacing`.

    All other variables and volumes keep their order, and nothing else changes.
    """
    removed = frozenset(replacing)
    others = new if new.holders is None else new.without_credentials()
    containers = []
    for container in pod.get("containers") or ():
        own = new if new.holders and container.get("name") in new.holders else others
        containers.append(_merged(container, removed, env=own.variables, volumeMounts=own.mounts))
    return _merged({**pod, "containers": containers}, removed, volumes=new.volumes)


def with_task_queue(template: Mapping[str, Any], task_queue: str) -> dict[str, Any]:
    """The spec's pod template with the task queue in a variable of each container.

    The variable is part of the hashed template, so it stays for as long as the version exists.
    """
    variable = {"name": TASK_QUEUE, "value": task_queue}
    return {**template, "spec": with_injection(template.get("spec") or {}, Injection((variable,)))}


def task_queue_of(template: Mapping[str, Any]) -> str:
    """The task queue in a pod template's variables; empty if there is none, or if containers differ."""
    queues = {
        variable.get("value") or ""
        for container in value_at(template, "spec", "containers") or ()
        for variable in container.get("env") or ()
        if variable["name"] == TASK_QUEUE
    }
    return queues.pop() if len(queues) == 1 else ""


def build_id_variable(environment: EnvironmentNames) -> str:
    """The name of the variable that contains a pod's build ID."""
    return _NAMES[environment].build_id


def injection_found(pod: Pod, names: frozenset[str]) -> Injection:
    """The injection with these names, read from the volumes and the container with most of the variables.

    `holders` is None, because the pod does not show which containers are meant to get credentials.
    """

    def matching(owner: Mapping[str, Any], field: str) -> tuple[dict[str, Any], ...]:
        return tuple(item for item in owner.get(field) or () if item.get("name") in names)

    containers = pod.get("containers") or ()
    all_variables = [matching(container, "env") for container in containers]
    variables = max(all_variables, key=len, default=())
    if not variables:
        return Injection(())
    mounts = matching(containers[all_variables.index(variables)], "volumeMounts")
    return Injection(variables, mounts, matching(pod, "volumes"))


def names_found(pod: Pod) -> frozenset[str]:
    """The names in the pod that an injection could have added, with any set of variable names."""
    names = {volume.get("name") for volume in pod.get("volumes") or ()}
    for container in pod.get("containers") or ():
        names.update(variable.get("name") for variable in container.get("env") or ())
    return _EVER_INJECTED & names


def is_ever_injected(name: str) -> bool:
    """Whether a spec could give pods a variable of this name, with any set of variable names."""
    return name in _EVER_INJECTED or name == TASK_QUEUE


def generation_of(names: frozenset[str]) -> EnvironmentNames | None:
    """The set of variable names (`environment`) that these names belong to; None if they belong to none."""
    by_build_id = (generation for generation, variable in _NAMES.items() if variable.build_id in names)
    by_address = (generation for generation, variable in _NAMES.items() if variable.address in names)
    return next(chain(by_build_id, by_address), None)


def possible_names(pod: Pod) -> list[frozenset[str]]:
    """All combinations of names that one injection could have added to the pod, the largest first."""
    present = names_found(pod)
    possible = set()
    for variable in _NAMES.values():
        plain = frozenset({variable.address, NAMESPACE, DEPLOYMENT, variable.build_id})
        secured = frozenset(
            {variable.tls, variable.client_key, variable.client_certificate, TLS_VOLUME} - {""}
        )
        key, trusted = frozenset({_API_KEY}), frozenset({variable.tls, TRUSTED, _CA_VOLUME} - {""})
        for credentials in (frozenset[str](), key, secured, trusted, key | trusted):
            possible |= {plain | credentials, plain | credentials | {_SERVER_NAME}}
    return sorted((names for names in possible if names <= present), key=lambda names: (-len(names), *names))


def connection_fits(pod: Pod, names: frozenset[str], recorded_hash: str) -> bool:
    """Whether the connection in these variables has the recorded hash; True if no hash was recorded.

    Without this check, an API key that the team added itself could be mistaken for an injected one.
    """
    return recorded_hash in {"", connection_hash(_connection_in(injection_found(pod, names)))}


def is_injected_throughout(
    pod: Pod,
    names: frozenset[str],
    worker_deployment: str,
    build_id: str,
    holders: Collection[str] | None = None,
) -> bool:
    """Whether the pod and all its containers have exactly these names, with this version's values.

    Containers that are not in `holders` must have all names except the credentials.
    """
    injected = injection_found(pod, names)
    namespace = _values({"env": injected.variables}).get(NAMESPACE, "")
    identity = Identity(namespace, worker_deployment, build_id)
    generation = generation_of(names) or EnvironmentNames.CURRENT
    expected = injection(_connection_in(injected), identity, generation, holders)
    return expected.names == names and with_injection(pod, expected, names) == pod


def _connection_in(injected: Injection) -> Connection:
    values = _values({"env": injected.variables})
    key = next((item for item in injected.variables if item["name"] == _API_KEY), {})
    selector = value_at(key, "valueFrom", "secretKeyRef") or {}
    secrets = {item["name"]: value_at(item, "secret", "secretName") or "" for item in injected.volumes}
    return Connection(
        name="",
        host_port=_address(values),
        tls_server_name=values.get(_SERVER_NAME, ""),
        ca_secret=secrets.get(_CA_VOLUME, ""),
        mutual_tls_secret=secrets.get(TLS_VOLUME, ""),
        api_key_secret=SecretKey(selector.get("name") or "", selector.get("key") or "") if selector else None,
    )


def place_of(pod: Pod) -> PodConnection:
    """The Temporal settings of the first container that has a variable for any setting."""
    for values in map(_values, pod.get("containers") or ()):
        if not _PLACES.isdisjoint(values):
            return PodConnection(_address(values), values.get(NAMESPACE, ""), values.get(DEPLOYMENT, ""))
    return PodConnection()


def build_ids_in_pod(pod: Pod) -> tuple[str, ...]:
    """The build IDs in the first container that has a variable with its Worker Deployment's name."""
    for values in map(_values, pod.get("containers") or ()):
        if DEPLOYMENT in values:
            return tuple(values[name] for name in sorted(BUILD_IDS & values.keys()) if values[name])
    return ()


def _values(container: Mapping[str, Any]) -> dict[str, str]:
    return {item["name"]: item.get("value") or "" for item in container.get("env") or () if "name" in item}


def _address(values: Mapping[str, str]) -> str:
    return next((values[name] for name in _ADDRESSES if name in values), "")


def _merged(
    owner: Mapping[str, Any], removed: frozenset[str], **new_items: tuple[dict[str, Any], ...]
) -> dict[str, Any]:
    merged = dict(owner)
    for field, items in new_items.items():
        new = {item["name"]: item for item in items}
        merged_items = [
            new.pop(item["name"]) if item.get("name") in removed and item["name"] in new else item
            for item in owner.get(field) or ()
            if item.get("name") not in removed or item["name"] in new
        ]
        merged[field] = [*merged_items, *new.values()]
        if not merged[field]:
            del merged[field]
    return merged
