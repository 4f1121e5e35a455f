"""Reads and writes a rollout's intent: a ConfigMap that contains one worker's specs, as in Git."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

from twgen.errors import InvalidInput
from twgen.model.analysis import PrometheusQuery
from twgen.model.operator import Caller, GroupKind, PrometheusServer
from twgen.model.paths import value_at
from twgen.model.problem import Document
from twgen.model.rollout import Driver, Verb
from twgen.model.spec import WorkerSpec
from twgen.model.values import dataclass
from twgen.versioning.names import (
    DRIVER,
    INSTANCE,
    INTENT_HASH,
    PAUSED,
    PLAN_HASH,
    ROLLOUT,
    TAKEN_OVER,
    TRACKING_ID,
    WHEN,
    is_dns_name,
    rollout_labels,
    rollout_name,
)
from twgen.yaml.reader import read_documents
from twgen.yaml.source import Budget
from twgen.yaml.writer import write_documents

_SPECS = "specs.yaml"
_BY_JOB = "applied by the Job"
_BY_TICK = "taken over by tick"
TAKEN_BACK = "by its hook"
"""The value that replaces the hash in `taken_over` once the hook's Job exists."""
_MOST_WARNINGS = 100
"""The most warnings in an intent. There is a limit because each warning becomes an Event."""


@dataclass(frozen=True)
class Intent:
    """The goal of a rollout, and the identity that makes its changes.

    It contains no secret, commit or time.
    """

    namespace: str
    worker: str
    identity: str
    target: str
    """The build ID that was rendered. Another twgen release may compute a different one."""
    documents: tuple[Mapping[str, Any], ...]
    """The worker, its connection, its policy (if it has one) and its attached templates."""
    warnings: tuple[str, ...] = field(default=(), compare=False)
    """The render's warnings. They are not part of the hash."""
    attached_kinds: tuple[GroupKind, ...] = field(default=(), compare=False)
    """The kinds of the objects that are or were attached to the worker's versions. They are not part of the
    hash."""
    has_hook: bool = field(default=False, compare=False)
    """Whether an Argo CD hook carries out the intent. The hook, not the sync, then applies the autoscalers.
    This is not part of the hash."""
    tick_takes_over: bool = field(default=False, compare=False)
    """Whether `twgen tick` takes over the intent if Argo CD skips its hook. It is not part of the hash."""
    requests: tuple[Verb, ...] = field(default=(), compare=False)
    """The requests that its Job accepts, in addition to requests that slow the rollout down. They are not
    part of the hash."""
    prometheus: tuple[PrometheusServer, ...] = ()
    """The Prometheus servers that the worker's metrics name. The render was allowed to use them."""
    is_for_tick: bool = False
    """Whether its driver is Tick. No Job is then rendered."""
    uid: str = field(default="", compare=False)
    """The UID of the ConfigMap, or empty if it is not in a cluster."""
    application: str = field(default="", compare=False)
    """The Argo CD application that tracks the ConfigMap, if there is one."""
    plan_hash: str = field(default="", compare=False)
    """The hash of the plan from which it was rendered, if it is known."""
    is_paused: bool = field(default=False, compare=False)
    """Whether the annotation `twgen.io/paused` is set."""
    taken_over: str = field(default="", compare=False)
    """The hash of the intent that tick took over from a skipped hook. If the intent's own hash differs, this
    has no effect."""

    @property
    def argocd_name(self) -> str:
        """The application as an argument of the `argocd` command, or empty if there is no valid name."""
        # it is NAMESPACE/NAME, or NAME in Argo CD's own namespace; anyone may annotate the intent, so the
        # parts are checked
        parts = self.application.split("_")
        return "/".join(parts) if len(parts) <= 2 and all(map(is_dns_name, parts)) else ""

    @property
    def full_sync(self) -> str:
        """The sync that runs the hook, as text for messages."""
        name = self.argocd_name
        return f"`argocd app sync {name}`" if name else "a full sync of its Application"

    @cached_property
    def caller(self) -> Caller:
        """The caller for planning when the intent is carried out."""
        return Caller(self.identity, forced=True, drives=True)

    @property
    def is_rolled_out_by_hand(self) -> bool:
        """Whether the policy's driver is None: a person or CI changes the traffic, not a Job."""
        return any(value_at(document, "spec", "driver") == Driver.NONE.value for document in self.documents)

    @property
    def is_by_tick(self) -> bool:
        """Whether `twgen tick` carries out the intent, because its driver is Tick or its hook was skipped."""
        return self.is_for_tick or self.is_taken_over

    @property
    def is_taken_over(self) -> bool:
        """Whether tick carries out the intent instead of its hook.

        If the hook runs later, the hook takes the intent back.
        """
        return self.has_hook and self.taken_over == self.hash

    @cached_property
    def hash(self) -> str:
        """A SHA-256 in hex digits. It changes if the rollout's goal changes."""
        content: list[Any] = [self.namespace, self.worker, self.identity, self.target, self.documents]
        if self.prometheus:  # an edit could redirect credentials, so the hash must reveal it
            content.append(_lines_of(self.prometheus))
        if self.is_for_tick:  # so that an earlier Job of the same rollout ends
            content.append(Driver.TICK.value)
        return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def intent_of(
    spec: WorkerSpec,
    identity: str,
    warnings: Iterable[str] = (),
    attached_kinds: Iterable[GroupKind] = (),
    prometheus: Iterable[PrometheusServer] = (),
) -> Intent:
    """Make the intent for a spec. `prometheus` lists the servers that the worker's metrics may use."""
    attached = (resource.document for resource in spec.attached)
    sources = (spec.document, spec.connection.document, spec.policy.document, *attached)
    first = tuple(warnings)
    if len(first) > _MOST_WARNINGS:
        rest = len(first) - _MOST_WARNINGS + 1
        first = (*first[:-rest], f"and {rest} more warnings: `twgen render` prints them")
    return Intent(
        spec.namespace,
        spec.name,
        identity,
        spec.build_id,
        tuple(_essence(source) for source in sources if source.value is not None),
        warnings=first,
        attached_kinds=tuple(attached_kinds),
        prometheus=_meant_by(spec, tuple(prometheus)),
    )


def _meant_by(spec: WorkerSpec, usable: tuple[PrometheusServer, ...]) -> tuple[PrometheusServer, ...]:
    """The usable Prometheus servers that the worker's metrics name, as an intent records them."""
    metrics = spec.policy.analysis.metrics if usable and spec.policy.analysis else ()
    names = {metric.measure.server for metric in metrics if isinstance(metric.measure, PrometheusQuery)}
    if not names:
        return ()
    from twgen.records.operator_config import MOST_SERVERS, server_of_intent

    meant = [server for server in usable if server.name in names]
    # a metric without a server name uses the only server; if there are several, the metric must fail
    meant += [server for server in usable if "" in names and server.name not in names]
    return tuple(map(server_of_intent, meant[:MOST_SERVERS]))


def _lines_of(prometheus: tuple[PrometheusServer, ...]) -> list[str]:
    from twgen.records.operator_config import write_servers

    return write_servers(prometheus)


def _essence(document: Document) -> dict[str, Any]:
    """A document without its labels, its status and other tools' annotations."""
    value = document.value
    names = {name: value_at(value, "metadata", name) for name in ("name", "namespace")}
    metadata: dict[str, Any] = {name: text for name, text in names.items() if text}
    if when := value_at(value, "metadata", "annotations", WHEN):
        metadata["annotations"] = {WHEN: when}
    essence = {"apiVersion": value["apiVersion"], "kind": value["kind"], "metadata": metadata}
    return essence | ({"spec": value["spec"]} if value.get("spec") is not None else {})


def write_intent(intent: Intent) -> dict[str, Any]:
    """The ConfigMap of an intent."""
    lines_of_entries: dict[str, Iterable[Any]] = {
        "warnings": intent.warnings,
        "attachedKinds": intent.attached_kinds,
        "autoscalers": (_BY_JOB,) if intent.has_hook else (),
        "skippedHook": (_BY_TICK,) if intent.tick_takes_over else (),
        "requests": intent.requests,
        "prometheus": _lines_of(intent.prometheus) if intent.prometheus else (),
    }
    entries = {
        name: "".join(f"{line}\n" for line in lines) for name, lines in lines_of_entries.items() if lines
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": rollout_name(intent.worker),
            "namespace": intent.namespace,
            "labels": rollout_labels(intent.worker),
            "annotations": {
                INTENT_HASH: intent.hash,
                **({DRIVER: Driver.TICK.value} if intent.is_for_tick else {}),
            },
        },
        "data": {
            "worker": intent.worker,
            "identity": intent.identity,
            "target": intent.target,
            _SPECS: write_documents(intent.documents),
            **entries,
        },
    }


def is_annotated_as_paused(annotations: Mapping[str, str]) -> bool:
    """Whether an intent's annotations pause its rollout."""
    return annotations.get(PAUSED, "false") != "false"


class UnusableIntent(InvalidInput):
    """An intent cannot be carried out. `intent` holds the part that could be read."""

    def __init__(self, message: str, intent: Intent) -> None:
        super().__init__(message)
        self.intent = intent


def parse_intent(manifest: Mapping[str, Any], budget: Budget | None = None) -> Intent:
    """Read the intent in a ConfigMap. Raises UnusableIntent if it is not an intent or was edited manually."""
    metadata, data = manifest["metadata"], manifest.get("data") or {}
    where = f"ConfigMap {metadata['namespace']}/{metadata['name']}"
    annotations = metadata.get("annotations") or {}
    warnings, kinds, autoscalers, skipped_hook, requests = (
        data.get(name, "").splitlines()
        for name in ("warnings", "attachedKinds", "autoscalers", "skippedHook", "requests")
    )
    intent = Intent(
        namespace=metadata["namespace"],
        # messages use the label if the name is missing
        worker=data.get("worker") or value_at(metadata, "labels", ROLLOUT) or "",
        identity=data.get("identity", ""),
        target=data.get("target", ""),
        documents=(),
        warnings=tuple(warnings[:_MOST_WARNINGS]),
        attached_kinds=tuple(GroupKind(*line.rpartition("/")[::2]) for line in kinds),
        has_hook=_BY_JOB in autoscalers,
        tick_takes_over=_BY_TICK in skipped_hook,
        # requests that only another release supports are ignored
        requests=tuple(Verb(line) for line in requests if line in Verb.__members__.values()),
        uid=metadata.get("uid", ""),
        application=annotations.get(TRACKING_ID, "").partition(":")[0]
        # Argo CD may track objects by this label; no other program sets it on an intent
        or value_at(metadata, "labels", INSTANCE)
        or "",
        plan_hash=annotations.get(PLAN_HASH, ""),
        is_paused=is_annotated_as_paused(annotations),
        is_for_tick=annotations.get(DRIVER) == Driver.TICK.value,
        taken_over=annotations.get(TAKEN_OVER, ""),
    )
    if missing := [name for name in ("worker", "identity", "target", _SPECS) if not data.get(name)]:
        message = f"{where} has no {' and no '.join(missing)}: it is not the intent of a rollout"
        raise UnusableIntent(message, intent)
    if servers := data.get("prometheus"):
        from twgen.records.operator_config import parse_servers

        try:
            intent = replace(intent, prometheus=parse_servers(servers.splitlines()))
        except ValueError as error:
            raise UnusableIntent(f"{where}, prometheus: {error}", intent) from error
    try:
        whole = replace(intent, documents=tuple(read_documents(data[_SPECS], budget)))
    except InvalidInput as error:
        raise UnusableIntent(f"{where}, {_SPECS}: {error}", intent) from error
    if annotations.get(INTENT_HASH) != whole.hash:
        message = f"{where} was edited by hand: its content does not match its {INTENT_HASH}"
        raise UnusableIntent(message, intent)
    if metadata["name"] != (name := rollout_name(intent.worker)):
        # a worker must not have two intents: anyone who may create a ConfigMap could add a second one
        message = f"{where} is not the intent of {intent.worker}: that one is named {name}"
        raise UnusableIntent(message, intent)
    return whole
