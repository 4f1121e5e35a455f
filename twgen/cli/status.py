"""`twgen status`."""

from dataclasses import replace
from typing import Any

import click

from twgen.cli.observer import observe
from twgen.cli.options import INPUT, MEASURING, options, output_option, paths_argument
from twgen.cli.output import wants_colour, wants_tree, width, write, writes_unicode
from twgen.cli.settings import settings_of
from twgen.errors import InvalidInput
from twgen.reporting.json_text import json_text
from twgen.reporting.status.document import rollout_status, status_document
from twgen.reporting.status.lines import status_lines


@click.command()
@paths_argument
@output_option("text", "json", "openmetrics")
@options(
    *("watch", "interval", "snapshot", "now", *MEASURING, *INPUT, "identity", "namespace", "operator_config"),
    namespace="Kubernetes namespace of documents that name none; with --from-cluster, of the rollouts.",
)
@options("from_cluster", "all_namespaces", "quiet", "color")
def command(output: str, color: str, watch: bool, interval: float, **params: Any) -> None:  # noqa: FBT001
    """Show where every worker and its versions stand, and what comes next. Changes nothing.

    A tree on a terminal; else a line for each worker, version and warning.

    \b
    twgen status . --snapshot world.yaml
    twgen status . -w
    twgen status --from-cluster -A

    With -w on a terminal, it repaints in place until Ctrl-C. Elsewhere, or with -o json, it prints what
    changes, a line each, and ends when no rollout can go on by itself: with 0 when every worker is Settled,
    with 1 when one is Blocked. A read that fails is tried again; only the first one ends it.
    """
    settings = settings_of(params)
    if params["all_namespaces"] and not params["from_cluster"]:
        raise InvalidInput("-A goes with --from-cluster: specs name their namespaces")
    if output == "openmetrics" and watch:
        raise InvalidInput("-o openmetrics goes without -w: what goes on serving them is twgen tick")
    if params["from_cluster"]:
        from twgen.cli.fleet import show_fleet

        if params["paths"] or settings.snapshot or settings.now:
            raise InvalidInput(
                "--from-cluster reads a cluster alone: it goes with no PATH, --snapshot or --now"
            )
        every = interval if watch else None
        show_fleet(settings, output, everywhere=params["all_namespaces"], interval=every)
    elif not watch:
        status = observe(settings).status
        if output == "json":
            write(json_text(status_document(status)))
        elif output == "openmetrics":
            from twgen.reporting.status.metrics import openmetrics

            alone = (replace(status, workers=(worker,)) for worker in status.workers)
            write(openmetrics((rollout_status(each, status.now, "") for each in alone), None, {}))
        elif not wants_tree(color):
            write("".join(f"{line.text}\n" for line in status_lines(status)))
        else:
            from twgen.reporting.status.tree import status_text

            unicode, colour = writes_unicode(), wants_colour(color)
            write(status_text(status, colour=colour, width=width(), ascii_only=not unicode))
    elif settings.snapshot or settings.now:
        raise InvalidInput("--watch reads servers again and again: it goes with neither --snapshot nor --now")
    else:
        from twgen.cli.watch import watch_status

        watch_status(settings, output, color, interval)
