"""One look at all of an installation that can be looked at, and what cannot."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from twgen.cli.inputs import Memory
from twgen.cli.live import Connections, Servers
from twgen.cli.settings import Settings, clock
from twgen.clients.deadline import AnswerDeadline
from twgen.clients.kubernetes import KubernetesClient
from twgen.errors import OutOfTime, StateUnavailable, TwgenError
from twgen.model.diagnosis import (
    Account,
    ArgoInstallation,
    Installation,
    Need,
    Plugin,
    Seen,
    TickInstallation,
)
from twgen.model.operator import GroupKind, Operator
from twgen.model.plan import Plan, WorkerPlan
from twgen.model.policy import Driver, MissingTemplate
from twgen.model.reasons.routing import RoutingReason
from twgen.model.rollout import EndedJob
from twgen.model.spec import WorkerSpec
from twgen.model.status import RolloutStatus
from twgen.model.world import World
from twgen.planning.diagnosis.rights import (
    account_of_render,
    needs_of_caller,
    needs_of_jobs,
    needs_of_plugin,
    needs_of_tick,
    service_account,
)
from twgen.planning.plan import make_plan
from twgen.reading.installation.api_server import (
    absent_accounts,
    clock_ahead,
    cluster_scoped,
    refused_to_caller,
    refused_to_others,
    whoami,
)
from twgen.reading.installation.installed import read_argocd, read_tick
from twgen.reading.installation.workloads import jobless_intents, read_carriers, read_strays, stuck_rollouts
from twgen.reading.rollouts import rollouts_in_cluster, specs_of_intents
from twgen.reading.temporal.reader import SharedReads
from twgen.records.intent import Intent
from twgen.rendering.manifests import rollout_rules
from twgen.specs.parse import Specs
from twgen.versioning.names import is_dns_name, rollout_name

Part = TypeVar("Part")
Other = TypeVar("Other")
_IN_CLUSTER = "rollouts in the cluster"
_BUSY = 8
"""So often a server may say that it is asked too much, some ten seconds: that passes, and is no finding."""
_PARTS = 2
"""Of an application's name: its namespace, if it is not Argo CD's, and its own."""
_NO_CLUSTER = "there is no access to a cluster: give --kubeconfig, or set KUBECONFIG"
_NO_GIT = "the ledger and the Git history are read only with specs: give PATHs"
WRITES = (
    "Temporal cannot be asked in advance who may write; a rollout without the right reports it in its status"
)
"""Why the doctor does not check the rights to write in Temporal."""


class Examined(NamedTuple):
    """What was read of an installation, and what is planned by it."""

    installation: Installation
    plan: Plan
    world: World
    operator: Operator
    workers: int
    """How many were to be looked at."""


class _Rollouts(NamedTuple):
    """What rollouts left in a cluster."""

    intents: Mapping[str, Intent] = {}
    """By worker."""
    specs: Sequence[WorkerSpec] = ()
    statuses: Sequence[RolloutStatus] = ()
    """As their rollouts left them."""
    shown: Sequence[RolloutStatus] = ()
    """The same, of intents that no rollout has looked at, too."""
    unusable: Sequence[str] = ()
    outdated_jobs: Mapping[str, str] = {}
    """As an Installation has them."""


class _Cluster(NamedTuple):
    """What was read of a cluster, but for rights."""

    rollouts: _Rollouts = _Rollouts()
    argocd: ArgoInstallation | None = None
    tick: TickInstallation | None = None
    stuck: Mapping[str, Seen] = {}
    jobless: Mapping[str, datetime] = {}
    """Of both: as an Installation has them."""
    strays: Mapping[str, tuple[str, ...]] = {}


@dataclass
class Examination:
    """The servers of an installation, and what could not be checked of it."""

    settings: Settings
    servers: Servers
    opened: Connections
    argocd_namespace: str
    not_checked: dict[str, str] = field(default_factory=dict)
    """Why, by what."""

    async def of(self, given: Specs | None) -> Examined:
        """Look at the workers of these specs, or without any at those whose rollouts the cluster has."""
        client = self.opened.kubernetes
        named = given.workers if given else ()
        seen = _Cluster()
        if client:
            seen = await self._cluster(client, named)
        else:
            self.not_checked |= dict.fromkeys(("Kubernetes", "Argo CD", _IN_CLUSTER), _NO_CLUSTER)
        workers = named or seen.rollouts.specs
        plan, world, failures = await self._planned(given, workers)
        operator = self.settings.operator
        if not operator.file and seen.argocd and seen.argocd.operator:
            operator = seen.argocd.operator
        refusals: tuple[Need, ...] = ()
        absent: tuple[Account, ...] = ()
        if client:
            refusals, absent = await self._rights(client, seen, plan, operator)
        numbers: Mapping[tuple[str, str], int] = await self._tried(
            "Worker Deployments of Temporal's namespaces", lambda: self._namespaces(plan), {}
        )
        scoped = frozenset[GroupKind]()
        if client:
            kinds = operator.attached.kinds
            scoped = await self._tried(
                "scopes of attached kinds", lambda: cluster_scoped(client, kinds, self._deadline), scoped
            )
        if plan.workers:
            self.not_checked["rights to write in Temporal"] = WRITES
        if plan.workers and not given:
            self.not_checked["manifests of old versions"] = _NO_GIT
        installation = Installation(
            refusals=refusals,
            absent_accounts=absent,
            argocd=seen.argocd,
            tick=seen.tick,
            intents=None if _IN_CLUSTER in self.not_checked else frozenset(seen.rollouts.intents),
            clock_ahead=clock_ahead(client, clock()) if client else None,
            failures=(*seen.rollouts.unusable, *failures),
            left_alone={
                status.worker: status.message
                for status in seen.rollouts.shown
                if status.reason == RoutingReason.ROLLOUT_ENDED
            },
            failing={one.worker: one.failing for one in seen.rollouts.statuses if one.failing},
            stuck=seen.stuck,
            outdated_jobs=seen.rollouts.outdated_jobs,
            jobless=seen.jobless,
            applications={
                worker: application_of(intent)
                for worker, intent in seen.rollouts.intents.items()
                if intent.application
            },
            strays=seen.strays,
            worker_deployments=numbers,
            cluster_scoped=scoped,
            remembers=given is not None,
            not_checked=self.not_checked,
        )
        return Examined(installation, plan, world, operator, len(workers))

    async def _planned(
        self, given: Specs | None, workers: Sequence[WorkerSpec]
    ) -> tuple[Plan, World, list[str]]:
        """The plan of the workers that can be read and planned, the world, and why others cannot be."""
        # a missing template is a finding, and must not prevent the others
        specs = [
            replace(spec, policy=replace(spec.policy, missing_template=MissingTemplate.WARN))
            for spec in workers
        ]
        world, failures = await self.servers.read_each(
            self.opened, specs, for_routing=True, most_refusals=_BUSY
        )
        if given:
            world = await asyncio.to_thread(Memory(self.settings).recall, given, world)
        now, caller, sound, unplanned = clock(), self.settings.planning_caller, [], []
        for spec in specs:
            if spec.key in world.workers:
                try:
                    make_plan([spec], world, now, caller)
                    sound.append(spec)
                except TwgenError as error:
                    unplanned.append(str(error))
        # a worker that cannot be planned is not one without a spec
        names = {spec.key for spec in sound}
        known = replace(world, workers={key: one for key, one in world.workers.items() if key in names})
        return make_plan(sound, known, now, caller), world, [*failures, *unplanned]

    @property
    def _deadline(self) -> AnswerDeadline:
        return AnswerDeadline(self.settings.timeout)

    def _namespaces_of(self, workers: Sequence[WorkerSpec]) -> list[str]:
        """Those of the specs that were given, else the one that was asked for; empty: all."""
        return sorted({spec.namespace for spec in workers} or {self.settings.namespace})

    async def _cluster(self, client: KubernetesClient, given: Sequence[WorkerSpec]) -> _Cluster:
        namespaces, deadline = self._namespaces_of(given), self._deadline
        rollouts = await self._tried(_IN_CLUSTER, lambda: self._rollouts(client, namespaces), None)
        argocd, missing_parts = await self._tried(
            "Argo CD", lambda: read_argocd(client, self.argocd_namespace, deadline), (None, {})
        )
        self.not_checked |= missing_parts
        tick = await self._tried("tick", lambda: read_tick(client, deadline), None)
        if not rollouts:
            return _Cluster(argocd=argocd, tick=tick)
        stuck, jobless = await self._tried(
            "Jobs of rollouts", lambda: self._without_progress(client, namespaces, rollouts), ({}, {})
        )
        known = {spec.worker_deployment for spec in given} | rollouts.intents.keys()
        strays: Mapping[str, tuple[str, ...]] = await self._tried(
            "objects that are no longer rendered",
            lambda: read_strays(client, namespaces, known, deadline),
            {},
        )
        return _Cluster(rollouts, argocd, tick, stuck, jobless, strays)

    async def _rollouts(self, client: KubernetesClient, namespaces: Sequence[str]) -> _Rollouts:
        intents: list[Intent] = []
        statuses: list[RolloutStatus] = []
        shown: list[RolloutStatus] = []
        unusable: list[str] = []
        ended: dict[tuple[str, str], EndedJob] = {}
        for namespace in namespaces:
            found = await rollouts_in_cluster(client, namespace, self._deadline)
            intents += found.intents
            statuses += found.statuses
            shown += found.shown
            unusable += found.unusable
            ended |= found.ended
        read, unreadable = specs_of_intents(intents)
        by_worker = {f"{intent.namespace}/{intent.worker}": intent for intent in intents}
        outdated = {
            worker: job.job.name
            for worker, intent in by_worker.items()
            if (job := ended.get((intent.namespace, intent.hash))) and job.is_older
        }
        specs = [spec for _, spec in read]
        return _Rollouts(by_worker, specs, statuses, shown, [*unusable, *unreadable], outdated)

    async def _without_progress(
        self, client: KubernetesClient, namespaces: Sequence[str], rollouts: _Rollouts
    ) -> tuple[Mapping[str, Seen], Mapping[str, datetime]]:
        """The rollouts whose Job is stuck, and the intents without a Job."""
        carriers = await read_carriers(client, namespaces, self._deadline)
        worked_on = {status.worker: status.intent for status in rollouts.statuses}
        return (
            await stuck_rollouts(client, carriers, self._deadline),
            await jobless_intents(client, carriers, rollouts.intents.values(), worked_on, self._deadline),
        )

    async def _rights(
        self, client: KubernetesClient, seen: _Cluster, plan: Plan, operator: Operator
    ) -> tuple[tuple[Need, ...], tuple[Account, ...]]:
        """The rights that the caller and the accounts of Jobs, plugin and tick lack; the missing accounts."""
        deadline = self._deadline
        namespaces = self._namespaces_of([item.spec for item in plan.workers])
        plugin = seen.argocd.plugin if seen.argocd else None
        installed = {one.account for one in (plugin, seen.tick) if one}
        needs = list(needs_of_installed(plan, seen.rollouts.intents, plugin, seen.tick, operator))
        user = await self._tried("rights in Kubernetes", lambda: whoami(client, deadline), "")
        own = [need for need in needs if need.account.user == user]
        # an account that is installed for one thing needs no more than that
        own += () if user in installed else needs_of_caller(user, namespaces)
        refused = await self._tried(
            "rights in Kubernetes", lambda: refused_to_caller(client, own, deadline), ()
        )
        others = [need for need in needs if need.account.user != user]
        accounts = list(dict.fromkeys(need.account for need in others))
        absent = await self._tried("", lambda: absent_accounts(client, accounts, deadline), ())
        asked = [need for need in others if need.account not in absent]
        of_others = await self._tried(
            "rights of the accounts that Jobs, the plugin and tick use",
            lambda: refused_to_others(client, asked, deadline),
            (),
        )
        return (*of_others, *refused), absent

    async def _namespaces(self, plan: Plan) -> Mapping[tuple[str, str], int]:
        """How many Worker Deployments each Temporal namespace of the workers has."""
        shared = SharedReads(self.opened.temporal, self._deadline)
        specs = {
            (one.spec.connection.host_port, one.spec.temporal_namespace): one.spec for one in plan.workers
        }
        return {key: len(await shared.worker_deployments(spec)) for key, spec in specs.items()}

    async def _tried(
        self, what: str, read: Callable[[], Coroutine[Any, Any, Part]], otherwise: Other
    ) -> Part | Other:
        """What `read` returns; if a server fails, `otherwise`, and `what` (if any) counts as not checked."""
        try:
            return await read()
        except (StateUnavailable, OutOfTime) as error:
            if what:
                self.not_checked[what] = str(error)
            return otherwise


def needs_of_installed(
    plan: Plan,
    intents: Mapping[str, Intent],
    plugin: Plugin | None,
    tick: TickInstallation | None,
    operator: Operator,
) -> Iterator[Need]:
    """What they need in the namespaces of the workers of a plan; `intents` by worker."""
    drivers: defaultdict[str, set[Driver]] = defaultdict(set)
    for item in plan.workers:
        drivers[item.spec.namespace].add(item.spec.policy.driver)
        yield from _of_jobs(item, intents.get(item.spec.worker_deployment), operator)
    if plugin and _reads_cluster(plugin, operator):
        yield from needs_of_plugin(plugin.account, sorted(drivers))
    if tick:
        yield from needs_of_tick(tick, drivers)


def _reads_cluster(plugin: Plugin, operator: Operator) -> bool:
    """The plugin reads the cluster that it runs in: the operator says so, or a mounted token tells it."""
    if operator.file:
        return any(not cluster.kubeconfig for cluster in operator.clusters)
    return plugin.mounts_token


def application_of(intent: Intent) -> str:
    """The Argo CD application of an intent, as `argocd` takes it; empty: none has it."""
    parts = intent.application.split("_")
    # whoever may annotate the intent chooses it
    return "/".join(parts) if len(parts) <= _PARTS and all(map(is_dns_name, parts)) else ""


def _of_jobs(item: WorkerPlan, intent: Intent | None, operator: Operator) -> Iterator[Need]:
    """What the Jobs of a worker need; of one that has none yet, where its account is the team's own."""
    spec, own = item.spec, item.spec.policy.service_account_name
    if spec.policy.driver is Driver.NONE or not (intent or (own and operator.rollout.image)):
        return
    name, of = rollout_name(spec.name), f"the Jobs of {spec.worker_deployment}"
    if own:
        account = Account(service_account(spec.namespace, own), of)
    else:
        application = application_of(intent) if intent else ""
        account = account_of_render(service_account(spec.namespace, name), of, name, application)
    # not those of the intent, which whoever may write it chooses
    yield from needs_of_jobs(item, account, rollout_rules(item.versions, operator.attached.kinds))
