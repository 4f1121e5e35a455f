"""`twgen tick`."""

import gc
import os
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import click

from twgen.cli.in_cluster import specs_of
from twgen.cli.live import Connections, Servers
from twgen.cli.metrics import Exposed, exposing
from twgen.cli.options import READING, options
from twgen.cli.output import warn, write
from twgen.cli.settings import Settings, clock, settings_of
from twgen.clients.argocd import ArgoCD
from twgen.clients.deadline import Deadline
from twgen.errors import InvalidInput, StateUnavailable, TwgenError
from twgen.executing.argocd import Refreshes
from twgen.executing.cluster import ClusterWriter
from twgen.model.operator import Caller
from twgen.model.spec import WorkerSpec
from twgen.model.world import OlderJob, Routing, World
from twgen.planning.plan import make_plan, plan_versions, worker_world
from twgen.planning.refresh import Rendered, plan_hash, runs_again
from twgen.planning.worker_status import make_status
from twgen.reading.rollout import EndedJob, rollouts_in_cluster
from twgen.records.intent import Intent
from twgen.records.rollout_status import RolloutStatus
from twgen.reporting.status.document import rollout_status
from twgen.reporting.status.metrics import openmetrics

_MISSED = 3
"""So many looks may fail before it counts as broken."""


@click.command()
@options("all_namespaces", "namespace", "every", "metrics")
@options("argocd_server", "argocd_token_file", "argocd_ca_file", *READING, "quiet")
def command(every: float | None, all_namespaces: bool, metrics: str | None, **params: Any) -> None:  # noqa: FBT001
    """Keep what Argo CD has rendered up to date, in the cluster of the workers.

    Argo CD renders a commit once, while versions drain and go. An application whose render would differ by
    now is refreshed, and a Job that ended before its worker was Settled is deleted, so that it runs again.

    \b
    twgen tick -A --argocd-server https://argocd.example.com --argocd-token-file /etc/twgen/argocd/token
    """
    gc.enable()  # it may go on for months
    settings = settings_of(params)
    if not settings.namespace and not all_namespaces:
        raise InvalidInput("tick needs a namespace: give -n NAMESPACE, or -A for all")
    if all_namespaces:
        settings = replace(settings, namespace="")
    if metrics and every is None:
        raise InvalidInput("--metrics needs --every: what runs once is gone before it is asked")
    refreshes, exposed = _refreshes(settings, params), Exposed()
    counts = {"looks": 0, "errors": 0, "refreshes": 0}
    with Servers(settings) as servers, exposing(metrics, exposed) if metrics else nullcontext():
        statuses: Sequence[RolloutStatus] = ()
        while True:
            try:
                statuses, failures = servers.run(
                    (), lambda opened: _Look(settings, servers, opened).act(refreshes)
                )
                counts["looks"] += 1
                if every is not None:
                    exposed.healthy_until = time.monotonic() + _MISSED * (every + settings.timeout)
            except TwgenError as error:
                failures = [str(error)]
            if every is None:
                break
            warn(failures)
            counts["errors"] += len(failures)
            counts["refreshes"] = refreshes.made if refreshes else 0
            exposed.metrics = openmetrics(statuses, clock(), counts)
            time.sleep(every)
    if failures:
        raise StateUnavailable("; ".join(failures))


def _refreshes(settings: Settings, params: Mapping[str, Any]) -> Refreshes | None:
    """What asks Argo CD; None: nothing does."""
    server, token_file = params["argocd_server"], params["argocd_token_file"] or ""
    if not server:
        return None
    token = os.environ.get("ARGOCD_AUTH_TOKEN", "")
    if not (token or token_file):
        raise InvalidInput("--argocd-server needs a token: --argocd-token-file, or ARGOCD_AUTH_TOKEN")
    argocd = ArgoCD(server, token, token_file, params["argocd_ca_file"] or "")
    return Refreshes(argocd, settings.timeout, _say)


def _say(line: str) -> None:
    write(f"{line}\n")


class _Worker(NamedTuple):
    intent: Intent
    spec: WorkerSpec

    @property
    def caller(self) -> Caller:
        """As whom its rollout is carried out."""
        return Caller(self.intent.identity, forced=True, drives=True)


@dataclass(frozen=True, slots=True)
class _Look:
    """One look at all rollouts of a cluster, and what is due by it."""

    settings: Settings
    servers: Servers
    opened: Connections
    failures: list[str] = field(default_factory=list)
    """What could not be read or done."""

    async def act(self, refreshes: Refreshes | None) -> tuple[Sequence[RolloutStatus], list[str]]:
        """Do what is due; what rollouts left to read, and what failed, once everything else was done."""
        client = self.opened.kubernetes
        if not client:
            raise InvalidInput("tick needs a cluster: there is no kubeconfig, and this is no Pod")
        deadline = Deadline(self.settings.timeout)
        found = await rollouts_in_cluster(client, self.settings.namespace, deadline)
        self.failures.extend(found.unusable)
        by_namespace: defaultdict[str, list[_Worker]] = defaultdict(list)
        for intent in found.intents:
            try:
                [spec] = specs_of(intent).workers
                by_namespace[intent.namespace].append(_Worker(intent, spec))
            except InvalidInput as error:
                self.failures.append(str(error))
        applications: defaultdict[str, list[Rendered]] = defaultdict(list)
        seen: dict[str, RolloutStatus] = {}
        for group in by_namespace.values():
            for worker, world in await self._worlds(group):
                try:
                    spec, caller, now = worker.spec, worker.caller, world.taken_at
                    status = make_status(make_plan([spec], world, now, caller), world, caller)
                    seen[spec.worker_deployment] = rollout_status(status, now, worker.intent.hash)
                    rendered = _rendered(worker, world)
                    if rendered.application:
                        applications[rendered.application].append(rendered)
                    if job := found.ended.get((worker.intent.namespace, worker.intent.hash)):
                        writer = ClusterWriter(client, worker.intent, self.settings.timeout)
                        await self._run_again(worker, world, job, writer)
                except TwgenError as error:
                    self.failures.append(str(error))
        if refreshes:
            self.failures.extend(await refreshes.ask(applications, clock()))
        # phase and reason are the rollout's own word: a look reads neither task queues nor gates
        statuses = [
            replace(status, percentage=now_seen.percentage, document=now_seen.document)
            if (now_seen := seen.get(status.worker))
            else status
            for status in found.statuses
        ]
        return statuses, self.failures

    async def _worlds(self, group: Sequence[_Worker]) -> list[tuple[_Worker, World]]:
        """What is known of the workers of a namespace; where that fails, of each that can be read alone."""
        try:
            specs = [worker.spec for worker in group]
            world = await self.servers.read_soon(self.opened, specs, for_routing=False)
            return [(worker, world) for worker in group]
        except TwgenError as error:
            if len(group) == 1:
                self.failures.append(str(error))
                return []
        alone = [await self._worlds([worker]) for worker in group]
        return [item for items in alone for item in items]

    async def _run_again(self, worker: _Worker, world: World, job: EndedJob, writer: ClusterWriter) -> None:
        """Delete a Job that has something to do again; more is only read where it may have."""
        spec, temporal = worker.spec, worker_world(worker.spec, world).temporal
        routing = temporal.routing if temporal else Routing()
        if routing.current and routing.current.build_id == spec.build_id and not routing.ramping:
            return
        world = await self.servers.read_soon(self.opened, [spec], for_routing=True)
        [plan] = make_plan([spec], world, world.taken_at, worker.caller).workers
        if runs_again(plan, job.ended_at, world.taken_at):
            await writer.delete_job(OlderJob(job.name, job.uid))
            _say(f"{spec.worker_deployment}: deleted Job {job.name}, which has ended: {plan.routing.because}")


def _rendered(worker: _Worker, world: World) -> Rendered:
    intent, spec, found = worker.intent, worker.spec, worker_world(worker.spec, world)
    key = spec.worker_deployment, spec.temporal_namespace
    unread = replace(world, workers={key: replace(found, deployments=None)})
    plans = (plan_versions([spec], each, world.taken_at, worker.caller).workers for each in (world, unread))
    hashes = frozenset(plan_hash(versions) for [versions] in plans)
    return Rendered(spec.worker_deployment, intent.application, intent.plan_hash, hashes)
