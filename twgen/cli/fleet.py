"""`twgen status --from-cluster`: how rollouts go, by what they left in their cluster."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from time import monotonic

from twgen.cli.live import Connections, Servers
from twgen.cli.output import warn, write
from twgen.cli.settings import Settings, clock
from twgen.cli.standing import Patience, Standing
from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient
from twgen.errors import InvalidInput, OutOfTime, StateUnavailable
from twgen.model.status import RolloutStatus
from twgen.reading.rollouts import rollouts_in_cluster
from twgen.reporting.json_text import json_text
from twgen.reporting.status.fleet import fleet_document, fleet_lines
from twgen.reporting.status.metrics import openmetrics

Statuses = Sequence[RolloutStatus]


def show_fleet(settings: Settings, output: str, *, everywhere: bool, patience: Patience | None) -> None:
    """Print how every rollout of a namespace goes, or of all; with patience, what changes from then on.

    Following ends when no rollout can go on by itself; raises as `Patience.goes_on` does.
    """
    namespace = namespace_of(settings, everywhere=everywhere)

    async def story(opened: Connections) -> Statuses:
        read = partial(_read, opened.cluster_for("--from-cluster"), settings, namespace, set())
        found = await read()
        _print(found, output)
        return found if patience is None else await _follow(read, found, output, patience)

    gc.enable()  # it may be followed for hours
    with Servers(settings) as servers:
        found = servers.run((), story)
    if not found and not settings.quiet:
        warn([f"no rollout has left a status in {namespace or 'any namespace'}: is it the right cluster?"])


def namespace_of(settings: Settings, *, everywhere: bool) -> str:
    """The namespace whose rollouts are read; empty: all. Raises InvalidInput where nobody says it."""
    namespace = "" if everywhere else settings.namespace_rule.default
    if not everywhere and not namespace:
        raise InvalidInput("rollouts are read of one namespace or all: give -n NAMESPACE, or -A")
    if settings.no_cluster:
        raise InvalidInput("--from-cluster reads a cluster alone: it goes without --no-cluster")
    return namespace


def read_fleet(servers: Servers, settings: Settings, namespace: str, warned: set[str]) -> Statuses:
    """What rollouts left to read; `warned` is what was warned of before."""
    return servers.run((), lambda opened: _read(opened.cluster_for("dashboard"), settings, namespace, warned))


async def _read(client: KubernetesClient, settings: Settings, namespace: str, warned: set[str]) -> Statuses:
    records = await rollouts_in_cluster(client, namespace, Deadline(settings.timeout))
    warn(line for line in records.unusable if line not in warned)
    warned.update(records.unusable)
    return records.shown


async def _follow(
    read: Callable[[], Awaitable[Statuses]], found: Statuses, output: str, patience: Patience
) -> Statuses:
    while patience.goes_on([Standing(status.worker, status.phase, status.message) for status in found]):
        await asyncio.sleep(patience.next_read() - monotonic())
        before = found
        try:
            found = await read()
        except (StateUnavailable, OutOfTime) as error:
            warn([f"{error}; trying again"])
        if news := [status for status in found if status not in before]:
            _print(found if output == "json" else news, output)
    return found


def _print(statuses: Statuses, output: str) -> None:
    if output == "json":
        write(json_text(fleet_document(statuses, clock())))
    elif output == "openmetrics":
        write(openmetrics(statuses, clock(), {}))
    elif output == "html":
        from twgen.reporting.page.pages import fleet_page

        write(fleet_page(statuses, clock()))
    else:
        write("".join(f"{line}\n" for line in fleet_lines(statuses, clock())))
