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
"""The value that replaces the hash in `taken_over` when the hook's Job exists."""
_MOST_WARNINGS = 100
"""The maximum number of warnings in an intent, because each warning becomes an Event."""


@dataclass(frozen=True)
class Intent:
    """The goal of a rollout, and the manager identity for its changes, without secrets, commits or times."""

    namespace: str
    worker: str
    identity: str
    target: str
    """The build ID that the render computed. Another twgen release may compute a different build ID."""
    documents: tuple[Mapping[str, Any], ...]
    """The documents of the worker, its connection, its policy if it has one, and its attached templates."""
    warnings: tuple[str, ...] = field(default=(), compare=False)
    """The render's warnings, which are not part of the hash."""
    attached_kinds: tuple[GroupKind, ...] = field(default=(), compare=False)
    """The kinds of objects that are or were attached to the worker's versions. Not part of the hash."""
    has_hook: bool = field(default=False, compare=False)
    """Whether an Argo CD hook carries out the intent, and applies the autoscalers instead of the sync. Not
    part of the hash."""
    tick_takes_over: bool = field(default=False, compare=False)
    """Whether `twgen tick` takes over the intent if Argo CD skips its hook. Not part of the hash."""
    requests: tuple[Verb, ...] = field(default=(), compare=False)
    """The requests that the intent's Job accepts, in addition to requests that slow the rollout down. Not
    part of the hash."""
    prometheus: tuple[PrometheusServer, ...] = ()
    """The Prometheus servers that the worker's metrics name and that the render was allowed to use."""
    is_for_tick: bool = False
    """Whether the intent's driver is Tick, so that no Job is rendered."""
    uid: str = field(default="", compare=False)
    """The ConfigMap's UID, or empty if the ConfigMap is not in a cluster."""
    application: str = field(default="", compare=False)
    """The Argo CD application that tracks the ConfigMap, or empty if none does."""
    plan_hash: str = field(default="", compare=False)
    """The hash of the rendered plan, or empty if it is unknown."""
    is_paused: bool = field(default=False, compare=False)
    """Whether the annotation `twgen.io/paused` is set."""
    taken_over: str = field(default="", compare=False)
    """The hash of the intent that tick took over from a skipped hook. It has no effect if the intent's own
    hash differs."""

    @property
    def argocd_name(self) -> str:
        """The application as an argument of the `argocd` command, or empty if there is no valid name."""
        # the argument is NAMESPACE/NAME, or NAME in Argo CD's own namespace. The parts are checked, because
        # anyone who can write the intent can set its annotations
        parts = self.application.split("_")
        return "/".join(parts) if len(parts) <= 2 and all(map(is_dns_name, parts)) else ""

    @property
    def full_sync(self) -> str:
        """The sync that runs the hook, as text for messages."""
        name = self.argocd_name
        return f"`argocd app sync {name}`" if name else "a full sync of its Application"

    @cached_property
    def caller(self) -> Caller:
        """The caller for a plan that carries out the intent."""
        return Caller(self.identity, forced=True, drives=True)

    @property
    def is_rolled_out_by_hand(self) -> bool:
        """Whether the policy's driver is None, so that a person or CI changes the traffic."""
        return any(value_at(document, "spec", "driver") == Driver.NONE.value for document in self.documents)

    @property
    def is_by_tick(self) -> bool:
        """Whether `twgen tick` carries out the intent, because its driver is Tick or its hook was skipped."""
        return self.is_for_tick or self.is_taken_over

    @property
    def is_taken_over(self) -> bool:
        """Whether tick carries out the intent instead of its hook, until the hook runs."""
        return self.has_hook and self.taken_over == self.hash

    @cached_property
    def hash(self) -> str:
        """A SHA-256 hash in hex digits, which changes if the rollout's goal changes."""
        content: list[Any] = [self.namespace, self.worker, self.identity, self.target, self.documents]
        if self.prometheus:  # hashed, because an edit could redirect credentials
            content.append(_lines_of(self.prometheus))
        if self.is_for_tick:  # hashed, so that an earlier Job of the same rollout ends
            content.append(Driver.TICK.value)
        return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def intent_of(
    spec: WorkerSpec,
    identity: str,
    warnings: Iterable[str] = (),
    attached_kinds: Iterable[GroupKind] = (),
    prometheus: Iterable[PrometheusServer] = (),
) -> Intent:
    """Make the intent for a spec. `prometheus` lists the servers that the worker's metrics can use."""
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
    """The usable Prometheus servers that the worker's metrics name, in the form that an intent records."""
    metrics = spec.policy.analysis.metrics if usable and spec.policy.analysis else ()
    names = {metric.measure.server for metric in metrics if isinstance(metric.measure, PrometheusQuery)}
    if not names:
        return ()
    from twgen.records.operator_config import MOST_SERVERS, server_of_intent

    meant = [server for server in usable if server.name in names]
    # a metric without a server name uses the only server. If there are several servers, all of them are
    # recorded, so that the metric fails
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
    """An intent cannot be carried out. `intent` contains the data that could be read."""

    def __init__(self, message: str, intent: Intent) -> None:
        super().__init__(message)
        self.intent = intent


def parse_intent(manifest: Mapping[str, Any], budget: Budget | None = None) -> Intent:
    """Read an intent's ConfigMap. Raises UnusableIntent if it is not an intent or was edited manually."""
    metadata, data = manifest["metadata"], manifest.get("data") or {}
    where = f"ConfigMap {metadata['namespace']}/{metadata['name']}"
    annotations = metadata.get("annotations") or {}
    warnings, kinds, autoscalers, skipped_hook, requests = (
        data.get(name, "").splitlines()
        for name in ("warnings", "attachedKinds", "autoscalers", "skippedHook", "requests")
    )
    intent = Intent(
        namespace=metadata["namespace"],
        # if the entry is missing, messages use the label
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
        # Argo CD can track objects by this label, and no other program sets it on an intent
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
        # a worker must not have two intents, but anyone who can create ConfigMaps could add a second intent
        message = f"{where} is not the intent of {intent.worker}: that one is named {name}"
        raise UnusableIntent(message, intent)
    return whole
