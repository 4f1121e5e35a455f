"""Data from an Argo CD Application: since when a refresh is requested, and what a sync could not apply."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from twgen.model.paths import value_at
from twgen.model.times import parse_time
from twgen.versioning.names import REFRESH


def asked_since(application: Mapping[str, Any]) -> datetime | None:
    """The time since which a requested refresh is pending; None: none is pending, or the time is unknown.

    Argo CD removes the annotation when it has refreshed.
    """
    metadata = value_at(application, "metadata")
    if not value_at(metadata, "annotations", REFRESH):
        return None
    entries = value_at(metadata, "managedFields")
    path = ("fieldsV1", "f:metadata", "f:annotations", f"f:{REFRESH}")
    request_times = [
        time
        for entry in (entries if isinstance(entries, list) else ())
        if value_at(entry, *path) is not None and (time := _moment(value_at(entry, "time")))
    ]
    refreshed_at = _moment(value_at(application, "status", "reconciledAt"))
    return max((*request_times, refreshed_at) if refreshed_at else request_times) if request_times else None


def _moment(text: Any) -> datetime | None:
    try:
        return parse_time(str(text))
    except ValueError:
        return None


def refused_objects(application: Mapping[str, Any]) -> dict[tuple[str, str, str], str]:
    """Why the last sync could not apply an object, by its namespace, kind and name."""
    results = value_at(application, "status", "operationState", "syncResult", "resources")
    return {
        (str(item.get("namespace")), str(item.get("kind")), str(item.get("name"))): " ".join(
            str(item.get("message") or "it was refused").split()
        )
        for item in (results if isinstance(results, list) else ())
        if isinstance(item, dict) and item.get("status") == "SyncFailed"
    }
