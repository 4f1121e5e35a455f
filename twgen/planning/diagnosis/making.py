"""The constructors of findings."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from twgen.model.diagnosis import Finding, Seen, Severity

_STARTS_WITHIN = timedelta(minutes=1)
"""The time that a healthy Pod may need to start."""
STARTS = ("waits (ContainerCreating)", "waits (PodInitializing)")
"""The problems of a Pod that may still be starting."""


def problem(about: str, says: str, because: str, remedy: str) -> Finding:
    """Something that does not work, or will not."""
    return Finding(about, Severity.PROBLEM, says, because, remedy)


def advice(about: str, says: str, because: str, remedy: str) -> Finding:
    """Something that works, but could work better."""
    return Finding(about, Severity.ADVICE, says, because, remedy)


def named(name: str) -> str:
    """`<namespace>/<name>` as arguments of kubectl."""
    namespace, _, plain_name = name.partition("/")
    return f"-n {namespace} {plain_name}"


def not_running(
    about: str, stuck: Iterable[Seen], now: datetime, because: str, owner: str = ""
) -> Iterator[Finding]:
    """A problem for each object that is kept from running, unless it may still be starting."""
    for item in stuck:
        if item.problem not in STARTS or now - item.since >= _STARTS_WITHIN:
            kind, _, name = item.name.partition(" ")
            remedy = f"read its events: `kubectl describe {kind.lower()} {named(name)}`"
            yield problem(about, f"{item.name}{owner} {item.problem}", because, remedy)
