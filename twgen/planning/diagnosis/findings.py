"""The rules by which `twgen doctor` finds problems of an installation."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from twgen.model.diagnosis import DoctorFinding, Installation, Severity
from twgen.model.operator import Operator
from twgen.model.plan import Phase, Plan, RoutingPlan, VersionAction, WorkerPlan
from twgen.model.policy import MOST_VERSIONS
from twgen.model.problem import counted
from twgen.model.reasons import RoutingReason
from twgen.model.rollout import Driver
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import VersionStatus
from twgen.model.world import World
from twgen.planning.diagnosis.argocd import not_running, of_argocd, of_hooks, of_tick
from twgen.planning.diagnosis.rights import of_rights
from twgen.planning.plan import worker_world
from twgen.planning.routing.polling import DEFAULT_LIMIT, polls_instead
from twgen.planning.routing.target import Target
from twgen.planning.sentences import listed, spoken
from twgen.planning.version_status import release_of
from twgen.versioning.build_ids import image_tag
from twgen.versioning.names import MarkKey

_CLOCKS_APART = timedelta(seconds=30)
_HAS_A_JOB_WITHIN = timedelta(minutes=10)
"""How long an intent can exist without a Job: a hook begins only when the target's pods are ready."""
_DOES_NOT_MOVE = "its traffic is not moving"
_PLAN_WARNS, _DO_IT = "`twgen plan` warns about it", "follow the advice in the message"
_MARKS = {RoutingReason.ABORTED: MarkKey.ABORTED, RoutingReason.PAUSED: MarkKey.PAUSED}
"""The metadata entry that causes each reason. Only an entry from a rollout contains an explanation."""
_CANNOT_RUN = re.compile(
    r"^crashes|CrashLoopBackOff|ErrImage|ImagePullBackOff|InvalidImageName|CreateContainer(Config)?Error"
)
"""The states in which a Pod cannot run. A Pod that is starting or has not been scheduled yet is not a
problem."""
OLDEST_TEMPORAL = (1, 29, 1)
_NEAR_FULL = 0.9
_READS_A_SECOND = 45
"""The number of Worker Deployments that twgen reads per second, slightly below Temporal's rate limit."""
_SLOW_LOOK = timedelta(seconds=30)
_MAKES_ROOM = {VersionStatus.CREATED, VersionStatus.INACTIVE, VersionStatus.DRAINED}
"""To make room for a new version, a server deletes the oldest version with one of these statuses and without
pollers."""


def findings(
    installation: Installation, plan: Plan, world: World, operator: Operator
) -> tuple[DoctorFinding, ...]:
    """All findings, problems first."""
    edited, other = f"apply it again: {_applied_again('')}", "fix the reported error"
    remedies = [(why, edited if "was edited by hand" in why else other) for why in installation.failures]
    all_findings = [
        *(DoctorFinding("reading", failure, "its state is unknown", remedy) for failure, remedy in remedies),
        *of_rights(installation),
        *_of_rollouts(installation, plan.now),
        *_of_settings(installation, operator),
        *(of_argocd(installation.argocd, plan, operator) if installation.argocd else ()),
        *(of_hooks(installation.argocd, plan, installation.tick) if installation.argocd else ()),
        *(of_tick(installation.tick, operator, plan.now) if installation.tick else ()),
        *_of_temporal(installation, plan, world),
        *(finding for item in plan.workers for finding in _of_worker(item, world, plan.now, installation)),
        *(
            DoctorFinding("cluster", warning, _PLAN_WARNS, _DO_IT, Severity.ADVICE)
            for warning in plan.warnings
        ),
        *_without_tick(plan, installation, world),
        *findings_of_orphans(installation.orphans),
    ]
    different = dict.fromkeys(all_findings)
    return tuple(sorted(different, key=lambda finding: finding.severity is not Severity.PROBLEM))


def _of_settings(installation: Installation, operator: Operator) -> Iterator[DoctorFinding]:
    """The findings about clocks, the Jobs' image, and the attached kinds."""
    ahead = installation.clock_ahead
    if ahead is not None and abs(ahead) > _CLOCKS_APART:
        direction = "ahead of" if ahead > timedelta() else "behind"
        yield DoctorFinding(
            "clocks",
            f"the API server's clock is {spoken(abs(ahead))} {direction} this machine's clock",
            "pauses, sunsets and rollbacks are timed by different clocks",
            "synchronize both with NTP or chrony",
        )
    image = operator.rollout.image
    if image and "@" not in image and image_tag(image) in {"", "latest"}:
        yield DoctorFinding(
            "rollout.image",
            f"{image} can be a different image tomorrow",
            "a Job rejects intents that another release rendered",
            "use the tag of a release, or a digest (`image@sha256:...`), in the OperatorConfig",
        )
    for kind in sorted(installation.cluster_scoped, key=str):
        yield DoctorFinding(
            "attached.kinds",
            f"{kind} is a cluster-scoped kind",
            "each version gets a copy in its namespace, so a render with such an object cannot be applied",
            "remove it from attached.kinds of the OperatorConfig, and commit such objects next to the specs",
        )


def _of_rollouts(installation: Installation, now: datetime) -> Iterator[DoctorFinding]:
    for worker, stuck in sorted(installation.stuck.items()):
        first = "once this is fixed, Kubernetes continues by itself; "
        if "Image" in stuck.problem:
            first = "correct rollout.image, or rollout.imagePullSecrets, in the OperatorConfig; "
        for finding in not_running(worker, [stuck], now, _DOES_NOT_MOVE, " of its rollout"):
            yield replace(finding, remedy=f"{first}{finding.remedy}")
    for worker, why in sorted(installation.left_alone.items()):
        namespace, _, name = worker.partition("/")
        yield DoctorFinding(
            worker,
            why,
            _DOES_NOT_MOVE,
            f"check its last Job (`kubectl get jobs -n {namespace} -l twgen.io/rollout={name}`), then apply"
            f" the intent again: {_applied_again(installation.applications.get(worker, ''))}",
        )
    for worker, job in sorted(installation.outdated_jobs.items()):
        yield DoctorFinding(
            worker,
            f"Job {job} ran for an earlier intent, which was deleted and recreated",
            "its traffic is not moving: Argo CD does not create a second Job with the same name",
            f"run `kubectl delete job {job} -n {worker.partition('/')[0]}` (`twgen tick` does this"
            " automatically)",
        )
    for worker, since in sorted(installation.jobless.items()):
        if (age := now - since) > _HAS_A_JOB_WITHIN:
            yield DoctorFinding(
                worker,
                f"its intent is {spoken(age, units=1)} old, but no Job has run for it",
                _DOES_NOT_MOVE,
                f"apply the intent again: {_applied_again(installation.applications.get(worker, ''))}",
            )
    tick = installation.tick
    for worker, may_take_over in sorted(installation.skipped.items()):
        until = " until tick takes over" if may_take_over and tick and tick.takes_over else ""
        yield DoctorFinding(
            worker,
            "Argo CD applied this commit without its hooks",
            f"{_DOES_NOT_MOVE}{until}",
            f"run its hook: {_applied_again(installation.applications.get(worker, ''))}",
        )
    for worker, why in sorted(installation.failing.items()):
        if why:
            yield DoctorFinding(worker, f"its rollout fails: {why}", _DOES_NOT_MOVE, "fix the reported error")


def _applied_again(application: str) -> str:
    if application:
        return f"`argocd app sync {application}`"
    return "sync its Application, or apply the output of `twgen render`"


def _of_temporal(installation: Installation, plan: Plan, world: World) -> Iterator[DoctorFinding]:
    for (address, namespace), number in sorted(installation.worker_deployments.items()):
        if number >= DEFAULT_LIMIT * _NEAR_FULL:
            yield DoctorFinding(
                f"Temporal {address}, namespace {namespace}",
                f"it has {number} Worker Deployments",
                f"at its limit (by default {DEFAULT_LIMIT}), a server rejects polls of new workers",
                "delete unused Worker Deployments (`temporal worker deployment delete`), or raise the limit"
                " (`matching.maxDeployments`)",
                Severity.PROBLEM if number >= DEFAULT_LIMIT else Severity.ADVICE,
            )
    servers = {}
    for item in plan.workers:
        temporal = world.workers[item.spec.key].temporal if item.spec.key in world.workers else None
        if temporal and temporal.server_version:
            servers[item.spec.connection.host_port] = temporal.server_version
        # versions with pods have pollers, so the server cannot delete them to make room for a new version
        polling = {each.build_id for each in item.versions.versions if each.live and each.live.replicas}
        known = temporal.versions if temporal else ()
        number = sum(each.status not in _MAKES_ROOM or each.build_id in polling for each in known)
        if number >= MOST_VERSIONS * _NEAR_FULL:
            yield DoctorFinding(
                item.spec.worker_deployment,
                f"{number} of its versions have traffic, open workflows or pods",
                f"at the default limit of {MOST_VERSIONS} such versions, a server rejects new versions",
                "end the workflows on old versions (`twgen drain` lists them), or raise the limit"
                " (`matching.maxVersionsInDeployment`)",
                Severity.PROBLEM if number >= MOST_VERSIONS else Severity.ADVICE,
            )
    for address, version in sorted(servers.items()):
        if (numbers := release_of(version)) and numbers < OLDEST_TEMPORAL:
            remedy = f"upgrade it to {'.'.join(map(str, OLDEST_TEMPORAL))} or newer"
            why = "its Worker Deployments lack fields that twgen reads for rollouts and drainage"
            yield DoctorFinding(f"Temporal {address}", f"its version is {version}", why, remedy)
    yield from _of_rates(installation, plan)


def _of_rates(installation: Installation, plan: Plan) -> Iterator[DoctorFinding]:
    """Findings about Temporal namespaces that take too long to read for a render or a tick."""
    places = Counter((item.spec.connection.host_port, item.spec.temporal_namespace) for item in plan.workers)
    every = installation.tick.every if installation.tick else None
    for (address, namespace), number in sorted(places.items()):
        length = timedelta(seconds=number / _READS_A_SECOND)
        about = f"Temporal {address}, namespace {namespace}"
        says = (
            f"reading {counted(number, 'worker')} takes at least {spoken(length)}, because of its rate limit"
        )
        if length > _SLOW_LOOK:
            yield DoctorFinding(
                about,
                says,
                "by default the plugin ends a render after 40s (TWGEN_TIMEOUT)",
                "split the workers into several Applications",
                Severity.ADVICE,
            )
        if every and length > every:
            yield DoctorFinding(
                about,
                says,
                f"tick should check these workers every {spoken(every)}, so it notices changes late",
                f"set tick's TWGEN_EVERY to more than {spoken(length)}",
                Severity.ADVICE,
            )


def _needs_a_person(routing: RoutingPlan, target: Target) -> bool:
    """Whether the rollout has stopped by itself, and only continues after a person has acted."""
    if mark := _MARKS.get(routing.reason):
        return bool(target.why_marked(mark))
    # Kubernetes reports a stalled Deployment only after ten minutes, and a hook reports nothing before that
    pod_problem = target.world.pod_problems.get(target.build_id, "")
    if _CANNOT_RUN.search(pod_problem) and pod_problem in routing.because:
        return True
    if routing.reason is RoutingReason.WAITING_FOR_REGISTRATION and polls_instead(target):
        return True
    return routing.phase is Phase.BLOCKED or routing.reason is RoutingReason.STEP_GATE_FAILED


def _of_worker(
    item: WorkerPlan, world: World, now: datetime, installation: Installation
) -> Iterator[DoctorFinding]:
    name, routing, versions = item.spec.worker_deployment, item.routing, item.versions
    target = Target(item.spec, worker_world(item.spec, world), now, item.identity, versions.not_created)
    if _needs_a_person(routing, target):
        yield DoctorFinding(name, routing.because, _DOES_NOT_MOVE, f"see docs/reasons.md, {routing.reason}")
    if item.unserved:
        yield DoctorFinding(name, item.unserved, "new workflows wait", "check its pods, or run `git revert`")
    if versions.not_deployed:
        yield DoctorFinding(name, versions.not_deployed, "the committed code is not running", _DO_IT)
    # twgen can neither restore nor keep the pods of these versions
    lost = tuple(f"{item.build_id} " for item in versions.versions if item.action is VersionAction.NONE)
    for warning in versions.warnings:
        is_lost = warning.startswith(lost)
        if installation.remembers or not is_lost:
            severity = Severity.PROBLEM if is_lost else Severity.ADVICE
            yield DoctorFinding(name, warning, _PLAN_WARNS, _DO_IT, severity)


def _without_tick(plan: Plan, installation: Installation, world: World) -> Iterator[DoctorFinding]:
    """Findings about policies that need `twgen tick`, if tick is not running or lacks permission."""
    advice = Severity.ADVICE
    for spec in (item.spec for item in plan.workers):
        policy, temporal = spec.policy, world.workers[spec.key].temporal
        manager = temporal.manager_identity if temporal else None
        ends = "its old versions keep their workflows until a person runs `twgen end`"
        keeps = "Temporal keeps its old versions until a person runs `twgen forget`"
        keeps_records, is_by_tick = policy.keep_records is not None, policy.driver is Driver.TICK
        for field, is_set, permission, does, manager_before, otherwise, severity in (
            ("draining", policy.draining, "drains", "end workflows", manager, ends, advice),
            ("keepRecords", keeps_records, "forgets", "delete old versions", manager, keeps, advice),
            # a rollout claims the worker automatically
            ("driver", is_by_tick, "rollouts", "carry out rollouts", None, _DOES_NOT_MOVE, Severity.PROBLEM),
        ):
            lacking = _lacking_for(permission, does, spec, installation, manager_before) if is_set else ()
            for why, remedy in lacking:
                about = f"its policy's `{field}` has no effect: {why}"
                yield DoctorFinding(spec.worker_deployment, about, otherwise, remedy, severity)


def _lacking_for(
    permission: str, does: str, spec: WorkerSpec, installation: Installation, manager: str | None
) -> Iterator[tuple[str, str]]:
    """The requirements that are not met, each with its remedy.

    `manager` is the worker's manager in Temporal, or None if it does not matter.
    """
    tick, intents = installation.tick, installation.intents
    if not tick:
        if intents is not None and "tick" not in installation.not_checked:
            yield "there is no `twgen tick` in the cluster", "install it (docs/tick.md)"
        return
    if tick.may and not getattr(tick.may, permission):
        where = f"in the file that its TWGEN_OPERATOR_CONFIG names (docs/tick.md, Let it {does})"
        yield f"{tick.name} is not allowed to {does}", f"set `tick: {{{permission}: true}}` {where}"
    if tick.namespace and tick.namespace != spec.namespace:
        limit = f"{tick.name} only watches namespace {tick.namespace}"
        yield limit, f"set tick's TWGEN_ALL_NAMESPACES, or install another tick for {spec.namespace}"
    if intents is not None and spec.worker_deployment not in intents:
        yield "it has no intent in the cluster, so tick does not know it", _applied_again("")
    if manager == "":
        claim = "let a rollout claim the worker, or run `twgen ownership claim`"
        yield "no manager identity is set in Temporal", claim


def findings_of_orphans(orphans: Mapping[str, Sequence[str]]) -> Iterator[DoctorFinding]:
    """A finding for each worker that has Deployments but no intent."""
    for worker, names in sorted(orphans.items()):
        namespace, _, name = worker.partition("/")
        are, pronoun = ("is", "it") if len(names) == 1 else ("are", "them")
        yield DoctorFinding(
            worker,
            f"{listed(names)} {are} no longer rendered, but Argo CD does not prune {pronoun}",
            "no intent names this worker: it was removed from Git, or its Application was deleted, but its"
            " pods keep running",
            "once no workflow needs these Deployments, run "
            f"`kubectl delete deployments,hpa,pdb -n {namespace} -l temporal.io/deployment-name={name}`",
            Severity.ADVICE,
        )
