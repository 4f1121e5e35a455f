"""What of an Argo CD would bite: its plugin, its settings and its Applications."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from twgen.model.diagnosis import ArgoApplication, ArgoInstallation, Finding, Plugin, TickInstallation
from twgen.model.operator import Operator
from twgen.model.plan import Plan
from twgen.model.policy import Driver
from twgen.planning.diagnosis.making import advice, named, not_starting, problem
from twgen.planning.refresh import not_looked_at
from twgen.planning.sentences import spoken

PLUGIN = "twgen"
"""What the plugin of Argo CD is called, also with a version behind it."""
OLDEST_ARGOCD = (2, 14)
_TRACKS_BY_ANNOTATION = (3,)
_RENDER_ENDS = 40.0
"""Seconds that the plugin reads servers, unless TWGEN_TIMEOUT says otherwise."""
_ARGOCD_WAITS = "60"
"""Seconds for a render, unless `controller.repo.server.timeout.seconds` says otherwise."""
_LENGTH = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?")
_UNITS = {"ms": 0.001, "s": 1, "": 1, "m": 60, "h": 3600}
_COSTLY = {
    "PruneLast=true": "pruning, and the next commit behind it, waits until every object is healthy",
    "Replace=true": "each sync scales to one pod what an autoscaler holds",
    "Force=true": "each sync may make all pods anew",
}


def version_of(text: str) -> tuple[int, ...]:
    """The numbers of a version: (1, 29, 1) of `v1.29.1-rc1`."""
    found = re.match(r"v?(\d+(?:\.\d+)*)", text)
    return tuple(map(int, found[1].split("."))) if found else ()


def seconds_of(text: str) -> float | None:
    """A length as settings have it, `90`, `90s` or `1m30s`; None: it is none."""
    parts = _LENGTH.findall(text.strip())
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def is_looked_after(namespace: str, argocd: ArgoInstallation) -> bool:
    """An Argo CD takes the Applications of a namespace for its own, as far as it is known."""
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


def of_argocd(argocd: ArgoInstallation, plan: Plan, operator: Operator) -> Iterator[Finding]:
    """What is found of an Argo CD."""
    if (numbers := version_of(argocd.version)) and numbers < OLDEST_ARGOCD:
        oldest = ".".join(map(str, OLDEST_ARGOCD))
        why = "it starts plugins otherwise, and prunes what is protected here"
        yield problem("Argo CD", f"it is {argocd.version}", why, f"upgrade it to {oldest} or newer")
    applications = [one for one in argocd.applications if is_looked_after(one.namespace, argocd)]
    if applications and not argocd.plugin:
        yield problem(
            "Argo CD",
            "its repo-server has no container that is called twgen",
            "Applications that name the plugin cannot be rendered",
            "patch it with deploy/sidecar.yaml (docs/argocd.md, Install)",
        )
    for seen in not_starting(argocd.pods, plan.now):
        kind, _, name = seen.name.partition(" ")
        yield problem(
            "Argo CD",
            f"{seen.name} of its repo-server {seen.problem}",
            "no Application is rendered by it",
            f"`kubectl describe {kind.lower()} {named(name)}` has its events",
        )
    if argocd.plugin:
        yield from _of_plugin(argocd.plugin, argocd, operator)
    yield from _of_settings(argocd, numbers, plan)
    for application in applications:
        yield from _of_application(application, argocd, plan.now)


def _of_plugin(plugin: Plugin, argocd: ArgoInstallation, operator: Operator) -> Iterator[Finding]:
    where = f"-n {argocd.namespace}"
    if (image := operator.rollout.image) and not are_the_same(image, plugin.image):
        yield problem(
            "Argo CD",
            f"its plugin is {plugin.image}, and the Jobs are {image}",
            "render and Job need the same release: the Job refuses what it reads otherwise",
            f"give both the same image: `kubectl set image {where} deployment/argocd-repo-server"
            f" twgen={image}`, or rollout.image in the OperatorConfig",
        )
    for name in plugin.missing:
        yield problem(
            "Argo CD",
            f"its plugin mounts ConfigMap {name}, which is not there",
            "renders fail until it is",
            f"`kubectl apply {where} -f {name}.yaml` (deploy/ has a form of twgen-operator.yaml)",
        )
    if not plugin.has_token and any(not cluster.kubeconfig for cluster in operator.clusters):
        yield problem(
            "Argo CD",
            "the OperatorConfig says inCluster, and the plugin has no token",
            "it cannot read the cluster, so renders fail",
            f"`kubectl patch {where} deployment argocd-repo-server"
            " --patch-file deploy/in-cluster/token.yaml`",
        )


def _of_settings(argocd: ArgoInstallation, version: tuple[int, ...], plan: Plan) -> Iterator[Finding]:
    settings = argocd.settings
    if settings is None:
        return
    where = f"-n {argocd.namespace}"
    excluded = settings.get("reposerver.plugin.tar.exclusions", "").split(";")
    if any(".git" in pattern.strip().split("/") for pattern in excluded):
        yield advice(
            "Argo CD",
            "reposerver.plugin.tar.exclusions keeps .git from plugins",
            "a version that ledger and cluster have lost cannot be found in the commits",
            f"take .git out of it: `kubectl edit configmap {where} argocd-cmd-params-cm`, then"
            f" `kubectl rollout restart {where} deployment argocd-repo-server`",
        )
    yield from _of_times(argocd, settings, plan)
    method = settings.get("application.resourceTrackingMethod", "")
    if method == "label" or (not method and version and version < _TRACKS_BY_ANNOTATION):
        yield advice(
            "Argo CD",
            "it tracks objects by a label",
            "it may prune objects that carry the label and are another's, and nobody sees whose they are",
            f"`kubectl patch configmap {where} argocd-cm --type merge"
            """ -p '{"data": {"application.resourceTrackingMethod": "annotation"}}'`""",
        )


def _of_times(argocd: ArgoInstallation, settings: Mapping[str, str], plan: Plan) -> Iterator[Finding]:
    """What Argo CD ends too early: a hook, or a render before twgen says what is slow."""
    held = [one.spec for one in plan.workers if one.spec.policy.driver is Driver.HOOK]
    limit = settings.get("controller.sync.timeout.seconds", "0")
    longest = max((spec.policy.hold_for for spec in held), default=timedelta())
    if limit.isdecimal() and 0 < int(limit) < longest.total_seconds():
        yield problem(
            "Argo CD",
            f"controller.sync.timeout.seconds is {limit}, and a hook may take {spoken(longest)}",
            "the sync ends the hook in mid-rollout, and no retry follows",
            _set_parameter(argocd, "controller.sync.timeout.seconds", int(longest.total_seconds()) + 300)
            + ", or set driver Job",
        )
    waits = settings.get("controller.repo.server.timeout.seconds", _ARGOCD_WAITS)
    ends = (argocd.plugin and seconds_of(argocd.plugin.timeout)) or _RENDER_ENDS
    if waits.isdecimal() and 0 < int(waits) <= ends:
        yield advice(
            "Argo CD",
            f"it gives a render up after {waits}s, and the plugin reads servers for up to {ends:g}s",
            "a slow render is cut off, and nobody is told what is slow",
            _set_parameter(argocd, "controller.repo.server.timeout.seconds", max(300, int(2 * ends))),
        )


def _set_parameter(argocd: ArgoInstallation, name: str, value: int) -> str:
    where = f"-n {argocd.namespace}"
    return (
        f"`kubectl patch configmap {where} argocd-cmd-params-cm --type merge"
        f""" -p '{{"data": {{"{name}": "{value}"}}}}'`, then restart its application controller"""
    )


def are_the_same(image: str, other: str) -> bool:
    """By repository, and by the digest or the tag that both have; without one in common they may be."""
    (name, tag, digest), (other_name, other_tag, other_digest) = map(_parts_of, (image, other))
    if name != other_name:
        return False
    if digest and other_digest:
        return digest == other_digest
    return not tag or not other_tag or tag == other_tag


def _parts_of(image: str) -> tuple[str, str, str]:
    """Repository, tag and digest; empty texts where it has none."""
    rest, _, digest = image.partition("@")
    folder, slash, last = rest.rpartition("/")
    name, _, tag = last.partition(":")
    return f"{folder}{slash}{name}", tag, digest


def of_tick(tick: TickInstallation, operator: Operator, now: datetime) -> Iterator[Finding]:
    """What is found of tick."""
    for seen in not_starting(tick.pods, now):
        kind, _, name = seen.name.partition(" ")
        yield problem(
            tick.name,
            f"{seen.name} {seen.problem}",
            "renders are up to a day old, and nobody watches rollouts",
            f"`kubectl describe {kind.lower()} {named(name)}` has its events",
        )
    if (image := operator.rollout.image) and not are_the_same(image, tick.image):
        yield advice(
            tick.name,
            f"it is {tick.image}, and the Jobs are {image}",
            "it may read an intent of another release otherwise, and refresh in vain",
            "give both the same image",
        )


def _of_application(
    application: ArgoApplication, argocd: ArgoInstallation, now: datetime
) -> Iterator[Finding]:
    about, where = f"Application {application.name}", named(application.name)
    if application.plugin != PLUGIN and not application.plugin.startswith(f"{PLUGIN}-"):
        yield problem(
            about,
            f"it names a plugin {application.plugin}, and the plugin is called {PLUGIN}",
            "Argo CD finds nothing that renders it",
            f"name {PLUGIN} in spec.source.plugin of its manifest",
        )
    for error in application.errors:
        yield problem(
            about,
            f"Argo CD says {error}",
            "what is committed is not applied",
            f"do what it says, then `kubectl annotate application {where} argocd.argoproj.io/refresh=hard`",
        )
    if late := not_looked_at(application.asked_since, now):
        yield problem(
            about,
            late,
            "no commit is applied, whatever it shows",
            f"`kubectl rollout restart -n {argocd.namespace} deployment argocd-repo-server`",
        )
    if application.renders_by_path:
        yield problem(
            about,
            "it has the annotation argocd.argoproj.io/manifest-generate-paths",
            "a commit can be applied without its hooks, or never (argo-cd issues 22795 and 27875)",
            f"`kubectl annotate application {where} argocd.argoproj.io/manifest-generate-paths-`",
        )
    for option in sorted(application.sync_options & _COSTLY.keys()):
        yield advice(about, f"its sync option is {option}", _COSTLY[option], "take it out of its syncOptions")
    if not application.is_automated:
        yield advice(
            about,
            "it is synced by hand",
            "a version that has drained stays until somebody syncs, and no new one comes",
            f"once its first rollout is Settled, {_automate(application, 'prune', 'selfHeal')}",
        )
        return
    if not application.heals:
        yield advice(
            about,
            "automated.selfHeal is false",
            "what time changes waits for the next commit, and a Job that was deleted stays away",
            _automate(application, "selfHeal"),
        )
    if not application.prunes:
        yield advice(
            about,
            "automated.prune is false",
            "versions that are done stay, and the application is OutOfSync",
            _automate(application, "prune"),
        )


def _automate(application: ArgoApplication, *settings: str) -> str:
    automated = ", ".join(f'"{setting}": true' for setting in settings)
    changes = f'{{"spec": {{"syncPolicy": {{"automated": {{{automated}}}}}}}}}'
    patch = f"kubectl patch application {named(application.name)} --type merge -p '{changes}'"
    return f"`{patch}`, or the same in its manifest"
