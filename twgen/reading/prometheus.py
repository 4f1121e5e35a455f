"""Reading what a query of Prometheus says of a target, moment by moment."""

from collections.abc import Iterator
from datetime import datetime
from math import isnan
from typing import Any

from twgen.clients.deadline import Deadline
from twgen.clients.prometheus import PrometheusServers, RangeQuery
from twgen.errors import StateUnavailable
from twgen.model.analysis import INFINITE, Point, PrometheusQuery
from twgen.model.spec import WorkerSpec
from twgen.planning.analysis.prometheus import moments, query_for


class PrometheusReader:
    """One look at what metrics ask of Prometheus; its methods raise StateUnavailable or OutOfTime."""

    def __init__(self, servers: PrometheusServers, deadline: Deadline) -> None:
        self._servers = servers
        self._deadline = deadline

    async def points(
        self, asked: PrometheusQuery, spec: WorkerSpec, since: datetime, now: datetime
    ) -> tuple[Point, ...]:
        """A point for every moment that has come since its measuring began."""
        # a server that is not configured is an error even before the first moment
        server = self._servers.called(asked.server)
        analysis = spec.policy.analysis
        between = moments(asked, since, analysis.initial_delay, now) if analysis else None
        if not between:
            return ()
        (first, last), step = between, asked.interval
        query = RangeQuery(query_for(asked, spec), first.timestamp(), last.timestamp(), step.total_seconds())
        found = await self._servers.series(server, query, self._deadline)
        if len(found) > 1:
            raise StateUnavailable(
                f"Prometheus {server.name} returned {len(found)} series: aggregate them to one number"
            )
        try:
            values = dict(_by_place(found, query))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise StateUnavailable(f"Prometheus {server.name} did not return a number") from error
        return tuple(
            Point(first + place * step, values.get(place)) for place in range((last - first) // step + 1)
        )


def _by_place(series: list[Any], asked: RangeQuery) -> Iterator[tuple[int, float | None]]:
    """The numbers of the one series, or of none, each with which of the moments it is nearest to.

    A cache in front of Prometheus may move all moments a little. A point
    has no infinity, which is no number in a document.
    """
    for one in series:
        for at, text in one["values"]:
            place, value = round((float(at) - asked.first) / asked.step), float(text)
            yield place, None if isnan(value) else max(-INFINITE, min(value, INFINITE))
