"""How findings are made."""

from collections.abc import Iterable, Iterator
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


def not_running(
    about: str, things: Iterable[Seen], now: datetime, because: str, whose: str = ""
) -> Iterator[Finding]:
    """A problem for each thing that is kept from running, unless it may only be starting."""
    for seen in things:
        if seen.problem not in STARTS or now - seen.since >= _STARTS_WITHIN:
            kind, _, name = seen.name.partition(" ")
            remedy = f"read its events: `kubectl describe {kind.lower()} {named(name)}`"
            yield problem(about, f"{seen.name}{whose} {seen.problem}", because, remedy)
