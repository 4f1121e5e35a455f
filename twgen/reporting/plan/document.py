"""The Plan document for other programs. Workers are sorted by name, and versions are sorted by build ID."""

from functools import partial

from twgen.model.plan import GateStart, Plan, RoutingPlan, VersionPlan, WorkerPlan
from twgen.model.record_shapes import document_of, record_of
from twgen.records.rollout_status import REPORTED
from twgen.versioning.names import TWGEN_API

_printed = partial(record_of, is_printed=True)
PLAN = document_of(
    TWGEN_API,
    "Plan",
    Plan,
    shapes={
        WorkerPlan: _printed(
            WorkerPlan,
            *("name", "temporal_namespace", "target", "manager", "phase", "unserved", "routing", "gates"),
            *("judgements", "scheduled_actions", "differs", "old_records", "each_version", "warnings"),
            shapes={
                **REPORTED,
                RoutingPlan: _printed(
                    RoutingPlan,
                    *("action", "build_id", "percentage", "claim_manager", "reason", "because", "due_at"),
                ),
                GateStart: _printed(GateStart, "task_queue", "workflow_id", "workflow_type"),
                VersionPlan: _printed(
                    VersionPlan,
                    *("build_id", "status", "deployment", "action", "replicas", "protected", "reason"),
                    *("because", "attached"),
                ),
            },
        )
    },
    is_printed=True,
)
