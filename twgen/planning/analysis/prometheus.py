"""A metric of Prometheus: its query for a target, the moments of its points, and the verdict."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from twgen.model.analysis import INFINITE, Judgement, NoData, Point, PrometheusQuery, Verdict
from twgen.model.spec import WorkerSpec
from twgen.model.times import later
from twgen.planning.sentences import spoken
from twgen.versioning.names import filled, placeholders, versioned_deployment_name

MOST_POINTS = 1000
"""The most points of one query; for a longer ramp, the newest ones."""
_UNSAFE = re.compile(r"""["'`\\]|[^ -~]""")
"""The characters that end a string of PromQL, or begin an escape in it."""


def query_for(measure: PrometheusQuery, spec: WorkerSpec) -> str:
    """The query with the names of the target instead of their placeholders, with any characters."""
    deployment = versioned_deployment_name(spec.name, spec.build_id)
    names = placeholders(deployment, spec.build_id, spec.temporal_namespace, spec.worker_deployment)

    def escaped(match: re.Match[str]) -> str:
        # escaped bytes mean the same within " and ', but between ` there are no escapes
        return "".join(f"\\x{byte:02x}" for byte in match[0].encode())

    return filled(measure.query, {key: _UNSAFE.sub(escaped, name) for key, name in names.items()})


def moments(
    measure: PrometheusQuery, since: datetime, initial_delay: timedelta, now: datetime
) -> tuple[datetime, datetime] | None:
    """The first and the last moment to query, whole intervals apart; None: the first is in the future.

    The intervals begin with the ramp, so that every look queries the same moments.
    """
    begin = later(since, initial_delay)
    passed = (now - begin) // measure.interval
    if passed < 1:
        return None
    return begin + max(1, passed - MOST_POINTS + 1) * measure.interval, begin + passed * measure.interval


def judged_points(name: str, measure: PrometheusQuery, points: Sequence[Point]) -> Judgement:
    """The verdict on the points of a query."""
    named = (("below", measure.least), ("above", measure.most))
    limits = [f"{word} {limit:g}" for word, limit in named if limit is not None]
    limits += ["without data"] if measure.no_data is NoData.FAIL else []
    bound = measure.least if measure.most is None else measure.most
    if not points:
        because = f"its first point comes {spoken(measure.interval)} after measuring starts"
        return Judgement(name, Verdict.UNDECIDED, because, bound=bound)
    outside = sum(_is_outside(measure, point.value) for point in points)
    newest = points[-1].value
    value = "infinity" if newest is None or abs(newest) >= INFINITE else f"{newest:.4g}"
    state = "has no data" if newest is None else f"is {value}"
    are = "is" if outside == 1 else "are"
    because = f"the newest point {state}; {outside} of {len(points)} {are} {' or '.join(limits)}"
    verdict = Verdict.PASSES
    if outside > measure.failure_limit:
        verdict, because = Verdict.FAILS, f"{because} ({measure.failure_limit} allowed)"
    elif newest is None and measure.no_data is NoData.WAIT:
        verdict = Verdict.UNDECIDED
    return Judgement(name, verdict, because, newest, bound)


def _is_outside(measure: PrometheusQuery, point_value: float | None) -> bool:
    if point_value is None:
        return measure.no_data is NoData.FAIL
    below = measure.least is not None and point_value < measure.least
    return below or (measure.most is not None and point_value > measure.most)
