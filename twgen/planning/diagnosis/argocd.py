"""Checks an Argo CD installation: its plugin, its settings and its Applications."""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from functools import partial

from twgen.model.diagnosis import (
    ArgoApplication,
    ArgoInstallation,
    DoctorFinding,
    Plugin,
    Seen,
    Severity,
    TickInstallation,
)
from twgen.model.operator import Operator
from twgen.model.plan import Plan
from twgen.model.problem import counted
from twgen.model.rollout import Driver
from twgen.model.times import parse_duration
from twgen.planning.refresh import not_refreshed
from twgen.planning.sentences import spoken
from twgen.planning.version_status import release_of
from twgen.versioning.build_ids import image_tag

PLUGIN = "twgen"
"""The plugin's name in Argo CD, optionally followed by a version."""
OLDEST_ARGOCD = (2, 14)
_TRACKS_BY_ANNOTATION = (3,)
_SKIPS_HOOKS_FROM = (3, 5)
"""From this version on, Argo CD can skip hooks. Older versions skip hooks only if the Application has the
manifest-generate-paths annotation."""
_SKIPS_NO_HOOKS = {(3, 5, 0), (3, 5, 1)}
"""Newer versions that are known to run all hooks (see docs/jobs.md)."""
_RENDER_ENDS = 40.0
"""How many seconds the plugin can spend on reading servers if TWGEN_TIMEOUT is not set."""
_ARGOCD_WAITS = "60"
"""How many seconds a render can take if `controller.repo.server.timeout.seconds` is not set."""
_COSTLY = {
    "PruneLast=true": "pruning and the next commit wait until every object is healthy",
    "Replace=true": "each sync scales autoscaled Deployments back to one pod",
    "Force=true": "each sync may recreate all pods",
}
_STARTS_WITHIN = timedelta(minutes=1)
"""How long a healthy Pod can take to start."""
_FINDING = partial(DoctorFinding, "Argo CD")
STARTS = ("waits (ContainerCreating)", "waits (PodInitializing)")
"""The states of a Pod that might still be starting."""


def seconds_of(text: str) -> float | None:
    """The number of seconds in a setting such as `90`, `90s` or `1m30s`, or None if invalid."""
    try:
        return parse_duration(
            f"{text.strip()}s" if text.strip().isdecimal() else text.strip()
        ).total_seconds()
    except ValueError:
        return None


def is_managed(namespace: str, argocd: ArgoInstallation) -> bool:
    """Whether this Argo CD manages the Applications of a namespace.

    True if Argo CD's settings are unknown.
    """
    if namespace == argocd.namespace or argocd.settings is None:
        return True
    patterns = argocd.settings.get("application.namespaces", "").split(",")
    return any(_fits(namespace, pattern.strip()) for pattern in patterns)


def _fits(namespace: str, pattern: str) -> bool:
    if len(pattern) > 1 and pattern[0] == pattern[-1] == "/":
        try:
            return bool(re.search(pattern[1:-1], namespace))
        except re.error:
            return False
    return fnmatchcase(namespace, pattern)


def of_argocd(argocd: ArgoInstallation, plan: Plan, operator: Operator) -> Iterator[DoctorFinding]:
    """The findings about an Argo CD installation."""
    if (numbers := release_of(argocd.version)) and numbers < OLDEST_ARGOCD:
        oldest = ".".join(map(str, OLDEST_ARGOCD))
        why = "it starts plugins differently, and prunes objects that twgen protects"
        yield _FINDING(f"its version is {argocd.version}", why, f"upgrade it to {oldest} or newer")
    applications = [item for item in argocd.applications if is_managed(item.namespace, argocd)]
    if applications and not argocd.plugin:
        yield _FINDING(
            "its repo-server has no container named twgen",
            "it cannot render Applications that use the plugin",
            "patch the repo-server with deploy/sidecar.yaml (docs/argocd.md, Install)",
        )
    because = "it cannot render Applications"
    yield from not_running("Argo CD", argocd.pods, plan.now, because, " of its repo-server")
    if argocd.plugin:
        yield from _of_plugin(argocd.plugin, argocd, operator)
    yield from _of_settings(argocd, numbers, plan)
    for application in applications:
        yield from _of_application(application, argocd, plan.now)


def _of_plugin(plugin: Plugin, argocd: ArgoInstallation, operator: Operator) -> Iterator[DoctorFinding]:
    where = f"-n {argocd.namespace}"
    if (image := operator.rollout.image) and not are_the_same(image, plugin.image):
        yield _FINDING(
            f"its plugin runs image {plugin.image}, but the Jobs run {image}",
            "a Job rejects intents that another release rendered",
            f"use one image for both: `kubectl set image {where} deployment/argocd-repo-server"
            f" twgen={image}`, or change rollout.image in the OperatorConfig",
        )
    for name in plugin.missing:
        yield _FINDING(
            f"its plugin mounts ConfigMap {name}, which does not exist",
            "renders fail until it exists",
            f"create it: `kubectl apply {where} -f {name}.yaml` (deploy/ has a template of"
            " twgen-operator.yaml)",
        )
    if not plugin.has_token and any(not cluster.kubeconfig for cluster in operator.clusters):
        yield _FINDING(
            "the OperatorConfig sets inCluster, but the plugin has no token",
            "it cannot read the cluster, so renders fail",
            f"mount a token: `kubectl patch {where} deployment argocd-repo-server"
            " --patch-file deploy/in-cluster/token.yaml`",
        )


def _of_settings(argocd: ArgoInstallation, version: tuple[int, ...], plan: Plan) -> Iterator[DoctorFinding]:
    settings = argocd.settings
    if settings is None:
        return
    where = f"-n {argocd.namespace}"
    excluded = settings.get("reposerver.plugin.tar.exclusions", "").split(";")
    if any(".git" in pattern.strip().split("/") for pattern in excluded):
        yield _FINDING(
            "reposerver.plugin.tar.exclusions hides .git from plugins",
            "if a version is lost from the ledger and the cluster, twgen cannot find it in the commits",
            f"remove .git from the setting: `kubectl edit configmap {where} argocd-cmd-params-cm`, then"
            f" `kubectl rollout restart {where} deployment argocd-repo-server`",
            Severity.ADVICE,
        )
    # if a timeout is too short, Argo CD stops a hook early, or a render before twgen reports the slow server
    policies = (worker.spec.policy for worker in plan.workers)
    holds = (policy.hold_for for policy in policies if policy.driver is Driver.HOOK)
    longest = max(holds, default=timedelta())
    limit = settings.get("controller.sync.timeout.seconds", "0")
    if limit.isdecimal() and 0 < int(limit) < longest.total_seconds():
        yield _FINDING(
            f"controller.sync.timeout.seconds is {limit}, but a hook may take {spoken(longest)}",
            "the sync stops the hook in the middle of a rollout, and nothing restarts it",
            _set_parameter(argocd, "controller.sync.timeout.seconds", int(longest.total_seconds()) + 300)
            + ", or use driver Job",
        )
    waits = settings.get("controller.repo.server.timeout.seconds", _ARGOCD_WAITS)
    ends = (argocd.plugin and seconds_of(argocd.plugin.timeout)) or _RENDER_ENDS
    if waits.isdecimal() and 0 < int(waits) <= ends:
        yield _FINDING(
            f"it ends a render after {waits}s, but the plugin reads servers for up to {ends:g}s",
            "it ends a slow render before twgen can report which server was slow",
            _set_parameter(argocd, "controller.repo.server.timeout.seconds", max(300, int(2 * ends))),
            Severity.ADVICE,
        )
    method = settings.get("application.resourceTrackingMethod", "")
    if method == "label" or (not method and version and version < _TRACKS_BY_ANNOTATION):
        yield _FINDING(
            "it tracks objects by label",
            "it may prune another owner's objects that have the same label",
            f"track them by annotation: `kubectl patch configmap {where} argocd-cm --type merge"
            """ -p '{"data": {"application.resourceTrackingMethod": "annotation"}}'`""",
            Severity.ADVICE,
        )


def of_hooks(argocd: ArgoInstallation, plan: Plan, tick: TickInstallation | None) -> Iterator[DoctorFinding]:
    """Advice about hooks that this Argo CD version might skip, unless tick would take over the rollouts."""
    hooks = [worker for worker in plan.workers if worker.spec.policy.driver is Driver.HOOK]
    numbers = release_of(argocd.version)
    runs_all = numbers and (numbers < _SKIPS_HOOKS_FROM or numbers in _SKIPS_NO_HOOKS)
    if hooks and not (tick and tick.takes_over) and not runs_all:
        yield _FINDING(
            f"its version ({argocd.version or 'unknown'}) may apply a commit without the hook of"
            f" {counted(len(hooks), 'worker')} with driver Hook, such as {hooks[0].spec.worker_deployment}",
            "the traffic then does not move, although the Application is Synced and Healthy",
            "let tick take over such rollouts by setting tick.rollouts in its OperatorConfig and"
            " TWGEN_ARGOCD_SERVER, or use driver Job: see docs/jobs.md",
            Severity.ADVICE,
        )


def _set_parameter(argocd: ArgoInstallation, name: str, value: int) -> str:
    where = f"-n {argocd.namespace}"
    return (
        f"run `kubectl patch configmap {where} argocd-cmd-params-cm --type merge"
        f""" -p '{{"data": {{"{name}": "{value}"}}}}'`, then restart its application controller"""
    )


def are_the_same(image: str, other: str) -> bool:
    """Whether two image references might mean the same image.

    The repositories must be equal. If both references have a digest, the digests must be equal too.
    Otherwise, if both references have a tag, the tags must be equal.
    """
    both = (image, other)
    tags, digests = [*map(image_tag, both)], [text.partition("@")[2] for text in both]
    names = {text.partition("@")[0].removesuffix(f":{tag}") for text, tag in zip(both, tags, strict=True)}
    if len(names) > 1:
        return False
    if all(digests):
        return digests[0] == digests[1]
    return not all(tags) or tags[0] == tags[1]


def of_tick(tick: TickInstallation, operator: Operator, now: datetime) -> Iterator[DoctorFinding]:
    """The findings about tick."""
    because = "renders can be up to a day old, and rollouts are not monitored"
    yield from not_running(tick.name, tick.pods, now, because)
    if (image := operator.rollout.image) and not are_the_same(image, tick.image):
        yield DoctorFinding(
            tick.name,
            f"it runs image {tick.image}, but the Jobs run {image}",
            "it may misread intents that another release rendered, and request refreshes that change nothing",
            "use one image for both",
            Severity.ADVICE,
        )


def _of_application(
    application: ArgoApplication, argocd: ArgoInstallation, now: datetime
) -> Iterator[DoctorFinding]:
    about, where = f"Application {application.name}", named(application.name)
    if application.plugin != PLUGIN and not application.plugin.startswith(f"{PLUGIN}-"):
        yield DoctorFinding(
            about,
            f"it uses a plugin named {application.plugin}, but the plugin's name is {PLUGIN}",
            "Argo CD cannot find a plugin with this name",
            f"set spec.source.plugin.name in its manifest to {PLUGIN}",
        )
    for error in application.errors:
        yield DoctorFinding(
            about,
            f"Argo CD reports {error}",
            "its commits are not applied",
            f"fix this error, then run `kubectl annotate application {where}"
            " argocd.argoproj.io/refresh=hard`",
        )
    if late := not_refreshed(application.asked_since, now):
        yield DoctorFinding(
            about,
            late,
            "no commit is applied, even if the Application is Synced",
            "restart its repo-server:"
            f" `kubectl rollout restart -n {argocd.namespace} deployment argocd-repo-server`",
        )
    if application.renders_by_path:
        yield DoctorFinding(
            about,
            "it has the annotation argocd.argoproj.io/manifest-generate-paths",
            "a commit may be applied without its hooks, or not at all (argo-cd issues 22795 and 27875)",
            f"remove it: `kubectl annotate application {where} argocd.argoproj.io/manifest-generate-paths-`",
        )
    advice = [
        (f"it has sync option {option}", _COSTLY[option], "remove it from its syncOptions")
        for option in sorted(application.sync_options & _COSTLY.keys())
    ]
    if not application.is_automated:
        waits = "until a person syncs the Application, drained versions stay and new ones are not deployed"
        automate = f"once its first rollout is Settled, {_automate(application, 'prune', 'selfHeal')}"
        advice.append(("it is synced manually", waits, automate))
    elif not application.heals:
        late = "changes that become due wait for the next commit, and Argo CD does not recreate a deleted Job"
        advice.append(("automated.selfHeal is false", late, _automate(application, "selfHeal")))
    if application.is_automated and not application.prunes:
        stays = "versions that are no longer needed stay, and the Application stays OutOfSync"
        advice.append(("automated.prune is false", stays, _automate(application, "prune")))
    for says, because, remedy in advice:
        yield DoctorFinding(about, says, because, remedy, Severity.ADVICE)


def _automate(application: ArgoApplication, *settings: str) -> str:
    automated = ", ".join(f'"{setting}": true' for setting in settings)
    changes = f'{{"spec": {{"syncPolicy": {{"automated": {{{automated}}}}}}}}}'
    patch = f"kubectl patch application {named(application.name)} --type merge -p '{changes}'"
    return f"run `{patch}`, or make the same change in its manifest"


def named(name: str) -> str:
    """`<namespace>/<name>` as kubectl arguments."""
    namespace, _, plain_name = name.partition("/")
    return f"-n {namespace} {plain_name}"


def not_running(
    about: str, stuck: Iterable[Seen], now: datetime, because: str, owner: str = ""
) -> Iterator[DoctorFinding]:
    """A finding for each object that is not running, unless the object might still be starting."""
    for item in stuck:
        if item.problem not in STARTS or now - item.since >= _STARTS_WITHIN:
            kind, _, name = item.name.partition(" ")
            remedy = f"read its events: `kubectl describe {kind.lower()} {named(name)}`"
            yield DoctorFinding(about, f"{item.name}{owner} {item.problem}", because, remedy)
