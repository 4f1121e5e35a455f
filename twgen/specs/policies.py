"""The rules between the fields of a RolloutPolicy. The class Policy declares the fields."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import cache
from itertools import chain
from typing import Any

from twgen.model.analysis import Analysis, PrometheusQuery, WorkflowFailures
from twgen.model.draining import BatchAction, DrainingEntry
from twgen.model.forms import LABEL, ONLY_PLACEHOLDERS
from twgen.model.operator import PrometheusServer, prometheus_called
from twgen.model.paths import Path, value_at, written_path
from twgen.model.policy import Policy, PolicyStep, ReplayBefore, VersionPatch
from twgen.model.problem import (
    CONFLICT,
    DUPLICATE,
    NO_EFFECT,
    REQUIRED,
    SET_BY_TWGEN,
    Problem,
    Rule,
    did_you_mean,
    quoted,
)
from twgen.model.shapes import TEXT, Findings, Shape, listing
from twgen.model.spec import AttachedWhile, Strategy, WorkerSpec
from twgen.specs.deployments import marks_of_versions
from twgen.specs.fields import Fields, spec_shape
from twgen.specs.keda import METRIC_OF_ALL
from twgen.specs.pod_warnings import warn_of_hidden_characters, warnings_of_container
from twgen.specs.spec_document import SpecDocument
from twgen.specs.templates import MOVABLE_TAG, check_image, tag_can_move
from twgen.specs.validation.walk import refusals
from twgen.versioning.injection import is_ever_injected
from twgen.versioning.names import tells_versions_apart, unknown_placeholder
from twgen.versioning.quantities import quantity_nanos
from twgen.versioning.stored_form import stored_struct, struct_fields, template_json

BYTES = "^[1-9][0-9]{0,9}(k|M|G|Ki|Mi|Gi)?$(?!\\n)"
"""A whole number of bytes, with the common suffixes of a quantity."""
_MOST_BYTES = 10 * 2**30
"""A volume of this size still fits on every node."""
_ROLLBACK = Rule("rollback-window", "Workflows would end before their version's rollback window is over.")
_HISTORY = Rule("no-history", "Without a source of old manifests, only prune protection keeps old versions.")
_VERSIONS = Rule("one-version", "The limit leaves no room for a new version next to the current version.")
_IDENTITY = Rule("identity-pattern", "Manager identities are compared literally, not as patterns.")
_REPLAY = Rule("replay-without-job", "Without an image, no Job can run the replay, so the rollout waits.")
_PROMETHEUS = Rule("unusable-prometheus", "The rollout cannot use this Prometheus server, so the ramp waits.")
_ENDS = {BatchAction.CANCEL, BatchAction.TERMINATE}
_CONTAINER = "Container"
_FIELDS = ("image", "resources", "env")
_OTHERS = {field.name for field in struct_fields(_CONTAINER)} - {"name", *_FIELDS}


def _check_failures(fields: Fields, _: WorkflowFailures) -> None:
    if fields.has("notAbove") == fields.has("maxRatio"):
        fields.problem("", CONFLICT("needs exactly one of maxRatio and notAbove"))


def _check_query(fields: Fields, asked: PrometheusQuery) -> None:
    limits = fields.mapping("thresholdRange")
    if not limits.has("min") and not limits.has("max"):
        fields.problem("thresholdRange", "needs min, max or both")
    elif asked.least is not None and asked.most is not None and asked.least > asked.most:
        fields.problem("thresholdRange", f"min ({asked.least:g}) is above max ({asked.most:g})")
    if unknown_placeholder(asked.query):
        fields.problem("query", ONLY_PLACEHOLDERS)
    elif asked.query and not tells_versions_apart(asked.query):
        why = "measures all versions together: filter by {{ .BuildID }}"
        fields.warning("query", METRIC_OF_ALL(why))


def _check_step(fields: Fields, _: PolicyStep) -> None:
    if not any(map(fields.has, ("gate", "metrics", "until"))):
        fields.warning("", NO_EFFECT("has no effect: add a gate, metrics or until, or remove it"))


def _check_entry(fields: Fields, entry: DrainingEntry) -> None:
    action = entry.what.action
    # an entry with an invalid action cannot be checked further
    if fields.raw("action") != action:
        return
    if action is BatchAction.SIGNAL and not entry.what.signal_name:
        fields.problem("signalName", "must not be empty" if fields.has("signalName") else REQUIRED)
    for name in ("signalName", "signalInput"):
        if action is not BatchAction.SIGNAL and fields.has(name):
            fields.problem(name, f"is only for action Signal, not for {action}")
    # these actions cannot be undone, so the spec must confirm them
    if action in _ENDS and not entry.allow_termination:
        fields.problem("action", f"{action} ends workflows: set `allowTermination: true` in the same entry")
    for name, goes_with in (("allowTermination", _ENDS), ("withoutReplay", {BatchAction.MOVE})):
        if fields.has(name) and action not in goes_with:
            fields.warning(name, NO_EFFECT(f"has no effect on {action}"))


def _read_bytes(value: Any, path: Path, findings: Findings) -> int | None:
    text = TEXT.read(value, path, findings)
    if text is None:
        return None
    if not re.search(BYTES, text):
        findings.problem(path, "is not a number of bytes such as 64Mi")
        return None
    number = quantity_nanos(text) // 10**9
    if number > _MOST_BYTES:
        findings.problem(path, "is more than 10Gi")
    return number


def _check_patch(fields: Fields, _: VersionPatch) -> None:
    fields.refuse_twins("containers", "name", "entries")
    fields.warn_of_many_pods("replicas")
    for name in filter(fields.has, _FIELDS):
        fields.problem(name, "belongs to one container: write it in containers, next to the container's name")
    if all(item is None for field, item in fields.value.items() if field != "buildID"):
        why = "changes nothing: write containers, replicas or sunset, or remove it"
        fields.warning("", NO_EFFECT(why))


def _read_container(value: Any, path: Path, findings: Findings) -> Mapping[str, Any] | None:
    """The fields that a patch changes in a container, in their stored form; None if it changes nothing."""
    fields = Fields(value, written_path(path), findings)
    name = fields.text("name", LABEL, required=True)
    for field in sorted(_OTHERS & fields.value.keys()):
        if fields.has(field):
            why = "cannot be patched (only image, resources and env can): commit a new version"
            fields.problem(field, why)
    written = {field: fields.raw(field) for field in _FIELDS if fields.has(field)}
    fields.close()
    if not written:
        fields.warning("", NO_EFFECT("changes nothing: write image, resources or env, or remove it"))
        return None
    _check_variables(fields, written.get("env"))
    container = _stored(fields, name, written)
    image = container.get("image") if container else None
    if image and check_image(fields, "image", image) and tag_can_move(image):
        why = "its tag can move, but running pods never get the changed image"
        fields.warning("image", MOVABLE_TAG(why))
    return container


def _stored(fields: Fields, name: str, written: Mapping[str, Any]) -> dict[str, Any] | None:
    """The fields in their stored form, or None if a field has the wrong type."""
    most = fields.findings.most
    stored = stored_struct({"name": name, **written}, _CONTAINER, fields.path, "a container", most)
    fields.findings.add_problems(stored.problems)
    fields.findings.add_unknown(stored.unknown)
    if stored.problems or not name:
        return None
    # an API server requires an image in each container, but a patch can omit the image
    whole = {"image": "image", **stored.value}
    fields.refused(refusals(whole, _CONTAINER, fields.path, most))
    if not fields.findings.unknown:
        for place, warning in warnings_of_container(stored.value):
            fields.warning(place, warning)
    warn_of_hidden_characters(fields)
    text = template_json({"spec": {"containers": [stored.value]}})
    container: dict[str, Any] = json.loads(text)["spec"]["containers"][0]
    return {field: container[field] for field in ("name", *written) if field in container}


def _check_variables(fields: Fields, written: Any) -> None:
    """Check a patch's variables. Variables with wrong types are already reported."""
    seen: set[str] = set()
    for index, variable in enumerate(written if isinstance(written, list) else ()):
        name, place = value_at(variable, "name"), f"env[{index}].name"
        if not isinstance(name, str):
            continue
        if is_ever_injected(name):
            why = "a patch cannot change the connection or the identity of a version"
            fields.problem(place, SET_BY_TWGEN(f"twgen sets {name}: {why}"))
        elif name in seen:
            fields.problem(place, DUPLICATE(f"{quoted(name)} appears twice"))
        seen.add(name)


def _check_metrics(policy: Policy, spec: Fields) -> None:
    """Note each step's metrics that the policy's analysis does not define."""
    names = {metric.name for metric in policy.analysis.metrics} if policy.analysis else set()
    for place, step in enumerate(policy.steps):
        for index, name in enumerate(step.metrics or ()):
            if name not in names:
                wrong = f"{quoted(name)} is not a metric of spec.analysis{did_you_mean(name, names)}"
                spec.problem(f"steps[{place}].metrics[{index}]", wrong)


def _check_entries(policy: Policy, spec: Fields) -> None:
    """Note unsorted draining entries, actions within the rollback window, and Moves without a replay."""
    is_replayed = policy.replay is not None and policy.replay.before is not ReplayBefore.RAMP
    above = timedelta()
    for fields, entry in zip(spec.mappings("draining"), policy.draining, strict=False):
        if entry.after < above and fields.has("after"):
            fields.problem("after", "must not be shorter than in the entry above: sort the entries by age")
        above = max(above, entry.after)
        if entry.what.action is not BatchAction.SIGNAL and entry.after < policy.rollback_window:
            why = "is shorter than rollbackWindow: a rollback to that version may come too late"
            fields.warning("after", _ROLLBACK(why))
        if entry.what.needs_replay and not is_replayed:
            why = "no replay covers the version that these workflows would move to"
            remedy = "set spec.replay with `when: BeforeMove`, or `withoutReplay: true` in this entry"
            fields.problem("action", f"{why}: {remedy}")


def _check_policy(spec: Fields, policy: Policy) -> None:
    spec.warn_of_many_pods("drainingReplicas")
    _check_metrics(policy, spec)
    _check_entries(policy, spec)
    spec.refuse_twins("steps", "rampPercentage", "steps")
    spec.refuse_twins("patches", "buildID", "entries")
    if spec.raw("history") == []:
        why = "is empty: older versions cannot be rendered, and only prune protection keeps their Deployments"
        spec.warning("history", _HISTORY(f"{why}; leave it out for Ledger, Cluster and Git"))
    if policy.max_versions == 1:
        why = "1 leaves no room for a new version next to the current one: write 2 or more"
        spec.warning("maxVersions", _VERSIONS(why))
    for index, identity in enumerate(policy.adopt_from):
        if "*" in identity:
            why = "is an identity, not a pattern: name each manager"
            spec.warning(f"adoptFrom[{index}]", _IDENTITY(why))


POLICY = spec_shape(
    Policy,
    {
        Policy: _check_policy,
        Analysis: lambda fields, _: fields.refuse_twins("metrics", "name", "metrics"),
        WorkflowFailures: _check_failures,
        PrometheusQuery: _check_query,
        PolicyStep: _check_step,
        DrainingEntry: _check_entry,
        VersionPatch: _check_patch,
    },
    fields={
        # The labels and annotations of the spec's own metadata belong to Helm and Argo CD. An API server
        # drops any that are in spec.deployment.
        "deployment_labels": marks_of_versions("labels"),
        "deployment_annotations": marks_of_versions("annotations"),
        "most_bytes": Shape(_read_bytes),
        "containers": listing(Shape(_read_container)),
    },
)


def warn_of_idle_replicas(policies: Iterable[SpecDocument], workers: Iterable[WorkerSpec]) -> None:
    """Note each `drainingReplicas` without effect, because all of the policy's workers have autoscalers."""
    of_policy: dict[int, list[str]] = {}
    for worker in workers:
        if worker.policy.draining_replicas:
            all_its = of_policy.setdefault(id(worker.policy.document), [])
            scaling = (
                resource.name
                for resource in worker.attached
                if resource.autoscales and (not resource.when or AttachedWhile.DRAINING in resource.when)
            )
            all_its.append(next(scaling, ""))
    for spec in policies:
        names = of_policy.get(id(spec.document))
        if names and all(names):
            why = f"attached template {names[0]} sets the replicas of draining versions too"
            remedy = "remove one of the two, or annotate the template with twgen.io/when"
            spec.fields.warning("drainingReplicas", NO_EFFECT(f"has no effect: {why}; {remedy}"))


@cache
def default_policy() -> Policy:
    """The policy of a worker without a RolloutPolicy."""
    policy: Policy = POLICY.read({}, "spec", Findings())
    return policy


def _by_policy(workers: Iterable[WorkerSpec]) -> dict[int, list[WorkerSpec]]:
    """The workers of each policy, by the `id()` of the policy's document."""
    of_policy: dict[int, list[WorkerSpec]] = {}
    for worker in workers:
        of_policy.setdefault(id(worker.policy.document), []).append(worker)
    return of_policy


def check_credential_containers(policies: Iterable[SpecDocument], workers: Iterable[WorkerSpec]) -> None:
    """Check `credentialContainers`: note unknown containers, and workers that would get no credentials."""
    of_policy = _by_policy(workers)
    for spec in policies:
        own_workers = of_policy.get(id(spec.document), [])
        holders = own_workers[0].policy.credential_containers if own_workers else None
        if holders is None:
            continue
        names_of = {
            worker.name: [item["name"] for item in worker.template.content["spec"]["containers"]]
            for worker in own_workers
        }
        known = list(dict.fromkeys(chain.from_iterable(names_of.values())))
        for index, name in enumerate(holders):
            if name not in known:
                of = own_workers[0].policy.worker or "any of its workers"
                wrong = f"{quoted(name)} is not a container of {of}"
                field = f"credentialContainers[{index}]"
                spec.fields.problem(field, f"{wrong}{did_you_mean(name, known)}")
        if set(holders) <= set(known):
            for worker, names in names_of.items():
                if set(holders).isdisjoint(names):
                    why = f"contains no container of {worker}, which would get no credentials"
                    spec.fields.problem("credentialContainers", why)


def check_steps(policies: Iterable[SpecDocument], workers: Iterable[WorkerSpec]) -> None:
    """Note each step that has no effect on any of the policy's workers."""
    of_policy = _by_policy(workers)
    for spec in policies:
        own_workers = of_policy.get(id(spec.document), ())
        if not own_workers:
            continue
        policy = own_workers[0].policy
        note = spec.fields.problem if policy.worker else spec.fields.warning
        if all(worker.rollout.strategy is not Strategy.PROGRESSIVE for worker in own_workers):
            of = f"strategy {own_workers[0].rollout.strategy} of {own_workers[0].name} has no steps"
            why = of if policy.worker else "none of its workers has strategy Progressive"
            for name in ("analysis", "steps"):
                if spec.fields.has(name):
                    note(name, NO_EFFECT(f"has no effect: {why}"))
            continue
        ramps = [sum((step.pause for step in worker.rollout.steps), timedelta()) for worker in own_workers]
        is_said = value_at(spec.fields.value, "analysis", "initialDelay") is not None
        if is_said and policy.analysis and policy.analysis.initial_delay >= max(ramps):
            why = "is as long as all steps together: no metric is judged before the last step has ended"
            spec.fields.warning("analysis.initialDelay", NO_EFFECT(why))
        there = {step.percentage for worker in own_workers for step in worker.rollout.steps}
        for index, step in enumerate(policy.steps):
            if step.percentage not in there:
                of = policy.worker or "any of its workers"
                why = f"{step.percentage:g}% is not a step of {of}"
                note(f"steps[{index}].rampPercentage", NO_EFFECT(why))


def replays_without_image(workers: Iterable[WorkerSpec]) -> Iterator[Problem]:
    """A warning for each policy whose replay cannot run because rollout.image is not set."""
    for policy in {id(worker.policy.document): worker.policy for worker in workers}.values():
        if policy.replay:
            remedy = (
                "set rollout.image in the operator's configuration, or the rollouts that need it will wait"
            )
            yield Problem.at(policy.document, "spec.replay", _REPLAY(f"no Job runs the replay: {remedy}"))


def unusable_prometheus(
    workers: Iterable[WorkerSpec], usable: Sequence[PrometheusServer], remedy: str
) -> Iterator[Problem]:
    """A warning for each metric whose Prometheus server the rollout cannot use: the ramp would never end."""
    policies = {id(worker.policy.document): worker.policy for worker in workers}
    for policy in policies.values():
        for index, metric in enumerate(policy.analysis.metrics if policy.analysis else ()):
            asked = metric.measure
            if not isinstance(asked, PrometheusQuery):
                continue
            if why := prometheus_called(asked.server, usable, remedy)[1]:
                where = f"spec.analysis.metrics[{index}].prometheus"
                yield Problem.at(policy.document, where, _PROMETHEUS(f"cannot be measured: {why}"))
