"""Derives the environment and the command of a container from its Pod."""

import re
from collections.abc import Iterator, Mapping, Sequence

from testing.kubernetes.api import Object
from testing.local_node.materials import NOT_CONFIGURED, CannotStart, Materials

_REFERENCE = re.compile(r"\$\$|\$\(([^)\s]+)\)")


def environment(container: Object, materials: Materials) -> dict[str, str]:
    """The container's variables; later ones override earlier ones. Raises CannotStart."""
    variables = materials.api_variables() | {"HOSTNAME": materials.field("metadata.name")}
    for source in container.get("envFrom", []):
        variables.update(_from_all(source, materials))
    for entry in container.get("env", []):
        if "valueFrom" not in entry:
            variables[entry["name"]] = expanded(entry.get("value", ""), variables)
        elif (value := _from_one(entry["valueFrom"], materials)) is not None:
            variables[entry["name"]] = value
    return variables


def command(container: Object, variables: Mapping[str, str]) -> Sequence[str]:
    """The container's command and arguments; raises CannotStart without a command."""
    if not container.get("command"):
        message = f"a local node pulls no images: give container {container['name']!r} a command"
        raise CannotStart("ErrImagePull", message)
    words = [*container["command"], *container.get("args", [])]
    return [expanded(word, variables) for word in words]


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$(NAME)` if the variable exists, and `$$` by `$`."""
    return _REFERENCE.sub(
        lambda found: "$" if found[0] == "$$" else variables.get(found[1], found[0]),
        text,
    )


def _from_all(source: Object, materials: Materials) -> Iterator[tuple[str, str]]:
    if "secretRef" in source:
        entries = materials.secret(source["secretRef"])
    else:
        entries = materials.config_map(source["configMapRef"])
    for key, value in entries.items():
        yield source.get("prefix", "") + key, value.decode()


def _from_one(source: Object, materials: Materials) -> str | None:
    if "fieldRef" in source:
        return materials.field(source["fieldRef"]["fieldPath"])
    if "secretKeyRef" in source:
        return _entry(source["secretKeyRef"], materials.secret(source["secretKeyRef"]))
    if "configMapKeyRef" in source:
        return _entry(source["configMapKeyRef"], materials.config_map(source["configMapKeyRef"]))
    message = f"a local node does not support variables from {' or '.join(source)}"
    raise CannotStart(NOT_CONFIGURED, message)


def _entry(reference: Object, entries: Mapping[str, bytes]) -> str | None:
    key = reference["key"]
    if key in entries:
        return entries[key].decode()
    if reference.get("optional"):
        return None
    message = f"{reference['name']!r} has no key {key!r}"
    raise CannotStart(NOT_CONFIGURED, message)
