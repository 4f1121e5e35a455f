"""Assembling what a command works on: specs, world, manager."""

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from twgen.cli.argocd import application, in_plugin
from twgen.cli.output import warn
from twgen.cli.request import Request
from twgen.errors import InvalidDocuments, InvalidInput
from twgen.model.problem import Problem
from twgen.model.spec import WorkerSpec
from twgen.model.world import World
from twgen.planning.plan import Manager
from twgen.reading.documents import Sources, read_paths
from twgen.records.ledger import read_ledgers
from twgen.reporting.problems import problem_lines
from twgen.specs.opened import NamespaceRule
from twgen.specs.parse import Specs, parse_specs


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
    _refuse_nameless(asked, specs.workers)
    return specs


def planning_time(asked: Request, world: World) -> datetime:
    """The time to plan as of: a snapshot speaks for its own time, and is never planned on later by chance."""
    return asked.now or world.taken_at


def load_world(asked: Request, specs: Specs, *, for_routing: bool) -> World:
    """What is known of the specs' workers: the snapshot's word, or the servers' own."""
    world = _snapshot(asked) if asked.snapshot else _live(asked, specs, for_routing=for_routing)
    return replace(world, ledger=read_ledgers(specs.ledgers)) if specs.ledgers else world


def namespace_rule(asked: Request) -> NamespaceRule:
    """Whose namespace a document gets; Argo CD's application has but one."""
    default = asked.namespace or os.environ.get("ARGOCD_APP_NAMESPACE", "")
    return NamespaceRule(default, only=in_plugin() and bool(default))


def rendering_manager(asked: Request) -> Manager:
    """Who renders: nobody in particular, unless it is said; in Argo CD, the operator's instance of it."""
    if asked.identity:
        return Manager(asked.identity, forced=True, application=_application_name())
    if in_plugin() and asked.operator.instance:
        name = application().name
        return Manager(f"twgen/{asked.operator.instance}/{name}", application=name)
    return Manager(application=_application_name())


def planning_manager(asked: Request) -> Manager:
    """Who plans: at a terminal, the person."""
    if asked.identity or in_plugin():
        return rendering_manager(asked)
    import getpass
    import socket

    return Manager(f"twgen/{getpass.getuser()}@{socket.gethostname()}", is_person=True)


def _application_name() -> str:
    return application().name if in_plugin() else ""


def _refuse_nameless(asked: Request, workers: Sequence[WorkerSpec]) -> None:
    # two Argo CDs with an application of the same name would both pass as the owner
    nameless = [worker.worker_deployment for worker in workers if not worker.policy.identity]
    if in_plugin() and nameless and not asked.identity and not asked.operator.instance:
        raise InvalidInput(
            f"{nameless[0]} has no manager identity: the operator names its instance in"
            " TWGEN_OPERATOR_CONFIG, or a RolloutPolicy has spec.identity"
        )


def _live(asked: Request, specs: Specs, *, for_routing: bool) -> World:
    from twgen.cli.live import read_live

    return read_live(asked, specs.workers, for_routing=for_routing)


def _snapshot(asked: Request) -> World:
    from twgen.reading.snapshot_file import read_snapshot_file

    return read_snapshot_file(asked.snapshot or "", asked.sources)


def _lines(problems: Sequence[Problem], sources: Sources) -> list[str]:
    if not problems:
        return []
    from twgen.reading.locations import located

    return problem_lines(located(problems, sources))
