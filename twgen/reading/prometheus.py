"""Reading the results of a Prometheus query about a target, moment by moment."""

from datetime import datetime
from math import isnan

from twgen.clients.deadline import Deadline
from twgen.clients.prometheus import PrometheusServers, RangeQuery
from twgen.errors import StateUnavailable
from twgen.model.analysis import INFINITE, Point, PrometheusQuery
from twgen.model.spec import WorkerSpec
from twgen.planning.analysis.verdicts import moments, query_for


class PrometheusReader:
    """Runs the Prometheus queries of metrics; its methods raise StateUnavailable or OutOfTime."""

    def __init__(self, servers: PrometheusServers, deadline: Deadline) -> None:
        self._servers = servers
        self._deadline = deadline

    async def points(
        self, metric: PrometheusQuery, spec: WorkerSpec, since: datetime, now: datetime
    ) -> tuple[Point, ...]:
        """A point for every moment since measuring began."""
        # a server that is not configured is an error even before the first moment
        server = self._servers.called(metric.server)
        analysis = spec.policy.analysis
        between = moments(metric, since, analysis.initial_delay, now) if analysis else None
        if not between:
            return ()
        (first, last), step = between, metric.interval
        query = RangeQuery(query_for(metric, spec), first.timestamp(), last.timestamp(), step.total_seconds())
        series = await self._servers.series(server, query, self._deadline)
        if len(series) > 1:
            raise StateUnavailable(
                f"Prometheus {server.name} returned {len(series)} series: aggregate them to one number"
            )
        try:
            # a cache before Prometheus may move all moments a little: the nearest one counts. Infinity is
            # replaced, because a JSON document has no number for it
            values = {
                round((float(at) - query.first) / query.step): None
                if isnan(value := float(text))
                else max(-INFINITE, min(value, INFINITE))
                for values_of_series in series
                for at, text in values_of_series["values"]
            }
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise StateUnavailable(f"Prometheus {server.name} did not return a number") from error
        return tuple(
            Point(first + place * step, values.get(place)) for place in range((last - first) // step + 1)
        )
