"""Reading RolloutPolicies; the defaults of every field are here and nowhere else."""

from collections.abc import Iterable
from datetime import timedelta
from functools import cache
from operator import attrgetter

from twgen.model.policy import (
    MOST_VERSIONS,
    POLLERS_ARE_LISTED,
    ConnectionChanges,
    Driver,
    EnvironmentNames,
    HistorySource,
    MissingTemplate,
    OnDelete,
    OwnerReferences,
    Policy,
    Unserved,
    WhenUnserved,
)
from twgen.model.spec import AttachedResource, AttachedWhile, WorkerSpec
from twgen.specs.analysis import parse_analysis
from twgen.specs.deployments import parse_marks
from twgen.specs.draining import check_entries, parse_draining
from twgen.specs.fields import Diagnostics, Fields
from twgen.specs.patches import parse_patches
from twgen.specs.policy_steps import check_metrics, parse_steps
from twgen.specs.replay import parse_replay
from twgen.specs.spec_document import SpecDocument

_LEAST_SILENCE = timedelta(minutes=2)
"""A worker that has nothing to do polls once a minute."""


def parse_policy(spec: Fields) -> Policy:
    """The Policy of a document's `spec`."""
    worker, control_plane = spec.mapping("workerRef"), spec.mapping("controlPlaneSecretRef")
    unserved = spec.mapping("unserved")
    policy = Policy(
        worker=worker.object_name("name", required=spec.has("workerRef")),
        identity=spec.identity("identity"),
        adopt_from=spec.lines("adoptFrom"),
        driver=spec.choice("driver", Driver, Driver.AUTO),
        hold_for=spec.duration("holdFor", timedelta(minutes=5)),
        service_account_name=spec.object_name("serviceAccountName"),
        control_plane_secret=control_plane.object_name("name"),
        rollback_window=spec.duration("rollbackWindow", timedelta(hours=1)),
        connection_changes=spec.choice("connectionChanges", ConnectionChanges, ConnectionChanges.TARGET),
        environment=spec.choice("environment", EnvironmentNames, EnvironmentNames.CURRENT),
        owner_references=spec.choice("ownerReferences", OwnerReferences, OwnerReferences.RENDER),
        history=spec.choices("history", HistorySource, tuple(HistorySource)),
        missing_template=spec.choice("missingTemplate", MissingTemplate, MissingTemplate.WARN),
        on_delete=spec.choice("onDelete", OnDelete, OnDelete.CONFIRM),
        max_versions=spec.integer("maxVersions", 75, least=1) or 75,
        unserved=Unserved(
            after=unserved.duration("after", POLLERS_ARE_LISTED, least=_LEAST_SILENCE),
            action=unserved.choice("action", WhenUnserved, WhenUnserved.ABORT),
        ),
        ignore_missing_task_queues=spec.lines("ignoreMissingTaskQueues"),
        analysis=parse_analysis(spec),
        steps=parse_steps(spec),
        # not from the document, where Helm and Argo CD put their own, nor from spec.deployment, where an API
        # server drops them
        deployment_labels=parse_marks(spec, "deploymentLabels", "labels"),
        deployment_annotations=parse_marks(spec, "deploymentAnnotations", "annotations"),
        draining=parse_draining(spec),
        replay=parse_replay(spec),
        patches=parse_patches(spec),
        # one pod polls every task queue of its version; without any, its workflows would stop
        draining_replicas=spec.integer("drainingReplicas", least=1),
    )
    spec.warn_of_many_pods("drainingReplicas")
    check_metrics(policy, spec)
    check_entries(policy, spec)
    if spec.raw("history") == []:
        why = "is empty: older versions cannot be rendered, and only prune protection keeps their Deployments"
        spec.warning("history", f"{why}; leave it out for Ledger, Cluster and Git")
    if policy.max_versions == 1:
        spec.warning(
            "maxVersions", "1 leaves no room for a new version next to the current one: write 2 or more"
        )
    if policy.max_versions > MOST_VERSIONS:
        spec.problem("maxVersions", f"{policy.max_versions} is above {MOST_VERSIONS}, Temporal's own cap")
    if policy.unserved.after > POLLERS_ARE_LISTED:
        unserved.problem("after", "is longer than 5m: Temporal lists a silent poller for only 5 minutes")
    for index, identity in enumerate(policy.adopt_from):
        if "*" in identity:
            spec.warning(f"adoptFrom[{index}]", "is an identity, not a pattern: name each manager")
    for fields in (worker, control_plane, unserved, spec):
        fields.close()
    return policy


def warn_of_idle_replicas(policies: Iterable[SpecDocument], workers: Iterable[WorkerSpec]) -> None:
    """Note each `drainingReplicas` by which no worker of its policy goes: autoscalers decide for all."""
    of_policy: dict[int, list[str]] = {}
    for worker in workers:
        if worker.policy.draining_replicas:
            all_its = of_policy.setdefault(id(worker.policy.document), [])
            all_its.append(next(map(attrgetter("name"), filter(_scales_what_drains, worker.attached)), ""))
    for spec in policies:
        names = of_policy.get(id(spec.document))
        if names and all(names):
            why = f"attached template {names[0]} sets the replicas of draining versions too"
            remedy = "remove one, or give the template twgen.io/when"
            spec.fields.warning("drainingReplicas", f"has no effect: {why}; {remedy}")


def _scales_what_drains(resource: AttachedResource) -> bool:
    return resource.autoscales and (not resource.when or AttachedWhile.DRAINING in resource.when)


@cache
def default_policy() -> Policy:
    """The policy of a worker that has none."""
    return parse_policy(Fields({}, "spec", Diagnostics()))
