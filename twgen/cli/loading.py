"""Assembling what a command works on: specs, world, manager."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from twgen.cli.clock import clock, moment
from twgen.cli.output import warn
from twgen.errors import InvalidDocuments, InvalidInput
from twgen.model.problem import Problem
from twgen.model.spec import WorkerSpec
from twgen.model.world import WorkerWorld, World
from twgen.planning.plan import Manager
from twgen.planning.versions import due_for_scale_down
from twgen.reading.documents import Sources, read_paths
from twgen.records.ledger import read_ledgers
from twgen.reporting.problems import problem_lines
from twgen.specs.durations import parse_duration
from twgen.specs.opened import NamespaceRule
from twgen.specs.parse import Specs, parse_specs


@dataclass(frozen=True, slots=True)
class Request:
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
    sources: Sources


def request(params: Mapping[str, Any]) -> Request:
    """The request of a command's parameters."""
    return Request(
        paths=params.get("paths") or (".",),
        now=moment(params["now"]) if params.get("now") else None,
        snapshot=params.get("snapshot"),
        timeout=_seconds(params.get("timeout") or ("40s" if in_plugin() else "10s")),
        identity=params.get("identity"),
        namespace=params.get("namespace"),
        strict=bool(params.get("strict")),
        quiet=bool(params.get("quiet")),
        allow_unlisted_connections=bool(params.get("allow_unlisted_connections")),
        sources=Sources(),
    )


def load_specs(asked: Request) -> Specs:
    """The specs of the paths; raises InvalidDocuments with every problem, and prints the warnings."""
    read = read_paths(asked.paths, asked.sources)
    specs = parse_specs(read.documents, namespace_rule(asked))
    doubts = specs.unknown_fields + specs.warnings
    problems = specs.problems + (doubts if asked.strict else ())
    if problems or read.unreadable:
        raise InvalidDocuments([*read.unreadable, *_lines(problems, asked.sources)])
    if not asked.quiet:
        warn([*specs.deprecations, *_lines(doubts, asked.sources)])
    return specs


def planning_time(asked: Request, world: World) -> datetime:
    """The time to plan as of: a snapshot speaks for its own time, and is never planned on later by chance."""
    return asked.now or world.taken_at


def load_world(asked: Request, specs: Specs, *, for_routing: bool) -> World:
    """What is known of the specs' workers: the snapshot's word, or Temporal's own."""
    world = _snapshot(asked) if asked.snapshot else read_live(asked, specs.workers, for_routing=for_routing)
    return replace(world, ledger=read_ledgers(specs.ledgers)) if specs.ledgers else world


def read_live(asked: Request, workers: Sequence[WorkerSpec], *, for_routing: bool) -> World:
    """What Temporal says of the workers right now."""
    from twgen.clients import TemporalClients
    from twgen.reading.temporal import read_temporal

    now = asked.now or clock()
    with TemporalClients(asked.timeout, allow_unlisted=asked.allow_unlisted_connections) as clients:
        answers = read_temporal(
            workers,
            clients,
            for_routing=for_routing,
            now=now,
            due_for_scale_down=due_for_scale_down,
        )
    return World(
        now,
        {
            (spec.worker_deployment, spec.temporal_namespace): WorkerWorld(
                spec.worker_deployment, spec.temporal_namespace, answer
            )
            for spec, answer in zip(workers, answers, strict=True)
        },
    )


def in_plugin() -> bool:
    """Argo CD runs this process, as a config-management plugin, within its own limit of 60 s."""
    return "ARGOCD_APP_NAME" in os.environ


def namespace_rule(asked: Request) -> NamespaceRule:
    """Whose namespace a document gets; Argo CD's application has but one."""
    default = asked.namespace or os.environ.get("ARGOCD_APP_NAMESPACE", "")
    return NamespaceRule(default, only=in_plugin() and bool(default))


def rendering_manager(asked: Request) -> Manager:
    """Who renders: nobody in particular, unless it is said."""
    return Manager(asked.identity or "", forced=bool(asked.identity))


def planning_manager(asked: Request) -> Manager:
    """Who plans: at a terminal, the person."""
    if asked.identity:
        return Manager(asked.identity, forced=True)
    import getpass
    import socket

    return Manager(f"twgen/{getpass.getuser()}@{socket.gethostname()}")


def _snapshot(asked: Request) -> World:
    from twgen.reading.snapshot_file import read_snapshot_file

    return read_snapshot_file(asked.snapshot or "", asked.sources)


def _lines(problems: Sequence[Problem], sources: Sources) -> list[str]:
    if not problems:
        return []
    from twgen.reading.locations import located

    return problem_lines(located(problems, sources))


def _seconds(duration: str) -> float:
    try:
        return parse_duration(duration).total_seconds()
    except ValueError as error:
        raise InvalidInput(f"--timeout {duration!r} is not a duration such as 10s") from error
