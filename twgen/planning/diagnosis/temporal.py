"""Problems of a Temporal server: its version, and how near it is to its limits."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

from twgen.model.diagnosis import Finding, Installation
from twgen.model.plan import Plan, WorkerPlan
from twgen.model.policy import MOST_VERSIONS
from twgen.model.temporal import Version, VersionStatus
from twgen.model.world import World
from twgen.planning.diagnosis.argocd import version_of
from twgen.planning.diagnosis.making import advice, problem
from twgen.planning.namespaces import DEFAULT_LIMIT
from twgen.planning.sentences import counted, spoken

OLDEST_TEMPORAL = (1, 29, 1)
_NEAR_FULL = 0.9
_READS_A_SECOND = 45
"""Descriptions of Worker Deployments that Temporal is asked for, a little below its limit."""
_SLOW_LOOK = timedelta(seconds=30)
_MAKES_ROOM = {VersionStatus.CREATED, VersionStatus.INACTIVE, VersionStatus.DRAINED}
"""A server deletes the oldest of these by itself for a new version, unless a worker polls for it."""


def of_temporal(installation: Installation, plan: Plan, world: World) -> Iterator[Finding]:
    """The findings about the servers of a plan's workers."""
    for (address, namespace), number in sorted(installation.worker_deployments.items()):
        if number >= DEFAULT_LIMIT * _NEAR_FULL:
            yield (problem if number >= DEFAULT_LIMIT else advice)(
                f"Temporal {address}, namespace {namespace}",
                f"it has {number} Worker Deployments",
                f"at its limit (by default {DEFAULT_LIMIT}), a server rejects polls of new workers",
                "delete unused ones (`temporal worker deployment delete`), or raise the limit"
                " (`matching.maxDeployments`)",
            )
    servers = {}
    for item in plan.workers:
        temporal = world.workers[item.spec.key].temporal if item.spec.key in world.workers else None
        if temporal and temporal.server_version:
            servers[item.spec.connection.host_port] = temporal.server_version
        if temporal:
            yield from _of_versions(item, temporal.versions)
    for address, version in sorted(servers.items()):
        if (numbers := version_of(version)) and numbers < OLDEST_TEMPORAL:
            oldest = ".".join(map(str, OLDEST_TEMPORAL))
            why = "its Worker Deployments lack fields that twgen reads for rollouts and drainage"
            yield problem(
                f"Temporal {address}", f"its version is {version}", why, f"upgrade it to {oldest} or newer"
            )
    yield from _of_rates(installation, plan)


def _of_versions(item: WorkerPlan, versions: tuple[Version, ...]) -> Iterator[Finding]:
    """How many versions hold a place that the server cannot free for a new one."""
    polling = {
        version.build_id for version in item.versions.versions if version.live and version.live.replicas
    }
    held = [one for one in versions if one.status not in _MAKES_ROOM or one.build_id in polling]
    if len(held) < MOST_VERSIONS * _NEAR_FULL:
        return
    yield (problem if len(held) >= MOST_VERSIONS else advice)(
        item.spec.worker_deployment,
        f"{len(held)} of its versions have traffic, open workflows or pods",
        f"at the default limit of {MOST_VERSIONS} such versions, a server accepts no new one",
        "end the workflows that hold old versions (`twgen drain` lists them), or raise the limit"
        " (`matching.maxVersionsInDeployment`)",
    )


def _of_rates(installation: Installation, plan: Plan) -> Iterator[Finding]:
    """Findings about a Temporal namespace that takes longer to read than a render or tick waits."""
    places = Counter((item.spec.connection.host_port, item.spec.temporal_namespace) for item in plan.workers)
    every = installation.tick.every if installation.tick else None
    for (address, namespace), number in sorted(places.items()):
        length = timedelta(seconds=number / _READS_A_SECOND)
        about = f"Temporal {address}, namespace {namespace}"
        told = (
            f"reading {counted(number, 'worker')} takes at least {spoken(length)}, because of its rate limit"
        )
        if length > _SLOW_LOOK:
            yield advice(
                about,
                told,
                "by default the plugin ends a render after 40s (TWGEN_TIMEOUT)",
                "split them into several Applications",
            )
        if every and length > every:
            yield advice(
                about,
                told,
                f"tick checks them every {spoken(every)}, so it sees changes late",
                f"set TWGEN_EVERY of tick to more than {spoken(length)}",
            )
