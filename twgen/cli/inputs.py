"""Loads the input of a command: the specs, the world, and the time of the plan."""

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
from twgen.cli.options import PATHS_OR_NAME, paths
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
"""The time limit for shell completion, in seconds. It is short because a user is waiting."""
_MOST_FOR_HISTORY = 10.0
"""The time limit for reading Git, in seconds. Argo CD stops a render after 60 seconds."""
_NO_SPEC = Rule("ledger-without-spec", "No spec describes the worker of this ledger.")
_MOST_REPEATED = 20
"""An intent repeats at most this many warnings about documents, because each warning becomes an Event."""


def load_specs(
    settings: Settings, *, needs_worker: bool = False, or_name: bool = False, renders_again: bool = False
) -> Specs:
    """Load the specs in the paths. Prints the warnings, and raises InvalidDocuments with all problems.

    If there is no worker, it prints a warning, or raises InvalidInput if `needs_worker` is set. With
    `or_name`, `worker/NAME` means the specs in the intent of that worker's rollout in the cluster.
    `renders_again` is as for `parse`. Strict commands and the plugin always render charts a second time.
    """
    if or_name and (named := named_worker(settings)):
        from twgen.cli.by_name import specs_of_named

        return specs_of_named(settings, named)
    # read ledgers too, so that a plan for a single file uses the same ledger as a plan for its folder
    documents = read_input(settings.input, settings.paths, settings.sources, ledgers=True)
    specs = parse(settings, documents, renders_again=renders_again or settings.renders_again)
    specs = specs._replace(problems=(*specs.problems, *refused_manifests(specs.manifests)), manifests=())
    warnings = specs.unknown_fields + specs.warnings
    is_wrong = specs.problems or documents.unreadable or any(map(_is_of_policy, specs.unknown_fields))
    if is_wrong or (warnings and settings.strict):
        problems = all_problems(documents, specs) + (specs.warnings if settings.strict else ())
        settings.warn(_lines(settings, specs.deprecations + (() if settings.strict else specs.warnings)))
        raise InvalidDocuments([*documents.unreadable, *_lines(settings, problems)])
    settings.warn(_lines(settings, specs.deprecations + warnings))
    # the last worker may have been removed from Git: in Argo CD, its remaining versions are still rendered
    is_refused = settings.strict and not settings.environment.is_plugin
    if not specs.workers and (needs_worker or is_refused):
        raise InvalidInput(no_worker(settings, specs))
    if not specs.workers:
        settings.warn([no_worker(settings, specs)])
    # without an identity, two Argo CDs that have an Application with the same name would both be the owner
    nameless = [worker.worker_deployment for worker in specs.workers if not worker.policy.identity]
    if nameless and settings.environment.is_plugin and not settings.rendering_caller.identity:
        raise InvalidInput(
            f"{nameless[0]} has no manager identity: the operator must set `instance` in the file of"
            " TWGEN_OPERATOR_CONFIG, or a RolloutPolicy must set spec.identity"
        )
    return specs


def _is_of_policy(unknown_field: Problem) -> bool:
    """Whether the field is in a policy, where a misspelled `workerRef` would select every worker."""
    kind = kind_of(unknown_field.document.value)
    return kind is not None and kind.name == POLICY


def parse(settings: Settings, documents: Documents, *, renders_again: bool) -> Specs:
    """The specs in the documents, including problems that follow from the operator's settings.

    With `renders_again`, it renders a chart a second time, to find pods that differ at each render.
    """
    operator = settings.operator
    has_hooks = operator.rollout.driver is Driver.HOOK
    specs = parse_specs(
        documents.documents,
        settings.namespace_rule,
        operator.attached.kinds,
        drivers_with_objects(operator),
        # `with_hooks` below decides about hooks, for all workers of an application together
        default_driver=Driver.AUTO if has_hooks else operator.rollout.driver,
        some_are_missing=bool(documents.unreadable),
    )
    if has_hooks:
        workers, warnings = with_hooks(specs.workers)
        specs = specs._replace(workers=workers, warnings=(*specs.warnings, *warnings))
    # a local address must not fail a strict render, because a proxy in the pods may listen on it
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
    """All problems in the documents, in the records next to them, and in manifests."""
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
    # do not report a required field as missing if it is only misspelled or at the wrong level
    moved = {(id(problem.document), problem.instead_of) for problem in problems if problem.instead_of}
    return tuple(
        problem
        for problem in problems
        if not (problem.rule is MISSING_FIELD and (id(problem.document), problem.path) in moved)
    )


def ledgers_without_spec(settings: Settings, specs: Specs) -> Iterator[Problem]:
    """A warning for each ledger whose worker has no spec, if the whole folder was read.

    A ledger without a spec is never an error, because versions that still have work need the ledger. A ledger
    next to a chart or a base gets no warning, because it may belong to another environment.
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
    """The message that the input has no worker. For a Deployment, the message suggests `twgen import`."""
    kinds = (GroupKind.of(document.value) for document in specs.passthrough)
    more = (
        "; `twgen import` creates one from a Deployment" if GroupKind("apps", "Deployment") in kinds else ""
    )
    return f"no worker found in {' '.join(settings.paths)}: a worker is a {WORKER} of {CONTROLLER_API}{more}"


def the_worker(params: Mapping[str, Any]) -> tuple[Settings, WorkerSpec]:
    """The settings, and the only worker or the worker that `--worker` names.

    Raises InvalidInput if there is no such worker, or if this process is Argo CD's plugin.
    """
    settings, name = settings_outside_argocd(params), params["worker"] or ""
    specs = load_specs(replace(settings, quiet=True), needs_worker=True, or_name=True)
    first, *others = workers_called(name, specs.workers)
    if others:
        names = ", ".join(sorted(spec.worker_deployment for spec in specs.workers))
        raise InvalidInput(f"there are several workers ({names}): choose one with --worker")
    return settings, first


def workers_called(name: str, workers: Sequence[WorkerSpec]) -> list[WorkerSpec]:
    """The workers with this name, or all if the name is empty. Raises InvalidInput if there is no match."""
    called = [spec for spec in workers if name in {"", spec.name, spec.worker_deployment}]
    if name and not called:
        names = ", ".join(sorted(spec.worker_deployment for spec in workers))
        raise InvalidInput(f"there is no worker {name!r}; the workers are: {names or 'none'}")
    return called


def planning_time(settings: Settings, world: World) -> datetime:
    """The time of the plan: `--now`, or else the time at which the world was read or recorded."""
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
    """The workers' state from the snapshot or the servers. Offline, workers count as not deployed.

    A caller that reads repeatedly can pass `servers`, which stay connected, and `memory`, which avoids
    repeated reads of Git.
    """
    if specs.snapshots and not settings.snapshot and not settings.offline:
        file = specs.snapshots[0].source
        remedy = f"pass it with `--snapshot {file}` to plan without servers"
        settings.warn([f"{file} is a Snapshot, not a spec: {remedy}"])
    if settings.offline:
        # the cluster counts as empty, not as unread: renders omit replicas if versions might exist
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
    """Finds old versions in the ledger next to the specs, and in the commits that changed the specs."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._documents: tuple[Document, ...] = ()
        self._ledger: dict[str, dict[tuple[str, str], RecordedDeployment]] = {}
        """The ledger's versions by worker, because each read of a rollout recalls only one worker."""
        self._histories: dict[tuple[str, str, frozenset[str]], GitHistory] = {}

    def recall(self, specs: Specs, world: World) -> World:
        """Add old versions from Git to the world. Commits are read once, and only for missing versions."""
        settings = self._settings
        if specs.ledgers and specs.ledgers is not self._documents:
            from twgen.records.ledger import recorded_versions

            # fill the dictionary, then set _ledger, then _documents: several rollouts call this in threads
            by_worker = defaultdict[str, dict[tuple[str, str], RecordedDeployment]](dict)
            for key, recorded in recorded_versions(read_ledgers(specs.ledgers, settings.sources)).items():
                by_worker[key[0]][key] = recorded
            self._ledger, self._documents = by_worker, specs.ledgers
        own_entries = (self._ledger.get(name, {}) for name, _ in world.workers) if specs.ledgers else ()
        world = world.remembering(dict(chain.from_iterable(own.items() for own in own_entries)))
        now, ends = settings.now or world.taken_at, time.monotonic() + _MOST_FOR_HISTORY
        # first look for all workers' versions with work, because the time may run out
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
    """The driver and Pod settings of the rollouts in a render. Raises the errors of `driver_of_render`."""
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
    """Raise InvalidDocuments if two versions, or a version and a document, define the same object.

    Workers with one of these `drivers` also have an object for their rollout.
    """
    objects = generated_objects(workers, drivers)
    _refuse(settings, collisions(objects, specs.passthrough, settings.namespace_rule.default))


def refuse_cluster_scoped(settings: Settings, specs: Specs) -> None:
    """Raise InvalidDocuments if a document or the API server defines an attached kind as cluster-scoped."""
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
    """The workers' versions. A version gets a warning if it uses an object whose name has changed."""
    objects = frozenset(config_objects(specs.passthrough, settings.namespace_rule.default))
    return with_lost_references(workers, objects)


def intent_warnings(specs: Specs, general: Sequence[str]) -> dict[str, list[str]]:
    """The warnings to repeat in each worker's intent, by worker deployment.

    A worker gets the warnings about its own documents. The first worker also gets the `general` warnings.
    """
    warnings: defaultdict[tuple[str, int, str], list[Located]] = defaultdict(list)
    for warning in specs.unknown_fields + specs.warnings:
        document = warning.document
        # omit the line number, because a new comment above the document must not change the intent
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
    """Every warning in a plan. A warning about a worker starts with the worker's name."""
    about = (f"{item.spec.worker_deployment}: {text}" for item in workers for text in item.warnings)
    return [*about, *general]


def refuse_warnings(warnings: list[str]) -> None:
    """Raise InvalidDocuments if there are warnings."""
    if warnings:
        raise InvalidDocuments(warnings)


def _names_in_cluster(params: Mapping[str, Any], beginning: str) -> list[str]:
    """The shell completions of `worker/NAME` in the namespace, or none if the cluster does not answer.

    twgen does not read the cluster until the user has typed a part of `worker/`. A credential plugin gets no
    terminal: it would prompt in the middle of the command line, and consume the user's next input.
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
            # a shell inserts names without quotes, so offer only safe names
            return list(filter(is_worker_name, names))

        with Servers(settings, asks=False) as servers:
            names = servers.run((), read) if namespace else []
    except (TwgenError, click.ClickException):
        return []
    return [f"{KIND}{name}" for name in names if f"{KIND}{name}".startswith(beginning)]


class _PathsOrName(Form):
    """The type of an argument that is a PATH or `worker/NAME`. Shells complete NAME from the cluster."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """Return the names, and ask the shell to complete file names too."""
        from click.shell_completion import CompletionItem

        names = _names_in_cluster(ctx.params, incomplete)
        return [*map(CompletionItem, names), *super().shell_complete(ctx, param, incomplete)]


paths_or_name_argument = paths(_PathsOrName("PATH"), PATHS_OR_NAME)
