"""Import a pod template.

Temporal settings in its environment variables move to the worker and its Connection.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain
from typing import Any, NamedTuple

from twgen.model.forms import HOST_PORT
from twgen.model.paths import value_at
from twgen.model.policy import EnvironmentNames
from twgen.model.problem import quoted
from twgen.model.shapes import fits
from twgen.model.spec import Connection, SecretKey
from twgen.specs.templates import Values, known_value, references, with_references
from twgen.versioning.injection import (
    ADDRESS,
    NAMESPACE,
    TASK_QUEUE,
    TLS_FOLDER,
    TLS_VOLUME,
    Identity,
    PodConnection,
    injection,
    is_ever_injected,
    place_of,
)

_KEY = "TEMPORAL_API_KEY"
_OF_CONNECTION = ("TEMPORAL_API", "TEMPORAL_TLS")
"""Prefixes of variables that contain credentials. A Connection refers to a Secret instead."""
_STAYS = (
    "{} stays in the pods, but the Connection does not have it: twgen and its rollouts need apiKeySecretRef,"
    " mutualTLSSecretRef or tls in the Connection"
)
_STAYS_BESIDE_KEY = (
    "{} stays in the pods, but the Connection has only the API key: check that twgen can log in with the key"
    " alone"
)
_NO_FRONTEND = re.compile("UI|WEB|CODEC|METRIC|PROMETHEUS|HTTP_|DB|SQL|TLS|SERVER_NAME|NAMESPACE")
_OF_FRONTEND = re.compile("HOST|ADDR|URL|ENDPOINT|SERVER|TARGET|FRONTEND")
_WRITTEN_ADDRESS = re.compile(r"([a-z]+:/{2,3})?(\[[0-9A-Fa-f:.]+\]|[^\s:/]+)(?::([0-9]{1,5}))?/?")
_GRPC = "7233"
_FILES = ("tls.crt", "tls.key")
"""The keys of a Secret of type kubernetes.io/tls."""

Container = Mapping[str, Any]
Configurations = Mapping[str, Mapping[str, Any]]
"""The data of the ConfigMaps in the pods' namespace, by name."""


class Origin(NamedTuple):
    """A value, and the variable or key that it comes from.

    The value is empty if no single value was found.
    """

    value: str = ""
    name: str = ""
    """Such as `TEMPORAL_HOST`, or `TEMPORAL_HOST of ConfigMap settings`. Empty if twgen sets the variable."""
    hint: str = ""
    """If the value is empty, the candidates that a person can choose from."""

    def comment(self, unsaid: str = "no variable of the pods contains it") -> str:
        """A comment with the source of the value; empty if it comes from a variable that twgen sets."""
        if not self.value:
            return f"fill in: {self.hint or unsaid}"
        return f"from {self.name}, which stays in the pods: change both together" if self.name else ""


class ImportedPods(NamedTuple):
    """The `spec` of a pod template, and the Temporal settings from its environment variables."""

    spec: Mapping[str, Any]
    address: Origin
    temporal_namespace: Origin
    task_queue: str
    """The task queue; empty if no variable contains it, or if the variable stays in the pods."""
    key: Mapping[str, str]
    """The name of the Secret with the API key, and the key inside the Secret; empty if there is none."""
    certificate: str
    """The Secret with the client certificate; empty if there is none, or if it lacks the expected keys."""
    other_credentials: str
    """A digest of the credentials that the Connection lacks; empty if there are none."""
    notes: tuple[str, ...]
    """Sentences about settings that a person must check."""
    worker: str
    """The container that now comes first, because it is probably the worker. Empty if it is the only one."""


def knows_temporal(container: Container, configurations: Configurations) -> bool:
    """Whether a variable of the container has TEMPORAL in its name."""
    return any("TEMPORAL" in name.upper() for name in _told(container, configurations))


def imported_pods(pod: Mapping[str, Any], configurations: Configurations) -> ImportedPods:
    """Import a pod template.

    If containers have different values for a Temporal variable, the first container's value is used. The API
    key is of the container with the address.
    """
    containers: list[Container] = list(pod["containers"])
    # the worker's container becomes the first, because the image of the first container names the version; a
    # sidecar may be listed before it, or have Temporal variables too
    containers.sort(
        key=lambda container: (
            TASK_QUEUE not in _told(container, configurations),
            not knows_temporal(container, configurations),
        )
    )
    all_values = [_told(container, configurations) for container in containers]
    place = _place(all_values)
    address = Origin(place.address) if place.address else _address(all_values, configurations)
    variables = [variable for container in containers for variable in container.get("env") or ()]
    keys = [_key(container) for container in containers]
    of_address = [
        key
        for key, values in zip(keys, all_values, strict=True)
        if address.value and (_place([values]).address if place.address else values.get(address.name))
    ]
    key: Mapping[str, Any] = of_address[0] if of_address else next(filter(None, keys), {})
    queues = {values[TASK_QUEUE] for values in all_values if TASK_QUEUE in values}
    is_used = any(TASK_QUEUE in references(str(variable.get("value"))) for variable in variables)
    # if other variables refer to the task queue, or containers have different task queues, the variable stays
    # in the pods
    queue = "" if is_used or len(queues) != 1 else queues.pop() or ""
    secret = SecretKey(key["name"], key["key"]) if key else None
    certificate = "" if key else _certificate(pod, containers[0], all_values[0])
    connection = Connection("", place.address, mutual_tls_secret=certificate, api_key_secret=secret)
    injected = injection(connection, Identity("", "", ""), EnvironmentNames.CURRENT).names
    # remove the API key's variable in any case: an API key in plain text must not get into Git
    gone = frozenset(filter(is_ever_injected, injected | {_KEY} | ({TASK_QUEUE} if queue else set())))
    taken = _Taken(place, key, gone, injected)
    notes = [
        note
        for container, values in zip(containers, all_values, strict=True)
        for note in _notes(container, values, taken)
    ]
    own = {**pod, "containers": [_without(container, gone) for container in containers]}
    return ImportedPods(
        spec=_without_volume(own) if certificate else own,
        address=address,
        temporal_namespace=(
            Origin(place.temporal_namespace)
            if place.temporal_namespace
            else _temporal_namespace(all_values, configurations)
        ),
        task_queue=queue,
        key=key,
        certificate=certificate,
        other_credentials=_digest(variables, all_values, injected),
        notes=tuple(dict.fromkeys(notes)),
        worker=str(containers[0].get("name")) if len(containers) > 1 else "",
    )


def _key(container: Container) -> dict[str, str]:
    """The Secret with the container's API key, and the key inside the Secret; empty if it is not known."""
    variables = (item for item in container.get("env") or () if item.get("name") == _KEY)
    for reference in (value_at(item, "valueFrom", "secretKeyRef") for item in variables):
        if value_at(reference, "name") and value_at(reference, "key"):
            return {"name": str(reference["name"]), "key": str(reference["key"])}
    return {}


def _is_credential(name: str, injected: frozenset[str]) -> bool:
    """Whether the variable has a credential, or a TLS setting, that the Connection lacks."""
    is_bare = injected.isdisjoint({_KEY, TLS_VOLUME})
    is_other = "SERVER" in name or ("CLIENT" in name and TLS_VOLUME not in injected)
    return name not in injected and name.startswith(_OF_CONNECTION) and (is_bare or is_other)


def _digest(
    variables: Iterable[Mapping[str, Any]], all_values: Iterable[Values], injected: frozenset[str]
) -> str:
    written = {str(item) for item in variables if _is_credential(str(item.get("name")), injected)}
    told = {
        f"{name}={text}"
        for values in all_values
        for name, text in values.items()
        if _is_credential(name, injected)
    }
    return sha256(str(sorted(written | told)).encode()).hexdigest() if written or told else ""


def _place(all_values: Sequence[Values]) -> PodConnection:
    plain = ({name: text for name, text in values.items() if text} for values in all_values)
    named = [[{"name": name, "value": text} for name, text in values.items()] for values in plain]
    return place_of({"containers": [{"env": env} for env in named]})


def _told(container: Container, configurations: Configurations) -> dict[str, str | None]:
    """The values of a container's variables.

    None means that the value is from a Secret, a field or another source.
    """
    values: dict[str, str | None] = {}
    for source in container.get("envFrom") or ():
        data = configurations.get(str(value_at(source, "configMapRef", "name")), {})
        values |= {f"{source.get('prefix') or ''}{key}": str(text) for key, text in data.items()}
    for variable in container.get("env") or ():
        reference = value_at(variable, "valueFrom", "configMapKeyRef")
        data = configurations.get(str(value_at(reference, "name")), {})
        text = data.get(str(value_at(reference, "key")))
        values[str(variable.get("name"))] = known_value(variable, values) if text is None else str(text)
    return values


def _address(all_values: Iterable[Values], configurations: Configurations) -> Origin:
    """The address from variables with other names, or from ConfigMaps."""
    found: dict[str, str] = {}
    hints = []
    for name, text, values in _spoken(all_values, configurations):
        match = _WRITTEN_ADDRESS.fullmatch(text)
        bare = _plain_name(name.partition(" of ")[0])
        if not _OF_FRONTEND.search(bare) or _NO_FRONTEND.search(bare):
            continue
        if not match:
            hints.append(f"{name} has {quoted(text)}, which is not host:port")
            continue
        scheme, host, port = match.groups()
        ports = [item for other, item in values.items() if _is_port(other) and str(item).isdecimal()]
        port = port or (str(ports[0]) if len(set(ports)) == 1 else "")
        if scheme in {"http://", "https://"} and port != _GRPC:
            continue
        if port and fits(HOST_PORT, f"{host}:{port}"):
            found.setdefault(f"{host}:{port}", name)
        else:
            hints.append(f"{name} has {quoted(text)}, without a port")
    if len(found) == 1:
        [(address, name)] = found.items()
        return Origin(address, name)
    hints = [f"{name} has {address}" for address, name in found.items()] or hints
    return Origin(hint=" and ".join(dict.fromkeys(hints)))


def _is_port(name: str) -> bool:
    bare = _plain_name(name)
    return "TEMPORAL" in bare and bare.endswith("PORT") and not _NO_FRONTEND.search(bare)


def _temporal_namespace(all_values: Iterable[Values], configurations: Configurations) -> Origin:
    """The Temporal namespace from variables with other names, or from ConfigMaps."""
    found = {
        text: name
        for name, text, _ in _spoken(all_values, configurations)
        if _plain_name(name.partition(" of ")[0]).endswith("NAMESPACE") and not re.search(r"\s", text)
    }
    if len(found) == 1:
        [(namespace, name)] = found.items()
        return Origin(namespace, name)
    return Origin(hint=" and ".join(f"{name} has {quoted(text)}" for text, name in found.items()))


def _spoken(
    all_values: Iterable[Values], configurations: Configurations
) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Each name that contains TEMPORAL, its value, and all values from the same source.

    Variables come before ConfigMaps.
    """
    of_maps = ((f" of ConfigMap {name}", data) for name, data in configurations.items())
    for place, values in chain((("", values) for values in all_values), of_maps):
        for name, text in values.items():
            if "TEMPORAL" in _plain_name(name) and isinstance(text, str) and text:
                yield f"{name}{place}", text, values


def _plain_name(name: str) -> str:
    return re.sub("[-.]", "_", name).upper()


def _certificate(pod: Mapping[str, Any], container: Container, values: Values) -> str:
    """The mounted Secret with the client certificate. Empty if it lacks the keys that twgen expects."""
    mounts = {str(item.get("mountPath")).rstrip("/"): item for item in container.get("volumeMounts") or ()}
    volumes = {item.get("name"): item for item in pod.get("volumes") or ()}
    folders: dict[str, set[str]] = {}
    for name, text in values.items():
        if "TEMPORAL" in name.upper() and isinstance(text, str) and text.startswith("/"):
            folder, _, file = text.rpartition("/")
            folders.setdefault(folder, set()).add(file)
    for folder, files in folders.items():
        mount = mounts.get(folder, {})
        secret = value_at(volumes.get(mount.get("name")), "secret")
        name = value_at(secret, "secretName")
        if isinstance(name, str) and files.issuperset(_FILES) and not (secret or {}).get("items"):
            return "" if mount.get("subPath") else name
    return ""


def _without_volume(pod: dict[str, Any]) -> dict[str, Any]:
    """The pod without mounts at the path of twgen's certificate, and without volumes that only they use."""
    containers, removed = [], set()
    for container in pod["containers"]:
        mounts = container.get("volumeMounts") or ()
        ours = [item for item in mounts if _is_ours(item)]
        removed |= {item.get("name") for item in ours}
        rest = {name: item for name, item in container.items() if name != "volumeMounts"}
        others = [item for item in mounts if not _is_ours(item)]
        containers.append({**rest, **({"volumeMounts": others} if others else {})})
    mounting = (*containers, *(pod.get("initContainers") or ()))
    removed -= {item.get("name") for container in mounting for item in container.get("volumeMounts") or ()}
    volumes = [volume for volume in pod.get("volumes") or () if volume.get("name") not in removed]
    rest = {name: item for name, item in pod.items() if name != "volumes"}
    return {**rest, "containers": containers, **({"volumes": volumes} if volumes else {})}


def _is_ours(mount: Mapping[str, Any]) -> bool:
    return str(mount.get("mountPath")).rstrip("/") == TLS_FOLDER or mount.get("name") == TLS_VOLUME


def _without(container: Container, gone: frozenset[str]) -> dict[str, Any]:
    """The container without these variables. References to these variables are replaced by their values."""
    kept, before = [], dict[str, str | None]()
    for variable in container.get("env") or ():
        name, text = str(variable.get("name")), variable.get("value")
        if name not in gone:
            # twgen adds its variables last, and Kubernetes replaces only references to earlier variables
            known = {name: value for name, value in before.items() if name in gone and name != _KEY}
            filled = isinstance(text, str) and with_references(text, known.get)
            kept.append({**variable, "value": filled} if filled else variable)
        before[name] = known_value(variable, before)
    rest = {field: item for field, item in container.items() if field != "env"}
    return {**rest, **({"env": kept} if kept else {})}


class _Taken(NamedTuple):
    """What the specs take from the variables of the pods."""

    place: PodConnection
    key: Mapping[str, str]
    gone: frozenset[str]
    """The variables that are left out."""
    injected: frozenset[str]
    """The variables and volumes that twgen adds."""


def _notes(container: Container, values: Values, taken: _Taken) -> Iterator[str]:
    place, key, gone, injected = taken
    places = {ADDRESS: place.address, NAMESPACE: place.temporal_namespace}
    before = dict[str, str | None]()
    written = {str(variable.get("name")) for variable in container.get("env") or ()}
    stays = {name: _STAYS_BESIDE_KEY if _KEY in injected and "CLIENT" in name else _STAYS for name in values}
    yield from (
        stays[name].format(name)
        for name, text in values.items()
        if name not in written and text and (_is_credential(name, injected) or name in {_KEY} - injected)
    )
    for variable in container.get("env") or ():
        name = str(variable.get("name"))
        if name in places and values[name] is None:
            is_for = "the Connection" if name == ADDRESS else "temporalNamespace"
            yield f"{name} is left out: fill in {is_for}, which sets it"
        elif name in places and values[name] != places[name]:
            whose = f"{name} of container {quoted(str(container.get('name')))}"
            yield (
                f"{whose} is left out: it is {quoted(str(values[name]))} here, but all containers get"
                " the same value"
            )
        elif name == _KEY and _key(container) not in ({}, key):
            yield (
                f"{name} of container {quoted(str(container.get('name')))} is left out: it is from another"
                " Secret, but all containers get the Connection's credentials"
            )
        elif name == _KEY and not _key(container) and variable.get("value") != "":
            yield f"{name} is left out: put it into a Secret, and set apiKeySecretRef of the Connection"
        elif name not in gone and _is_credential(name, injected):
            yield stays[name].format(name)
        elif name not in gone:
            for reference in references(str(variable.get("value") or "")):
                is_unknown = reference in before and (before[reference] is None or reference == _KEY)
                if reference in gone and is_unknown:
                    yield f"{name} refers to {reference}, which is left out: write the value itself"
        before[name] = known_value(variable, before)
