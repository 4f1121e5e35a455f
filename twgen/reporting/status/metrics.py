"""The state of rollouts, as OpenMetrics."""

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
"""The number that counts towards each cap, and the cap, as in `versionCount` of a Status document."""


def openmetrics(
    statuses: Iterable[RolloutStatus],
    now: datetime | None,
    counts: Mapping[str, int],
    look_seconds: float | None = None,
) -> bytes:
    """The metrics of these rollouts; `counts` are the events since the start, by name, such as `looks`.

    Without `now`, the time since their last change is unknown and left out. `look_seconds` is the duration of
    the last check.
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
    reason = _gauge(
        "rollout_reason", "Always 1; the label is the reason for the phase of a rollout.", "reason"
    )
    percentage = _gauge("rollout_percentage", "The target's share of new workflows, in percent.")
    unserved = _gauge("rollout_unserved", "1 while new workflows go to a version that no worker polls for.")
    failing = _gauge(
        "rollout_failing", "1 while the checks of a rollout fail, or the changes that follow them."
    )
    age = _gauge(
        "rollout_unchanged_seconds", "Seconds since the phase or the reason of a rollout last changed."
    )
    versions = _gauge("versions", "Number of versions that are deployed or have work, by status.", "status")
    count = _gauge("version_count", "Number of versions that count towards a cap.", "cap")
    cap = _gauge("version_cap", "The cap: at this number of versions, no new version is deployed.", "cap")
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
        # empty if the rollout could not begin
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
    """The measurements of ramping versions; without measurements there are no such metrics at all."""
    value = _gauge("rollout_analysis_value", "The value that a metric measures for the target.", "metric")
    bound = _gauge("rollout_analysis_bound", "The limit for that value, in the same unit.", "metric")
    verdict = _gauge(
        "rollout_analysis_verdict",
        "1 for the verdict of a metric on the target, 0 for the other verdicts.",
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
                    # a person may have written anything
                    if type(number) in {int, float}:
                        family.add_metric(labels, number)
    yield from (family for family in (value, bound, verdict) if family.samples)


def _of_ticks(counts: Mapping[str, int], look_seconds: float | None) -> Iterator["Metric"]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    if look_seconds is not None:
        text = "Duration of the last check of `twgen tick`, in seconds."
        yield GaugeMetricFamily("twgen_tick_look_seconds", text, value=look_seconds)

    for name, number in counts.items():
        what = "checks" if name == "looks" else name.replace("_", " ")
        text = f"Number of {what} since `twgen tick` started."
        yield CounterMetricFamily(f"twgen_tick_{name}", text, value=number)
