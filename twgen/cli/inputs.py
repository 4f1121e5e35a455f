"""The input of a command: specs, world, and the time that the plan is for."""

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain, islice
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import click

from twgen.cli.option import Form
from twgen.cli.settings import (
    KIND,
    Settings,
    clock,
    is_worker_name,
    named_worker,
    settings_of,
    settings_outside_argocd,
)
from twgen.errors import InvalidDocuments, InvalidInput, TwgenError
from twgen.model.operator import GroupKind
from twgen.model.paths import value_at
from twgen.model.plan import WorkerVersions
from twgen.model.problem import MISSING_FIELD, MOST_REPORTED_IN_ALL, Document, Problem, Rule
from twgen.model.rollout import Driver
from twgen.model.spec import WorkerSpec
from twgen.model.times import format_time
from twgen.model.world import GitHistory, RecordedDeployment, WorkerWorld, World
from twgen.planning.drivers import driver_of_render, drivers_with_objects, tracks_jobs, with_hooks
from twgen.planning.reads import left_overs_to_look_for, versions_to_look_for
from twgen.planning.versions.warnings import with_lost_references
from twgen.reading.charts import changing_pods, unescaped_placeholders
from twgen.reading.documents import Documents, located, read_ledgers, read_snapshot_file
from twgen.reading.templated import DIRECTORY, read_input
from twgen.rendering.jobs import RolloutJobs
from twgen.rendering.manifests import config_objects
from twgen.reporting.problems import Located, problem_lines
from twgen.specs.attached import KINDS, cluster_scoped_templates, defined_cluster_scoped
from twgen.specs.connections import local_addresses
from twgen.specs.kinds import OPERATOR_CONFIG, POLICY, SNAPSHOT, WORKER, kind_of
from twgen.specs.manifests import hooks_beside_jobs
from twgen.specs.neighbours import collisions, generated_objects
from twgen.specs.parse import Specs, parse_specs, refused_manifests
from twgen.specs.policies import replays_without_image, unusable_prometheus
from twgen.versioning.names import CONTROLLER_API

if TYPE_CHECKING:
    from twgen.cli.live import Servers

_COMPLETES_WITHIN = 2.0
"""Seconds: a person waits in the middle of a line."""
_MOST_FOR_HISTORY = 10.0
"""Seconds that reading Git may add to a render, which Argo CD stops after 60."""
_NO_SPEC = Rule("ledger-without-spec", "No spec describes the worker of this ledger.")
_MOST_REPEATED = 20
"""Warnings about documents in one worker's intent: each becomes an Event."""


def load_specs(
    settings: Settings, *, needs_worker: bool = False, or_name: bool = False, renders_again: bool = False
) -> Specs:
    """The specs of the paths; raises InvalidDocuments with all problems, and prints the warnings.

    A missing worker is also a warning; raises InvalidInput if one is needed. With `or_name`, `worker/NAME`
    means the specs that the rollout of a worker in the cluster was rendered with. `renders_again` is as for
    `parse`; strict commands and the plugin do it too.
    """
    if or_name and (named := named_worker(settings)):
        from twgen.cli.by_name import specs_of_named

        return specs_of_named(settings, named)
    # planning a single file uses the same ledger as planning its folder, or locking it
    documents = read_input(settings.input, settings.paths, settings.sources, ledgers=True)
    renders_again = renders_again or settings.strict or settings.environment.is_plugin
    specs = parse(settings, documents, renders_again=renders_again)
    specs = specs._replace(problems=(*specs.problems, *refused_manifests(specs.manifests)), manifests=())
    warnings = specs.unknown_fields + specs.warnings
    is_wrong = specs.problems or documents.unreadable or any(map(_is_of_policy, specs.unknown_fields))
    if is_wrong or (warnings and settings.strict):
        problems = all_problems(documents, specs) + (specs.warnings if settings.strict else ())
        settings.warn(_lines(settings, specs.deprecations + (() if settings.strict else specs.warnings)))
        raise InvalidDocuments([*documents.unreadable, *_lines(settings, problems)])
    settings.warn(_lines(settings, specs.deprecations + warnings))
    # the last worker may have been removed; in Argo CD, a render continues with its remaining versions
    is_refused = settings.strict and not settings.environment.is_plugin
    if not specs.workers and (needs_worker or is_refused):
        raise InvalidInput(no_worker(settings, specs))
    if not specs.workers:
        settings.warn([no_worker(settings, specs)])
    # two Argo CDs with an Application of the same name would both count as the owner
    nameless = [worker.worker_deployment for worker in specs.workers if not worker.policy.identity]
    if nameless and settings.environment.is_plugin and not settings.rendering_caller.identity:
        raise InvalidInput(
            f"{nameless[0]} has no manager identity: the operator must set `instance` in the file of"
            " TWGEN_OPERATOR_CONFIG, or a RolloutPolicy must set spec.identity"
        )
    return specs


def _is_of_policy(unknown_field: Problem) -> bool:
    """A policy has the field: no API server drops it, and a misspelt `workerRef` would mean every worker."""
    kind = kind_of(unknown_field.document.value)
    return kind is not None and kind.name == POLICY


def parse(settings: Settings, documents: Documents, *, renders_again: bool) -> Specs:
    """The specs in the documents, with the problems that follow from the operator's choices.

    `renders_again`: a chart is rendered a second time, to find pods that are never the same.
    """
    operator = settings.operator
    has_hooks = operator.rollout.driver is Driver.HOOK
    specs = parse_specs(
        documents.documents,
        settings.namespace_rule,
        operator.attached.kinds,
        drivers_with_objects(operator),
        # all workers of an application together decide whether they have hooks
        default_driver=Driver.AUTO if has_hooks else operator.rollout.driver,
        some_are_missing=bool(documents.unreadable),
    )
    if has_hooks:
        workers, warnings = with_hooks(specs.workers)
        specs = specs._replace(workers=workers, warnings=(*specs.warnings, *warnings))
    # its manifests run in a cluster: with --strict, the address of a proxy in the pods would be an error
    if settings.environment.is_plugin and not settings.strict:
        specs = specs._replace(warnings=(*specs.warnings, *local_addresses(specs.workers)))
    if operator.file or settings.environment.is_plugin:
        remedy = settings.environment.prometheus_remedy(operator)
        unusable = unusable_prometheus(specs.workers, settings.usable_prometheus(), remedy)
        specs = specs._replace(warnings=(*specs.warnings, *unusable))
    if operator.file and not operator.rollout.image:
        specs = specs._replace(warnings=(*specs.warnings, *replays_without_image(specs.workers)))
    of_chart = [*unescaped_placeholders(settings.input, settings.paths)]
    if renders_again:
        of_chart += changing_pods(settings.input, settings.paths, specs.workers)
    specs = specs._replace(warnings=(*specs.warnings, *of_chart))
    if not tracks_jobs(specs.workers, operator.rollout.image):
        return specs
    return specs._replace(problems=(*specs.problems, *hooks_beside_jobs(specs.passthrough, specs.workers)))


def all_problems(
    documents: Documents, specs: Specs, of_manifests: Iterable[Problem] = ()
) -> tuple[Problem, ...]:
    """All problems of the documents, of records next to them, and of manifests."""
    from twgen.records.ledger import parse_ledgers
    from twgen.records.operator_config import parse_operator
    from twgen.records.snapshot import parse_snapshot

    parsers = {SNAPSHOT: parse_snapshot, OPERATOR_CONFIG: parse_operator}
    records = (
        Problem.at(document, finding.path, finding.message)
        for document in documents.documents
        if (kind := kind_of(document.value)) and kind.name in parsers
        for finding in parsers[kind.name](document.value)[1]
    )
    problems = (
        *specs.problems,
        *parse_ledgers(specs.ledgers)[1],
        *of_manifests,
        *islice(records, MOST_REPORTED_IN_ALL),
        *specs.unknown_fields,
    )
    # a required field that is misspelled, or on the wrong level, is not also missing
    moved = {(id(problem.document), problem.instead_of) for problem in problems if problem.instead_of}
    return tuple(
        problem
        for problem in problems
        if not (problem.rule is MISSING_FIELD and (id(problem.document), problem.path) in moved)
    )


def ledgers_without_spec(settings: Settings, specs: Specs) -> Iterator[Problem]:
    """A warning for each ledger of a worker that no spec describes, if its whole folder was read.

    It is never an error: the worker's versions need the ledger as long as they have work. Next to a chart or
    a base, it may be the ledger of another environment.
    """
    if settings.input.kind != DIRECTORY:
        return
    workers = {worker.worker_deployment for worker in specs.workers}
    files = {worker.replace("/", ".") for worker in workers}
    folders = [PurePath(path) for path in settings.paths if Path(path).is_dir()]
    for document in specs.ledgers if workers else ():
        file = PurePath(document.source)
        if file.stem in files or not any(file.parent.parent.is_relative_to(folder) for folder in folders):
            continue
        versions = value_at(document.value, "versions")
        worker = value_at(versions[0], "worker") if isinstance(versions, list) and versions else None
        if isinstance(worker, str) and worker not in workers:
            message = f"no spec describes {worker}, so twgen renders none of its versions"
            remedy = "remove this file once they have no work left"
            yield Problem.at(document, "versions[0].worker", _NO_SPEC(f"{message}; {remedy}"))


def no_worker(settings: Settings, specs: Specs) -> str:
    """The message for input without a worker, with the way to make one from a Deployment."""
    kinds = (GroupKind.of(document.value) for document in specs.passthrough)
    more = "; `twgen import` makes one from a Deployment" if GroupKind("apps", "Deployment") in kinds else ""
    return f"no worker found in {' '.join(settings.paths)}: a worker is a {WORKER} of {CONTROLLER_API}{more}"


def the_worker(params: Mapping[str, Any]) -> tuple[Settings, WorkerSpec]:
    """The settings, and the worker that `--worker` names, or the only worker.

    Raises InvalidInput in a plugin, or if there is no such worker.
    """
    settings, name = settings_outside_argocd(params), params["worker"] or ""
    specs = load_specs(replace(settings, quiet=True), needs_worker=True, or_name=True)
    first, *others = workers_called(name, specs.workers)
    if others:
        names = ", ".join(sorted(spec.worker_deployment for spec in specs.workers))
        raise InvalidInput(f"there are several workers ({names}): choose one with --worker")
    return settings, first


def workers_called(name: str, workers: Sequence[WorkerSpec]) -> list[WorkerSpec]:
    """The workers of this name (empty: all of them); raises InvalidInput if there are none."""
    called = [spec for spec in workers if name in {"", spec.name, spec.worker_deployment}]
    if name and not called:
        names = ", ".join(sorted(spec.worker_deployment for spec in workers))
        raise InvalidInput(f"there is no worker {name!r}; the workers are: {names or 'none'}")
    return called


def planning_time(settings: Settings, world: World) -> datetime:
    """The time of the plan: for a snapshot its own time, never by accident a later one."""
    if settings.snapshot and settings.now and settings.now < world.taken_at:
        written_at = f"which was written at {format_time(world.taken_at)}"
        settings.warn([f"--now is earlier than {settings.snapshot}, {written_at}"])
    return settings.now or world.taken_at


def load_world(
    settings: Settings,
    specs: Specs,
    *,
    for_routing: bool,
    servers: "Servers | None" = None,
    memory: "Memory | None" = None,
) -> World:
    """The state of the specs' workers: from the snapshot or the servers; unknown if offline.

    The caller's servers stay connected, and its memory avoids repeated reads.
    """
    if specs.snapshots and not settings.snapshot and not settings.offline:
        file = specs.snapshots[0].source
        remedy = f"use `--snapshot {file}` to plan with it instead of servers"
        settings.warn([f"{file} is a Snapshot, not a spec: {remedy}"])
    if settings.offline:
        # for an unread cluster, which might have versions, a render would leave out the number of replicas
        empty = {worker.key: WorkerWorld(*worker.key, deployments=()) for worker in specs.workers}
        world = World(clock(), empty)
    elif settings.snapshot:
        world = read_snapshot_file(settings.snapshot, settings.sources)
    elif servers:
        world = servers.read(specs.workers, for_routing=for_routing)
    else:
        from twgen.cli.live import Servers

        with Servers(settings) as own_servers:
            world = own_servers.read(specs.workers, for_routing=for_routing)
    return (memory or Memory(settings)).recall(specs, world)


class Memory:
    """Old versions in Git: in the ledger next to the specs, and in the commits that changed the specs."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._documents: tuple[Document, ...] = ()
        self._ledger: dict[str, dict[tuple[str, str], RecordedDeployment]] = {}
        """By worker, because each read of a rollout recalls one worker."""
        self._histories: dict[tuple[str, str, frozenset[str]], GitHistory] = {}

    def recall(self, specs: Specs, world: World) -> World:
        """The world with old versions from Git; reads commits once, only if all else lacks a version."""
        settings = self._settings
        if specs.ledgers and specs.ledgers is not self._documents:
            from twgen.records.ledger import recorded_versions

            # in this order, because rollouts of several workers call this in threads
            by_worker = defaultdict[str, dict[tuple[str, str], RecordedDeployment]](dict)
            for key, recorded in recorded_versions(read_ledgers(specs.ledgers, settings.sources)).items():
                by_worker[key[0]][key] = recorded
            self._ledger, self._documents = by_worker, specs.ledgers
        own_entries = (self._ledger.get(name, {}) for name, _ in world.workers) if specs.ledgers else ()
        world = world.remembering(dict(chain.from_iterable(own.items() for own in own_entries)))
        now, ends = settings.now or world.taken_at, time.monotonic() + _MOST_FOR_HISTORY
        # versions with work come first, for every worker: the time may run out
        for to_look_for in (versions_to_look_for, left_overs_to_look_for):
            histories = {}
            for spec in specs.workers:
                worker = world.workers.get(spec.key)
                if worker and (missing := to_look_for(spec, worker, now)):
                    histories[spec.key] = worker.history.with_more(self._history(spec, missing, ends))
            world = world.with_history(histories) if histories else world
        return world

    def _history(self, spec: WorkerSpec, missing: frozenset[str], ends: float) -> GitHistory:
        key, settings = (spec.worker_deployment, spec.build_id, missing), self._settings
        if key not in self._histories:
            from twgen.reading.history import SpecSources, read_history

            rule, kinds = settings.namespace_rule, settings.operator.attached.kinds
            sources, why = SpecSources(settings.paths, rule, kinds), settings.environment.why_no_repository
            self._histories[key] = read_history(spec, missing, sources, ends, why)
        return self._histories[key]


def rollout_jobs(settings: Settings, workers: Sequence[WorkerSpec]) -> RolloutJobs:
    """The drivers and Pods of the rollouts in a render; raises the errors of `driver_of_render`."""
    operator, is_plugin = settings.operator, settings.environment.is_plugin
    pods, kinds = operator.rollout, operator.attached.kinds
    prometheus = settings.environment.prometheus(operator)
    driver = driver_of_render(workers, settings.rendering_caller, operator, leaves_none_out=is_plugin)
    if not pods.image and not operator.file:
        settings.warn(_lines(settings, replays_without_image(workers)))
    return RolloutJobs(driver, pods.image, kinds, pods, prometheus, is_tick_allowed=operator.tick.rollouts)


def _lines(settings: Settings, problems: Iterable[Problem]) -> Iterator[str]:
    yield from problem_lines(located(problems, settings.sources))


def _refuse(settings: Settings, problems: Iterable[Problem]) -> None:
    if lines := tuple(_lines(settings, problems)):
        raise InvalidDocuments(lines)


def refuse_collisions(
    settings: Settings, specs: Specs, workers: Iterable[WorkerVersions], drivers: Collection[Driver] = ()
) -> None:
    """Raise InvalidDocuments if two versions, or a version and a document, share an object.

    Workers with one of these `drivers` also have an object for their rollout.
    """
    objects = generated_objects(workers, drivers)
    _refuse(settings, collisions(objects, specs.passthrough, settings.namespace_rule.default))


def refuse_cluster_scoped(settings: Settings, specs: Specs) -> None:
    """Raise InvalidDocuments if a document or the API server says that an attached kind is cluster-scoped."""
    _refuse(settings, cluster_scoped_templates(specs.workers, defined_cluster_scoped(specs.passthrough)))
    attached = {GroupKind.of(resource.template) for worker in specs.workers for resource in worker.attached}
    kinds = attached - KINDS.keys()
    if settings.snapshot or not kinds:
        return
    from twgen.cli.live import Connections, Servers
    from twgen.reading.installation.cluster import cluster_scoped

    async def scoped_kinds(opened: Connections) -> frozenset[GroupKind]:
        client = opened.kubernetes
        return await cluster_scoped(client, kinds, opened.deadline()) if client else frozenset()

    with Servers(replace(settings, quiet=True)) as servers:
        scoped = servers.run(specs.workers, scoped_kinds)
    _refuse(settings, cluster_scoped_templates(specs.workers, scoped))


def with_references(
    settings: Settings, specs: Specs, workers: Iterable[WorkerVersions]
) -> tuple[WorkerVersions, ...]:
    """The workers' versions, with warnings about objects that a version uses but the documents lack."""
    objects = frozenset(config_objects(specs.passthrough, settings.namespace_rule.default))
    return with_lost_references(workers, objects)


def intent_warnings(specs: Specs, general: Sequence[str]) -> dict[str, list[str]]:
    """The warnings about documents that the intents of workers repeat, by worker deployment.

    The first worker also gets the `general` warnings, which belong to none of these workers.
    """
    warnings: defaultdict[tuple[str, int, str], list[Located]] = defaultdict(list)
    for warning in specs.unknown_fields + specs.warnings:
        document = warning.document
        # without its line: a comment added above it would change the intent
        warnings[document.source, document.index, document.path].append(Located(warning, None))
    repeated: dict[str, list[str]] = {}
    for worker in specs.workers:
        attached = (resource.document for resource in worker.attached)
        documents = (worker.document, worker.connection.document, worker.policy.document, *attached)
        about = (warnings.get((document.source, document.index, document.path), ()) for document in documents)
        lines = problem_lines(chain.from_iterable(about))
        more = [f"and {len(lines) - _MOST_REPEATED} more"] if len(lines) > _MOST_REPEATED else []
        first = () if repeated else general
        repeated[worker.worker_deployment] = [*first, *lines[:_MOST_REPEATED], *more]
    return repeated


def plan_warnings(workers: Iterable[WorkerVersions], general: Iterable[str]) -> list[str]:
    """Every warning of a plan, with its worker."""
    about = (f"{item.spec.worker_deployment}: {text}" for item in workers for text in item.warnings)
    return [*about, *general]


def refuse_warnings(warnings: list[str]) -> None:
    """Raise InvalidDocuments if there are any."""
    if warnings:
        raise InvalidDocuments(warnings)


def _names_in_cluster(params: Mapping[str, Any], beginning: str) -> list[str]:
    """The `worker/NAME` completions in the namespace, for a shell; none if the cluster does not answer.

    It asks the cluster only after the person has typed `worker/`. A login program gets no terminal: it would
    ask in the middle of a line, and read whatever the person types after that.
    """
    if not beginning or not (beginning.startswith(KIND) or KIND.startswith(beginning)):
        return []
    from twgen.cli.live import Connections, Servers
    from twgen.reading.rollouts import names_of_rollouts

    try:
        settings = settings_of({**params, "quiet": True, "timeout": _COMPLETES_WITHIN})
        namespace = settings.namespace_rule.default

        async def read(opened: Connections) -> list[str]:
            client = opened.cluster_for(f"{KIND}NAME")
            names = await names_of_rollouts(client, namespace, opened.deadline())
            # a shell inserts them as they are
            return list(filter(is_worker_name, names))

        with Servers(settings, asks=False) as servers:
            names = servers.run((), read) if namespace else []
    except (TwgenError, click.ClickException):
        return []
    return [f"{KIND}{name}" for name in names if f"{KIND}{name}".startswith(beginning)]


class _PathsOrName(Form):
    """PATHs, or `worker/NAME`, whose names a shell completes from the cluster."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """The names, and the request to the shell to complete file names."""
        from click.shell_completion import CompletionItem

        names = _names_in_cluster(ctx.params, incomplete)
        return [*map(CompletionItem, names), *super().shell_complete(ctx, param, incomplete)]


paths_or_name_argument = click.argument("paths", nargs=-1, metavar="[PATH]...", type=_PathsOrName("PATH"))
"""Files and folders, `.` by default, `-` for stdin; or `worker/NAME`."""
