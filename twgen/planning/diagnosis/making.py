"""How findings are made."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from twgen.model.diagnosis import Finding, Seen, Severity

_STARTS_WITHIN = timedelta(minutes=1)
"""A Pod, without anything being wrong."""
STARTS = ("waits (ContainerCreating)", "waits (PodInitializing)")
"""The problems of a Pod that may only be starting."""


def problem(about: str, says: str, because: str, remedy: str) -> Finding:
    """Something that does not work, or will not."""
    return Finding(about, Severity.PROBLEM, says, because, remedy)


def advice(about: str, says: str, because: str, remedy: str) -> Finding:
    """Something that works, but could work better."""
    return Finding(about, Severity.ADVICE, says, because, remedy)


def named(name: str) -> str:
    """`<namespace>/<name>` as kubectl takes it."""
    namespace, _, own = name.partition("/")
    return f"-n {namespace} {own}"


def not_starting(things: Iterable[Seen], now: datetime) -> list[Seen]:
    """The things that are kept from running, without those that are only starting."""
    return [one for one in things if one.problem not in STARTS or now - one.since >= _STARTS_WITHIN]
