"""What the command line asked for, in the program's own types."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from twgen.cli.surroundings import Surroundings, surroundings
from twgen.errors import InvalidInput
from twgen.model.operator import Operator
from twgen.model.times import SUCH_AS, parse_time
from twgen.reading.documents import Sources
from twgen.reporting.printable import printable
from twgen.specs.durations import go_duration, parse_duration


def clock() -> datetime:
    """The time, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


def moment(text: str) -> datetime:
    """The time that `--now` names."""
    try:
        return parse_time(text)
    except ValueError as error:
        raise InvalidInput(f"--now {text!r} is not {SUCH_AS}") from error


_ADDRESS = re.compile(r"[^\s=/]+:\d{1,5}")
"""A host and a port."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line asked for."""

    paths: tuple[str, ...]
    now: datetime | None
    """What `--now` says."""
    snapshot: str | None
    timeout: float
    """Seconds."""
    via: Mapping[str, str]
    """Where to reach a Temporal instead of at its address, by that."""
    identity: str
    namespace: str
    strict: bool
    quiet: bool
    allow_unlisted_connections: bool
    no_cluster: bool
    kubeconfig: str
    context: str
    operator: Operator
    surroundings: Surroundings
    sources: Sources


def settings_of(params: Mapping[str, Any]) -> Settings:
    """The request of a command's parameters."""
    sources = Sources()
    where = surroundings()
    return Settings(
        paths=params.get("paths") or (".",),
        now=moment(params["now"]) if params.get("now") else None,
        snapshot=params.get("snapshot"),
        timeout=seconds("--timeout", params.get("timeout") or where.timeout),
        via=dict(_via(text) for text in params.get("via") or ()),
        identity=_text(params, "identity"),
        namespace=_text(params, "namespace"),
        strict=bool(params.get("strict")),
        quiet=bool(params.get("quiet")),
        allow_unlisted_connections=bool(params.get("allow_unlisted_connections")),
        no_cluster=bool(params.get("no_cluster")),
        kubeconfig=params.get("kubeconfig") or "",
        context=params.get("context") or "",
        operator=_operator(params.get("operator_config") or "", sources),
        surroundings=where,
        sources=sources,
    )


def _text(params: Mapping[str, Any], name: str) -> str:
    """An option that stands in manifests or requests; empty: not given."""
    value: str = params.get(name) or ""
    if not value.isprintable():
        raise InvalidInput(f"--{name} {printable(value)} holds a character that cannot be printed")
    return value


def _operator(path: str, sources: Sources) -> Operator:
    if not path:
        return Operator()
    from twgen.reading.records import read_operator_file

    return read_operator_file(path, sources)


def _via(text: str) -> tuple[str, str]:
    address, _, instead = text.partition("=")
    if not _ADDRESS.fullmatch(address) or not _ADDRESS.fullmatch(instead):
        raise InvalidInput(
            f"--via {text!r} is not ADDRESS=ADDRESS such as temporal.prod.svc:7233=127.0.0.1:7233"
        )
    return address, instead


def seconds(option: str, duration: str) -> float:
    """The seconds of an option's duration; raises InvalidInput for none, or no time at all."""
    length = option_duration(option, duration, "10s").total_seconds()
    if length <= 0:
        raise InvalidInput(f"{option} {duration!r} leaves no time to read anything")
    return length


def option_duration(option: str, text: str, such_as: str) -> timedelta:
    """The length that an option says, `2d` and `10min` included; raises InvalidInput when it says none."""
    try:
        return parse_duration(text)
    except ValueError as error:
        if written := go_duration(text):
            return parse_duration(written)
        raise InvalidInput(f"{option} {text!r} is not a duration such as {such_as}") from error
