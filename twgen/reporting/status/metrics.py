"""The state of rollouts as OpenMetrics."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from twgen.model.analysis import Verdict
from twgen.model.plan import Phase
from twgen.model.status import RolloutStatus
from twgen.planning.drivers import ALL, Shard
from twgen.reporting.printable import printable

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_GAUGES: Mapping[str, Sequence[str]] = {
    "rollout_phase": ("1 for the phase that a rollout is in, 0 for the others.", "phase"),
    "rollout_reason": ("Always 1; the label is the reason for the phase of a rollout.", "reason"),
    "rollout_percentage": ("The target's share of new workflows, in percent.",),
    "rollout_unserved": ("1 while new workflows go to a version that no worker polls for.",),
    "rollout_failing": ("1 while checks or changes of a rollout fail, or while a change is overdue.",),
    "rollout_unchanged_seconds": ("Seconds since the phase or the reason of a rollout last changed.",),
    "versions": ("Number of versions that are deployed or have work, by status.", "status"),
    "version_count": ("Number of versions that count towards a cap.", "cap"),
    "version_cap": ("The cap: at this number of versions, no new version is deployed.", "cap"),
    "rollout_analysis_value": ("The value that a metric measures for the target.", "metric"),
    "rollout_analysis_bound": ("The limit for that value, in the same unit.", "metric"),
    "rollout_analysis_verdict": (
        *("1 for the verdict of a metric on the target, 0 for the other verdicts.", "metric", "verdict"),
    ),
}
"""Each gauge's help text, and its labels in addition to `namespace` and `worker`."""
_Sample = tuple[str, Sequence[str], float]
"""A gauge's name, the values of its labels in addition to `namespace` and `worker`, and its value."""


def openmetrics(
    statuses: Iterable[RolloutStatus],
    now: datetime | None,
    counts: Mapping[str, int],
    look_seconds: float | None = None,
    shard: Shard = ALL,
) -> bytes:
    """The metrics of these rollouts. `counts` has the number of each kind of event since tick started.

    Without `now`, the metric for the time since the last change is omitted. `look_seconds` is the duration of
    the last check.
    """
    from prometheus_client.openmetrics.exposition import generate_latest

    collected = [*_of_rollouts(tuple(statuses), now), *_of_ticks(counts, look_seconds, shard)]
    # generate_latest calls no other method of a registry
    text: bytes = generate_latest(SimpleNamespace(collect=lambda: collected))  # type: ignore[no-untyped-call]
    return text


def _of_rollouts(statuses: Sequence[RolloutStatus], now: datetime | None) -> Iterator["Metric"]:
    from prometheus_client.core import GaugeMetricFamily

    gauges: dict[str, Any] = {
        name: GaugeMetricFamily(f"twgen_{name}", text, labels=("namespace", "worker", *labels))
        for name, (text, *labels) in _GAUGES.items()
    }
    for status in statuses:
        worker = status.worker.split("/", 1)
        for name, labels, value in _samples(status, now):
            gauges[name].add_metric([*worker, *labels], value)
    # omit the analysis metrics if nothing was measured
    yield from (
        gauge for name, gauge in gauges.items() if gauge.samples or not name.startswith("rollout_analysis_")
    )


def _samples(status: RolloutStatus, now: datetime | None) -> Iterator[_Sample]:
    for phase in Phase:
        yield "rollout_phase", [phase.value], int(status.phase is phase)
    yield "rollout_reason", [printable(status.reason)], 1
    if status.percentage is not None:
        yield "rollout_percentage", [], status.percentage
    yield "rollout_failing", [], int(bool(status.failing))
    if now:
        yield "rollout_unchanged_seconds", [], max(0.0, (now - status.since).total_seconds())
    if not (worker := status.details):
        return
    yield "rollout_unserved", [], int(bool(worker.unserved))
    versions = Counter(version.status.value for version in worker.versions)
    for name, number in sorted(versions.items()):
        yield "versions", [name], number
    if count := worker.count:
        yield "version_count", ["maxVersions"], count.deployed
        yield "version_cap", ["maxVersions"], count.most_deployed
        yield "version_count", ["temporal"], count.registered
        yield "version_cap", ["temporal"], count.most_registered
    for judged in worker.analysis:
        metric = printable(judged.metric)
        for verdict in Verdict:
            yield "rollout_analysis_verdict", [metric, verdict.value], int(judged.verdict is verdict)
        if judged.value is not None:
            yield "rollout_analysis_value", [metric], judged.value
        if judged.bound is not None:
            yield "rollout_analysis_bound", [metric], judged.bound


def _of_ticks(counts: Mapping[str, int], look_seconds: float | None, shard: Shard) -> Iterator["Metric"]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    if look_seconds is not None:
        text = "Duration of the last check of `twgen tick`, in seconds."
        yield GaugeMetricFamily("twgen_tick_look_seconds", text, value=look_seconds)
        text = "Number of ticks that share the workers; the label is the number of this one."
        shards = GaugeMetricFamily("twgen_tick_shards", text, labels=["shard"])
        shards.add_metric([str(shard.number)], shard.total)
        yield shards

    for name, number in counts.items():
        counted_things = "checks" if name == "looks" else name.replace("_", " ")
        text = f"Number of {counted_things} since `twgen tick` started."
        yield CounterMetricFamily(f"twgen_tick_{name}", text, value=number)
