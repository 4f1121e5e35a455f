"""How rollouts go, as OpenMetrics."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from twgen.model.analysis import Verdict
from twgen.model.plan import Phase
from twgen.model.status import RolloutStatus
from twgen.reporting.printable import printable

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_OF_WORKER = ("namespace", "worker")
_CAPS = {"maxVersions": ("deployed", "maxVersions"), "temporal": ("registered", "mostRegistered")}
"""What counts against each cap, and the cap, as `versionCount` of a Status document has them."""


def openmetrics(
    statuses: Iterable[RolloutStatus],
    now: datetime | None,
    counts: Mapping[str, int],
    look_seconds: float | None = None,
) -> bytes:
    """The metrics of these rollouts; `counts` are what happened since the start, by `looks` and the like.

    Without `now` nobody has followed them, and since when they are as they are is left out. `look_seconds` is
    how long the last look took.
    """
    from prometheus_client import CollectorRegistry
    from prometheus_client.openmetrics.exposition import generate_latest

    found = tuple(statuses)
    collected = [*_of_rollouts(found, now), *_of_analyses(found), *_of_ticks(counts, look_seconds)]

    class Collected:
        def collect(self) -> Iterable["Metric"]:
            return collected

    registry = CollectorRegistry()
    registry.register(Collected())
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text


def _gauge(name: str, text: str, *labels: str) -> Any:
    from prometheus_client.core import GaugeMetricFamily

    return GaugeMetricFamily(f"twgen_{name}", text, labels=(*_OF_WORKER, *labels))


def _of_rollouts(statuses: tuple[RolloutStatus, ...], now: datetime | None) -> Iterator["Metric"]:
    phase = _gauge("rollout_phase", "1 for the phase that a rollout is in, 0 for the others.", "phase")
    reason = _gauge("rollout_reason", "1 for why a rollout is in its phase.", "reason")
    percentage = _gauge("rollout_percentage", "The target's share of new workflows.")
    unserved = _gauge("rollout_unserved", "1 while new workflows go to a version that nobody serves.")
    failing = _gauge("rollout_failing", "1 while looks of a rollout fail, or what it changes after them.")
    age = _gauge("rollout_unchanged_seconds", "Since phase or reason of a rollout changed last.")
    versions = _gauge("versions", "Versions that are deployed or have work, by their status.", "status")
    count = _gauge("version_count", "Versions that count against a cap.", "cap")
    cap = _gauge("version_cap", "With so many versions there is no new one.", "cap")
    for status in statuses:
        worker = status.worker.split("/", 1)
        for each in Phase:
            phase.add_metric([*worker, each.value], int(status.phase is each))
        reason.add_metric([*worker, printable(status.reason)], 1)
        if status.percentage is not None:
            percentage.add_metric(worker, status.percentage)
        failing.add_metric(worker, int(bool(status.failing)))
        if now:
            age.add_metric(worker, max(0.0, (now - status.since).total_seconds()))
        # empty where the rollout could not begin
        for item in status.document.get("workers") or ():
            unserved.add_metric(worker, int(bool(item.get("unserved"))))
            found = Counter(printable(str(version.get("status"))) for version in item.get("versions") or ())
            for name, number in sorted(found.items()):
                versions.add_metric([*worker, name], number)
            counted = item.get("versionCount") or {}
            for name, (counting, most) in _CAPS.items():
                if counting in counted and most in counted:
                    count.add_metric([*worker, name], counted[counting])
                    cap.add_metric([*worker, name], counted[most])
    yield from (phase, reason, percentage, unserved, failing, age, versions, count, cap)


def _of_analyses(statuses: tuple[RolloutStatus, ...]) -> Iterator["Metric"]:
    """What is measured while a version ramps; nothing of what is not measured, its kinds included."""
    value = _gauge("rollout_analysis_value", "What a metric measures of the target.", "metric")
    bound = _gauge("rollout_analysis_bound", "What a metric allows the target, in the same unit.", "metric")
    verdict = _gauge(
        "rollout_analysis_verdict",
        "1 for what a metric says of the target, 0 for the rest.",
        "metric",
        "verdict",
    )
    for status in statuses:
        worker = status.worker.split("/", 1)
        for item in status.document.get("workers") or ():
            for judged in item.get("analysis") or ():
                labels = [*worker, printable(str(judged.get("metric")))]
                for each in Verdict:
                    verdict.add_metric([*labels, each.value], int(judged.get("verdict") == each))
                for family, number in ((value, judged.get("value")), (bound, judged.get("bound"))):
                    # a hand may have written anything
                    if type(number) in {int, float}:
                        family.add_metric(labels, number)
    yield from (family for family in (value, bound, verdict) if family.samples)


def _of_ticks(counts: Mapping[str, int], look_seconds: float | None) -> Iterator["Metric"]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    if look_seconds is not None:
        text = "How long the last look of `twgen tick` took."
        yield GaugeMetricFamily("twgen_tick_look_seconds", text, value=look_seconds)

    for name, number in counts.items():
        text = f"What `twgen tick` has counted since it started: {name.replace('_', ' ')}."
        yield CounterMetricFamily(f"twgen_tick_{name}", text, value=number)
