"""A simulation as the document that tools and tests read; its schema is `schemas/timeline.json`."""

from datetime import datetime, timedelta
from typing import Any

from twgen.model.timeline import Event, Notice, Span, Timeline, WorkerTimeline
from twgen.model.times import format_time
from twgen.versioning.names import TWGEN_API


def timeline_document(timeline: Timeline) -> dict[str, Any]:
    """The Timeline document: workers by name, events in order, versions in the order of their appearance."""
    assumed = timeline.assumptions
    return {
        "apiVersion": TWGEN_API,
        "kind": "Timeline",
        "begins": format_time(timeline.begins) if timeline.begins else None,
        "isUsual": timeline.is_usual,
        "assumptions": {
            "workflowDuration": _seconds(assumed.workflow_duration),
            "startup": _seconds(assumed.startup),
            "gateDuration": _seconds(assumed.gate_duration),
            "gatePasses": assumed.gate_passes,
            "drainageInterval": _seconds(assumed.drainage_interval),
            "renderInterval": _seconds(assumed.render_interval),
            "startsPerHour": assumed.traffic.starts_per_hour if assumed.traffic else None,
            "failing": assumed.traffic.failing if assumed.traffic else None,
        },
        "workers": [_worker(worker, timeline.begins) for worker in timeline.workers],
    }


def _worker(worker: WorkerTimeline, begins: datetime | None) -> dict[str, Any]:
    return {
        "worker": worker.worker,
        "temporalNamespace": worker.temporal_namespace,
        "serverVersion": worker.server_version,
        "currentBuildID": worker.current_build_id,
        "targetBuildID": worker.target_build_id,
        "strategy": worker.rollout.strategy.value,
        "outcome": worker.outcome.value,
        "because": worker.because,
        "ends": _seconds(worker.ends),
        "mostReplicas": worker.most_replicas,
        "events": [_event(event, begins) for event in worker.events],
        "versions": [
            {"buildID": lane.build_id, "spans": [_span(span) for span in lane.spans]} for lane in worker.lanes
        ],
        "noticing": [
            {
                "metric": noticing.metric,
                "isAllowed": noticing.is_allowed,
                "half": _notice(noticing.half),
                "nineOfTen": _notice(noticing.most),
                "unnoticed": _plain(noticing.unnoticed),
            }
            for noticing in worker.noticing
        ],
        "notes": list(worker.notes),
    }


def _notice(notice: Notice | None) -> dict[str, Any] | None:
    if not notice:
        return None
    return {
        "after": _seconds(notice.after),
        "percentage": _plain(notice.percentage),
        "started": notice.started,
        "met": _plain(notice.met),
    }


def _event(event: Event, begins: datetime | None) -> dict[str, Any]:
    return {
        "at": _seconds(event.at),
        "time": format_time(begins + event.at) if begins else None,
        "event": event.happening.value,
        "buildID": event.build_id,
        "percentage": None if event.percentage is None else _plain(event.percentage),
        "says": event.says,
    }


def _span(span: Span) -> dict[str, Any]:
    return {
        "begin": _seconds(span.begin),
        "end": None if span.end is None else _seconds(span.end),
        "stage": span.stage.value,
        "status": span.status.value,
        "percentage": _plain(span.percentage),
        "replicas": span.replicas,
    }


def _seconds(length: timedelta) -> float:
    return _plain(length.total_seconds())


def _plain(number: float) -> float:
    rounded = round(float(number), 3)
    return int(rounded) if rounded.is_integer() else rounded
