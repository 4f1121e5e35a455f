"""`twgen tick`."""

import gc
import os
import time
from asyncio import TaskGroup
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from twgen.cli.live import CommonPrometheus, Connections, Servers
from twgen.cli.options import MEASURING, Grouped, options
from twgen.cli.output import warn, write
from twgen.cli.rolling import WorkerServers, sleep
from twgen.cli.rollouts_by_tick import RolloutsByTick, metadata_of
from twgen.cli.serving import Board, Exposed, serving
from twgen.cli.settings import Settings, clock, settings_of, steady
from twgen.clients.argocd import ArgoCD
from twgen.clients.deadline import AnswerDeadline
from twgen.errors import InvalidInput, StateUnavailable, TwgenError
from twgen.executing.cluster import ClusterWriter
from twgen.executing.ports import TickServers
from twgen.executing.refreshes import Refreshes
from twgen.executing.tick import Tick, Worker
from twgen.model.operator import Application, GroupKind
from twgen.model.spec import WorkerSpec
from twgen.model.status import RolloutStatus
from twgen.model.world import World
from twgen.planning.drivers import Shard
from twgen.planning.reads import Unread
from twgen.planning.rollout import overdue
from twgen.planning.worker_status import AttachedRead, with_refusals
from twgen.reading.hooks import with_skipped_hooks
from twgen.reading.objects import read_attached
from twgen.reading.rollouts import rollouts_in_cluster, specs_of_intents
from twgen.reading.temporal.checks import Check, Checks
from twgen.records.intent import Intent
from twgen.reporting.bugs import Bug
from twgen.reporting.printable import printable
from twgen.reporting.status.metrics import openmetrics

if TYPE_CHECKING:
    from twgen.clients.prometheus import PrometheusServers

Item = TypeVar("Item")

_FIELD_MANAGER = "twgen-tick"
"""The field manager of the statuses that tick writes instead of a rollout."""
_ASKS_NOBODY = "without --argocd-server, tick cannot take over rollouts whose hooks Argo CD skips"
_BEGINNINGS = 4
"""Checks start at this many positions of the list in turn, so that every worker is sometimes read early."""
_MISSED = 3
"""The number of consecutive checks that may fail before tick counts as unhealthy."""


@click.command(cls=Grouped)
@options(
    *("all_namespaces", "namespace", "every", "metrics", "title", "shards", "shard"),
    *("argocd_server", "argocd_token_file", "argocd_ca_file"),
    *(name for name in MEASURING if name != "no_cluster"),
    *("operator_config", "quiet"),
    all_namespaces="Check the workers of every namespace.",
    namespace="Check the workers of this namespace.",
    operator_config="Use this OperatorConfig. Its `tick` permits changes in Temporal.",
    title="Show this title on the page, such as the name of the cluster. Needs --metrics.",
)
def command(every: float | None, all_namespaces: bool, metrics: str | None, **params: Any) -> None:  # noqa: FBT001
    """Keep Argo CD's rendered manifests up to date. Run tick in the workers' cluster.

    Argo CD renders a commit once, but versions drain and are deleted later. If a new render of an application
    would differ, tick refreshes the application. If a Job ended before its worker was Settled, tick deletes
    the Job, and Argo CD recreates it. tick checks once, unless --every is given. It changes nothing in
    Temporal unless the OperatorConfig permits it.

    \b
    twgen tick -A --every 1m
    twgen tick -A --argocd-server https://argocd.svc --argocd-token-file token
    twgen tick -A --every 1m --shards 3 --shard 0
    """
    gc.enable()  # tick may run for months
    settings = settings_of(params)
    if not settings.namespace and not all_namespaces:
        raise InvalidInput("tick needs a namespace: give -n NAMESPACE, or -A for all namespaces")
    if all_namespaces:
        settings = replace(settings, namespace="")
    if metrics and every is None:
        raise InvalidInput("--metrics needs --every: a single run ends before anything can read its metrics")
    if settings.shards > 1 and params["shard"] is None:
        raise InvalidInput(
            f"--shards {settings.shards} needs --shard: the index of this tick, counted from 0"
        )
    if settings.shard >= settings.shards:
        shards = f"--shards ({settings.shards})"
        raise InvalidInput(f"--shard must be below {shards}: the first index is 0")
    refreshes = _refreshes(settings, params)
    exposed = Exposed(Board(every or 0, settings.page_title(""), links=settings.operator.links))
    served = serving("--metrics", metrics, exposed.answer) if metrics else nullcontext()
    if settings.operator.tick.rollouts and every is None:
        raise InvalidInput("tick.rollouts of the OperatorConfig needs --every: a rollout takes many checks")
    with Servers(settings) as servers, served, closing(refreshes) if refreshes else nullcontext():

        async def work(opened: Connections) -> list[str]:
            checks = _Checks(servers, opened, refreshes, exposed, every)
            return await (checks.check() if every is None else _check_for_ever(checks))

        if failures := servers.run((), work):
            raise StateUnavailable("; ".join(failures))


class _Checks(TickServers):
    """Runs the checks of one process, and stores their results and counts."""

    def __init__(
        self,
        servers: Servers,
        opened: Connections,
        refreshes: Refreshes | None,
        exposed: Exposed,
        every: float | None,
    ) -> None:
        self.settings = settings = opened.settings
        self.servers, self.refreshes, self.exposed = servers, refreshes, exposed
        self.every, goes_on = every or 0, every is not None
        self.shard = Shard(settings.shard, settings.shards)
        self.opened = replace(opened, prometheus_of=ProjectPrometheus(settings, refreshes).of)
        """The connections for the next check."""
        self.rollouts: RolloutsByTick | None = None
        """The rollouts that this process carries out, or None if Jobs carry out all rollouts."""
        self.statuses: Sequence[RolloutStatus] = ()
        self.done, self.errors, self.has_failed = 0, 0, False
        self.ended_well = True
        """Whether the last finished check succeeded. Before the first check, this is true."""
        self.tick = Tick(self, _print, settings.operator.tick, goes_on=goes_on)
        # the first check describes every worker, so a single check has nothing to remember
        self._temporal_checks = Checks() if goes_on else None
        self._temporal_check = Check()

    async def check(self) -> list[str]:
        """Check all rollouts, do everything that is due, and return and count the failures."""
        if self.has_failed:
            self._renew()
        ended_well = False
        try:
            failures = await self._check()
            self.done, ended_well = self.done + 1, True
        except TwgenError as error:
            failures = [str(error)]
        except Exception as error:  # noqa: BLE001 - it must not end the rollouts of this process
            failures = [Bug.of("a check", error)]
        self.ended_well = ended_well
        self.errors += len(failures)
        self.has_failed = not all(isinstance(failure, Bug) for failure in failures)
        return failures

    async def _check(self) -> list[str]:
        """Do everything that is due and possible, and return the failures."""
        settings, client = self.settings, self.opened.cluster_for("tick")
        records = await rollouts_in_cluster(client, settings.namespace, AnswerDeadline(settings.timeout))
        status_of = {status.worker: status for status in records.statuses}
        specs, unusable = specs_of_intents(records.intents)
        failures = [*records.unusable, *unusable]
        is_own = {spec.worker_deployment: self.shard.has(spec) for _, spec in specs}
        own = [(intent, spec) for intent, spec in specs if is_own[spec.worker_deployment]]
        if self.rollouts:
            self.rollouts.remember(records.intents, status_of)
        if self.refreshes:
            own_records = records._replace(intents=tuple(intent for intent, _ in own))
            read = self.refreshes.applications
            asked = await with_skipped_hooks(own_records, read, settings.timeout, clock())
            records = records._replace(shown=asked.shown, skipped=asked.skipped)
            failures += asked.unusable[len(records.unusable) :]
        elif self.rollouts and any(intent.has_hook for intent, _ in specs) and self.tick.is_new(_ASKS_NOBODY):
            warn([_ASKS_NOBODY])
        workers = [
            Worker(
                intent,
                spec,
                (self.rollouts.ended(intent) if self.rollouts else None)
                or records.ended.get((intent.namespace, intent.hash)),
                status_of.get(spec.worker_deployment),
                spec.worker_deployment in records.skipped,
            )
            for intent, spec in own
        ]
        self._temporal_check = self._temporal_checks.next_check() if self._temporal_checks else Check()
        own_statuses = (it for it in records.shown if is_own.get(it.worker, self.shard.is_first))
        shown = [overdue(status, clock()) for status in own_statuses]
        if not self.done:
            # show the statuses early, because the first check may take a long time if Temporal is slow
            self.exposed.board.show(shown, clock())
        result = await self.tick.act(turned(workers, self.done))
        warn(result.warnings)
        failures += result.failures
        statuses = result.newer(shown)
        if self.refreshes:
            failures += await self.refreshes.ask(result.applications, clock(), steady())
            statuses = [with_refusals(status, self.refreshes.refused) for status in statuses]
        self.statuses = statuses
        return failures

    def steady(self) -> datetime:
        return steady()

    async def read(
        self, workers: Sequence[WorkerSpec], *, for_routing: bool
    ) -> tuple[World, Sequence[Unread]]:
        found = await self.opened.read_each(workers, for_routing=for_routing, check=self._temporal_check)
        if self.ended_well:
            self.stay_healthy()
        return found

    async def attached(self, kinds: Mapping[str, set[GroupKind]]) -> Mapping[str, AttachedRead]:
        # report each unreadable kind only once
        client, deadline = self.opened.cluster_for("tick"), AnswerDeadline(self.settings.timeout)
        objects = await read_attached(client, kinds, deadline)
        for why in (why for read in objects.values() for why in read.unread.values()):
            if self.tick.is_new(why):
                warn([f"the state of attached objects is unknown: {why}"])
        return objects

    def of(self, spec: WorkerSpec) -> WorkerServers:
        return WorkerServers(spec, self.opened)

    def writer(self, intent: Intent) -> ClusterWriter:
        client = self.opened.cluster_for("tick")
        return ClusterWriter(client, intent, self.settings.timeout, _FIELD_MANAGER)

    def begin_again(self, intent: Intent) -> bool:
        if self.rollouts:
            self.rollouts.begin_again(metadata_of(intent))
        return self.rollouts is not None

    def report_bug(self, subject: str, error: Exception) -> None:
        """Print a line about an unexpected error, but only once."""
        self.warn([Bug.of(subject, error)])

    def warn(self, lines: Iterable[str]) -> None:
        """Print one warning for each line, but each bug only once."""
        warn(line for line in lines if not isinstance(line, Bug) or self.tick.is_new(line))

    def _renew(self) -> None:
        """Replace the connections, because a key or a certificate may have been renewed."""
        try:
            self.opened = self.servers.renewed(self.opened)
        except TwgenError as error:
            warn([str(error)])

    def stay_healthy(self, seconds: float = 0) -> None:
        """Count as healthy for a few more checks. The last check took `seconds`."""
        longest = max(seconds, self.settings.timeout)
        until = time.monotonic() + _MISSED * (self.every + longest)
        self.exposed.healthy_until = max(until, self.exposed.healthy_until)

    def metrics(self, seconds: float) -> bytes:
        """The metrics in OpenMetrics format, after a check that took `seconds`."""
        refreshes = self.refreshes.made if self.refreshes else 0
        counts = {"looks": self.done, "errors": self.errors, "refreshes": refreshes}
        return openmetrics(self.statuses, clock(), counts, seconds, self.shard)


async def _check_for_ever(checks: _Checks) -> NoReturn:
    """Check repeatedly, and carry out rollouts concurrently if the OperatorConfig allows it."""
    async with TaskGroup() as group:
        if checks.settings.operator.tick.rollouts:
            checks.rollouts = RolloutsByTick(checks.servers, checks.opened, _print, checks.report_bug)
            group.create_task(checks.rollouts.follow())
        while True:
            await _check_and_report(checks)
            await sleep(timedelta(seconds=checks.every))


async def _check_and_report(checks: _Checks) -> None:
    """Check once, print the failures, and update the metrics and the page."""
    began, exposed = time.monotonic(), checks.exposed
    failures = await checks.check()
    seconds = time.monotonic() - began
    if checks.ended_well:
        checks.stay_healthy(seconds)
    checks.warn(failures)
    if seconds > checks.every:
        warn([f"a check took {seconds:.0f} s, longer than --every: tick notices changes late"])
    try:
        exposed.metrics = checks.metrics(seconds)
        if checks.ended_well:
            exposed.board.show(checks.statuses, clock())
        else:
            exposed.board.failure = "; ".join(failures)
    except Exception as error:  # noqa: BLE001 - it must not end the rollouts of this process
        checks.report_bug("updating the metrics and the page", error)


def _refreshes(settings: Settings, params: Mapping[str, Any]) -> Refreshes | None:
    """The client that refreshes Applications, or None if --argocd-server is not set."""
    server, token_file = params["argocd_server"], params["argocd_token_file"] or ""
    if not server:
        return None
    token = os.environ.get("ARGOCD_AUTH_TOKEN", "")
    if not (token or token_file):
        raise InvalidInput("--argocd-server needs a token: --argocd-token-file, or ARGOCD_AUTH_TOKEN")
    argocd = ArgoCD(server, token, token_file, params["argocd_ca_file"] or "")
    return Refreshes(argocd, settings.timeout, _print)


class ProjectPrometheus:
    """The Prometheus servers that a worker's Argo CD project may use, and those that the options name."""

    def __init__(self, settings: Settings, refreshes: Refreshes | None) -> None:
        self._settings, self._refreshes = settings, refreshes
        self._by_project: dict[str, CommonPrometheus] = {}

    def of(self, spec: WorkerSpec) -> "PrometheusServers":
        """The Prometheus clients for the servers that this worker is allowed to use."""
        refreshes, operator = self._refreshes, self._settings.operator
        project = refreshes.projects.get(spec.worker_deployment, "") if refreshes else ""
        if project not in self._by_project:
            servers = (*operator.prometheus_of(Application("", project)), *self._settings.prometheus)
            remedy = (
                f"the operator must list Argo CD project {project!r} in `prometheus` of {operator.file}"
                if project
                else "tick does not know the worker's Argo CD project: check that an application of"
                " --argocd-server renders the worker's intent"
            )
            self._by_project[project] = CommonPrometheus(servers, remedy)
        return self._by_project[project].of(spec)


def _print(line: str) -> None:
    write(f"{printable(line)}\n")


def turned(workers: Sequence[Item], check: int) -> Sequence[Item]:
    """The workers, starting at a different position in each check.

    If a server does not respond for the first workers, tick gives up on that server before the last workers.
    """
    beginning = len(workers) * (check % _BEGINNINGS) // _BEGINNINGS
    return [*workers[beginning:], *workers[:beginning]]
