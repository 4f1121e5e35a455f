"""A metric of Prometheus: its query for a target, the moments that are asked for, and the verdict."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from twgen.model.analysis import INFINITE, Judgement, NoData, Point, PrometheusQuery, Verdict
from twgen.model.spec import WorkerSpec
from twgen.model.times import later
from twgen.planning.sentences import spoken
from twgen.versioning.names import filled, placeholders, versioned_deployment_name

MOST_POINTS = 1000
"""Of one query; of a ramp that is longer, the newest."""
_UNSAFE = re.compile(r"""["'`\\]|[^ -~]""")
"""What ends a string of PromQL, or begins an escape in it."""


def query_for(asked: PrometheusQuery, spec: WorkerSpec) -> str:
    """The query with the names of the target in the place of their placeholders, whatever is in them."""
    deployment = versioned_deployment_name(spec.name, spec.build_id)
    names = placeholders(deployment, spec.build_id, spec.temporal_namespace, spec.worker_deployment)
    return filled(asked.query, {key: _UNSAFE.sub(_escaped, name) for key, name in names.items()})


def moments(
    asked: PrometheusQuery, since: datetime, initial_delay: timedelta, now: datetime
) -> tuple[datetime, datetime] | None:
    """The first and the last moment that it is asked for, whole intervals apart; None: none has come yet.

    They count from the begin of the ramp, so that every look asks for the same ones.
    """
    begin = later(since, initial_delay)
    passed = (now - begin) // asked.interval
    if passed < 1:
        return None
    return begin + max(1, passed - MOST_POINTS + 1) * asked.interval, begin + passed * asked.interval


def judged_points(name: str, asked: PrometheusQuery, found: Sequence[Point]) -> Judgement:
    """The verdict on the points of a query."""
    named = (("below", asked.least), ("above", asked.most))
    limits = [f"{word} {limit:g}" for word, limit in named if limit is not None]
    limits += ["without data"] if asked.no_data is NoData.FAIL else []
    bound = asked.least if asked.most is None else asked.most
    if not found:
        because = f"its first point comes {spoken(asked.interval)} after measuring starts"
        return Judgement(name, Verdict.UNDECIDED, because, bound=bound)
    outside = sum(_is_outside(asked, point.value) for point in found)
    newest = found[-1].value
    value = "infinity" if newest is None or abs(newest) >= INFINITE else f"{newest:.4g}"
    state = "has no data" if newest is None else f"is {value}"
    are = "is" if outside == 1 else "are"
    because = f"the newest point {state}; {outside} of {len(found)} {are} {' or '.join(limits)}"
    verdict = Verdict.PASSES
    if outside > asked.failure_limit:
        verdict, because = Verdict.FAILS, f"{because} ({asked.failure_limit} allowed)"
    elif newest is None and asked.no_data is NoData.WAIT:
        verdict = Verdict.UNDECIDED
    return Judgement(name, verdict, because, newest, bound)


def _is_outside(asked: PrometheusQuery, value: float | None) -> bool:
    if value is None:
        return asked.no_data is NoData.FAIL
    below = asked.least is not None and value < asked.least
    return below or (asked.most is not None and value > asked.most)


def _escaped(found: re.Match[str]) -> str:
    # an escape of bytes means the same between all quotes but `, where it means nothing
    return "".join(f"\\x{byte:02x}" for byte in found[0].encode())
