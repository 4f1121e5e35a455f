"""The rights that each account needs in Kubernetes, and how to grant the missing ones."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, product
from shlex import quote
from typing import Any

from twgen.model.diagnosis import (
    Account,
    DoctorFinding,
    Installation,
    Need,
    Right,
    Severity,
    TickInstallation,
)
from twgen.model.plan import WorkerPlan
from twgen.model.rollout import Driver
from twgen.planning.sentences import listed

_NO_ROLLOUTS = "`status --from-cluster`, `dashboard` and `tick` cannot see rollouts"
_NO_JOB = "`retry` and `resume` cannot restart a Job"
_CONFIG_MAPS, _PODS = Right("list", "", "configmaps"), Right("list", "", "pods")
_DEPLOYMENTS, _JOBS = Right("list", "apps", "deployments"), Right("list", "batch", "jobs")
_DELETE_JOBS = Right("delete", "batch", "jobs")
_OF_PEOPLE = (
    (_DEPLOYMENTS, "twgen must assume that the Deployment of every version still exists", Severity.PROBLEM),
    (_PODS, "twgen cannot report why a Pod waits or crashes", Severity.ADVICE),
    (_CONFIG_MAPS, _NO_ROLLOUTS, Severity.ADVICE),
    (_JOBS, "twgen cannot see replays and finished Jobs", Severity.ADVICE),
    (_DELETE_JOBS, _NO_JOB, Severity.ADVICE),
    (Right("create", "batch", "jobs"), _NO_JOB, Severity.ADVICE),
)
_OF_TICK = (_CONFIG_MAPS, _PODS, _DEPLOYMENTS, _JOBS, _DELETE_JOBS)
"""The rights that deploy/tick/rbac.yaml grants."""
_STATUSES = (Right("create", "", "configmaps"), Right("patch", "", "configmaps"))
"""The rights that deploy/tick/statuses grants."""
_ROLLOUTS = (
    Right("get", "", "configmaps"),
    *_STATUSES,
    Right("create", "", "events"),
    Right("patch", "apps", "deployments"),
)
"""The rights from deploy/tick/rollouts that every rollout needs."""
SERVICE_ACCOUNT = "system:serviceaccount"


def service_account(namespace: str, name: str) -> str:
    """The user name of a ServiceAccount in Kubernetes."""
    return f"{SERVICE_ACCOUNT}:{namespace}:{name}"


def needs_of_caller(user: str, namespaces: Iterable[str]) -> Iterator[Need]:
    """The rights that a person needs to run twgen commands for these namespaces."""
    for namespace, (right, without_it, severity) in product(namespaces, _OF_PEOPLE):
        yield Need(Account(user), namespace, right, without_it, severity)


def needs_of_plugin(user: str, namespaces: Iterable[str]) -> Iterator[Need]:
    """The right that the plugin needs to read the cluster. deploy/in-cluster grants this right."""
    remedy = "`kubectl apply -f deploy/in-cluster/rbac.yaml`"
    is_usual = user == service_account("argocd", "argocd-repo-server")
    account = Account(user, "the plugin", remedy if is_usual else "")
    for namespace in namespaces:
        without_it = "Applications with workers in this namespace cannot be rendered"
        yield Need(account, namespace, _DEPLOYMENTS, without_it, Severity.PROBLEM)


def needs_of_tick(tick: TickInstallation, namespaces: Mapping[str, Collection[Driver]]) -> Iterator[Need]:
    """The rights that tick needs in each namespace.

    The rights depend on the drivers of the workers in that namespace.
    """
    home = tick.account.split(":")[2]
    apply = f"sed 's/namespace: twgen/namespace: {home}/' deploy/tick/rbac.yaml | kubectl apply -f -"
    # deploy/tick has no RoleBinding for a tick with a single namespace: the operator has to write it
    account = Account(tick.account, "tick", f"`{apply}`" if tick.namespace == "" else "")
    watched = sorted(namespaces) if tick.namespace is None else [tick.namespace]
    for namespace, right in product(watched, _OF_TICK):
        yield Need(
            account, namespace, right, "tick cannot check the workers in this namespace", Severity.PROBLEM
        )
    drivers, account = set(chain.from_iterable(namespaces.values())), Account(tick.account, "tick")
    for namespace, right in product(watched, _STATUSES if drivers & {Driver.NONE, Driver.HOOK} else ()):
        without_it = "tick cannot write the status of workers that no Job rolls out"
        yield Need(account, namespace, right, without_it, Severity.ADVICE)
    for namespace, right in product(watched, _ROLLOUTS):
        if Driver.TICK in drivers:
            yield Need(
                account,
                namespace,
                right,
                "tick cannot roll out the workers in this namespace",
                Severity.PROBLEM,
            )
        elif Driver.HOOK in drivers and tick.takes_over:
            without_it = "tick cannot take over rollouts whose hook Argo CD skips"
            yield Need(account, namespace, right, without_it, Severity.ADVICE)


def account_of_render(user: str, of: str, name: str, application: str) -> Account:
    """An account that a render creates together with a Role.

    `application` is empty if Argo CD is not used.
    """
    sync = f"`argocd app sync {application}`, or " if application else ""
    objects = f"ServiceAccount, Role and RoleBinding {name}"
    return Account(user, of, f"restore {objects}: {sync}apply the output of `twgen render`")


def needs_of_jobs(worker: WorkerPlan, account: Account, rules: Iterable[Mapping[str, Any]]) -> Iterator[Need]:
    """The rights that a worker's Jobs need, according to the Role that a render would create."""
    # the applied Role might lack a rule for a new version, which needs the rule only after it is deployed
    live = {version.deployment for version in worker.versions.versions if version.live}
    for rule in rules:
        for group, resource, verb in product(rule["apiGroups"], rule["resources"], rule["verbs"]):
            names: Sequence[str] = rule.get("resourceNames", [""])
            if (resource, verb) == ("deployments", "patch"):
                names = [name for name in names if name in live]
            for name in names:
                right = Right(verb, group, resource, name)
                yield Need(account, worker.spec.namespace, right, "its Jobs fail", Severity.PROBLEM)


def of_rights(installation: Installation) -> Iterator[DoctorFinding]:
    """The findings about missing accounts and rights. Rights with the same remedy share a finding."""
    for account in installation.absent_accounts:
        _, _, namespace, name = account.user.split(":")
        yield DoctorFinding(
            f"account {namespace}/{name}",
            "this ServiceAccount does not exist",
            f"no Pod of {account.of} can be created",
            account.remedy or f"`kubectl create serviceaccount -n {namespace} {name}`",
        )
    together: defaultdict[tuple[Any, ...], list[Need]] = defaultdict(list)
    for need in installation.refusals:
        right, account = need.right, need.account
        of_object = () if account.remedy else (right.group, right.resource, right.name)
        together[(account, need.namespace, need.severity, need.without_it, *of_object)].append(need)
    for needs in together.values():
        yield _refused(needs)


def _refused(needs: Sequence[Need]) -> DoctorFinding:
    """The finding about the rights that one remedy grants."""
    account, namespace, _, without_it, severity = needs[0]
    verbs_by_object: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for need in needs:
        right = need.right
        resource = f"{right.resource}.{right.group}" if right.group else right.resource
        verbs_by_object[resource, right.name].append(right.verb)
    objects = [
        f"{listed(verbs)} {resource}{f' {name}' if name else ''}"
        for (resource, name), verbs in verbs_by_object.items()
    ]
    (resource, name), verbs = next(iter(verbs_by_object.items()))
    subject = f"the account of {account.of}" if account.of else "this account"
    user = account.user.removeprefix(f"{SERVICE_ACCOUNT}:")
    # a ServiceAccount is shown as `<namespace>/<name>`
    name_of_user = user if user == account.user else user.replace(":", "/")
    return DoctorFinding(
        f"account {name_of_user}" if account.user else "Kubernetes",
        f"{subject} is not allowed to {', '.join(objects)} in {namespace or 'all namespaces'}",
        without_it,
        account.remedy or _granted(account, namespace, verbs, resource, name),
        severity,
    )


def _granted(account: Account, namespace: str, verbs: Sequence[str], resource: str, name: str) -> str:
    """The commands that grant an account a right."""
    kind, where = ("role", f" -n {namespace}") if namespace else ("clusterrole", "")
    parts = account.user.split(":")
    if account.user.startswith(f"{SERVICE_ACCOUNT}:"):
        owner, subject = parts[-1], f"--serviceaccount={':'.join(parts[2:])}"
    else:
        owner, subject = "twgen", f"--user={quote(account.user or 'NAME')}"
    role = f"{owner}-{'-'.join(verbs)}-{resource.partition('.')[0]}"
    names = f" --resource-name={name}" if name else ""
    return (
        f"`kubectl create {kind} {role}{where} --verb={','.join(verbs)} --resource={resource}{names}"
        f" && kubectl create {kind}binding {role}{where} --{kind}={role} {subject}`"
    )
