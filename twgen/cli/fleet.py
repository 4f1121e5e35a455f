"""`twgen status --from-cluster`: reads the progress of rollouts from their statuses in the cluster."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from twgen.cli.display import layout_for, painted
from twgen.cli.following import Patience, RolloutState, follow
from twgen.cli.live import Connections, Servers
from twgen.cli.output import is_terminal, wants_tree, warn, write
from twgen.cli.settings import Settings, clock
from twgen.clients.kubernetes import KubernetesClient
from twgen.errors import InvalidInput, OutOfTime, StateUnavailable
from twgen.model.spec import WorkerSpec
from twgen.model.status import RolloutStatus
from twgen.planning.rollout import as_expected, overdue
from twgen.reading.hooks import USUAL_NAMESPACE, applications_called, with_skipped_hooks
from twgen.reading.installation.cluster import read_orphans
from twgen.reading.rollouts import rollouts_in_cluster
from twgen.records.rollout_status import STATUS
from twgen.reporting.json_text import json_text
from twgen.reporting.status.lines import fleet_status, lines_without_details, orphan_lines, status_lines
from twgen.reporting.status.metrics import openmetrics

if TYPE_CHECKING:
    from twgen.reporting.status.trees import Layout

Statuses = Sequence[RolloutStatus]
_SHOWS_ORPHANS = {"text", "json"}


@dataclass(frozen=True, slots=True)
class _Fleet:
    """The rollouts from one read of the cluster."""

    statuses: Statuses
    orphans: Sequence[str]
    read_at: datetime

    def tree(self, now: datetime, layout: "Layout") -> str:
        """A tree for each rollout, with its state at time `now`."""
        from twgen.reporting.status.trees import status_text

        return status_text(fleet_status(self.statuses, now, self.orphans), layout)


class _Printed:
    """Prints all rollouts once, and then each change, instead of repainting a terminal."""

    def __init__(self, output: str) -> None:
        self._output = output
        self._printed: Statuses | None = None

    def show(self, fleet: _Fleet, failure: str = "") -> None:
        """Print the changes since the last read. If a newer read failed, print its error."""
        if failure:
            warn([f"{failure}; trying again"])
        before, self._printed = self._printed, fleet.statuses
        if before is None:
            _print(fleet, self._output, "never", detailed=True)
            return
        known = {status.worker: status for status in before}
        news = [status for status in fleet.statuses if known.get(status.worker) != status]
        if news:
            statuses = fleet.statuses if self._output == "json" else news
            _print(replace(fleet, statuses=statuses, orphans=()), self._output, "never", detailed=True)

    def repaint(self) -> None:
        """Do nothing, because printed lines cannot be repainted."""


class Selection(NamedTuple):
    """The rollouts to show."""

    namespaces: Sequence[str]
    """The namespaces. An empty name means all namespaces."""
    expected: Sequence[WorkerSpec] = ()
    """Show only the rollouts of these specs' workers and build IDs. If it is empty, show all rollouts."""
    worker: str = ""
    """Show only the rollout of this worker (namespace/name). If it is empty, show all rollouts."""


def show_fleet(  # noqa: PLR0913 - the options of a command
    settings: Settings,
    selection: Selection,
    output: str,
    color: str,
    patience: Patience | None,
    *,
    detailed: bool,
) -> None:
    """Print the progress of rollouts.

    With `patience`, follow the rollouts until none can continue by itself. On a terminal without a time
    limit, follow the rollouts until Ctrl-C. Raises the same errors as `Patience.goes_on`.
    """
    namespaces, expected, worker = selection
    asked_at, warned = clock(), set[str]()

    async def read(opened: Connections) -> Statuses:
        client = opened.cluster_for("--from-cluster")
        statuses_read = [
            status
            for namespace in namespaces
            for status in await read_fleet(client, settings, namespace, warned)
            if worker in {"", status.worker}
        ]
        return as_expected(statuses_read, expected, asked_at) if expected else statuses_read

    async def orphans(opened: Connections) -> Sequence[str]:
        client, workers = opened.cluster_for("--from-cluster"), {status.worker for status in statuses}
        deadline = settings.reading_deadline()
        try:
            return orphan_lines(await read_orphans(client, namespaces[:1], workers, deadline))
        except (StateUnavailable, OutOfTime) as error:  # the account may lack permission to list Deployments
            warn([f"twgen could not check for leftover Deployments: {error}"])
            return ()

    with Servers(settings) as servers:
        statuses = servers.run((), read)
        is_reported = output in _SHOWS_ORPHANS and not (expected or worker)
        fleet = _Fleet(statuses, servers.run((), orphans) if is_reported else (), clock())
        if patience is None:
            title = settings.page_title(servers.context)
            _print(fleet, output, color, detailed=detailed, title=title)
        else:
            is_painted = output == "text" and is_terminal()
            screen = painted(color, detailed=detailed) if is_painted else nullcontext(_Printed(output))
            with screen as view:
                follow(
                    fleet,
                    lambda: replace(fleet, statuses=servers.run((), read), read_at=clock()),
                    view,
                    patience,
                    lambda latest: [
                        RolloutState(each.worker, each.phase, each.message) for each in latest.statuses
                    ],
                )
    if not statuses:
        place = namespaces[0] or "any namespace"
        doubt = "check that it is the right cluster, and that Argo CD has synced (`argocd app get NAME`)"
        settings.warn([f"there is no rollout status {f'of {worker}' if worker else f'in {place}'}: {doubt}"])


def namespace_of(settings: Settings, *, everywhere: bool) -> str:
    """The namespace of the rollouts to read, or empty for all. Raises InvalidInput if no namespace is set."""
    namespace = "" if everywhere else settings.namespace_rule.default
    if not everywhere and not namespace:
        raise InvalidInput("choose the namespace of the rollouts: give -n NAMESPACE, or -A for all")
    if settings.no_cluster:
        raise InvalidInput("--from-cluster reads only the cluster: leave out --no-cluster")
    return namespace


async def read_fleet(
    client: KubernetesClient, settings: Settings, namespace: str, warned: set[str]
) -> Statuses:
    """The rollout statuses in the cluster. `warned` contains the warnings that were already printed."""
    records = await rollouts_in_cluster(client, namespace, settings.reading_deadline())
    read = partial(applications_called, client, USUAL_NAMESPACE)
    records = await with_skipped_hooks(records, read, settings.timeout, clock())
    warn(line for line in records.unusable if line not in warned)
    warned.update(records.unusable)
    return [overdue(status, clock()) for status in records.shown]


def _print(fleet: _Fleet, output: str, color: str, *, detailed: bool, title: str = "") -> None:
    if output == "json":
        warnings = [*lines_without_details(fleet.statuses), *fleet.orphans]
        write(json_text(STATUS.write(fleet_status(fleet.statuses, clock(), warnings))))
    elif output == "openmetrics":
        write(openmetrics(fleet.statuses, clock(), {}))
    elif output == "html":
        from twgen.reporting.page.pages import fleet_page

        write(fleet_page(fleet.statuses, clock(), title=title))
    elif wants_tree(color):
        write(fleet.tree(clock(), layout_for(color, detailed=detailed)))
    else:
        status = fleet_status(fleet.statuses, clock(), fleet.orphans)
        write("".join(f"{line.text}\n" for line in status_lines(status)))
