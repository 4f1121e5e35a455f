"""The analysis of a RolloutPolicy: the rules between its fields, and which Prometheus its metrics may ask."""

from collections.abc import Iterable, Iterator, Sequence

from twgen.model.analysis import Analysis, PrometheusQuery, WorkflowFailures
from twgen.model.forms import ONLY_PLACEHOLDERS
from twgen.model.operator import PrometheusServer, prometheus_called
from twgen.model.problem import Problem
from twgen.model.spec import WorkerSpec
from twgen.specs.declared import spec_shape
from twgen.specs.fields import Fields
from twgen.versioning.names import tells_versions_apart, unknown_placeholder


def unusable_prometheus(
    workers: Iterable[WorkerSpec], usable: Sequence[PrometheusServer], remedy: str
) -> Iterator[Problem]:
    """A warning for each metric whose Prometheus its rollout may not ask: the ramp would wait for ever."""
    policies = {id(worker.policy.document): worker.policy for worker in workers}
    for policy in policies.values():
        for index, metric in enumerate(policy.analysis.metrics if policy.analysis else ()):
            asked = metric.measure
            if not isinstance(asked, PrometheusQuery):
                continue
            if why := prometheus_called(asked.server, usable, remedy)[1]:
                where = f"spec.analysis.metrics[{index}].prometheus"
                yield Problem.at(policy.document, where, f"cannot be measured: {why}")


def _check_analysis(fields: Fields, _: Analysis) -> None:
    fields.refuse_twins("metrics", "name", "metrics")


def _check_failures(fields: Fields, _: WorkflowFailures) -> None:
    if fields.has("notAbove") == fields.has("maxRatio"):
        fields.problem("", "needs exactly one of maxRatio and notAbove")


def _check_query(fields: Fields, asked: PrometheusQuery) -> None:
    limits = fields.mapping("thresholdRange")
    if not limits.has("min") and not limits.has("max"):
        fields.problem("thresholdRange", "needs min, max or both")
    elif asked.least is not None and asked.most is not None and asked.least > asked.most:
        fields.problem("thresholdRange", f"min ({asked.least:g}) is above max ({asked.most:g})")
    if unknown_placeholder(asked.query):
        fields.problem("query", ONLY_PLACEHOLDERS)
    elif asked.query and not tells_versions_apart(asked.query):
        fields.warning("query", "measures all versions together: filter by {{ .BuildID }}")


ANALYSIS = spec_shape(
    Analysis,
    _check_analysis,
    shapes={
        WorkflowFailures: spec_shape(WorkflowFailures, _check_failures),
        PrometheusQuery: spec_shape(PrometheusQuery, _check_query),
    },
)
