"""Times as Kubernetes and twgen's documents write them: RFC 3339, in UTC."""

from datetime import UTC, datetime


def parse_time(text: str) -> datetime:
    """The moment of `2026-11-21T12:00:00Z`; ValueError for anything else, a time without zone included."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(text)
    return moment.astimezone(UTC)


def format_time(moment: datetime) -> str:
    """The moment to the microsecond, shortest form."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
