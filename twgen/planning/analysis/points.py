"""What a query of Prometheus asks for a target: its text, and the moments that it is asked for."""

import re
from datetime import datetime, timedelta

from twgen.model.analysis import PrometheusQuery
from twgen.model.spec import WorkerSpec
from twgen.model.times import later
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


def _escaped(found: re.Match[str]) -> str:
    # an escape of bytes means the same between all quotes but `, where it means nothing
    return "".join(f"\\x{byte:02x}" for byte in found[0].encode())
