"""What of an installation would bite: one rule after the other, each with what mends it."""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

from twgen.model.diagnosis import ArgoApplication, ArgoInstallation, Finding, Installation, Severity
from twgen.model.operator import Operator
from twgen.model.plan import Plan, VersionAction
from twgen.model.policy import Driver
from twgen.model.reasons.routing import RoutingReason
from twgen.model.world import World
from twgen.planning.namespaces import DEFAULT_LIMIT
from twgen.planning.sentences import counted, spoken

PLUGIN = "twgen"
"""What the plugin of Argo CD is called, also with a version behind it."""
OLDEST_ARGOCD = (2, 14)
OLDEST_TEMPORAL = (1, 29, 1)
_CLOCKS_APART = timedelta(seconds=30)
_NEAR_FULL = 0.9
_READS_A_SECOND = 45
"""Descriptions of Worker Deployments that Temporal is asked for, a little below its limit."""
_SLOW_LOOK = timedelta(seconds=30)


def findings(installation: Installation, plan: Plan, world: World, operator: Operator) -> tuple[Finding, ...]:
    """All that would bite, what is worse first."""
    found = [
        *_of_rights(installation),
        *_of_clocks(installation),
        *_of_image(operator),
        *(_of_argocd(installation.argocd, plan, operator) if installation.argocd else ()),
        *_of_failures(installation),
        *_of_rollouts(installation),
        *_of_temporal(installation, plan, world),
        *_of_workers(plan),
    ]
    return tuple(sorted(found, key=lambda one: one.severity is not Severity.PROBLEM))


def _problem(about: str, says: str, because: str, remedy: str) -> Finding:
    return Finding(about, Severity.PROBLEM, says, because, remedy)


def _advice(about: str, says: str, because: str, remedy: str) -> Finding:
    return Finding(about, Severity.ADVICE, says, because, remedy)


def _of_rights(installation: Installation) -> Iterator[Finding]:
    for namespace, right in installation.refusals:
        resource = f"{right.resource}.{right.group}" if right.group else right.resource
        where = f"-n {namespace}" if namespace else "-A"
        rule = f"a rule with verb {right.verb} on {resource}, in a Role or ClusterRole of the account"
        look = f"`kubectl auth can-i {right.verb} {resource} {where}` asks for it"
        yield Finding(
            "Kubernetes",
            right.severity,
            f"this account may not {right.verb} {resource} in {namespace or 'all namespaces'}",
            right.without_it,
            f"add {rule}; {look}",
        )


def _of_clocks(installation: Installation) -> Iterator[Finding]:
    ahead = installation.clock_ahead
    if ahead is not None and abs(ahead) > _CLOCKS_APART:
        way = "ahead of" if ahead > timedelta() else "behind"
        yield _problem(
            "clocks",
            f"the API server's clock is {spoken(abs(ahead))} {way} this one",
            "rollouts go by the slowest clock: pauses, sunsets and rollbacks are judged by different times",
            "let NTP or chrony set both",
        )


def _of_image(operator: Operator) -> Iterator[Finding]:
    image = operator.rollout_image
    tag = re.search(r":([^:/@]+)(@|$)", image)
    if image and "@" not in image and (not tag or tag[1] == "latest"):
        yield _problem(
            "rollout.image",
            f"{image} is another image tomorrow",
            "a Job of another release than the render refuses its intent",
            "name a tag of a release, or a digest (`image@sha256:...`), in the OperatorConfig",
        )


def _of_argocd(argocd: ArgoInstallation, plan: Plan, operator: Operator) -> Iterator[Finding]:
    settings, about = argocd.settings, "Argo CD"
    if (numbers := version_of(argocd.version)) and numbers < OLDEST_ARGOCD:
        oldest = ".".join(map(str, OLDEST_ARGOCD))
        why = "it starts plugins otherwise, and prunes what is protected here"
        yield _problem(about, f"it is {argocd.version}", why, f"upgrade it to {oldest} or newer")
    if argocd.applications and not argocd.sidecar_image:
        yield _problem(
            about,
            "its repo-server has no container that is called twgen",
            "Applications that name the plugin cannot be rendered",
            "patch it with deploy/sidecar.yaml (docs/argocd.md, Install)",
        )
    image = operator.rollout_image
    if image and argocd.sidecar_image and not _are_the_same(image, argocd.sidecar_image):
        yield _problem(
            about,
            f"its plugin is {argocd.sidecar_image}, and the Jobs are {image}",
            "render and Job need the same release: the Job refuses what it reads otherwise",
            "give both the same image",
        )
    excluded = settings.get("reposerver.plugin.tar.exclusions", "").split(";")
    if any(".git" in pattern.strip().split("/") for pattern in excluded):
        yield _advice(
            about,
            "reposerver.plugin.tar.exclusions keeps .git from plugins",
            "a version that ledger and cluster have lost cannot be found in the commits",
            "take .git out of it in argocd-cmd-params-cm",
        )
    held = [one.spec for one in plan.workers if one.spec.policy.driver is Driver.HOOK]
    limit = settings.get("controller.sync.timeout.seconds", "0")
    longest = max((spec.policy.hold_for for spec in held), default=timedelta())
    if limit.isdecimal() and 0 < int(limit) < longest.total_seconds():
        yield _problem(
            about,
            f"controller.sync.timeout.seconds is {limit}, and a hook may take {spoken(longest)}",
            "the sync ends the hook in mid-rollout, and no retry follows",
            "make it longer than the longest holdFor, or set driver Job",
        )
    for application in argocd.applications:
        yield from _of_application(application)


def _are_the_same(image: str, other: str) -> bool:
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


def _of_application(application: ArgoApplication) -> Iterator[Finding]:
    about = f"Application {application.name}"
    if application.renders_by_path:
        yield _problem(
            about,
            "it has the annotation argocd.argoproj.io/manifest-generate-paths",
            "a commit can be applied without its hooks, or never (argo-cd issues 22795 and 27875)",
            f"kubectl annotate application {_named(application)} argocd.argoproj.io/manifest-generate-paths-",
        )
    if not application.is_automated:
        yield _advice(
            about,
            "it is synced by hand",
            "a version that has drained stays until somebody syncs, and no new one comes",
            "set syncPolicy.automated once its first rollout is Settled",
        )
        return
    if not application.heals:
        yield _advice(
            about,
            "automated.selfHeal is false",
            "what time changes waits for the next commit, and a Job that was deleted stays away",
            "set automated.selfHeal: true",
        )
    if not application.prunes:
        yield _advice(
            about,
            "automated.prune is false",
            "versions that are done stay, and the application is OutOfSync",
            "set automated.prune: true",
        )


def _named(application: ArgoApplication) -> str:
    namespace, _, name = application.name.partition("/")
    return f"-n {namespace} {name}"


def _of_failures(installation: Installation) -> Iterator[Finding]:
    for failure in installation.failures:
        yield _problem("reading", failure, "nobody knows how it stands", "do what it says")


def _of_rollouts(installation: Installation) -> Iterator[Finding]:
    for worker, why in sorted(installation.left_alone.items()):
        namespace, _, name = worker.partition("/")
        yield _problem(
            worker,
            why,
            "its traffic stays where it is",
            f"see its last Job (`kubectl get jobs -n {namespace} -l twgen.io/rollout={name}`), then sync"
            " its Application, or apply what `twgen render` prints once more",
        )


def _of_temporal(installation: Installation, plan: Plan, world: World) -> Iterator[Finding]:
    for (address, namespace), number in sorted(installation.worker_deployments.items()):
        if number >= DEFAULT_LIMIT * _NEAR_FULL:
            yield (_problem if number >= DEFAULT_LIMIT else _advice)(
                f"Temporal {address}, namespace {namespace}",
                f"it has {number} Worker Deployments",
                f"the default limit is {DEFAULT_LIMIT}, at which a server refuses the polls of new workers",
                "delete those that nothing uses (`temporal worker deployment delete`), or raise the limit"
                " (`matching.maxDeployments`)",
            )
    servers = {}
    for item in plan.workers:
        temporal = world.workers[item.spec.key].temporal if item.spec.key in world.workers else None
        if temporal and temporal.server_version:
            servers[item.spec.connection.host_port] = temporal.server_version
    for address, version in sorted(servers.items()):
        if (numbers := version_of(version)) and numbers < OLDEST_TEMPORAL:
            oldest = ".".join(map(str, OLDEST_TEMPORAL))
            why = "its Worker Deployments lack what rollouts and drainage are read by"
            yield _problem(f"Temporal {address}", f"it is {version}", why, f"upgrade it to {oldest} or newer")
    places = Counter((item.spec.connection.host_port, item.spec.temporal_namespace) for item in plan.workers)
    for (address, namespace), number in sorted(places.items()):
        if (length := timedelta(seconds=number / _READS_A_SECOND)) > _SLOW_LOOK:
            yield _advice(
                f"Temporal {address}, namespace {namespace}",
                f"{counted(number, 'worker')} are read within its rate limit in {spoken(length)} at best",
                "a render of all of them does not end in time, and a look of tick takes as long",
                "make several Applications, and give tick a longer --every",
            )


def _of_workers(plan: Plan) -> Iterator[Finding]:
    for item in plan.workers:
        name, routing = item.spec.worker_deployment, item.routing
        if routing.reason in {RoutingReason.FOREIGN_MANAGER, RoutingReason.VERSION_CAP_REACHED}:
            yield _problem(
                name, routing.because, "its traffic stays where it is", f"docs/reasons.md, {routing.reason}"
            )
        if item.unserved:
            yield _problem(name, item.unserved, "new workflows wait", "see its pods, or `git revert`")
        if item.versions.not_deployed:
            yield _problem(
                name, item.versions.not_deployed, "what is committed does not run", "do what it says"
            )
        # nothing brings their pods back, or keeps them
        lost = tuple(
            f"{version.build_id} "
            for version in item.versions.versions
            if version.action is VersionAction.NONE
        )
        for warning in item.versions.warnings:
            severity = Severity.PROBLEM if lost and warning.startswith(lost) else Severity.ADVICE
            yield Finding(name, severity, warning, "`twgen plan` warns of it", "do what it says")
    for warning in plan.warnings:
        yield _advice("cluster", warning, "`twgen plan` warns of it", "do what it says")


def version_of(text: str) -> tuple[int, ...]:
    """The numbers of a version: (1, 29, 1) of `v1.29.1-rc1`."""
    found = re.match(r"v?(\d+(?:\.\d+)*)", text)
    return tuple(map(int, found[1].split("."))) if found else ()
