"""`twgen doctor`."""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import click

from twgen.cli.inputs import load_specs
from twgen.cli.live import Connections, Servers
from twgen.cli.options import INPUT, READING, options, output_option, paths_argument
from twgen.cli.output import write
from twgen.cli.settings import Settings, clock, settings_of
from twgen.clients.deadline import AnswerDeadline, Deadline
from twgen.clients.kubernetes import KubernetesClient
from twgen.errors import InvalidInput, NegativeAnswer, OutOfTime, StateUnavailable
from twgen.model.diagnosis import Installation, Severity
from twgen.model.spec import WorkerSpec
from twgen.model.status import RolloutStatus
from twgen.model.world import World
from twgen.planning.diagnosis import findings
from twgen.planning.plan import make_plan
from twgen.planning.sentences import counted
from twgen.reading.installation import clock_ahead, left_alone, read_argocd, read_refusals
from twgen.reading.rollouts import rollouts_in_cluster, specs_of_intents
from twgen.reading.temporal.shared import SharedReads
from twgen.reporting.diagnosis import diagnosis_document, diagnosis_lines
from twgen.reporting.json_text import json_text


@click.command()
@paths_argument
@output_option("text", "json")
@options("argocd_namespace", *READING, *INPUT, "identity", "namespace", "operator_config", "quiet")
def command(output: str, argocd_namespace: str, **params: Any) -> None:
    """Look for what would bite: rights, clocks, Argo CD's settings, Temporal, workers and their rollouts.

    With PATHs it looks at the workers of these specs, else at those whose rollouts the cluster has. Changes
    nothing. Ends with 1 when there is a problem; advice alone is none.

    \b
    twgen doctor
    twgen doctor workers/ --operator-config operator.yaml
    """
    settings = settings_of(params)
    if settings.surroundings.needs_identity:
        raise InvalidInput("a plugin of Argo CD only renders: run `twgen doctor` outside of a render")
    given = load_specs(replace(settings, quiet=True), needs_worker=True).workers if params["paths"] else ()

    async def story(opened: Connections) -> tuple[Installation, World, list[WorkerSpec]]:
        return await _Look(settings, servers, opened, argocd_namespace).at(list(given))

    with Servers(settings) as servers:
        installation, world, workers = servers.run(given, story)
    now = clock()
    plan = make_plan(
        [spec for spec in workers if spec.key in world.workers], world, now, settings.planning_caller
    )
    found = findings(installation, plan, world, settings.operator)
    if output == "json":
        write(json_text(diagnosis_document(found, installation.not_checked, now)))
    else:
        looked_at = counted(len(workers), "worker")
        lines = diagnosis_lines(found, installation.not_checked, looked_at)
        write("".join(f"{line}\n" for line in lines))
    if not workers and not found and installation.not_checked:
        raise StateUnavailable("nothing was looked at: give PATHs, or a cluster that can be read")
    problems = sum(one.severity is Severity.PROBLEM for one in found)
    if problems:
        raise NegativeAnswer(f"{counted(problems, 'problem')} found")


class _Look:
    """One look at all of an installation that can be looked at; the rest is told."""

    def __init__(
        self, settings: Settings, servers: Servers, opened: Connections, argocd_namespace: str
    ) -> None:
        self._settings, self._servers, self._opened = settings, servers, opened
        self._argocd_namespace = argocd_namespace
        self._found = Installation()
        self._not_checked: dict[str, str] = {}

    async def at(self, workers: list[WorkerSpec]) -> tuple[Installation, World, list[WorkerSpec]]:
        """What was read of it, of the workers, and which these are."""
        if client := self._opened.kubernetes:
            await self._tried("rights in Kubernetes", lambda: self._rights(client, workers))
            await self._tried("Argo CD", lambda: self._argocd(client))
            await self._tried("rollouts in the cluster", lambda: self._rollouts(client, workers))
            self._found = replace(self._found, clock_ahead=clock_ahead(client, clock()))
        else:
            why = "no cluster is read: give --kubeconfig, or set KUBECONFIG"
            self._not_checked |= dict.fromkeys(("Kubernetes", "Argo CD", "rollouts in the cluster"), why)
        world, failures = await self._servers.read_each(self._opened, workers, for_routing=True)
        read = [spec for spec in workers if spec.key in world.workers]
        await self._tried("Worker Deployments of Temporal's namespaces", lambda: self._namespaces(read))
        failed = (*self._found.failures, *failures)
        return replace(self._found, failures=failed, not_checked=self._not_checked), world, workers

    async def _tried(self, what: str, look: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await look()
        except (StateUnavailable, OutOfTime) as error:
            self._not_checked[what] = str(error)

    @property
    def _deadline(self) -> Deadline:
        return Deadline(self._settings.timeout)

    def _namespaces_of(self, workers: list[WorkerSpec]) -> list[str]:
        """Those of the specs that were given, else the one that was asked for; empty: all."""
        return sorted({spec.namespace for spec in workers} or {self._settings.namespace})

    async def _rights(self, client: KubernetesClient, workers: list[WorkerSpec]) -> None:
        refusals = await read_refusals(client, self._namespaces_of(workers), self._deadline)
        self._found = replace(self._found, refusals=refusals)

    async def _argocd(self, client: KubernetesClient) -> None:
        argocd = await read_argocd(client, self._argocd_namespace, self._deadline)
        self._found = replace(self._found, argocd=argocd)

    async def _rollouts(self, client: KubernetesClient, workers: list[WorkerSpec]) -> None:
        are_given, failures, statuses = bool(workers), list[str](), list[RolloutStatus]()
        for namespace in self._namespaces_of(workers):
            found = await rollouts_in_cluster(client, namespace, self._deadline)
            failures += found.unusable
            statuses += found.statuses
            if not are_given:
                of_intents, unusable = specs_of_intents(found.intents)
                workers += [spec for _, spec in of_intents]
                failures += unusable
        self._found = replace(self._found, failures=tuple(failures), left_alone=left_alone(statuses))

    async def _namespaces(self, workers: list[WorkerSpec]) -> None:
        shared = SharedReads(self._opened.temporal, AnswerDeadline(self._settings.timeout))
        numbers: dict[tuple[str, str], int] = {}
        for spec in workers:
            key = (spec.connection.host_port, spec.temporal_namespace)
            if key not in numbers:
                numbers[key] = await shared.worker_deployments(spec)
        self._found = replace(self._found, worker_deployments=numbers)
