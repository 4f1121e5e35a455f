"""The Plan document, which tools and tests read: workers by name, versions by build ID."""

from twgen.model.plan import GateStart, Plan, RoutingPlan, VersionPlan, WorkerPlan
from twgen.model.record_shapes import printed_document_of, printed_of
from twgen.records.rollout_status import REPORTED
from twgen.versioning.names import TWGEN_API

PLAN = printed_document_of(
    TWGEN_API,
    "Plan",
    Plan,
    shapes={
        WorkerPlan: printed_of(
            WorkerPlan,
            *("name", "temporal_namespace", "target", "manager", "phase", "unserved", "routing", "gates"),
            *("judgements", "scheduled_actions", "old_records", "each_version", "warnings"),
            shapes={
                **REPORTED,
                RoutingPlan: printed_of(
                    RoutingPlan,
                    *("action", "build_id", "percentage", "claim_manager", "reason", "because", "due_at"),
                ),
                GateStart: printed_of(GateStart, "task_queue", "workflow_id", "workflow_type"),
                VersionPlan: printed_of(
                    VersionPlan,
                    *("build_id", "status", "deployment", "action", "replicas", "protected", "reason"),
                    *("because", "attached"),
                ),
            },
        )
    },
)
