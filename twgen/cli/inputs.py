"""What a command works on: specs, world, who plans, and as of when."""

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain, islice
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from twgen.cli.output import warn
from twgen.cli.settings import Settings, clock
from twgen.errors import InvalidDocuments, InvalidInput
from twgen.model.operator import GroupKind
from twgen.model.paths import value_at
from twgen.model.plan import WorkerVersions
from twgen.model.policy import Driver
from twgen.model.problem import MOST_TOLD_IN_ALL, Document, Problem
from twgen.model.spec import WorkerSpec
from twgen.model.times import format_time
from twgen.model.world import GitHistory, RecordedDeployment, WorkerWorld, World
from twgen.planning.drivers import driver_of_render, drivers_with_objects, tracks_jobs
from twgen.planning.reads import left_overs_to_look_for, versions_to_look_for
from twgen.planning.versions.references import with_lost_references
from twgen.reading.documents import Documents, Sources
from twgen.reading.input import DIRECTORY, read_input
from twgen.reading.records import read_ledgers, read_snapshot_file
from twgen.rendering.jobs import RolloutJobs
from twgen.rendering.manifests import config_objects
from twgen.reporting.problems import Located, problem_lines
from twgen.specs.analysis import unusable_prometheus
from twgen.specs.attached import KINDS, why_cluster_scoped
from twgen.specs.collisions import collisions, generated_objects
from twgen.specs.connections import local_addresses
from twgen.specs.hooks import hooks_beside_jobs
from twgen.specs.kinds import OPERATOR_CONFIG, POLICY, SNAPSHOT, WORKER, kind_of
from twgen.specs.parse import Specs, parse_specs, refused_manifests
from twgen.specs.replay import replays_without_image
from twgen.versioning.names import CONTROLLER_API

if TYPE_CHECKING:
    from twgen.cli.live import Servers

_MOST_FOR_HISTORY = 10.0
"""Seconds that reading Git may add to a render, which Argo CD ends after 60."""
_MOST_REPEATED = 20
"""Warnings of documents in the intent of one worker: each becomes an Event."""


def load_specs(settings: Settings, *, needs_worker: bool = False, or_name: bool = False) -> Specs:
    """The specs of the paths; raises InvalidDocuments with every problem, and prints the warnings.

    No worker is a warning too; raises InvalidInput where one is needed. With `or_name`, `worker/NAME` means
    the specs that the rollout of a worker in the cluster was rendered with.
    """
    if or_name:
        from twgen.cli.by_name import named_worker, specs_of_named

        if named := named_worker(settings):
            return specs_of_named(settings, named)
    # a file alone is planned by the same ledger as its folder, and as it is locked by
    read = read_input(settings.input, settings.paths, settings.sources, ledgers=True)
    specs = parse(settings, read)
    specs = specs._replace(problems=(*specs.problems, *refused_manifests(specs.manifests)), manifests=())
    doubts = specs.unknown_fields + specs.warnings
    is_wrong = specs.problems or read.unreadable or any(map(_is_of_policy, specs.unknown_fields))
    if is_wrong or (doubts and settings.strict):
        problems = all_problems(read, specs) + (specs.warnings if settings.strict else ())
        if not settings.quiet:
            warn(_lines(specs.deprecations + (() if settings.strict else specs.warnings), settings.sources))
        raise InvalidDocuments([*read.unreadable, *_lines(problems, settings.sources)])
    if not settings.quiet:
        warn(_lines(specs.deprecations + doubts, settings.sources))
    # the last one may have been removed, and in Argo CD a render goes on with what is left of it
    is_refused = settings.strict and not settings.surroundings.is_plugin
    if not specs.workers and (needs_worker or is_refused):
        raise InvalidInput(no_worker(settings, specs))
    if not settings.quiet and not specs.workers:
        warn([no_worker(settings, specs)])
    # two Argo CDs with an application of the same name would both pass as the owner
    nameless = [worker.worker_deployment for worker in specs.workers if not worker.policy.identity]
    if nameless and settings.surroundings.is_plugin and not settings.rendering_caller.identity:
        raise InvalidInput(
            f"{nameless[0]} has no manager identity: the operator must set `instance` in the file of"
            " TWGEN_OPERATOR_CONFIG, or a RolloutPolicy must set spec.identity"
        )
    return specs


def _is_of_policy(unknown_field: Problem) -> bool:
    """No API server drops it: one that is misspelt would make of `workerRef` every worker."""
    kind = kind_of(unknown_field.document.value)
    return kind is not None and kind.name == POLICY


def parse(settings: Settings, read: Documents) -> Specs:
    """The specs of what was read, with what its operator's choices make a problem."""
    operator = settings.operator
    drivers = drivers_with_objects(operator.rollout.image)
    specs = parse_specs(
        read.documents,
        settings.namespace_rule,
        operator.attached.kinds,
        drivers,
        some_are_missing=bool(read.unreadable),
    )
    where = settings.surroundings
    # what it renders runs in a cluster; strict would refuse what a proxy in the pods may mean
    if where.is_plugin and not settings.strict:
        specs = specs._replace(warnings=(*specs.warnings, *local_addresses(specs.workers)))
    if operator.file or where.is_plugin:
        remedy = where.prometheus_remedy(operator)
        doubts = unusable_prometheus(specs.workers, settings.usable_prometheus(), remedy)
        specs = specs._replace(warnings=(*specs.warnings, *doubts))
    if operator.file and not operator.rollout.image:
        specs = specs._replace(warnings=(*specs.warnings, *replays_without_image(specs.workers)))
    if not tracks_jobs(specs.workers, operator.rollout.image):
        return specs
    hooks = hooks_beside_jobs(specs.passthrough, specs.workers)
    return specs._replace(problems=(*specs.problems, *hooks))


def all_problems(read: Documents, specs: Specs) -> tuple[Problem, ...]:
    """Everything that is wrong with documents, records next to them included."""
    from twgen.records.ledger import parse_ledgers
    from twgen.records.operator_config import parse_operator
    from twgen.records.snapshot import parse_snapshot
    from twgen.specs.manifests import manifest_problems

    parsers = {SNAPSHOT: parse_snapshot, OPERATOR_CONFIG: parse_operator}
    records = (
        Problem.at(document, finding.path, finding.message)
        for document in read.documents
        if (kind := kind_of(document.value)) and kind.name in parsers
        for finding in parsers[kind.name](document.value)[1]
    )
    problems = (
        *specs.problems,
        *parse_ledgers(specs.ledgers)[1],
        *manifest_problems(specs.manifests),
        *islice(records, MOST_TOLD_IN_ALL),
        *specs.unknown_fields,
    )
    # a required field that is misspelt, or one level too far out, is not missing too
    meant = {(id(problem.document), problem.instead_of) for problem in problems if problem.instead_of}
    return tuple(
        problem
        for problem in problems
        if not (problem.message.startswith("is required") and (id(problem.document), problem.path) in meant)
    )


def ledgers_without_spec(settings: Settings, specs: Specs) -> Iterator[Problem]:
    """A warning for each ledger of a worker that no spec describes, where its whole folder was read.

    It is refused by nobody: the ledger belongs there as long as the worker's versions have work. Beside a
    chart or a base, it is that of another environment.
    """
    if settings.input.kind != DIRECTORY:
        return
    here = {worker.worker_deployment for worker in specs.workers}
    files = {worker.replace("/", ".") for worker in here}
    folders = [PurePath(path) for path in settings.paths if Path(path).is_dir()]
    for document in specs.ledgers if here else ():
        file = PurePath(document.source)
        if file.stem in files or not any(file.parent.parent.is_relative_to(folder) for folder in folders):
            continue
        versions = value_at(document.value, "versions")
        worker = value_at(versions[0], "worker") if isinstance(versions, list) and versions else None
        if isinstance(worker, str) and worker not in here:
            message = f"no spec describes {worker}: twgen renders none of its versions"
            remedy = "remove this file once they have no work left"
            yield Problem.at(document, "versions[0].worker", f"{message}; {remedy}")


def no_worker(settings: Settings, specs: Specs) -> str:
    """That there is nothing to plan, what a worker is, and what makes one of a plain Deployment."""
    others = (GroupKind.of(document.value) for document in specs.passthrough)
    more = "; `twgen import` makes one from a Deployment" if GroupKind("apps", "Deployment") in others else ""
    return f"no worker found in {' '.join(settings.paths)}: a worker is a {WORKER} of {CONTROLLER_API}{more}"


def planning_time(settings: Settings, world: World) -> datetime:
    """The time to plan as of: a snapshot speaks for its own time, and is never planned on later by chance."""
    if settings.snapshot and settings.now and settings.now < world.taken_at and not settings.quiet:
        warn(
            [f"--now is earlier than {settings.snapshot}, which was written at {format_time(world.taken_at)}"]
        )
    return settings.now or world.taken_at


def load_world(
    settings: Settings,
    specs: Specs,
    *,
    for_routing: bool,
    servers: "Servers | None" = None,
    memory: "Memory | None" = None,
) -> World:
    """What is known of the specs' workers: the snapshot's word, or the servers' own; offline nothing.

    Servers that the caller gives stay connected, and what its memory was told it is not told again.
    """
    if specs.snapshots and not settings.snapshot and not settings.offline and not settings.quiet:
        file = specs.snapshots[0].source
        warn(
            [f"{file} is a Snapshot, not a spec: use `--snapshot {file}` to plan with it instead of servers"]
        )
    if settings.offline:
        # a cluster that was not read might hold versions: the number of replicas would be left out
        empty = {worker.key: WorkerWorld(*worker.key, deployments=()) for worker in specs.workers}
        world = World(clock(), empty)
    elif settings.snapshot:
        world = read_snapshot_file(settings.snapshot, settings.sources)
    elif servers:
        world = servers.read(specs.workers, for_routing=for_routing)
    else:
        from twgen.cli.live import Servers

        with Servers(settings) as own:
            world = own.read(specs.workers, for_routing=for_routing)
    return (memory or Memory(settings)).recall(specs, world)


class Memory:
    """What Git remembers of old versions: the ledger beside the specs, and the commits that changed these."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._documents: tuple[Document, ...] = ()
        self._ledger: Mapping[tuple[str, str], RecordedDeployment] = {}
        self._told: dict[tuple[str, str, frozenset[str]], GitHistory] = {}

    def recall(self, specs: Specs, world: World) -> World:
        """The world with what is remembered; commits are read once, and only where nothing else tells."""
        settings = self._settings
        if specs.ledgers and specs.ledgers is not self._documents:
            from twgen.records.ledger import recorded_versions

            # in this order: the rollouts of several workers recall in threads
            self._ledger = recorded_versions(read_ledgers(specs.ledgers, settings.sources))
            self._documents = specs.ledgers
        world = world.remembering(self._ledger if specs.ledgers else {})
        now, ends = settings.now or world.taken_at, time.monotonic() + _MOST_FOR_HISTORY
        # what has work is looked for first, in the history of every worker: the time may end
        for to_look_for in (versions_to_look_for, left_overs_to_look_for):
            told = {}
            for spec in specs.workers:
                worker = world.workers.get(spec.key)
                if worker and (missing := to_look_for(spec, worker, now)):
                    told[spec.key] = worker.history.with_more(self._history(spec, missing, ends))
            world = world.with_history(told) if told else world
        return world

    def _history(self, spec: WorkerSpec, missing: frozenset[str], ends: float) -> GitHistory:
        asked, settings = (spec.worker_deployment, spec.build_id, missing), self._settings
        if asked not in self._told:
            from twgen.reading.history import SpecSources, read_history

            rule, kinds = settings.namespace_rule, settings.operator.attached.kinds
            sources, why_none = (
                SpecSources(settings.paths, rule, kinds),
                settings.surroundings.why_no_repository,
            )
            self._told[asked] = read_history(spec, missing, sources, ends, why_none)
        return self._told[asked]


def rollout_jobs(settings: Settings, workers: Sequence[WorkerSpec]) -> RolloutJobs:
    """How the rollouts of a render are carried out in the cluster; raises as `driver_of_render` does."""
    operator, is_plugin = settings.operator, settings.surroundings.is_plugin
    image = operator.rollout.image
    driver = driver_of_render(workers, settings.rendering_caller, image, needs_image=is_plugin)
    if not image and not operator.file and not settings.quiet:
        warn(_lines(tuple(replays_without_image(workers)), settings.sources))
    prometheus = settings.surroundings.prometheus(operator)
    return RolloutJobs(driver, image, operator.attached.kinds, operator.rollout, prometheus)


def _lines(problems: Sequence[Problem], sources: Sources) -> list[str]:
    if not problems:
        return []
    from twgen.reading.documents import located

    return problem_lines(located(problems, sources))


def refuse_collisions(
    settings: Settings, specs: Specs, workers: Iterable[WorkerVersions], drivers: Collection[Driver] = ()
) -> None:
    """Raise InvalidDocuments when the objects of two versions, or one and a document, are the same.

    `drivers` are those whose workers also have an object for their rollout.
    """
    made = generated_objects(workers, drivers)
    problems = tuple(collisions(made, specs.passthrough, settings.namespace_rule.default))
    if problems:
        raise InvalidDocuments(_lines(problems, settings.sources))


def refuse_cluster_scoped(settings: Settings, specs: Specs) -> None:
    """Raise InvalidDocuments when the API server knows an attached kind to be in no namespace."""
    attached = [resource for worker in specs.workers for resource in worker.attached]
    of_operator = {GroupKind.of(resource.template) for resource in attached} - KINDS.keys()
    if settings.snapshot or not of_operator:
        return
    from twgen.cli.live import Connections, Servers
    from twgen.clients.deadline import Deadline
    from twgen.reading.installation.api_server import cluster_scoped

    async def asked(opened: Connections) -> frozenset[GroupKind]:
        client = opened.kubernetes
        return (
            await cluster_scoped(client, of_operator, Deadline(settings.timeout)) if client else frozenset()
        )

    with Servers(replace(settings, quiet=True)) as servers:
        wrong = servers.run(specs.workers, asked)
    problems = tuple(
        Problem.at(resource.document, "spec.template.kind", why_cluster_scoped(kind))
        for resource in attached
        if (kind := GroupKind.of(resource.template)) in wrong
    )
    if problems:
        raise InvalidDocuments(_lines(problems, settings.sources))


def with_references(
    settings: Settings, specs: Specs, workers: Iterable[WorkerVersions]
) -> tuple[WorkerVersions, ...]:
    """The workers' versions, with warnings of what a version takes and the documents have no more."""
    there = frozenset(config_objects(specs.passthrough, settings.namespace_rule.default))
    return with_lost_references(workers, there)


def intent_warnings(specs: Specs, general: Sequence[str]) -> dict[str, list[str]]:
    """What the intents of workers repeat of their documents' warnings, by worker deployment.

    The `general` ones, which are about no worker of the documents, stand with the first one.
    """
    doubts: defaultdict[tuple[str, int, str], list[Located]] = defaultdict(list)
    for doubt in specs.unknown_fields + specs.warnings:
        document = doubt.document
        # without its line: a comment that is added above would change the intent
        doubts[document.source, document.index, document.path].append((doubt, None))
    told: dict[str, list[str]] = {}
    for worker in specs.workers:
        attached = (resource.document for resource in worker.attached)
        documents = (worker.document, worker.connection.document, worker.policy.document, *attached)
        about = (doubts.get((document.source, document.index, document.path), ()) for document in documents)
        lines = problem_lines(chain.from_iterable(about))
        more = [f"and {len(lines) - _MOST_REPEATED} more"] if len(lines) > _MOST_REPEATED else []
        told[worker.worker_deployment] = [*(general if not told else ()), *lines[:_MOST_REPEATED], *more]
    return told


def plan_warnings(workers: Iterable[WorkerVersions], general: Iterable[str]) -> list[str]:
    """Every warning of a plan, each with the worker that it is about."""
    about = (f"{item.spec.worker_deployment}: {text}" for item in workers for text in item.warnings)
    return [*about, *general]


def refuse_warnings(warnings: list[str]) -> None:
    """Raise InvalidDocuments when there are any."""
    if warnings:
        raise InvalidDocuments(warnings)
