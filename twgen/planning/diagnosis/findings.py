"""All that would bite in an installation, one rule after the other."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from twgen.model.diagnosis import Finding, Installation, Severity
from twgen.model.operator import Operator
from twgen.model.plan import Phase, Plan, VersionAction, WorkerPlan
from twgen.model.reasons.routing import RoutingReason
from twgen.model.world import World
from twgen.planning.diagnosis.argocd import of_argocd, of_tick
from twgen.planning.diagnosis.making import advice, named, not_starting, problem
from twgen.planning.diagnosis.rights import of_rights
from twgen.planning.diagnosis.temporal import of_temporal
from twgen.planning.sentences import listed, spoken

_CLOCKS_APART = timedelta(seconds=30)
_HAS_A_JOB_WITHIN = timedelta(minutes=10)
"""An intent, which is applied before its Job: a hook waits for the pods of the target."""
_NEEDS_SOMEBODY = {
    RoutingReason.FOREIGN_MANAGER,
    RoutingReason.VERSION_CAP_REACHED,
    RoutingReason.CURRENT_NOT_SERVING,
    RoutingReason.NOT_SERVING,
    RoutingReason.WAITING_FOR_REGISTRATION,
}
"""Why a rollout that is blocked is so by no decision of a person and by no code that fails."""


def findings(installation: Installation, plan: Plan, world: World, operator: Operator) -> tuple[Finding, ...]:
    """All that would bite, what is worse first."""
    found = [
        *_of_failures(installation),
        *of_rights(installation),
        *_of_rollouts(installation, plan.now),
        *_of_clocks(installation),
        *_of_image(operator),
        *(of_argocd(installation.argocd, plan, operator) if installation.argocd else ()),
        *(of_tick(installation.tick, operator, plan.now) if installation.tick else ()),
        *of_temporal(installation, plan, world),
        *_of_workers(plan, installation),
        *_of_strays(installation),
    ]
    return tuple(sorted(dict.fromkeys(found), key=lambda one: one.severity is not Severity.PROBLEM))


def _of_clocks(installation: Installation) -> Iterator[Finding]:
    ahead = installation.clock_ahead
    if ahead is not None and abs(ahead) > _CLOCKS_APART:
        way = "ahead of" if ahead > timedelta() else "behind"
        yield problem(
            "clocks",
            f"the API server's clock is {spoken(abs(ahead))} {way} this one",
            "rollouts go by the slowest clock: pauses, sunsets and rollbacks are judged by different times",
            "let NTP or chrony set both",
        )


def _of_image(operator: Operator) -> Iterator[Finding]:
    image = operator.rollout_image
    tag = re.search(r":([^:/@]+)(@|$)", image)
    if image and "@" not in image and (not tag or tag[1] == "latest"):
        yield problem(
            "rollout.image",
            f"{image} is another image tomorrow",
            "a Job of another release than the render refuses its intent",
            "name a tag of a release, or a digest (`image@sha256:...`), in the OperatorConfig",
        )


def _of_failures(installation: Installation) -> Iterator[Finding]:
    for failure in installation.failures:
        remedy = "do what it says"
        if "was edited by hand" in failure:
            remedy = f"apply it once more: {_applied_again('')}"
        yield problem("reading", failure, "nobody knows how it stands", remedy)


def _of_rollouts(installation: Installation, now: datetime) -> Iterator[Finding]:
    for worker, seen in sorted(installation.stuck.items()):
        if not not_starting([seen], now):
            continue
        kind, _, name = seen.name.partition(" ")
        yield problem(
            worker,
            f"{seen.name} of its rollout {seen.problem}",
            "its traffic stays where it is",
            _unstuck(seen.problem) + f"`kubectl describe {kind.lower()} {named(name)}` has its events",
        )
    for worker, why in sorted(installation.left_alone.items()):
        namespace, _, name = worker.partition("/")
        yield problem(
            worker,
            why,
            "its traffic stays where it is",
            f"see its last Job (`kubectl get jobs -n {namespace} -l twgen.io/rollout={name}`), then apply it"
            f" once more: {_applied_again(installation.applications.get(worker, ''))}",
        )
    for worker, since in sorted(installation.jobless.items()):
        if (age := now - since) > _HAS_A_JOB_WITHIN:
            yield problem(
                worker,
                f"its intent is {spoken(age, units=1)} old, and no Job has worked on it",
                "its traffic stays where it is",
                f"apply it once more: {_applied_again(installation.applications.get(worker, ''))}",
            )
    for worker, why in sorted(installation.failing.items()):
        yield problem(worker, f"its rollout fails: {why}", "its traffic stays where it is", "do what it says")


def _unstuck(what: str) -> str:
    """What mends the sort of thing that keeps a Pod of a rollout from running."""
    if "Image" in what:
        return "correct rollout.image, or rollout.imagePullSecrets, in the OperatorConfig; "
    return "mend what it says, and Kubernetes goes on by itself; "


def _applied_again(application: str) -> str:
    if application:
        return f"`argocd app sync {application}`"
    return "sync its Application, or apply what `twgen render` prints"


def _of_workers(plan: Plan, installation: Installation) -> Iterator[Finding]:
    for item in plan.workers:
        yield from _of_worker(item, installation)
    for warning in plan.warnings:
        yield advice("cluster", warning, "`twgen plan` warns of it", "do what it says")


def _of_worker(item: WorkerPlan, installation: Installation) -> Iterator[Finding]:
    name, routing = item.spec.worker_deployment, item.routing
    if routing.phase is Phase.BLOCKED and routing.reason in _NEEDS_SOMEBODY:
        yield problem(
            name, routing.because, "its traffic stays where it is", f"docs/reasons.md, {routing.reason}"
        )
    if item.unserved:
        yield problem(name, item.unserved, "new workflows wait", "see its pods, or `git revert`")
    if item.versions.not_deployed:
        yield problem(name, item.versions.not_deployed, "what is committed does not run", "do what it says")
    # nothing brings their pods back, or keeps them
    lost = tuple(
        f"{version.build_id} " for version in item.versions.versions if version.action is VersionAction.NONE
    )
    for warning in item.versions.warnings:
        is_lost = bool(lost) and warning.startswith(lost)
        if is_lost and not installation.remembers:
            continue
        severity = Severity.PROBLEM if is_lost else Severity.ADVICE
        yield Finding(name, severity, warning, "`twgen plan` warns of it", "do what it says")


def _of_strays(installation: Installation) -> Iterator[Finding]:
    for worker, names in sorted(installation.strays.items()):
        namespace, _, name = worker.partition("/")
        yield advice(
            worker,
            f"nothing renders {listed(names)}, which Argo CD has applied and does not prune",
            "no intent names this worker: it went from Git, and its pods go on",
            "once no workflow needs them: "
            f"`kubectl delete deployments,hpa,pdb -n {namespace} -l temporal.io/deployment-name={name}`",
        )
