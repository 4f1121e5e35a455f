"""`twgen doctor`: reads an installation, and reports its findings and the parts that cannot be read."""

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import starmap
from typing import Any, NamedTuple, TypeVar

import click

from twgen.cli.inputs import Memory, load_specs
from twgen.cli.live import Connections, Servers
from twgen.cli.options import CONNECTION, INPUT, NAMES, Grouped, options, output_option, paths_argument
from twgen.cli.output import wants_colour, wants_tree, width, write
from twgen.cli.settings import clock, settings_outside_argocd
from twgen.clients.deadline import AnswerDeadline
from twgen.clients.kubernetes import KubernetesClient
from twgen.errors import NegativeAnswer, OutOfTime, StateUnavailable, TwgenError
from twgen.model.diagnosis import (
    Account,
    Diagnosis,
    Installation,
    Need,
    NotChecked,
    Plugin,
    Seen,
    Severity,
    TickInstallation,
)
from twgen.model.operator import GroupKind, Operator
from twgen.model.plan import Plan, WorkerPlan
from twgen.model.policy import MissingTemplate
from twgen.model.problem import counted
from twgen.model.reasons import RoutingReason
from twgen.model.rollout import Driver
from twgen.model.spec import WorkerSpec
from twgen.model.world import World
from twgen.planning.diagnosis.findings import findings
from twgen.planning.diagnosis.rights import (
    account_of_render,
    needs_of_caller,
    needs_of_jobs,
    needs_of_plugin,
    needs_of_tick,
    service_account,
)
from twgen.planning.plan import make_plan
from twgen.planning.reads import unread_lines
from twgen.planning.rollout import overdue
from twgen.reading.hooks import applications_called, with_skipped_hooks
from twgen.reading.installation.cluster import (
    absent_accounts,
    clock_ahead,
    cluster_scoped,
    read_orphans,
    refused_needs,
    stuck_rollouts,
    whoami,
)
from twgen.reading.installation.installed import read_argocd, read_tick
from twgen.reading.rollouts import rollouts_in_cluster, specs_of_intents
from twgen.reading.temporal.reader import TemporalReader
from twgen.records.intent import Intent
from twgen.rendering.manifests import rollout_rules
from twgen.reporting.diagnosis import DIAGNOSIS, diagnosis_lines, diagnosis_text
from twgen.reporting.json_text import json_text
from twgen.specs.parse import Specs
from twgen.versioning.names import rollout_name

Part = TypeVar("Part")
Other = TypeVar("Other")
_IN_CLUSTER = "rollouts in the cluster"
_NO_CLUSTER = "twgen has no access to a cluster: give --kubeconfig, or set KUBECONFIG"
_NO_GIT = "the ledger and the Git history are read only with specs: give PATHs"
WRITES = (
    "Temporal cannot be asked in advance who is allowed to write; a rollout reports a missing permission in"
    " its status"
)
"""The reason why the doctor does not check permissions to write to Temporal."""


@click.command(cls=Grouped)
@paths_argument
@output_option("text", "json")
@options("argocd_namespace", *CONNECTION, *INPUT, *NAMES, "quiet", "color")
def command(output: str, argocd_namespace: str, color: str, **params: Any) -> None:
    """Check rights, clocks, Argo CD's settings, Temporal, workers and rollouts for problems.

    With PATHs, it checks the workers in these specs. Without PATHs, it checks the workers that have a
    rollout in the cluster. Changes nothing. Exits with 1 if it finds a problem, but not for advice.

    \b
    twgen doctor
    twgen doctor workers/ --operator-config operator.yaml
    """
    settings = settings_outside_argocd(params)
    specs = load_specs(replace(settings, quiet=True), needs_worker=True) if params["paths"] else None

    with Servers(settings) as servers:
        examined = servers.run(
            specs.workers if specs else (), lambda opened: Examination(opened, argocd_namespace).of(specs)
        )
    diagnosis = examined.diagnosis
    checked = counted(examined.workers, "worker")
    if output == "json":
        write(json_text(DIAGNOSIS.write(diagnosis)))
    elif wants_tree(color):
        write(diagnosis_text(diagnosis, checked, colour=wants_colour(color), width=width()))
    else:
        write("".join(f"{line}\n" for line in diagnosis_lines(diagnosis, checked)))
    found_nothing = not (examined.workers or diagnosis.findings or examined.is_installed)
    if found_nothing and diagnosis.not_checked:
        raise StateUnavailable("nothing was checked: give PATHs, or access to a cluster")
    problems = sum(finding.severity is Severity.PROBLEM for finding in diagnosis.findings)
    if problems:
        raise NegativeAnswer(f"{counted(problems, 'problem')} found")


class Examined(NamedTuple):
    """The result of an examination."""

    diagnosis: Diagnosis
    workers: int
    """The number of workers to read."""
    is_installed: bool
    """Whether Argo CD or tick was found."""


@dataclass
class Examination:
    """Reads an installation, and stores the parts that were read so far."""

    opened: Connections
    argocd_namespace: str
    found: Installation = field(default_factory=Installation)
    intents: Mapping[str, Intent] = field(default_factory=dict)
    """The intents in the cluster, by worker."""
    specs: Sequence[WorkerSpec] = ()
    """The specs in these intents."""
    not_checked: dict[str, str] = field(default_factory=dict)
    """The parts that were not checked, each with the reason."""

    async def of(self, specs: Specs | None) -> Examined:
        """Examine the workers in these specs, or else all workers that have a rollout in the cluster."""
        client, operator = self.opened.kubernetes, self.opened.settings.operator
        spec_workers = specs.workers if specs else ()
        if client:
            await self._cluster(client, spec_workers)
        else:
            self.not_checked |= dict.fromkeys(("Kubernetes", "Argo CD", _IN_CLUSTER), _NO_CLUSTER)
        workers = spec_workers or self.specs
        plan, world, failures = await self._planned(specs, workers)
        if not operator.file and self.found.argocd and self.found.argocd.operator:
            operator = self.found.argocd.operator
        if client:
            await self._rights(client, plan, operator)
        numbers: Mapping[tuple[str, str], int] = await self._read_or(
            "Worker Deployments in the Temporal namespaces", self._namespaces(plan), {}
        )
        scoped, ahead = frozenset[GroupKind](), None
        if client:
            kinds = cluster_scoped(client, operator.attached.kinds, self._deadline)
            scoped = await self._read_or("scopes of attached kinds", kinds, scoped)
            ahead = clock_ahead(client, clock())
        if plan.workers:
            self.not_checked["rights to write in Temporal"] = WRITES
        if plan.workers and not specs:
            self.not_checked["manifests of old versions"] = _NO_GIT
        installation = replace(
            self.found,
            clock_ahead=ahead,
            failures=(*self.found.failures, *failures),
            worker_deployments=numbers,
            cluster_scoped=scoped,
            remembers=specs is not None,
            not_checked=self.not_checked,
        )
        not_checked = tuple(starmap(NotChecked, self.not_checked.items()))
        diagnosis = Diagnosis(plan.now, findings(installation, plan, world, operator), not_checked)
        return Examined(diagnosis, len(workers), bool(installation.argocd or installation.tick))

    async def _planned(
        self, recorded_specs: Specs | None, workers: Sequence[WorkerSpec]
    ) -> tuple[Plan, World, list[str]]:
        """The plan for the workers that can be planned, the world, and the errors of the other workers."""
        # a missing template must be reported as a finding, not as an error that hides other findings
        specs = [
            replace(spec, policy=replace(spec.policy, missing_template=MissingTemplate.WARN))
            for spec in workers
        ]
        world, unread = await self.opened.read_each(specs, for_routing=True, examines=True)
        for worker in world.workers.values():
            if worker.autoscalers_unread:
                namespace = worker.name.partition("/")[0]
                self.not_checked[f"autoscalers in namespace {namespace}"] = worker.autoscalers_unread
        if recorded_specs:
            world = await asyncio.to_thread(Memory(self.opened.settings).recall, recorded_specs, world)
        now, caller, sound, unplanned = clock(), self.opened.settings.planning_caller, [], []
        for spec in specs:
            if spec.key in world.workers:
                try:
                    make_plan([spec], world, now, caller)
                    sound.append(spec)
                except TwgenError as error:
                    unplanned.append(str(error))
        # leave out the other workers: without a spec, they would count as removed from Git
        names = {spec.key for spec in sound}
        sound_worlds = {key: worker for key, worker in world.workers.items() if key in names}
        plan = make_plan(sound, replace(world, workers=sound_worlds), now, caller)
        return plan, world, [*unread_lines(unread), *unplanned]

    @property
    def _deadline(self) -> AnswerDeadline:
        return AnswerDeadline(self.opened.settings.timeout)

    def _namespaces_of(self, workers: Sequence[WorkerSpec]) -> list[str]:
        """The namespaces of these workers. Without workers, the chosen namespace, which is empty for all."""
        return sorted({spec.namespace for spec in workers} or {self.opened.settings.namespace})

    async def _cluster(self, client: KubernetesClient, workers: Sequence[WorkerSpec]) -> None:
        """Read all parts of the cluster except rights."""
        namespaces, deadline = self._namespaces_of(workers), self._deadline
        intents = await self._read_or(_IN_CLUSTER, self._rollouts(client, namespaces), None)
        argocd, missing_parts = await self._read_or(
            "Argo CD", read_argocd(client, self.argocd_namespace, deadline), (None, {})
        )
        self.not_checked |= missing_parts
        tick = await self._read_or("tick", read_tick(client, deadline), None)
        self.found = replace(self.found, argocd=argocd, tick=tick)
        if intents is None:
            return
        self.intents = intents
        stuck: Mapping[str, Seen] = await self._read_or(
            "Jobs of rollouts", stuck_rollouts(client, namespaces, self._deadline), {}
        )
        known_workers = {spec.worker_deployment for spec in workers} | self.intents.keys()
        orphans: Mapping[str, tuple[str, ...]] = await self._read_or(
            "objects that are no longer rendered",
            read_orphans(client, namespaces, known_workers, deadline),
            {},
        )
        self.found = replace(self.found, stuck=stuck, orphans=orphans)

    async def _rollouts(self, client: KubernetesClient, namespaces: Sequence[str]) -> Mapping[str, Intent]:
        """Read intents and statuses, and return the intents by worker."""
        called = partial(applications_called, client, self.argocd_namespace)
        read = [
            await with_skipped_hooks(
                await rollouts_in_cluster(client, namespace, self._deadline),
                called,
                self.opened.settings.timeout,
                clock(),
            )
            for namespace in namespaces
        ]
        specs_read, unusable = specs_of_intents([intent for records in read for intent in records.intents])
        self.specs = [spec for _, spec in specs_read]
        intents = {
            f"{intent.namespace}/{intent.worker}": intent for records in read for intent in records.intents
        }
        ended = {key: job for records in read for key, job in records.ended.items()}
        # the shown statuses include intents whose rollouts have not begun
        shown = [status for records in read for status in records.shown]
        reason_of = {status.worker: status.reason for status in shown}
        self.found = replace(
            self.found,
            intents=frozenset(intents),
            failures=(*(why for records in read for why in records.unusable), *unusable),
            left_alone={
                status.worker: status.message
                for status in shown
                if status.reason == RoutingReason.ROLLOUT_ENDED
            },
            failing={status.worker: overdue(status, clock()).failing for status in shown},
            outdated_jobs={
                worker: job.job.name
                for worker, intent in intents.items()
                if (job := ended.get((intent.namespace, intent.hash))) and job.is_older and job.job
            },
            jobless={
                worker: since
                for records in read
                for worker, since in records.jobless.items()
                if reason_of[worker] == RoutingReason.ROLLOUT_NOT_BEGUN
                and not (intents[worker].is_paused or intents[worker].is_by_tick)
            },
            skipped={
                worker: intents[worker].tick_takes_over
                for worker, reason in reason_of.items()
                # require an intent, because anyone who can write a status can set this reason
                if reason == RoutingReason.HOOK_SKIPPED and worker in intents
            },
            applications={
                worker: intent.argocd_name for worker, intent in intents.items() if intent.application
            },
        )
        return intents

    async def _rights(self, client: KubernetesClient, plan: Plan, operator: Operator) -> None:
        """Find missing rights of the caller, Jobs, the plugin and tick, and accounts that do not exist."""
        deadline, tick = self._deadline, self.found.tick
        namespaces = self._namespaces_of([item.spec for item in plan.workers])
        plugin = self.found.argocd.plugin if self.found.argocd else None
        installed = {part.account for part in (plugin, tick) if part}
        needs = list(needs_of_installed(plan, self.intents, plugin, tick, operator))
        user = await self._read_or("rights in Kubernetes", whoami(client, deadline), "")
        own_needs = [need for need in needs if need.account.user == user]
        # the accounts of the plugin and of tick do not need a user's permissions
        own_needs += () if user in installed else needs_of_caller(user, namespaces)
        refused = await self._read_or(
            "rights in Kubernetes", refused_needs(client, own_needs, deadline, of_caller=True), ()
        )
        other_needs = [need for need in needs if need.account.user != user]
        accounts = list(dict.fromkeys(need.account for need in other_needs))
        absent = await self._read_or("", absent_accounts(client, accounts, deadline), ())
        needs_to_check = [need for need in other_needs if need.account not in absent]
        refused_to_accounts = await self._read_or(
            "rights of the accounts that Jobs, the plugin and tick use",
            refused_needs(client, needs_to_check, deadline, of_caller=False),
            (),
        )
        self.found = replace(self.found, refusals=(*refused_to_accounts, *refused), absent_accounts=absent)

    async def _namespaces(self, plan: Plan) -> Mapping[tuple[str, str], int]:
        """The number of Worker Deployments in each Temporal namespace of the workers."""
        shared = TemporalReader(self.opened.temporal, self._deadline)
        specs = [worker.spec for worker in plan.workers]
        by_namespace = {(spec.connection.host_port, spec.temporal_namespace): spec for spec in specs}
        return {key: len(await shared.worker_deployments(spec)) for key, spec in by_namespace.items()}

    async def _read_or(self, part: str, read: Coroutine[Any, Any, Part], otherwise: Other) -> Part | Other:
        """Return the result of `read`. If a server fails, note that `part` was not checked."""
        try:
            return await read
        except (StateUnavailable, OutOfTime) as error:
            if part:
                self.not_checked[part] = str(error)
            return otherwise


def needs_of_installed(
    plan: Plan,
    intents: Mapping[str, Intent],
    plugin: Plugin | None,
    tick: TickInstallation | None,
    operator: Operator,
) -> Iterator[Need]:
    """The rights that the Jobs, the plugin and tick need for a plan's workers. `intents` are by worker."""
    drivers: defaultdict[str, set[Driver]] = defaultdict(set)
    for item in plan.workers:
        drivers[item.spec.namespace].add(item.spec.policy.driver)
        yield from _needs_of_jobs(item, intents.get(item.spec.worker_deployment), operator)
    # an operator's file decides whether the plugin reads its own cluster; without such a file, the plugin
    # reads its own cluster if a token is mounted
    reads_own = any(not cluster.kubeconfig for cluster in operator.clusters)
    if plugin and (reads_own if operator.file else plugin.mounts_token):
        yield from needs_of_plugin(plugin.account, sorted(drivers))
    if tick:
        yield from needs_of_tick(tick, drivers)


def _needs_of_jobs(item: WorkerPlan, intent: Intent | None, operator: Operator) -> Iterator[Need]:
    """The rights that a worker's Jobs need. Before the first Job, only the team's own account is checked."""
    spec, own_account = item.spec, item.spec.policy.service_account_name
    if not spec.policy.driver.has_job or not (intent or (own_account and operator.rollout.image)):
        return
    name, purpose = rollout_name(spec.name), f"the Jobs of {spec.worker_deployment}"
    if own_account:
        account = Account(service_account(spec.namespace, own_account), purpose)
    else:
        application = intent.argocd_name if intent else ""
        account = account_of_render(service_account(spec.namespace, name), purpose, name, application)
    # do not use the rules in the intent: anyone who may write an intent could choose them
    yield from needs_of_jobs(item, account, rollout_rules(item.versions, operator.attached.kinds))
