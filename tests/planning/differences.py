"""Where twgen decides otherwise than the Temporal Worker Controller."""

from typing import Any

DIFFERENT: dict[str, dict[str, Any]] = {
    "unregistered-leftover-is-deleted": {"deleteDeployments": [], "scaleDeployments": {"ghost": 0}},
    "foreign-owner": {"routing": None},
    "target-at-zero-comes-back": {"routing": None},
    "ramp-below-first-step": {"routing": None},
}
"""What twgen does instead, by case: the deliberate differences of the vectors' README."""
