"""What the accounts need that are installed: of the Jobs, of the plugin, of tick."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from twgen.model.diagnosis import Account, Need, Plugin, TickInstallation
from twgen.model.operator import Operator
from twgen.model.plan import Plan, WorkerPlan
from twgen.model.policy import Driver
from twgen.planning.diagnosis.rights import (
    account_of_render,
    needs_of_jobs,
    needs_of_plugin,
    needs_of_tick,
    service_account,
)
from twgen.records.intent import Intent
from twgen.rendering.manifests import rollout_rules
from twgen.versioning.names import is_dns_name, rollout_name

_PARTS = 2
"""Of an application's name: its namespace, where that is another one than Argo CD's, and its own."""


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
