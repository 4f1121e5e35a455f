"""The Timeline document. Workers are sorted by name, events by time, and versions by first appearance."""

from functools import partial

from twgen.model.record_shapes import document_of, record_of
from twgen.model.timeline import Assumptions, Event, Noticing, Timeline, WorkerTimeline
from twgen.versioning.names import TWGEN_API

_printed = partial(record_of, is_printed=True)
TIMELINE = document_of(
    TWGEN_API,
    "Timeline",
    Timeline,
    shapes={
        Assumptions: _printed(
            Assumptions,
            *("workflow_duration", "startup", "gate_duration", "gate_passes", "drainage_interval"),
            *("render_interval", "starts_per_hour", "failing"),
        ),
        WorkerTimeline: _printed(
            WorkerTimeline,
            *("worker", "temporal_namespace", "server_version", "current_build_id", "target_build_id"),
            *("strategy", "outcome", "because", "ends", "most_replicas", "events", "lanes", "noticing"),
            "notes",
            shapes={
                Event: _printed(Event, "at", "time", "happening", "build_id", "percentage", "says"),
                Noticing: _printed(Noticing, "metric", "is_allowed", "half", "most", "unnoticed"),
            },
        ),
    },
    is_printed=True,
)
