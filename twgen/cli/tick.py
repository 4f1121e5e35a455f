"""`twgen tick`."""

import gc
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import click

from twgen.cli.live import Connections, Servers
from twgen.cli.options import options
from twgen.cli.output import warn, write
from twgen.cli.serving import Board, Exposed, serving
from twgen.cli.settings import Settings, clock, settings_of
from twgen.clients.argocd import ArgoCD
from twgen.clients.deadline import AnswerDeadline, Deadline
from twgen.clients.kubernetes import Forbidden, KubernetesClient
from twgen.errors import InvalidInput, StateUnavailable, TwgenError
from twgen.executing.cluster import ClusterWriter
from twgen.executing.temporal import TemporalWriter, begin
from twgen.executing.tick import Refreshes, Tick, Worker
from twgen.model.draining import ScheduledAction
from twgen.model.operator import GroupKind
from twgen.model.status import RolloutStatus
from twgen.planning.attached_status import AttachedRead, with_refusals
from twgen.planning.routing.target import Target
from twgen.reading.attached_objects import read_attached
from twgen.reading.rollouts import rollouts_in_cluster, specs_of_intents
from twgen.reading.temporal.pinned_workflows import Draining
from twgen.reading.temporal.reader import SharedReads
from twgen.records.intent import Intent
from twgen.records.rollout_status import write_rollout_status
from twgen.reporting.printable import printable
from twgen.reporting.status.metrics import openmetrics

_FIELD_MANAGER = "twgen-tick"
"""The field manager of the statuses that no rollout writes."""
_MISSED = 3
"""So many looks may fail before it counts as broken."""


@click.command()
@options(
    "all_namespaces",
    "namespace",
    "every",
    "metrics",
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
    """
    gc.enable()  # it may go on for months
    settings = settings_of(params)
    if not settings.namespace and not all_namespaces:
        raise InvalidInput("tick needs a namespace: give -n NAMESPACE, or -A for all")
    if all_namespaces:
        settings = replace(settings, namespace="")
    if metrics and every is None:
        raise InvalidInput("--metrics needs --every: a single run ends before anything can read its metrics")
    refreshes, exposed = _refreshes(settings, params), Exposed(Board(every or 0))
    served = serving("--metrics", metrics, exposed.answer) if metrics else nullcontext()
    with Servers(settings) as servers, served:
        looks = _Looks(settings, servers, refreshes)
        if every is None:
            if failures := looks.look():
                raise StateUnavailable("; ".join(failures))
            return
        while True:
            _look_once_more(looks, exposed, every)
            time.sleep(every)


class _Looks:
    """The looks of one process, and what they have seen and done."""

    def __init__(self, settings: Settings, servers: Servers, refreshes: Refreshes | None) -> None:
        self.settings, self.servers, self.refreshes = settings, servers, refreshes
        self.statuses: Sequence[RolloutStatus] = ()
        self.done, self.errors = 0, 0
        self.forbidden: set[str] = set()
        """The workers whose status the account may not keep."""
        self.unlisted: set[str] = set()
        """Why kinds of attached objects could not be read, as far as that was told."""
        self.begun: dict[str, datetime] = {}
        """As of a Tick."""

    def look(self) -> list[str]:
        """Look, and do what is due; what failed."""
        try:
            self.statuses, failures = self.servers.run((), lambda opened: _look(self, opened))
            self.done += 1
        except TwgenError as error:
            failures = [str(error)]
        self.errors += len(failures)
        return failures

    def metrics(self, took: float) -> bytes:
        """As OpenMetrics, after a look of so many seconds."""
        refreshes = self.refreshes.made if self.refreshes else 0
        counts = {"looks": self.done, "errors": self.errors, "refreshes": refreshes}
        return openmetrics(self.statuses, clock(), counts, took)


def _look_once_more(looks: _Looks, exposed: Exposed, every: float) -> None:
    """Look, tell what failed, and how things are."""
    began, done = time.monotonic(), looks.done
    failures = looks.look()
    took = time.monotonic() - began
    if looks.done > done:
        exposed.healthy_until = time.monotonic() + _MISSED * (every + max(took, looks.settings.timeout))
    if failures:
        looks.servers.close()  # a key or a certificate may have been renewed since it was read
    warn(failures)
    if took > every:
        warn([f"a check took {took:.0f} s, longer than --every: changes are noticed that much later"])
    exposed.metrics = looks.metrics(took)
    if looks.done > done:
        exposed.board.show(looks.statuses, clock())
    else:
        exposed.board.failure = "; ".join(failures)


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
    write(f"{printable(line)}\n")


async def _look(looks: _Looks, opened: Connections) -> tuple[Sequence[RolloutStatus], list[str]]:
    """Do all that is due and can be done; the statuses of all rollouts, and the failures."""
    settings, timeout = looks.settings, looks.settings.timeout
    client = opened.cluster_for("tick")
    found = await rollouts_in_cluster(client, settings.namespace, Deadline(timeout))
    told = {status.worker: status for status in found.statuses}
    of_intents, unusable = specs_of_intents(found.intents)
    failures = [*found.unusable, *unusable]
    workers = [
        Worker(
            intent,
            spec,
            found.ended.get((intent.namespace, intent.hash)),
            told.get(spec.worker_deployment),
        )
        for intent, spec in of_intents
    ]
    tick = Tick(
        read=partial(looks.servers.read_each, opened),
        delete=lambda intent, job: ClusterWriter(client, intent, timeout).delete_job(job),
        record=partial(_keep, client, timeout, looks.forbidden),
        answer=lambda intent, answer, version: ClusterWriter(client, intent, timeout).answer(
            answer, over=version
        ),
        say=_say,
        drain=partial(_drain, opened, timeout) if settings.operator.tick.drains else None,
        attached=partial(_attached, client, timeout, looks.unlisted),
        begun=looks.begun,
    )
    seen = await tick.act(workers)
    failures += seen.failures
    statuses = seen.newer(found.shown)
    if looks.refreshes:
        failures += await looks.refreshes.ask(seen.applications, clock())
        statuses = [with_refusals(status, looks.refreshes.refused) for status in statuses]
    return statuses, failures


async def _drain(
    opened: Connections,
    timeout: float,  # noqa: ASYNC109 - of each request
    target: Target,
    scheduled: ScheduledAction,
) -> bool:
    """Begin what the policy of a worker does to the workflows of a version that drains."""
    shared = SharedReads(opened.temporal, Deadline(timeout))
    batches = Draining(target.spec, shared, target.now, timedelta())
    writer = TemporalWriter(target.spec, target.identity, opened.temporal, timeout)
    return await begin(target, scheduled, batches, writer, _say)


async def _attached(
    client: KubernetesClient,
    timeout: float,  # noqa: ASYNC109 - of each answer
    told: set[str],
    wanted: Mapping[str, set[GroupKind]],
) -> Mapping[str, AttachedRead]:
    """The states of attached objects; a kind that cannot be read is reported once."""
    found = await read_attached(client, wanted, AnswerDeadline(timeout))
    for why in (why for read in found.values() for why in read.unread.values() if why not in told):
        told.add(why)
        warn([f"the state of attached objects is unknown: {why}"])
    return found


async def _keep(
    client: KubernetesClient,
    timeout: float,  # noqa: ASYNC109 - of each request
    forbidden: set[str],
    intent: Intent,
    status: RolloutStatus,
) -> None:
    """Write a status; an account without the right to do so is told of once for each worker."""
    writer = ClusterWriter(client, intent, timeout, _FIELD_MANAGER)
    try:
        await writer.record(write_rollout_status(status), over=status.resource_version)
    except Forbidden as error:
        if status.worker not in forbidden:
            forbidden.add(status.worker)
            what = f"cannot write the status of {status.worker}, which has no Job to write it"
            warn([f"{what}: does the account have the rights of deploy/tick/statuses? ({error})"])
