"""`twgen tick`."""

import gc
import os
import time
from asyncio import TaskGroup
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NoReturn, TypeVar

import click

from twgen.cli.live import Connections, Servers
from twgen.cli.options import Grouped, options
from twgen.cli.output import warn, write
from twgen.cli.prune import without_open_workflows
from twgen.cli.rolling import sleep
from twgen.cli.rollouts_by_tick import RolloutsByTick
from twgen.cli.serving import Board, Exposed, serving
from twgen.cli.settings import Settings, clock, settings_of
from twgen.clients.argocd import ArgoCD
from twgen.clients.deadline import AnswerDeadline, Deadline
from twgen.clients.kubernetes import Forbidden, KubernetesClient
from twgen.errors import InvalidInput, StateUnavailable, TwgenError
from twgen.executing.cluster import ClusterWriter
from twgen.executing.pruning import Pruned, delete_records
from twgen.executing.refreshes import Refreshes
from twgen.executing.temporal import TemporalWriter, begin
from twgen.executing.tick import Tick, Worker
from twgen.model.draining import ScheduledAction
from twgen.model.operator import GroupKind
from twgen.model.requests import Answer
from twgen.model.status import RolloutStatus
from twgen.planning.attached_status import AttachedRead, with_refusals
from twgen.planning.pruning import NextTry, OldRecord
from twgen.planning.rollout import overdue
from twgen.planning.routing.target import Target
from twgen.planning.shards import Shard
from twgen.reading.attached_objects import read_attached
from twgen.reading.rollouts import rollouts_in_cluster, specs_of_intents
from twgen.reading.temporal.looks import Look, Memory
from twgen.reading.temporal.pinned_workflows import Draining
from twgen.reading.temporal.reader import SharedReads
from twgen.records.intent import Intent
from twgen.records.rollout_status import write_rollout_status
from twgen.reporting.printable import printable
from twgen.reporting.status.metrics import openmetrics

Item = TypeVar("Item")

_FIELD_MANAGER = "twgen-tick"
"""The field manager of the statuses that no rollout writes."""
_BEGINNINGS = 4
"""Of the workers, in as many looks."""
_MISSED = 3
"""How many checks may fail before it counts as unhealthy."""


@click.command(cls=Grouped)
@options(
    "all_namespaces",
    "namespace",
    "every",
    "metrics",
    "shards",
    "shard",
    "argocd_server",
    "argocd_token_file",
    "argocd_ca_file",
    "timeout",
    "via",
    "ca_file",
    "kubeconfig",
    "context",
    "only_listed_connections",
    "prometheus",
    "operator_config",
    "quiet",
    all_namespaces="Check the workers of every namespace.",
    namespace="Check the workers of this namespace.",
    timeout="Time limit for each answer of a server (20s).",
)
def command(every: float | None, all_namespaces: bool, metrics: str | None, **params: Any) -> None:  # noqa: FBT001
    """Keep Argo CD's rendered manifests up to date, in the cluster of the workers.

    Argo CD renders a commit once, but versions drain and are deleted later. If a new render of an application
    would differ, tick refreshes the application. If a Job ended before its worker was Settled, tick deletes
    the Job, so that it runs again.

    \b
    twgen tick -A --every 1m
    twgen tick -A --argocd-server https://argocd.svc --argocd-token-file token
    twgen tick -A --every 1m --shards 3 --shard 0
    """
    gc.enable()  # it may run for months
    settings = settings_of(params)
    if not settings.namespace and not all_namespaces:
        raise InvalidInput("tick needs a namespace: give -n NAMESPACE, or -A for all")
    if all_namespaces:
        settings = replace(settings, namespace="")
    if metrics and every is None:
        raise InvalidInput("--metrics needs --every: a single run ends before anything can read its metrics")
    if settings.shards > 1 and params["shard"] is None:
        raise InvalidInput(f"--shards {settings.shards} needs --shard: the number of this tick, from 0")
    if settings.shard >= settings.shards:
        raise InvalidInput(
            f"--shard must be below --shards ({settings.shards}), since the first of them is 0"
        )
    refreshes = _refreshes(settings, params)
    exposed = Exposed(Board(every or 0, links=settings.operator.links))
    served = serving("--metrics", metrics, exposed.answer) if metrics else nullcontext()
    if settings.operator.tick.rollouts and every is None:
        raise InvalidInput("tick.rollouts of the OperatorConfig needs --every: a rollout takes many checks")
    with Servers(settings) as servers, served:
        # the first look describes every worker, and one alone needs no memory
        next_look = Look if every is None else Memory().look
        checks_with = partial(_Checks, settings, servers, refreshes=refreshes, next_look=next_look)
        if every is not None:
            servers.run((), lambda opened: _check_for_ever(checks_with(opened), exposed, every))
        elif failures := servers.run((), lambda opened: checks_with(opened).check()):
            raise StateUnavailable("; ".join(failures))


class _Checks:
    """The checks of one process, with their results and counts."""

    def __init__(
        self,
        settings: Settings,
        servers: Servers,
        opened: Connections,
        *,
        refreshes: Refreshes | None,
        next_look: Callable[[], Look],
    ) -> None:
        self.settings, self.servers, self.refreshes = settings, servers, refreshes
        self.next_look = next_look
        self.shard = Shard(settings.shard, settings.shards)
        self.opened = opened
        """The connections of the next check."""
        self.rollouts: RolloutsByTick | None = None
        """The rollouts that this process carries out; None: it may carry out none."""
        self.statuses: Sequence[RolloutStatus] = ()
        self.done, self.errors, self.has_failed = 0, 0, False
        self.forbidden: set[str] = set()
        """The workers whose status the account may not write, and requests that it may not answer."""
        self.unlisted: set[str] = set()
        """Why kinds of attached objects could not be read, as far as it was reported."""
        self.begun: dict[str, datetime] = {}
        self.kept: dict[tuple[str, str], NextTry] = {}
        self.busy: dict[str, int] | None = None
        """All three as in a Tick."""

    async def check(self) -> list[str]:
        """Check all rollouts, do everything that is due, and return the failures."""
        if self.has_failed:
            self._renew()
        try:
            self.statuses, failures = await _check(self, self.opened)
            self.done += 1
        except TwgenError as error:
            failures = [str(error)]
        self.errors += len(failures)
        self.has_failed = bool(failures)
        return failures

    def _renew(self) -> None:
        """Use new connections from now on: a key or a certificate may have been renewed since it was read."""
        try:
            self.opened = self.servers.renewed(self.opened)
        except TwgenError as error:
            warn([str(error)])

    def metrics(self, seconds: float) -> bytes:
        """The metrics in OpenMetrics format, after a check that took `seconds`."""
        refreshes = self.refreshes.made if self.refreshes else 0
        counts = {"looks": self.done, "errors": self.errors, "refreshes": refreshes}
        return openmetrics(self.statuses, clock(), counts, seconds, self.shard)


async def _check_for_ever(checks: _Checks, exposed: Exposed, every: float) -> NoReturn:
    """Check again and again, and carry out rollouts meanwhile."""
    checks.busy = {}
    async with TaskGroup() as group:
        if checks.settings.operator.tick.rollouts:
            checks.rollouts = RolloutsByTick(checks.settings, checks.servers, checks.opened, _print)
        following = None
        while True:
            await _check_and_report(checks, exposed, every)
            # the first check has told which rollouts an earlier process has ended
            if checks.rollouts and checks.done and not following:
                following = group.create_task(checks.rollouts.follow())
            await sleep(timedelta(seconds=every))


async def _check_and_report(checks: _Checks, exposed: Exposed, every: float) -> None:
    """Check once, print the failures, and update the metrics and the page."""
    began, done_before = time.monotonic(), checks.done
    failures = await checks.check()
    seconds = time.monotonic() - began
    if checks.done > done_before:
        exposed.healthy_until = time.monotonic() + _MISSED * (every + max(seconds, checks.settings.timeout))
    warn(failures)
    if seconds > every:
        warn([f"a check took {seconds:.0f} s, longer than --every: changes are noticed that much later"])
    exposed.metrics = checks.metrics(seconds)
    if checks.done > done_before:
        exposed.board.show(checks.statuses, clock())
    else:
        exposed.board.failure = "; ".join(failures)


def _refreshes(settings: Settings, params: Mapping[str, Any]) -> Refreshes | None:
    """The client that refreshes Applications; None: no Argo CD is given."""
    server, token_file = params["argocd_server"], params["argocd_token_file"] or ""
    if not server:
        return None
    token = os.environ.get("ARGOCD_AUTH_TOKEN", "")
    if not (token or token_file):
        raise InvalidInput("--argocd-server needs a token: --argocd-token-file, or ARGOCD_AUTH_TOKEN")
    argocd = ArgoCD(server, token, token_file, params["argocd_ca_file"] or "")
    return Refreshes(argocd, settings.timeout, _print)


def _print(line: str) -> None:
    write(f"{printable(line)}\n")


async def _check(checks: _Checks, opened: Connections) -> tuple[Sequence[RolloutStatus], list[str]]:
    """Do everything that is due and possible; the statuses of all rollouts, and the failures."""
    settings, timeout = checks.settings, checks.settings.timeout
    client = opened.cluster_for("tick")
    records = await rollouts_in_cluster(client, settings.namespace, AnswerDeadline(timeout))
    status_of = {status.worker: status for status in records.statuses}
    specs, unusable = specs_of_intents(records.intents)
    failures = [*records.unusable, *unusable]
    is_own = {spec.worker_deployment: checks.shard.has(spec) for _, spec in specs}
    if checks.rollouts:
        checks.rollouts.remember(records.intents, status_of)
    workers = [
        Worker(
            intent,
            spec,
            (checks.rollouts.ended(intent) if checks.rollouts else None)
            or records.ended.get((intent.namespace, intent.hash)),
            status_of.get(spec.worker_deployment),
        )
        for intent, spec in specs
        if checks.shard.has(spec)
    ]
    tick = Tick(
        read=partial(checks.servers.read_each, opened, look=checks.next_look()),
        delete=lambda intent, job: ClusterWriter(client, intent, timeout).delete_job(job),
        record=partial(_write_status, client, timeout, checks.forbidden),
        answer=partial(_answer, client, timeout, checks.forbidden),
        say=_print,
        begin_again=checks.rollouts.begin_again if checks.rollouts else None,
        drain=partial(_drain, opened, timeout) if settings.operator.tick.drains else None,
        prune=partial(_prune, opened, timeout) if settings.operator.tick.prunes else None,
        attached=partial(_attached, client, timeout, checks.unlisted),
        begun=checks.begun,
        kept=checks.kept,
        forbidden=checks.forbidden,
        busy=checks.busy,
    )
    result = await tick.act(turned(workers, checks.done))
    failures += result.failures
    shown = [
        overdue(status, clock())
        for status in records.shown
        if is_own.get(status.worker, checks.shard.is_first)
    ]
    statuses = result.newer(shown)
    if checks.refreshes:
        failures += await checks.refreshes.ask(result.applications, clock())
        statuses = [with_refusals(status, checks.refreshes.refused) for status in statuses]
    return statuses, failures


def turned(workers: Sequence[Item], look: int) -> Sequence[Item]:
    """The workers from another beginning in each look.

    If the first ones hang, a server counts as silent before the last ones have their turn.
    """
    beginning = len(workers) * (look % _BEGINNINGS) // _BEGINNINGS
    return [*workers[beginning:], *workers[:beginning]]


async def _drain(
    opened: Connections,
    timeout: float,  # noqa: ASYNC109 - of each request
    target: Target,
    scheduled: ScheduledAction,
) -> bool:
    """Begin the policy's scheduled action on the workflows of a draining version."""
    shared = SharedReads(opened.temporal, Deadline(timeout))
    batches = Draining(target.spec, shared, target.now, timedelta())
    writer = TemporalWriter(target.spec, target.identity, opened.temporal, timeout)
    return await begin(target, scheduled, batches, writer, _print)


async def _prune(
    opened: Connections,
    timeout: float,  # noqa: ASYNC109 - of each request
    target: Target,
    records: Sequence[OldRecord],
) -> Pruned:
    """Delete the records on which no workflow is open."""
    unneeded = await without_open_workflows(target.spec, records, opened, timeout)
    writer = TemporalWriter(target.spec, target.identity, opened.temporal, timeout)
    return await delete_records(writer, unneeded)


async def _attached(
    client: KubernetesClient,
    timeout: float,  # noqa: ASYNC109 - of each answer
    reported: set[str],
    kinds: Mapping[str, set[GroupKind]],
) -> Mapping[str, AttachedRead]:
    """The states of attached objects; a kind that cannot be read is reported once."""
    objects = await read_attached(client, kinds, AnswerDeadline(timeout))
    for why in (why for read in objects.values() for why in read.unread.values() if why not in reported):
        reported.add(why)
        warn([f"the state of attached objects is unknown: {why}"])
    return objects


async def _write_status(
    client: KubernetesClient,
    timeout: float,  # noqa: ASYNC109 - of each request
    forbidden: set[str],
    intent: Intent,
    status: RolloutStatus,
) -> None:
    """Write a status."""
    writer = ClusterWriter(client, intent, timeout, _FIELD_MANAGER)
    failure = f"cannot write the status of {status.worker}, which has no Job to write it"
    await _unless_forbidden(
        writer.record(write_rollout_status(status), over=status.resource_version), failure, forbidden
    )


async def _answer(  # noqa: PLR0913, PLR0917 - what all answers share, and what each has of its own
    client: KubernetesClient,
    timeout: float,  # noqa: ASYNC109 - of each request
    forbidden: set[str],
    intent: Intent,
    answer: Answer,
    version: str,
) -> None:
    """Answer a request in place of that resource version of the status."""
    writer = ClusterWriter(client, intent, timeout)
    failure = f"cannot answer requests to {intent.namespace}/{intent.worker}, which has no Job to answer them"
    await _unless_forbidden(writer.answer(answer, over=version), failure, forbidden)


async def _unless_forbidden(writing: Awaitable[object], failure: str, forbidden: set[str]) -> None:
    """Write into the cluster; a missing right to do so is reported once for each failure."""
    try:
        await writing
    except Forbidden as error:
        if failure not in forbidden:
            forbidden.add(failure)
            warn([f"{failure}: does the account have the rights of deploy/tick/statuses? ({error})"])
