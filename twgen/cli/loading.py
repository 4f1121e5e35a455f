"""Assembling what a command works on: specs, world, manager."""

import os
from collections.abc import Sequence
from datetime import datetime

from twgen.cli.argocd import application, in_plugin
from twgen.cli.output import warn
from twgen.cli.settings import Settings
from twgen.errors import InvalidDocuments, InvalidInput
from twgen.model.caller import Caller
from twgen.model.problem import Problem
from twgen.model.spec import WorkerSpec
from twgen.model.world import World
from twgen.reading.documents import Sources, read_paths
from twgen.records.ledger import read_ledgers
from twgen.reporting.problems import problem_lines
from twgen.specs.kinds import CONTROLLER_API, WORKER
from twgen.specs.parse import Specs, parse_specs
from twgen.specs.spec_document import NamespaceRule


def load_specs(settings: Settings, *, needs_worker: bool = False) -> Specs:
    """The specs of the paths; raises InvalidDocuments with every problem, and prints the warnings.

    No worker is a warning too; raises InvalidInput where one is needed.
    """
    read = read_paths(settings.paths, settings.sources)
    specs = parse_specs(read.documents, namespace_rule(settings))
    doubts = specs.unknown_fields + specs.warnings
    problems = specs.problems + (doubts if settings.strict else ())
    if problems or read.unreadable:
        raise InvalidDocuments([*read.unreadable, *_lines(problems, settings.sources)])
    if needs_worker and not specs.workers:
        raise InvalidInput(no_worker(settings))
    if not settings.quiet:
        warn(_lines(specs.deprecations + doubts, settings.sources))
        if not specs.workers:
            warn([no_worker(settings)])
    _refuse_nameless(settings, specs.workers)
    return specs


def no_worker(settings: Settings) -> str:
    """That there is nothing to plan, and what would be."""
    return f"no worker found in {' '.join(settings.paths)}: a worker is a {WORKER} of {CONTROLLER_API}"


def planning_time(settings: Settings, world: World) -> datetime:
    """The time to plan as of: a snapshot speaks for its own time, and is never planned on later by chance."""
    return settings.now or world.taken_at


def load_world(settings: Settings, specs: Specs, *, for_routing: bool) -> World:
    """What is known of the specs' workers: the snapshot's word, or the servers' own."""
    world = _snapshot(settings) if settings.snapshot else _live(settings, specs, for_routing=for_routing)
    return world.remembering(read_ledgers(specs.ledgers)) if specs.ledgers else world


def namespace_rule(settings: Settings) -> NamespaceRule:
    """Whose namespace a document gets; Argo CD's application has but one."""
    default = settings.namespace or os.environ.get("ARGOCD_APP_NAMESPACE", "")
    return NamespaceRule(default, only=in_plugin() and bool(default))


def rendering_caller(settings: Settings) -> Caller:
    """Who renders: nobody in particular, unless it is said; in Argo CD, the operator's instance of it."""
    if settings.identity:
        return Caller(settings.identity, forced=True, application=_application_name())
    if in_plugin() and settings.operator.instance:
        name = application().name
        return Caller(f"twgen/{settings.operator.instance}/{name}", application=name)
    return Caller(application=_application_name())


def planning_caller(settings: Settings) -> Caller:
    """Who plans: at a terminal, the person."""
    if settings.identity or in_plugin():
        return rendering_caller(settings)
    import getpass
    import socket

    return Caller(f"twgen/{getpass.getuser()}@{socket.gethostname()}", is_person=True)


def _application_name() -> str:
    return application().name if in_plugin() else ""


def _refuse_nameless(settings: Settings, workers: Sequence[WorkerSpec]) -> None:
    # two Argo CDs with an application of the same name would both pass as the owner
    nameless = [worker.worker_deployment for worker in workers if not worker.policy.identity]
    if in_plugin() and nameless and not settings.identity and not settings.operator.instance:
        raise InvalidInput(
            f"{nameless[0]} has no manager identity: the operator names its instance in"
            " TWGEN_OPERATOR_CONFIG, or a RolloutPolicy has spec.identity"
        )


def _live(settings: Settings, specs: Specs, *, for_routing: bool) -> World:
    from twgen.cli.live import read_live

    return read_live(settings, specs.workers, for_routing=for_routing)


def _snapshot(settings: Settings) -> World:
    from twgen.reading.snapshot_file import read_snapshot_file

    return read_snapshot_file(settings.snapshot or "", settings.sources)


def _lines(problems: Sequence[Problem], sources: Sources) -> list[str]:
    if not problems:
        return []
    from twgen.reading.locations import located

    return problem_lines(located(problems, sources))
