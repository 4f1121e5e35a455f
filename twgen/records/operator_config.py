"""Reads an OperatorConfig: the settings of an Argo CD operator for all applications.

It also reads and writes the Prometheus servers in an intent, which have fewer fields.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from twgen.model.operator import ClusterOfApplications, GroupKind, Operator, PrometheusServer, RolloutPod
from twgen.model.paths import Path, written_path
from twgen.model.problem import Finding, quoted
from twgen.model.record_shapes import Field, document_of, record_of
from twgen.model.shapes import MOST_OF_A_RECORD, Findings, Shape, listing, mapping
from twgen.versioning.names import TWGEN_API
from twgen.versioning.stored_form import stored_struct

KIND = "OperatorConfig"
MOST_SERVERS = 20
"""The maximum number of servers in an intent. An intent has at most ten metrics, and the limit saves memory
when all intents are read."""
_FROM_FILE = {
    "required": ["kubeconfig", "context"],
    "properties": {
        "inCluster": {"enum": [False, None]},
        "kubeconfig": {"type": "string"},
        "context": {"type": "string"},
    },
}
_OWN_ACCOUNT = {
    "required": ["inCluster"],
    "properties": {"inCluster": {"const": True}, "kubeconfig": {"type": "null"}, "context": {"type": "null"}},
}
_CLUSTER_FIELDS = record_of(ClusterOfApplications)
_CLUSTER = _CLUSTER_FIELDS._replace(schema=_CLUSTER_FIELDS.schema | {"oneOf": [_FROM_FILE, _OWN_ACCOUNT]})


def _read_group_kind(value: Any, path: Path, findings: Findings) -> Any:
    if isinstance(value, str):
        such_as = "{group: monitoring.coreos.com, kind: ServiceMonitor}"
        findings.problem(path, f"must be a mapping such as {such_as}, not {quoted(value)}")
        return None
    return _GROUP_KIND_FIELDS.read(value, path, findings)


_GROUP_KIND_FIELDS = record_of(GroupKind)
_GROUP_KIND = _GROUP_KIND_FIELDS._replace(read=_read_group_kind)


def _part_of_a_pod(struct: str) -> Shape:
    """The Shape of a Kubernetes struct, with the same checks and stored form as in a pod template."""

    def read(value: Any, path: Path, findings: Findings) -> Any:
        stored = stored_struct(value, struct, written_path(path), "a pod template")
        findings.add_problems((*stored.problems, *stored.unknown))
        return stored.value

    return Shape(read, schema={"$ref": f"podtemplate.json#/$defs/{struct}"})


_ROLLOUT = record_of(
    RolloutPod,
    fields={
        "tolerations": listing(_part_of_a_pod("Toleration")),
        "image_pull_secrets": listing(_part_of_a_pod("LocalObjectReference")),
        "resources": _part_of_a_pod("ResourceRequirements"),
    },
)


_OF_INTENT = record_of(PrometheusServer, "name", "url", "headers", "secret_name")
_NULL = {"type": "null"}
_NO_USER = {"properties": {"username": _NULL, "passwordFile": _NULL}}
_USER = {
    "required": ["username", "passwordFile"],
    "properties": {
        "bearerTokenFile": _NULL,
        "username": {"type": "string"},
        "passwordFile": {"type": "string"},
    },
}
_OF_OPERATOR = record_of(PrometheusServer)
_PROMETHEUS = _OF_OPERATOR._replace(schema=_OF_OPERATOR.schema | {"oneOf": [_NO_USER, _USER]})
OPERATOR_CONFIG = document_of(
    TWGEN_API,
    KIND,
    Operator,
    Field("metadata", mapping(), "Has no effect."),
    shapes={
        ClusterOfApplications: _CLUSTER,
        GroupKind: _GROUP_KIND,
        PrometheusServer: _PROMETHEUS,
        RolloutPod: _ROLLOUT,
    },
)


def parse_operator(document: Any) -> tuple[Operator | None, list[Finding]]:
    """The operator's configuration and its problems. With problems, the configuration is None."""
    findings = Findings(MOST_OF_A_RECORD)
    operator = OPERATOR_CONFIG.read(document, None, findings)
    return (None, findings.shown()) if findings.problems else (operator, [])


def server_of_intent(server: PrometheusServer) -> PrometheusServer:
    """The server in the form that an intent records, without projects and local files."""
    return PrometheusServer(server.name, server.url, headers=server.headers, secret_name=server.secret_name)


def server_of(name: str, url: str) -> PrometheusServer:
    """A server with only a name and a URL. Raises ValueError if the name or URL is invalid."""
    findings = Findings()
    server: PrometheusServer = _OF_INTENT.read({"name": name, "url": url}, None, findings)
    if findings.problems:
        raise ValueError(findings.problems[0].message)
    return server


def write_servers(servers: Iterable[PrometheusServer]) -> list[str]:
    """The lines for these servers in an intent. Each server is one line of JSON."""
    return [json.dumps(_OF_INTENT.write(server), sort_keys=True) for server in servers]


def parse_servers(lines: Sequence[str]) -> tuple[PrometheusServer, ...]:
    """Read the servers in an intent's lines. Raises ValueError if a line is invalid."""
    if len(lines) > MOST_SERVERS:
        raise ValueError(f"has more than {MOST_SERVERS} lines")
    findings = Findings()
    try:
        servers = tuple(_OF_INTENT.read(json.loads(line), None, findings) for line in lines)
    except (ValueError, RecursionError) as error:
        raise ValueError("is not JSON") from error
    if findings.problems:
        first = findings.problems[0]
        raise ValueError(f"{first.path}: {first.message}")
    return servers
