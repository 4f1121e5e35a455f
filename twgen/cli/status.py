"""`twgen status`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from twgen.cli.display import display, layout_for
from twgen.cli.inputs import load_specs, paths_or_name_argument
from twgen.cli.observer import Observer, observe
from twgen.cli.options import INPUT, MEASURING, NAMES, Grouped, options, output_option
from twgen.cli.output import wants_tree, write
from twgen.cli.settings import Named, Settings, named_worker, settings_of
from twgen.errors import InvalidInput
from twgen.model.status import RolloutStatus, Status
from twgen.planning.reads import Unread, unread_error
from twgen.planning.worker_status import rollout_status
from twgen.records.rollout_status import STATUS
from twgen.reporting.json_text import json_text
from twgen.reporting.status.lines import status_lines

if TYPE_CHECKING:
    from twgen.cli.fleet import Selection
    from twgen.cli.following import Patience


def _rollout_statuses(status: Status) -> list[RolloutStatus]:
    """Each worker's status, as a rollout would write it. The phase begins at the target's last change."""
    statuses = []
    for worker in status.workers:
        target = next((version for version in worker.versions if version.is_target), None)
        since = (target.since if target else None) or status.now
        statuses.append(rollout_status(replace(status, workers=(worker,)), since, ""))
    return statuses


def _text(status: Status, color: str, *, verbose: bool, **_: str) -> str:
    if not wants_tree(color):
        return "".join(f"{line.text}\n" for line in status_lines(status))
    from twgen.reporting.status.trees import status_text

    return status_text(status, layout_for(color, detailed=verbose))


def _openmetrics(status: Status, _: str, **__: bool | str) -> bytes:
    from twgen.reporting.status.metrics import openmetrics

    return openmetrics(_rollout_statuses(status), None, {})


def _html(status: Status, _: str, *, title: str, **__: bool | str) -> str:
    from twgen.reporting.page.pages import fleet_page

    return fleet_page(_rollout_statuses(status), status.now, title=title)


_REPORTS: Mapping[str, Callable[..., str | bytes]] = {
    "text": _text,
    "json": lambda status, _, **__: json_text(STATUS.write(status)),
    "openmetrics": _openmetrics,
    "html": _html,
}
_SERVED_BY = {"openmetrics": "twgen tick", "html": "twgen dashboard"}


def _selection(
    settings: Settings, named: Named | None, *, paths: Sequence[str], all_namespaces: bool, **_: Any
) -> "Selection":
    from twgen.cli.fleet import Selection, namespace_of

    if named:
        return Selection([named.namespace], worker="/".join(named))
    if not paths:
        return Selection([namespace_of(settings, everywhere=all_namespaces)])
    if all_namespaces:
        raise InvalidInput("-A conflicts with PATHs, whose specs set their namespaces: leave out one of them")
    workers = load_specs(settings, needs_worker=True).workers
    return Selection(sorted({spec.namespace for spec in workers}), workers)


def _follow(settings: Settings, output: str, color: str, patience: "Patience", *, verbose: bool) -> None:
    from twgen.cli.following import RolloutState, follow

    # require a worker: without workers, a script would assume that its rollout has ended
    shown_as = display(output, color, detailed=verbose)
    with Observer(settings, needs_worker=True) as observer, shown_as as view:
        follow(
            observer.observe(),
            observer.observe,
            view,
            patience,
            lambda observation: [RolloutState.of(plan) for plan in observation.plan.workers],
        )


@click.command(cls=Grouped)
@paths_or_name_argument
@output_option(*_REPORTS)
@options(
    *("watch", "interval", "within", "snapshot", "now"),
    *(*MEASURING, *INPUT, *NAMES),
    within="Exit when no rollout can continue by itself, or after this time. Needs --watch.",
    namespace="Use this Kubernetes namespace for documents that do not set one. With --from-cluster, show"
    " the rollouts of this namespace.",
)
@options(
    "from_cluster",
    "all_namespaces",
    "title",
    "quiet",
    "verbose",
    "color",
    title="Set the title of the page. The default title names the kubeconfig's context. Needs -o html.",
)
def command(output: str, color: str, watch: bool, interval: float, verbose: bool, **params: Any) -> None:  # noqa: FBT001
    """Show each worker's state, manager, versions and next change. Changes nothing.

    On a terminal, a single worker is shown as a tree. Several workers are shown as one line each, the most
    urgent worker last. Without a terminal, the command prints a line for each worker, version and warning.

    \b
    twgen status .
    twgen status worker/payments -n shop
    twgen status --from-cluster -A
    twgen status workers/ --from-cluster -w --within 30m

    --from-cluster shows the statuses that rollouts wrote in the cluster, and does not read Temporal. With
    PATHs, it shows only the rollouts of the workers in these specs. If a spec has a new build ID, its rollout
    counts as not begun. Without PATHs, --from-cluster sees only commits that have been applied. Right after a
    push, it can report Settled for the previous commit.

    If some workers cannot be read, text output shows the readable workers, and the command exits with 3, or
    with 4 after a timeout. The other output formats print nothing in this case.

    With -w, the command repaints a terminal until Ctrl-C. Without a terminal, or with -o json, the command
    prints one line for each change, and exits when no rollout can continue by itself. It exits with 0 if
    every worker is Settled, with 1 if a worker is Blocked, and with 4 if --within has passed. The command
    retries failed reads, except the first read.
    """
    settings = settings_of(params)
    if watch and output in _SERVED_BY:
        raise InvalidInput(
            f"-o {output} cannot be used with -w: `{_SERVED_BY[output]}` serves this format continuously"
        )
    patience = None
    if watch:
        from twgen.cli.following import Patience

        patience = Patience(params["within"], interval)
    elif params["within"]:
        raise InvalidInput("--within needs -w: without it, the command does not wait")
    named = named_worker(settings)
    if params["from_cluster"] or params["all_namespaces"] or named:
        from twgen.cli.fleet import show_fleet

        if settings.snapshot or settings.now:
            raise InvalidInput("--from-cluster reads a cluster: leave out --snapshot and --now")
        chosen = _selection(settings, named, **params)
        show_fleet(settings, chosen, output, color, patience, detailed=verbose)
    elif not patience:
        # other formats must list all workers, because a program would assume that the list is complete
        unread: list[Unread] | None = [] if output == "text" else None
        seen = observe(settings, unread)
        title = settings.page_title(seen.context)
        write(_REPORTS[output](seen.status, color, verbose=verbose, title=title))
        if unread:
            raise unread_error(unread)
    elif settings.snapshot or settings.now:
        raise InvalidInput("--watch reads servers repeatedly: leave out --snapshot and --now")
    else:
        _follow(settings, output, color, patience, verbose=verbose)
