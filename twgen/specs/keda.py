"""Find fields of a ScaledObject that KEDA rejects or ignores although an API server accepts them.

The fields and rules of a `temporal` trigger are from pkg/scalers/temporal_scaler.go in
github.com/kedacore/keda, versions 2.17 to 2.22.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from twgen.model.forms import HOST_PORT
from twgen.model.paths import join_path, value_at
from twgen.model.problem import (
    DUPLICATE,
    MISSING_FIELD,
    REQUIRED,
    UNKNOWN_FIELD,
    Finding,
    Rule,
    did_you_mean,
    quoted,
    unknown_field,
)
from twgen.model.shapes import fits
from twgen.model.spec import WorkerSpec
from twgen.specs.connections import is_cloud, why_not_of_cloud
from twgen.specs.fields import Fields
from twgen.specs.validation.checks import Check, Range, one_of
from twgen.versioning.injection import ADDRESS, BUILD_IDS
from twgen.versioning.names import filled, may_have_placeholders, placeholders, tells_versions_apart

_TEMPORAL = "temporal"
_NEED_NO_VERSION = ("cpu", "cron", "external", "external-push", "memory")
"""Triggers that need no placeholders: they use a version's own pods, the time, or the ScaledObject's name."""
METRIC_OF_ALL = Rule("metric-of-all-versions", "A metric measures all versions together, or none of them.")
_TO_ZERO = Rule("scales-to-zero", "An idle version scales to zero, but a rollout waits until pods are ready.")
_SERVER = Rule("scaler-server", "KEDA queries the wrong Temporal server or namespace, or has no credentials.")
SAME_FOR_ALL = METRIC_OF_ALL(
    "does not select a version, so each version scales on the total of all versions: filter by {{ .BuildID }}"
)
_PAUSED_REPLICAS = "autoscaling.keda.sh/paused-replicas"
_MODIFIERS = ("advanced", "scalingModifiers")
_OF_RESOURCES = ("cpu", "memory")
_TEXT = re.compile(r"\"(\\.|[^\"\\])*\"|'(\\.|[^'\\])*'|`[^`]*`")
_COMMENT = re.compile(r"/\*[\s\S]*?\*/|//.*")
_KEY = re.compile(r"(?<=[{,])\s*\w+\s*:")
"""Matches a mapping key in a formula."""
_NAME = re.compile(r"(?<![\w.$#])[A-Za-z_]\w*(?!\w*\s*\()")
"""Matches a name in a formula, unless it is a function or a field."""
_LET = re.compile(r"\blet\s+(\w+)\s*=")
_EQUALS = re.compile(r"(?<![=!<>])=(?!=)")
"""Matches a single `=`, which only `let` uses."""
_CUT = re.compile(r"\s*[*/%^&|<=>?:,][\s\S]*|[\s\S]*[-+*/%^&|<=>?:,]\s*")
"""Matches a formula that begins or ends with an operator that needs another value there."""
_TRUTH = re.compile(r"[<>!]|==|&&|\b(true|false|not|and|or|in)\b")
"""Matches an operator or value in a formula that gives true or false, which is not a number."""
_WITHIN = re.compile(r"[?\[{|;]|\b(let|if)\b|\w\s*\(")
"""Matches a part of a formula that can contain such an operator and still give a number."""
_RESULT = "write one that gives a number, such as backlog > 2 ? 1 : 0"
_WORDS = (
    *("true", "false", "nil", "in", "and", "or", "not", "let", "if", "else"),
    *("matches", "contains", "startsWith", "endsWith"),
)
"""The keywords of KEDA's formula language (https://expr-lang.org/docs/language-definition)."""
_HPA_NAME = ("advanced", "horizontalPodAutoscalerConfig", "name")
_EXTERNAL_METRICS = ("AverageValue", "Value")
"""The allowed values of metricType. `cpu` and `memory` triggers can also have Utilization."""
VERSION_FIELDS = {
    "workerDeploymentName": "",
    "workerDeploymentBuildId": "BuildID",
    "namespace": "TemporalNamespace",
}
"""The fields that twgen fills in if they are "".

Each is listed with the placeholder that is allowed instead.
"""
_PAIR = ("workerDeploymentName", "workerDeploymentBuildId")
_WRITE_PAIR = 'write workerDeploymentName: "" and workerDeploymentBuildId: ""'
_REQUIRED = ("endpoint", "taskQueue")
_COUNTS, _COUNTED = "includeRunningWorkflowCount", "workflowTaskQueueForCount"
REMOVED = ("buildId", "buildIdFromEnv", "selectAllActive", "selectUnversioned")
"""The fields of rules-based versioning, which do not select a Worker Deployment version."""
_CREDENTIALS = ("apiKey", "ca", "cert", "key", "keyPassword")
_DEFAULT_NAMESPACE = "default"
_TRUE, _FALSE = ("1", "t", "T", "true", "True", "TRUE"), ("0", "f", "F", "false", "False", "FALSE")
_NUMBER = re.compile("-?(0|[1-9][0-9]{0,18})")
_LARGEST_NUMBER = 2**63 - 1
_IN_A_QUERY = re.compile("[a-zA-Z0-9_./:-]+")
_SAMPLES = placeholders("deployment", "build-id", "namespace", "shop/worker")
_SCHEME = re.compile("[a-z]+:(?![0-9])")
"""Matches the prefix of an address with a gRPC resolver, such as `dns:///`, but not `host:port`."""
_QUEUE_TYPE = one_of(("activity", "nexus", "workflow"))


def check_scaled_object(template: Fields, spec: Fields) -> None:
    """Warn if a ScaledObject scales to zero. Reject an autoscaler name that is the same for all versions."""
    # KEDA's default minimum is 0, and even a ramping version can be idle
    idle, least = spec.raw("idleReplicaCount"), spec.raw("minReplicaCount") or 0
    rests, remedy = ("idleReplicaCount", "remove it") if idle == 0 else ("minReplicaCount", "write 1 or more")
    if type(idle) is type(least) is int and idle >= least:
        _refuse(spec, "idleReplicaCount", f"{idle} is not below minReplicaCount ({least}): remove it")
    elif (spec.raw(rests) or 0) == 0:
        is_zero = "is 0" if spec.raw(rests) == 0 else "is 0 by default"
        why = "so an idle version scales to zero, but a rollout waits until pods are ready"
        spec.warning(rests, _TO_ZERO(f"{is_zero}, {why}: {remedy}"))
    annotations = template.mapping("metadata").value.get("annotations")
    if isinstance(annotations, dict) and annotations.get(_PAUSED_REPLICAS) is not None:
        why = "would keep every version at this number of pods, even versions that workflows need: remove it"
        template.problem(join_path("metadata.annotations", _PAUSED_REPLICAS), why)
    name = value_at(spec.value, *_HPA_NAME)
    if isinstance(name, str) and name and not tells_versions_apart(name):
        why = "gives the autoscalers of all versions the same name: leave it out, or include {{ .BuildID }}"
        spec.problem(".".join(_HPA_NAME), why)


def check_triggers(spec: Fields) -> None:
    """Note unknown trigger types, and triggers that do not measure each version separately."""
    is_composed, names = bool(value_at(spec.value, "advanced", "scalingModifiers", "target")), set[str]()
    for path, trigger, kind in _triggers(spec):
        if isinstance(name := trigger.get("name"), str) and name:
            if name in names:
                twin = DUPLICATE(f"{quoted(name)} is also the name of an earlier trigger")
                _refuse(spec, f"{path}.name", twin)
            names.add(name)
        written = trigger.get("type")
        if kind != written:
            _refuse(spec, f"{path}.type", f"KEDA has no trigger type {quoted(str(written))}: write {kind}")
        metric = trigger.get("metricType")
        allowed = _EXTERNAL_METRICS if kind == _TEMPORAL else (*_EXTERNAL_METRICS, "Utilization")
        if isinstance(metric, str) and metric and metric not in allowed:
            wrong = f"{quoted(metric)} is not one of {', '.join(allowed)}{did_you_mean(metric, allowed)}"
            _refuse(spec, f"{path}.metricType", wrong)
        metadata = trigger.get("metadata")
        if not isinstance(metadata, dict):
            continue
        if kind == _TEMPORAL:
            _check_temporal(spec, f"{path}.metadata", metadata, is_composed=is_composed)
            continue
        variables = (value for name, value in metadata.items() if name.endswith("FromEnv"))
        selects = tells_versions_apart(str(trigger)) or any(str(value) in BUILD_IDS for value in variables)
        if kind not in _NEED_NO_VERSION and not selects:
            place = "metadata.query" if isinstance(metadata.get("query"), str) else "metadata"
            spec.warning(f"{path}.{place}", SAME_FOR_ALL)


def check_modifiers(spec: Fields) -> None:
    """Note a formula or fallback that KEDA's admission webhook would reject.

    https://github.com/kedacore/keda/blob/main/apis/keda/v1alpha1/scaledobject_webhook.go
    """
    modifiers, path = value_at(spec.value, *_MODIFIERS), ".".join(_MODIFIERS)
    triggers = [trigger for _, trigger, _ in _triggers(spec)]
    measured = [trigger for trigger in triggers if trigger.get("type") not in _OF_RESOURCES]
    if isinstance(modifiers, dict) and modifiers:
        formula, target = modifiers.get("formula"), modifiers.get("target")
        if not formula:
            _refuse(spec, f"{path}.formula", REQUIRED)
        elif isinstance(formula, str):
            if not target:
                _refuse(spec, f"{path}.target", MISSING_FIELD("is required with a formula"))
            if wrong := _why_no_formula(formula, triggers, measured):
                _refuse(spec, f"{path}.formula", wrong)
        if isinstance(target, str) and target and not _is_positive(target):
            _refuse(spec, f"{path}.target", f"{quoted(target)} is not a number above 0")
    fallback = spec.raw("fallback")
    if not isinstance(fallback, dict) or not triggers:
        return
    if isinstance(modifiers, dict) and modifiers:
        if modifiers.get("metricType") == "Value":
            _refuse(spec, f"{path}.metricType", "must be AverageValue, because there is a fallback")
    elif all((trigger.get("metricType") or "AverageValue") == "Value" for trigger in measured):
        why = "needs a trigger with metricType AverageValue that is neither cpu nor memory"
        _refuse(spec, "fallback", why)


def _is_positive(text: str) -> bool:
    return may_have_placeholders(text) or (_is_number(text) and float(text) > 0)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _why_no_formula(
    formula: str, triggers: Iterable[Mapping[str, Any]], measured: Iterable[Mapping[str, Any]]
) -> str:
    """Why KEDA cannot compile the formula, which can refer only to `measured` triggers; empty if it can."""
    written = formula.strip()
    if _TEXT.fullmatch(written) and not _is_number(written[1:-1]):
        return f"is a text, not a formula: {_RESULT}"
    bare = _KEY.sub("", _COMMENT.sub("", _TEXT.sub("0", formula)))
    for opening, closing in ("()", "[]", "{}"):
        if bare.count(opening) != bare.count(closing):
            return f"has {bare.count(opening)} {opening} but {bare.count(closing)} {closing}"
    named = {str(trigger["name"]) for trigger in measured if trigger.get("name")}
    known = {*named, *_WORDS, *_LET.findall(bare)}
    for name in _NAME.findall(bare):
        if name not in known:
            if any(trigger.get("name") == name for trigger in triggers):
                return f"refers to {name}, but KEDA excludes cpu and memory triggers from formulas"
            return f"refers to {name}, but no trigger has this name{did_you_mean(name, named)}"
    if _CUT.fullmatch(bare):
        return f"begins or ends with an operator: {_RESULT}"
    if _EQUALS.search(_LET.sub("", bare)):
        return f"has a single =, which compares nothing: {_RESULT}"
    if _TRUTH.search(bare) and not _WITHIN.search(bare):
        return f"is true or false: {_RESULT}"
    return ""


def warn_of_servers(spec: Fields, worker: WorkerSpec) -> None:
    """Note each trigger that queries a different Temporal server than the worker, or has no credentials."""
    for path, trigger, kind in _triggers(spec):
        if kind == _TEMPORAL and isinstance(trigger.get("metadata"), dict):
            _warn_of_server(spec, path, trigger, worker)


def _triggers(spec: Fields) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """The path of each trigger, the trigger, and its type in KEDA's spelling."""
    triggers = spec.raw("triggers")
    for index, trigger in enumerate(triggers if isinstance(triggers, list) else ()):
        kind = value_at(trigger, "type")
        if isinstance(kind, str) and kind.strip():
            yield join_path("triggers", index), trigger, kind.strip().lower()


def _refuse(spec: Fields, path: str, message: str) -> None:
    """Note a field that KEDA would reject or ignore, as if an API server rejected it."""
    spec.refused([Finding(spec.at(path), message)])


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
    if fits(HOST_PORT, value) or re.match(_SCHEME, value):
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
    """A trigger's metadata under the correct field names."""

    names: dict[str, str]
    """Each correct field name, and the name in the file."""
    values: dict[str, Any]
    """The values that KEDA would get: blank fields are omitted, and placeholders are filled in."""
    unknown: list[Finding]

    def has(self, name: str) -> bool:
        """Whether KEDA gets the field's value, from the trigger or from one of the pods' variables."""
        return name in self.values or f"{name}FromEnv" in self.values

    @property
    def pair(self) -> list[str]:
        """The fields of _PAIR that are present, even if blank. A version is selected only if both are set."""
        return [name for name in _PAIR if name in self.names or self.has(name)]


def _read(path: str, metadata: Mapping[str, Any]) -> _Metadata:
    names = {name: name for name in metadata if name in _FIELDS or name in REMOVED}
    unknown = []
    for name in [name for name in metadata if name not in names]:
        finding = unknown_field(path, name, _FIELDS, "KEDA has no such field")
        if name == "threshold" and not finding.instead_of:  # other triggers call this field threshold
            finding = Finding(finding.path, "KEDA has no such field; did you mean targetQueueSize?")
        if name in _CREDENTIALS:
            why = "KEDA reads this value only from a TriggerAuthentication: name one in authenticationRef"
            finding = Finding(finding.path, UNKNOWN_FIELD(why))
        elif finding.instead_of:  # a misspelled field must not also be reported as missing
            names.setdefault(finding.instead_of.rpartition(".")[2], name)
        unknown.append(finding)
    values = {
        field: filled(metadata[name], _SAMPLES).strip() if isinstance(metadata[name], str) else metadata[name]
        for field, name in names.items()
    }
    present = {field: value for field, value in values.items() if value not in ("", None)}
    return _Metadata(names, present, unknown)


def _wrong_fields(read: _Metadata) -> Iterator[tuple[str, str]]:
    """The fields that KEDA rejects, each with the reason."""
    for name in _REQUIRED:
        if not read.has(name):
            is_there = name in read.names or f"{name}FromEnv" in read.names
            yield name, "must not be empty" if is_there else REQUIRED
    for name in set(_PAIR).difference(read.pair) if read.pair else ():
        yield name, MISSING_FIELD(f'is required with {read.pair[0]}: write "", which twgen fills in')
    for name in REMOVED:
        if name in read.values:
            why = (
                "belongs to rules-based versioning: it does not select a version here, and KEDA 2.21 and"
                " later reject it"
            )
            yield name, f"{why}; {'remove it' if read.pair else _WRITE_PAIR}"
    for name, check in _CHECKS.items():
        value = read.values.get(name)
        # a misspelled field is already reported
        if isinstance(value, str) and read.names[name] == name and (wrong := check(value)):
            yield name, wrong
    counts = read.values.get(_COUNTS, "false")
    for name in ("taskQueue", _COUNTED):
        value = read.values.get(name)
        if counts in _TRUE and isinstance(value, str) and not _IN_A_QUERY.fullmatch(value):
            yield read.names[name], f"can contain only letters, digits and - _ . / : if {_COUNTS} is set"
    if counts in _FALSE and read.has(_COUNTED):
        yield _COUNTED, f'is rejected by KEDA unless {_COUNTS} is "true"'


def _check_temporal(spec: Fields, path: str, metadata: Mapping[str, Any], *, is_composed: bool) -> None:
    """Check a trigger's metadata. `path` is the metadata's path in the `spec` of a ScaledObject.

    A trigger that `is_composed` is an input of scalingModifiers, whose target replaces the trigger's target.
    """
    read = _read(spec.at(path), metadata)
    # an unknown field is an error only in `validate`, because a newer KEDA may know the field
    spec.refused(read.unknown)
    for name, placeholder in VERSION_FIELDS.items():
        value, sample = metadata.get(name), _SAMPLES.get(placeholder)
        is_filled = may_have_placeholders(str(value)) and read.values.get(name) == sample
        if value not in (None, "") and not is_filled:
            spec.problem(f"{path}.{name}", 'differs for each version: write "", which twgen fills in')
    for name, wrong in _wrong_fields(read):
        if not (is_composed and (name, read.values.get(name)) == ("targetQueueSize", "0")):
            _refuse(spec, join_path(path, name), wrong)
    if not read.pair and not any(name in read.values for name in REMOVED):
        why = f"does not select a version, so KEDA counts only unversioned tasks: {_WRITE_PAIR}"
        spec.warning(path, METRIC_OF_ALL(why))


def _warn_of_server(spec: Fields, path: str, trigger: Mapping[str, Any], worker: WorkerSpec) -> None:
    connection, namespace = worker.connection, worker.temporal_namespace or _DEFAULT_NAMESPACE
    metadata, host_port = trigger["metadata"], connection.host_port
    read = _read(path, metadata)
    if namespace != _DEFAULT_NAMESPACE and "namespace" not in read.names and not read.has("namespace"):
        why = f"without namespace, KEDA queries Temporal namespace default, but the worker uses {namespace}"
        spec.warning(f"{path}.metadata", _SERVER(f'{why}: write namespace: ""'))
    is_workers = read.values.get("endpointFromEnv") == ADDRESS
    address = str(read.values.get("endpoint") or (host_port if is_workers else ""))
    if address and address != host_port and not _address(address):
        (host, _, port), (own_host, _, own_port) = address.rpartition(":"), host_port.rpartition(":")
        why = ""
        if host.lower() == own_host.lower():
            why = f"connection {connection.name} uses port {own_port} of this host, not {port}"
        elif why_not_of_cloud(address, str(read.values.get("tlsServerName") or ""), namespace):
            why = f"{address} does not serve the worker's Temporal namespace {namespace}"
        if why:
            spec.warning(f"{path}.metadata.endpoint", _SERVER(f"{why}: write {host_port}"))
    needs_key = is_cloud(address) or (address == host_port and connection.secret_name)
    has_key = value_at(trigger, "authenticationRef") or read.has("apiKey")
    if address and needs_key and not has_key and metadata.keys().isdisjoint(_CREDENTIALS):
        why = f"KEDA has neither a key nor a certificate for {address}, so it cannot scale any version"
        spec.warning(path, _SERVER(f"{why}: name a TriggerAuthentication in authenticationRef"))
