"""One look at all of an installation that can be looked at, and what cannot."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from twgen.cli.accounts import application_of, needs_of_installed
from twgen.cli.inputs import Memory
from twgen.cli.live import Connections, Servers
from twgen.cli.settings import Settings, clock
from twgen.clients.deadline import AnswerDeadline
from twgen.clients.kubernetes import KubernetesClient
from twgen.errors import OutOfTime, StateUnavailable, TwgenError
from twgen.model.diagnosis import Account, ArgoInstallation, Installation, Need, Seen, TickInstallation
from twgen.model.operator import Caller, GroupKind, Operator
from twgen.model.plan import Plan
from twgen.model.policy import MissingTemplate
from twgen.model.reasons.routing import RoutingReason
from twgen.model.rollout import EndedJob
from twgen.model.spec import WorkerSpec
from twgen.model.status import RolloutStatus
from twgen.model.world import World
from twgen.planning.diagnosis.rights import needs_of_caller
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
from twgen.specs.parse import Specs

Part = TypeVar("Part")
Other = TypeVar("Other")
_BUSY = 8
"""So often a server may say that it is asked too much, some ten seconds: that passes, and is no finding."""
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


class _Carried(NamedTuple):
    """What does not carry a rollout out that should."""

    stuck: Mapping[str, Seen] = {}
    jobless: Mapping[str, datetime] = {}


class _Cluster(NamedTuple):
    """What was read of a cluster, but for rights."""

    rollouts: _Rollouts = _Rollouts()
    argocd: ArgoInstallation | None = None
    tick: TickInstallation | None = None
    carried: _Carried = _Carried()
    strays: Mapping[str, tuple[str, ...]] = {}
    not_checked: Mapping[str, str] = {}


class _Rights(NamedTuple):
    """What accounts may not, and which are not there."""

    refusals: tuple[Need, ...] = ()
    absent: tuple[Account, ...] = ()
    not_checked: Mapping[str, str] = {}


class Examination(NamedTuple):
    """Through what an installation is looked at; each look returns what it has seen."""

    settings: Settings
    servers: Servers
    opened: Connections
    argocd_namespace: str

    async def of(self, given: Specs | None) -> Examined:
        """Look at the workers of these specs, or without any at those whose rollouts the cluster has."""
        client = self.opened.kubernetes
        everything = dict.fromkeys(("Kubernetes", "Argo CD", "rollouts in the cluster"), _NO_CLUSTER)
        named = given.workers if given else ()
        seen = await self._cluster(client, named) if client else _Cluster(not_checked=everything)
        # that a template is missing is to be told, and no reason to tell nothing
        workers = [
            replace(spec, policy=replace(spec.policy, missing_template=MissingTemplate.WARN))
            for spec in named or seen.rollouts.specs
        ]
        world, failures = await self.servers.read_each(
            self.opened, workers, for_routing=True, most_refusals=_BUSY
        )
        if given:
            world = await asyncio.to_thread(Memory(self.settings).recall, given, world)
        plan, unplanned = _planned(workers, world, self.settings.planning_caller)
        numbers, not_counted = await _tried(
            "Worker Deployments of Temporal's namespaces", lambda: self._namespaces(plan), {}
        )
        operator = self._operator(seen)
        rights = await self._rights(client, seen, plan, operator) if client else _Rights()
        scoped, not_asked = await _tried(
            "scopes of attached kinds", lambda: self._cluster_scoped(client, operator), frozenset[GroupKind]()
        )
        installation = Installation(
            refusals=rights.refusals,
            absent_accounts=rights.absent,
            argocd=seen.argocd,
            tick=seen.tick,
            intents=None
            if "rollouts in the cluster" in seen.not_checked
            else frozenset(seen.rollouts.intents),
            clock_ahead=clock_ahead(client, clock()) if client else None,
            failures=(*seen.rollouts.unusable, *failures, *unplanned),
            left_alone=_left_alone(seen.rollouts.shown),
            failing={one.worker: one.failing for one in seen.rollouts.statuses if one.failing},
            stuck=seen.carried.stuck,
            outdated_jobs=seen.rollouts.outdated_jobs,
            jobless=seen.carried.jobless,
            applications={
                worker: application_of(intent)
                for worker, intent in seen.rollouts.intents.items()
                if intent.application
            },
            strays=seen.strays,
            worker_deployments=numbers,
            cluster_scoped=scoped,
            remembers=given is not None,
            not_checked={
                **seen.not_checked,
                **rights.not_checked,
                **not_counted,
                **not_asked,
                **({"rights to write in Temporal": WRITES} if plan.workers else {}),
                **({"manifests of old versions": _NO_GIT} if plan.workers and not given else {}),
            },
        )
        return Examined(installation, plan, world, operator, len(workers))

    @property
    def _deadline(self) -> AnswerDeadline:
        return AnswerDeadline(self.settings.timeout)

    def _namespaces_of(self, workers: Sequence[WorkerSpec]) -> list[str]:
        """Those of the specs that were given, else the one that was asked for; empty: all."""
        return sorted({spec.namespace for spec in workers} or {self.settings.namespace})

    async def _cluster(self, client: KubernetesClient, given: Sequence[WorkerSpec]) -> _Cluster:
        namespaces, deadline = self._namespaces_of(given), self._deadline
        rollouts, no_rollouts = await _tried(
            "rollouts in the cluster", lambda: self._rollouts(client, namespaces), None
        )
        partly, no_argocd = await _tried(
            "Argo CD", lambda: read_argocd(client, self.argocd_namespace, deadline), None
        )
        argocd, no_parts = partly or (None, {})
        tick, no_tick = await _tried("tick", lambda: read_tick(client, deadline), None)
        if not rollouts:
            told = {**no_rollouts, **no_argocd, **no_parts, **no_tick}
            return _Cluster(argocd=argocd, tick=tick, not_checked=told)
        carried, no_jobs = await _tried(
            "Jobs of rollouts", lambda: self._carried(client, namespaces, rollouts), _Carried()
        )
        known = {spec.worker_deployment for spec in given} | rollouts.intents.keys()
        strays, no_strays = await _tried(
            "objects that are no longer rendered",
            lambda: read_strays(client, namespaces, known, deadline),
            {},
        )
        not_checked = {**no_argocd, **no_parts, **no_tick, **no_jobs, **no_strays}
        return _Cluster(rollouts, argocd, tick, carried, strays, not_checked)

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

    async def _carried(
        self, client: KubernetesClient, namespaces: Sequence[str], rollouts: _Rollouts
    ) -> _Carried:
        carriers = await read_carriers(client, namespaces, self._deadline)
        worked_on = {status.worker: status.intent for status in rollouts.statuses}
        return _Carried(
            await stuck_rollouts(client, carriers, self._deadline),
            await jobless_intents(client, carriers, rollouts.intents.values(), worked_on, self._deadline),
        )

    def _operator(self, seen: _Cluster) -> Operator:
        """What was given, else what the plugin of the cluster has."""
        of_plugin = seen.argocd.operator if seen.argocd else None
        given = self.settings.operator
        return given if given.file else of_plugin or given

    async def _rights(
        self, client: KubernetesClient, seen: _Cluster, plan: Plan, operator: Operator
    ) -> _Rights:
        """What whoever asks may not, and the accounts of the Jobs, of the plugin and of tick."""
        deadline = self._deadline
        namespaces = self._namespaces_of([item.spec for item in plan.workers])
        plugin = seen.argocd.plugin if seen.argocd else None
        installed = {one.account for one in (plugin, seen.tick) if one}
        needs = list(needs_of_installed(plan, seen.rollouts.intents, plugin, seen.tick, operator))
        user, unknown = await _tried("rights in Kubernetes", lambda: whoami(client, deadline), "")
        own = [need for need in needs if need.account.user == user]
        # an account that is installed for one thing needs no more than that
        own += () if user in installed else needs_of_caller(user, namespaces)
        refused, not_asked = await _tried(
            "rights in Kubernetes", lambda: refused_to_caller(client, own, deadline), ()
        )
        others = [need for need in needs if need.account.user != user]
        accounts = list(dict.fromkeys(need.account for need in others))
        absent, _ = await _tried("accounts", lambda: absent_accounts(client, accounts, deadline), ())
        asked = [need for need in others if need.account not in absent]
        of_others, not_told = await _tried(
            "rights of the accounts that Jobs, the plugin and tick use",
            lambda: refused_to_others(client, asked, deadline),
            (),
        )
        return _Rights((*of_others, *refused), absent, {**unknown, **not_asked, **not_told})

    async def _cluster_scoped(
        self, client: KubernetesClient | None, operator: Operator
    ) -> frozenset[GroupKind]:
        if not client:
            return frozenset()
        return await cluster_scoped(client, operator.attached.kinds, self._deadline)

    async def _namespaces(self, plan: Plan) -> Mapping[tuple[str, str], int]:
        """How many Worker Deployments each Temporal namespace of the workers has."""
        shared = SharedReads(self.opened.temporal, self._deadline)
        specs = {
            (one.spec.connection.host_port, one.spec.temporal_namespace): one.spec for one in plan.workers
        }
        return {key: len(await shared.worker_deployments(spec)) for key, spec in specs.items()}


async def _tried(
    what: str, look: Callable[[], Coroutine[Any, Any, Part]], otherwise: Other
) -> tuple[Part | Other, dict[str, str]]:
    """What a look sees; where it cannot, what stands for that, and why."""
    try:
        return await look(), {}
    except (StateUnavailable, OutOfTime) as error:
        return otherwise, {what: str(error)}


def _planned(workers: Sequence[WorkerSpec], world: World, caller: Caller) -> tuple[Plan, list[str]]:
    """The plan of those workers that were read and can be planned, and why others cannot be."""
    read, now = [spec for spec in workers if spec.key in world.workers], clock()
    sound, failures = [], []
    for spec in read:
        try:
            make_plan([spec], world, now, caller)
        except TwgenError as error:
            failures.append(str(error))
        else:
            sound.append(spec)
    # what cannot be planned is not what nobody names
    names = {spec.key for spec in sound}
    planned = replace(world, workers={key: one for key, one in world.workers.items() if key in names})
    return make_plan(sound, planned, now, caller), failures


def _left_alone(statuses: Sequence[RolloutStatus]) -> Mapping[str, str]:
    """The workers whose traffic nobody moves any more, and why, by what their rollouts left."""
    return {
        status.worker: status.message for status in statuses if status.reason == RoutingReason.ROLLOUT_ENDED
    }
