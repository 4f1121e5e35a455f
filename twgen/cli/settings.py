"""What the command line asked for, in the program's own types."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from twgen.cli.argocd import in_plugin
from twgen.cli.clock import moment
from twgen.errors import InvalidInput
from twgen.model.operator import Operator
from twgen.reading.documents import Sources
from twgen.specs.durations import go_duration, parse_duration

_OPERATOR_CONFIG = "TWGEN_OPERATOR_CONFIG"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line asked for."""

    paths: tuple[str, ...]
    now: datetime | None
    """What `--now` says."""
    snapshot: str | None
    timeout: float
    """Seconds."""
    identity: str | None
    namespace: str | None
    strict: bool
    quiet: bool
    allow_unlisted_connections: bool
    no_cluster: bool
    kubeconfig: str
    context: str
    operator: Operator
    sources: Sources


def settings_of(params: Mapping[str, Any]) -> Settings:
    """The request of a command's parameters."""
    sources = Sources()
    return Settings(
        paths=params.get("paths") or (".",),
        now=moment(params["now"]) if params.get("now") else None,
        snapshot=params.get("snapshot"),
        timeout=seconds("--timeout", params.get("timeout") or ("40s" if in_plugin() else "10s")),
        identity=params.get("identity"),
        namespace=params.get("namespace"),
        strict=bool(params.get("strict")),
        quiet=bool(params.get("quiet")),
        allow_unlisted_connections=bool(params.get("allow_unlisted_connections")),
        no_cluster=bool(params.get("no_cluster")),
        kubeconfig=params.get("kubeconfig") or "",
        context=params.get("context") or "",
        operator=_operator(sources),
        sources=sources,
    )


def _operator(sources: Sources) -> Operator:
    path = os.environ.get(_OPERATOR_CONFIG, "")
    if not path or not in_plugin():
        return Operator()
    from twgen.reading.operator_file import read_operator_file

    return read_operator_file(path, sources)


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
