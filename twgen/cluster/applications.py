"""What an Application tells of when Argo CD looks at it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from twgen.model.paths import value_at
from twgen.model.times import parse_time
from twgen.versioning.names import REFRESH


def asked_since(application: Mapping[str, Any]) -> datetime | None:
    """Since when Argo CD has been asked to look at it again, and has not; None: it has, or nobody tells.

    Argo CD takes the annotation away when it has looked.
    """
    metadata = value_at(application, "metadata")
    if not value_at(metadata, "annotations", REFRESH):
        return None
    entries = value_at(metadata, "managedFields")
    path = ("fieldsV1", "f:metadata", "f:annotations", f"f:{REFRESH}")
    asked = [
        found
        for entry in (entries if isinstance(entries, list) else ())
        if value_at(entry, *path) is not None and (found := _moment(value_at(entry, "time")))
    ]
    looked = _moment(value_at(application, "status", "reconciledAt"))
    return max((*asked, looked) if looked else asked) if asked else None


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
