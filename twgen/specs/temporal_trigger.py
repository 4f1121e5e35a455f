"""What KEDA refuses or ignores of a `temporal` trigger.

Fields and rules are those of pkg/scalers/temporal_scaler.go in github.com/kedacore/keda, from 2.17 to 2.22.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from twgen.model.paths import join_path, value_at
from twgen.model.problem import Finding, quoted, unknown_field
from twgen.model.spec import WorkerSpec
from twgen.specs.connections import is_cloud, why_not_of_cloud
from twgen.specs.fields import Fields
from twgen.specs.limits import HOST_PORT
from twgen.specs.validation.syntax import Check, Range, one_of
from twgen.versioning.injection import ADDRESS
from twgen.versioning.names import filled, may_have_placeholders, placeholders

VERSION_FIELDS = {
    "workerDeploymentName": "",
    "workerDeploymentBuildId": "BuildID",
    "namespace": "TemporalNamespace",
}
"""The fields that are filled in where they are "", and the placeholder that each may hold instead."""
_PAIR = ("workerDeploymentName", "workerDeploymentBuildId")
_WRITE_PAIR = 'write workerDeploymentName: "" and workerDeploymentBuildId: ""'
_REQUIRED = ("endpoint", "taskQueue")
_COUNTS, _COUNTED = "includeRunningWorkflowCount", "workflowTaskQueueForCount"
_REMOVED = ("buildId", "buildIdFromEnv", "selectAllActive", "selectUnversioned")
_CREDENTIALS = ("apiKey", "ca", "cert", "key", "keyPassword")
_DEFAULT_NAMESPACE = "default"
_TRUE, _FALSE = ("1", "t", "T", "true", "True", "TRUE"), ("0", "f", "F", "false", "False", "FALSE")
_NUMBER = re.compile("-?(0|[1-9][0-9]{0,18})")
_LARGEST_NUMBER = 2**63 - 1
_IN_A_QUERY = re.compile("[a-zA-Z0-9_./:-]+")
_SAMPLES = placeholders("deployment", "build-id", "namespace", "shop/worker")
_SCHEME = re.compile("[a-z]+:(?![0-9])")
"""How an address begins that names a resolver of gRPC, such as `dns:///`; a port follows a host's name."""
_QUEUE_TYPE = one_of(("activity", "nexus", "workflow"))


def _number(least: int) -> Check:
    def check(value: str) -> str:
        if not _NUMBER.fullmatch(value) or int(value) > _LARGEST_NUMBER:
            return f"{quoted(value)} is not a whole number"
        return Range(least)(int(value))

    return check


def _boolean(value: str) -> str:
    return "" if value in (*_TRUE, *_FALSE) else f'{quoted(value)} is neither "true" nor "false"'


def _queue_types(value: str) -> str:
    written = [item for item in map(str.strip, value.split(",")) if item]
    return next(filter(None, map(_QUEUE_TYPE, written or [value])), "")


def _address(value: str) -> str:
    if value.lower().startswith(("http://", "https://")):
        return "is a URL: write host:port"
    if re.search(HOST_PORT, value) or re.match(_SCHEME, value):
        return ""
    return f"{quoted(value)} is not host:port, such as temporal.example.com:7233"


_CHECKS: Mapping[str, Check] = {
    "activationTargetQueueSize": _number(0),
    "endpoint": _address,
    "enableTLS": _boolean,
    _COUNTS: _boolean,
    "minConnectTimeout": _number(0),
    "queueTypes": _queue_types,
    "targetQueueSize": _number(1),
    "unsafeSsl": _boolean,
}
_OR_FROM_ENVIRONMENT = (*VERSION_FIELDS, *_REQUIRED, _COUNTED)
_FIELDS = (
    *_OR_FROM_ENVIRONMENT,
    *(f"{name}FromEnv" for name in (*_OR_FROM_ENVIRONMENT, "apiKey")),
    *_CHECKS,
    "tlsServerName",
)


class _Metadata(NamedTuple):
    """The metadata of a trigger, by the names that its fields should have."""

    names: dict[str, str]
    """How the file writes each field."""
    values: dict[str, Any]
    """What KEDA reads: blank fields are absent, and placeholders are filled in."""
    unknown: list[Finding]

    def has(self, name: str) -> bool:
        """KEDA reads the field, or takes it from a variable of the pods."""
        return name in self.values or f"{name}FromEnv" in self.values

    @property
    def pair(self) -> list[str]:
        """Those of the two fields that select a version together that are there; twgen fills a blank one."""
        return [name for name in _PAIR if name in self.names or self.has(name)]


_Wrong = Iterator[tuple[str, str]]
"""The fields that KEDA refuses, and why."""


def _read(path: str, metadata: Mapping[str, Any]) -> _Metadata:
    names = {name: name for name in metadata if name in _FIELDS or name in _REMOVED}
    unknown = []
    for name in [name for name in metadata if name not in names]:
        finding = unknown_field(path, name, _FIELDS, "KEDA has no such field")
        if name in _CREDENTIALS:
            why = "KEDA reads it only from a TriggerAuthentication: name one in authenticationRef"
            finding = Finding(finding.path, why)
        elif finding.instead_of:  # a misspelt field is not reported as missing too
            names.setdefault(finding.instead_of.rpartition(".")[2], name)
        unknown.append(finding)
    values = {
        field: filled(metadata[name], _SAMPLES).strip() if isinstance(metadata[name], str) else metadata[name]
        for field, name in names.items()
    }
    present = {field: value for field, value in values.items() if value not in ("", None)}
    return _Metadata(names, present, unknown)


def _missing(read: _Metadata) -> _Wrong:
    for name in _REQUIRED:
        if not read.has(name):
            is_there = name in read.names or f"{name}FromEnv" in read.names
            yield name, "must not be empty" if is_there else "is required"


def _version(read: _Metadata) -> _Wrong:
    for name in set(_PAIR).difference(read.pair) if read.pair else ():
        yield name, f'is required with {read.pair[0]}: write "" to have it filled in'
    for name in _REMOVED:
        if name in read.values:
            why = (
                "belongs to rules-based versioning: it selects no version here, and KEDA 2.21 and"
                " later refuse it"
            )
            yield name, f"{why}; {'remove it' if read.pair else _WRITE_PAIR}"


def _values(read: _Metadata) -> _Wrong:
    for name, check in _CHECKS.items():
        value = read.values.get(name)
        # a misspelt field has been reported already
        if isinstance(value, str) and read.names[name] == name and (wrong := check(value)):
            yield name, wrong


def _count(read: _Metadata) -> _Wrong:
    counts = read.values.get(_COUNTS, "false")
    for name in ("taskQueue", _COUNTED):
        value = read.values.get(name)
        if counts in _TRUE and isinstance(value, str) and not _IN_A_QUERY.fullmatch(value):
            yield read.names[name], f"may contain only letters, digits and - _ . / : if {_COUNTS} is set"
    if counts in _FALSE and read.has(_COUNTED):
        yield _COUNTED, f'is refused by KEDA unless {_COUNTS} is "true"'


def check_temporal(spec: Fields, path: str, metadata: Mapping[str, Any], *, is_composed: bool) -> None:
    """Note what is wrong with the metadata of a trigger, at its path in a ScaledObject's `spec`.

    A composed trigger is an input of scalingModifiers, whose target counts instead of the trigger's own.
    """
    read = _read(spec.at(path), metadata)
    # an error of `validate`, a warning of `render`, like an unknown field of a pod: a later KEDA may have it
    spec.refused(read.unknown)
    for name, placeholder in VERSION_FIELDS.items():
        value, sample = metadata.get(name), _SAMPLES.get(placeholder)
        is_filled = may_have_placeholders(str(value)) and read.values.get(name) == sample
        if value not in (None, "") and not is_filled:
            spec.problem(f"{path}.{name}", 'differs for each version: write "" to have it filled in')
    for rule in (_missing, _version, _values, _count):
        for name, wrong in rule(read):
            if not (is_composed and (name, read.values.get(name)) == ("targetQueueSize", "0")):
                spec.refused([Finding(spec.at(join_path(path, name)), wrong)])
    if not read.pair and not any(name in read.values for name in _REMOVED):
        spec.warning(path, f"selects no version, so KEDA counts only tasks without a version: {_WRITE_PAIR}")


def warn_of_server(spec: Fields, path: str, trigger: Mapping[str, Any], worker: WorkerSpec) -> None:
    """Note a trigger that asks another Temporal than its worker's, or has no credentials."""
    metadata = trigger["metadata"]
    read, host_port = _read(path, metadata), worker.connection.host_port
    theirs = worker.temporal_namespace or _DEFAULT_NAMESPACE
    if theirs != _DEFAULT_NAMESPACE and "namespace" not in read.names and not read.has("namespace"):
        why = f"without namespace KEDA asks Temporal namespace default, but the worker's is {theirs}"
        spec.warning(f"{path}.metadata", f'{why}: write namespace: ""')
    is_workers = read.values.get("endpointFromEnv") == ADDRESS
    address = str(read.values.get("endpoint") or (host_port if is_workers else ""))
    if address and address != host_port and not _address(address):
        _warn_of_address(spec, f"{path}.metadata.endpoint", address, read, worker)
    needs_key = is_cloud(address) or (address == host_port and worker.connection.secret_name)
    has_key = value_at(trigger, "authenticationRef") or read.has("apiKey")
    if address and needs_key and not has_key and metadata.keys().isdisjoint(_CREDENTIALS):
        why = f"KEDA has neither a key nor a certificate for {address}, so it scales no version"
        spec.warning(path, f"{why}: name a TriggerAuthentication in authenticationRef")


def _warn_of_address(spec: Fields, path: str, address: str, read: _Metadata, worker: WorkerSpec) -> None:
    """Note a valid address, other than the worker's, that does not answer or not for its namespace."""
    connection, theirs = worker.connection, worker.temporal_namespace or _DEFAULT_NAMESPACE
    (host, _, port), (own_host, _, own_port) = address.rpartition(":"), connection.host_port.rpartition(":")
    if host.lower() == own_host.lower():
        why = f"connection {connection.name} has port {own_port} of this host, not {port}"
    elif why_not_of_cloud(address, str(read.values.get("tlsServerName") or ""), theirs):
        why = f"{address} does not know the worker's Temporal namespace {theirs}"
    else:
        return
    spec.warning(path, f"{why}: write {connection.host_port}")
