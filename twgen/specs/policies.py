"""Read RolloutPolicies. The class Policy declares their fields; this module has the rules between them."""

from collections.abc import Iterable
from functools import cache
from operator import attrgetter

from twgen.model.analysis import Analysis
from twgen.model.draining import DrainingEntry
from twgen.model.histories import Replay
from twgen.model.policy import Policy, PolicyStep, VersionPatch
from twgen.model.shapes import Findings
from twgen.model.spec import AttachedResource, AttachedWhile, WorkerSpec
from twgen.specs.analysis import ANALYSIS
from twgen.specs.declared import spec_shape
from twgen.specs.deployments import marks_of_versions
from twgen.specs.draining import ENTRY, check_entries
from twgen.specs.fields import Fields
from twgen.specs.patches import PATCH
from twgen.specs.policy_steps import STEP, check_metrics
from twgen.specs.replay import REPLAY
from twgen.specs.spec_document import SpecDocument


def parse_policy(spec: Fields) -> Policy:
    """Read the Policy in the `spec` of a document."""
    policy: Policy = POLICY.read(spec.value, spec.path, spec.findings)
    return policy


def _check(spec: Fields, policy: Policy) -> None:
    spec.warn_of_many_pods("drainingReplicas")
    check_metrics(policy, spec)
    check_entries(policy, spec)
    spec.refuse_twins("steps", "rampPercentage", "steps")
    spec.refuse_twins("patches", "buildID", "entries")
    if spec.raw("history") == []:
        why = "is empty: older versions cannot be rendered, and only prune protection keeps their Deployments"
        spec.warning("history", f"{why}; leave it out for Ledger, Cluster and Git")
    if policy.max_versions == 1:
        spec.warning(
            "maxVersions", "1 leaves no room for a new version next to the current one: write 2 or more"
        )
    for index, identity in enumerate(policy.adopt_from):
        if "*" in identity:
            spec.warning(f"adoptFrom[{index}]", "is an identity, not a pattern: name each manager")


POLICY = spec_shape(
    Policy,
    _check,
    fields={
        # not from the document, where Helm and Argo CD put their own, nor from spec.deployment, where an API
        # server drops them
        "deployment_labels": marks_of_versions("labels"),
        "deployment_annotations": marks_of_versions("annotations"),
    },
    shapes={Analysis: ANALYSIS, PolicyStep: STEP, DrainingEntry: ENTRY, Replay: REPLAY, VersionPatch: PATCH},
)


def warn_of_idle_replicas(policies: Iterable[SpecDocument], workers: Iterable[WorkerSpec]) -> None:
    """Note each `drainingReplicas` without effect: all workers of its policy have autoscalers."""
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
    """The policy of a worker without a RolloutPolicy."""
    return parse_policy(Fields({}, "spec", Findings()))
