"""Lists all fields of each kind that people write. The lists are made from the schemas."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tools.home import SCHEMAS, addressed, home

_RARE = re.compile(r"Old spelling|Has no effect|Must (be absent|not be)")
"""The beginning of the description of a field that almost no document has."""
_HEAD = ("apiVersion", "kind", "metadata")


class Kind(NamedTuple):
    """A kind and the page that lists its fields."""

    name: str
    page: str
    rare: tuple[str, ...] = ()
    """Fields that few documents have. All fields below them are rare too."""


_CONTROLLER = "workerdeployment.md"
_TWGEN = "rolloutpolicy.md"
KINDS = {
    "workerdeployment": Kind(
        "WorkerDeployment",
        _CONTROLLER,
        (
            *("spec.deployment", "spec.progressDeadlineSeconds"),
            *(f"spec.workerOptions.connectionRef.{name}" for name in ("apiGroup", "objectRef")),
            *(f"spec.rollout.gate.{name}" for name in ("encoding", "messageType")),
        ),
    ),
    "connection": Kind("Connection", _CONTROLLER),
    "workerresourcetemplate": Kind("WorkerResourceTemplate", _CONTROLLER),
    "rolloutpolicy": Kind(
        "RolloutPolicy",
        _TWGEN,
        (
            *("spec.environment", "spec.history", "spec.missingTemplate", "spec.ownerReferences"),
            *("spec.controlPlaneSecretRef", "spec.serviceAccountName", "spec.deploymentLabels"),
            *("spec.deploymentAnnotations", "spec.ignoreMissingTaskQueues", "spec.credentialContainers"),
        ),
    ),
    "operatorconfig": Kind(
        "OperatorConfig",
        _TWGEN,
        tuple(f"rollout.{name}" for name in ("nodeSelector", "tolerations", "imagePullSecrets", "caBundle")),
    ),
}
"""The kinds, by the names of their schemas. In its page, each kind has a generated part with its name."""


class _Field(NamedTuple):
    """A line of the page."""

    path: str
    text: str
    is_required: bool
    is_rare: bool


def field_lists(schema_name: str) -> str:
    """The generated part of a kind as Markdown."""
    kind, schema = KINDS[schema_name], json.loads((SCHEMAS / f"{schema_name}.json").read_text())
    top = "spec." if "spec" in schema["properties"] else ""
    head: list[_Field] = []
    rare: list[_Field] = []
    sections: dict[str, list[_Field]] = {"": []}
    for field in _fields(schema, schema, "", kind.rare):
        first, below, _ = field.path.removeprefix(top).partition(".")
        if field.path.startswith(_HEAD):
            head.append(field)
        elif field.is_rare:
            rare.append(field)
        elif field.path != "spec":
            sections.setdefault(f"{top}{first}." if below else "", []).append(field)
    direct = sorted(sections.pop(""), key=lambda field: not field.is_required)
    found = [
        (top.strip(".") or "the document", direct, top),
        *((place.strip("."), fields, place) for place, fields in sections.items()),
        ("apiVersion, kind and metadata", head, ""),
        ("rare fields", rare, ""),
    ]
    link = f"[schema](../schemas/{schema_name}.json)"
    lists = "\n".join(
        [
            f"\nIf the first line of a file names the {link}, editors check the file and complete fields.",
            "Replace `/path/to/twgen` with the path of your clone:\n",
            f"```text\n# yaml-language-server: $schema=/path/to/twgen/schemas/{schema_name}.json\n```\n",
            *(_section(f"{kind.name}: {title}", fields, above) for title, fields, above in found if fields),
            "",
        ]
    )
    return addressed(lists, home())


def _section(title: str, fields: Iterable[_Field], above: str) -> str:
    lines = (
        f"- `{field.path.removeprefix(above)}`{'*' if field.is_required else ''} {field.text}\n"
        for field in fields
    )
    return f"### {title}\n\n{''.join(lines)}"


def _fields(
    schema: Mapping[str, Any], document: Mapping[str, Any], above: str, rare: Sequence[str]
) -> Iterator[_Field]:
    for name, found in schema.get("properties", {}).items():
        field, path = _resolved(found, document), f"{above}.{name}".strip(".")
        text = " ".join(str(field.get("description", "")).split())
        is_rare = path.startswith(tuple(rare)) or bool(_RARE.match(text))
        default = f" Default: `{_written(field['default'])}`." if "default" in field else ""
        values = _values(field, found)
        is_required = name in schema.get("required", ())
        yield _Field(path, f"{values}: {text}{default}", is_required, is_rare)
        if not _is_described_elsewhere(found):
            below = (*rare, path) if is_rare else rare
            yield from _fields(field, document, path, below)
            items = field.get("items")
            if isinstance(items, dict) and not _is_described_elsewhere(items):
                yield from _fields(_resolved(items, document), document, f"{path}[]", below)


def _resolved(field: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of the field. A reference to another place in the same document is resolved."""
    reference = str(field.get("$ref", ""))
    if not reference.startswith("#"):
        return field
    found: Any = document
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return {**found, **field}


def _is_described_elsewhere(field: Mapping[str, Any]) -> bool:
    """Whether the field is described elsewhere: it is a pod template or Deployment, or has an old name."""
    return "$ref" in field and "properties" not in field and not str(field["$ref"]).startswith("#/$defs")


def _values(field: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """The type or the values, without null, which means absent."""
    if "enum" in field or "const" in field:
        values = [value for value in field.get("enum", [field.get("const")]) if value not in {None, ""}]
        return f"({', '.join(f'`{_written(value)}`' for value in values)})"
    kinds = field.get("type", [branch.get("type") for branch in field.get("anyOf", ())])
    named = [kind for kind in ([kinds] if isinstance(kinds, str) else kinds) if kind not in {"null", None}]
    is_of_kubernetes = "podtemplate.json" in json.dumps(found)
    return f"({' or '.join(named) or ('object' if is_of_kubernetes else 'any')})"


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
