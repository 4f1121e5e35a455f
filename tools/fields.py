"""A page for each kind that people write, from its schema: an example, then every field."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tools.published_schemas import ROOT, SCHEMAS

_EXAMPLE = ROOT / "examples" / "three-versions"
_RARE = re.compile(r"Old spelling|Has no effect|Must (be absent|not be)")
"""How the description of a field begins that almost no document has."""
_HEAD = ("apiVersion", "kind", "metadata")
_CONNECTION = """\
With mutual TLS or an API key, the Connection names a Secret. It must exist in each worker's namespace:

```yaml
apiVersion: temporal.io/v1alpha1
kind: Connection
metadata: {name: temporal-cloud, namespace: shop}
spec:
  hostPort: payments.a1b2c.tmprl.cloud:7233
  mutualTLSSecretRef: {name: temporal-client}
```

A ClusterConnection has the same fields, but no namespace. [Specs](specs.md) shows a Connection in use."""
_POLICY = """\
apiVersion: twgen.io/v1alpha1
kind: RolloutPolicy
metadata: {name: payments, namespace: shop}
spec:
  workerRef: {name: payments}
  maxVersions: 20
  unserved: {after: 3m, action: Pause}
  analysis:
    metrics:
    - name: failures
      workflowFailures: {maxRatio: 0.02}
"""
_OPERATOR = """\
apiVersion: twgen.io/v1alpha1
kind: OperatorConfig
instance: prod-eu
temporal:
  configFile: /etc/twgen/temporal/temporal.toml
  profiles:
  - {name: payments, projects: [shop]}
clusters:
- {project: shop, inCluster: true}
rollout:
  image: registry.example.com/tools/twgen:0.1.0
links:
  temporal: https://temporal.example.com
"""


class _Kind(NamedTuple):
    """The page of a kind."""

    title: str
    about: str
    example: str
    after: str
    """What follows the example, with the page that shows the kind in use."""
    rare: tuple[str, ...] = ()
    """Fields that few documents have; all fields below them are rare too."""


KINDS = {
    "workerdeployment": _Kind(
        "WorkerDeployment",
        "A Temporal worker: its pods, its connection to Temporal, and its rollout. A kind of the controller.",
        (_EXAMPLE / "worker.yaml").read_text(),
        "[Specs](specs.md) shows more examples.",
        (
            *("spec.deployment", "spec.progressDeadlineSeconds"),
            *(f"spec.workerOptions.connectionRef.{name}" for name in ("apiGroup", "objectRef")),
            *(f"spec.rollout.gate.{name}" for name in ("encoding", "messageType")),
        ),
    ),
    "connection": _Kind(
        "Connection",
        "How workers reach Temporal. A kind of the controller.",
        (_EXAMPLE / "connection.yaml").read_text(),
        _CONNECTION,
    ),
    "workerresourcetemplate": _Kind(
        "WorkerResourceTemplate",
        "An object, such as an autoscaler, that each version of a worker gets. A kind of the controller.",
        (_EXAMPLE / "scaling.yaml").read_text(),
        "[Scaling](scaling.md) shows more examples.",
    ),
    "rolloutpolicy": _Kind(
        "RolloutPolicy",
        "Settings of a worker and its rollout that the controller does not have. Every field is optional.",
        _POLICY,
        "[Policies](policies.md) and [Measured ramps](measured-ramps.md) show more examples.",
        (
            *("spec.environment", "spec.history", "spec.missingTemplate", "spec.ownerReferences"),
            *("spec.controlPlaneSecretRef", "spec.serviceAccountName", "spec.deploymentLabels"),
            *("spec.deploymentAnnotations", "spec.ignoreMissingTaskQueues"),
        ),
    ),
    "operatorconfig": _Kind(
        "OperatorConfig",
        "The operator's settings for all applications of an Argo CD. Applications cannot change them.",
        _OPERATOR,
        "[Settings](settings.md) shows more examples.",
        tuple(f"rollout.{name}" for name in ("nodeSelector", "tolerations", "imagePullSecrets", "caBundle")),
    ),
}
"""By the names of their schemas, and of their pages."""


class _Field(NamedTuple):
    """A line of the page."""

    path: str
    text: str
    is_required: bool
    is_rare: bool


def fields_page(name: str) -> str:
    """The page of a kind as Markdown."""
    kind, schema = KINDS[name], json.loads((SCHEMAS / f"{name}.json").read_text())
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
    return "\n".join(
        [
            f"# {kind.title}\n\n{kind.about}\n\n```yaml\n{kind.example}```\n\n{kind.after}\n",
            "If the first line of a file names the schema, editors check the file and complete its fields:\n",
            f"```text\n# yaml-language-server: $schema={schema['$id']}\n```\n",
            f"A field marked * is required. The list is made from the [schema](../schemas/{name}.json).\n",
            _section(f"Fields of {top.strip('.') or 'the document'}", direct, top),
            *(_section(place.strip("."), found, place) for place, found in sections.items()),
            _section("apiVersion, kind and metadata", head, ""),
            *([_section("Rare fields", rare, "")] if rare else ()),
        ]
    )


def _section(title: str, fields: Iterable[_Field], above: str) -> str:
    lines = (
        f"- `{field.path.removeprefix(above)}`{'*' if field.is_required else ''} {field.text}\n"
        for field in fields
    )
    return f"## {title}\n\n{''.join(lines)}"


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
    """The field itself, if it only refers to another place of its own document."""
    reference = str(field.get("$ref", ""))
    if not reference.startswith("#"):
        return field
    found: Any = document
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return {**found, **field}


def _is_described_elsewhere(field: Mapping[str, Any]) -> bool:
    """It is a pod template, a Deployment or the like, or an old spelling of another field."""
    return "$ref" in field and "properties" not in field and not str(field["$ref"]).startswith("#/$defs")


def _values(field: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """Its type or its values; null, which is the same as absent, is left out."""
    if "enum" in field or "const" in field:
        values = [value for value in field.get("enum", [field.get("const")]) if value not in {None, ""}]
        return f"({', '.join(f'`{_written(value)}`' for value in values)})"
    kinds = field.get("type", [branch.get("type") for branch in field.get("anyOf", ())])
    named = [kind for kind in ([kinds] if isinstance(kinds, str) else kinds) if kind not in {"null", None}]
    is_of_kubernetes = "podtemplate.json" in json.dumps(found)
    return f"({' or '.join(named) or ('object' if is_of_kubernetes else 'any')})"


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
