"""`twgen snapshot`."""

from typing import Any

import click

from twgen.cli.loading import load_specs, read_live, request
from twgen.cli.options import options, output_option, paths_argument
from twgen.cli.output import write
from twgen.records.snapshot_writer import write_snapshot
from twgen.rendering.text import one_document


@click.command(short_help="Record what Temporal says of the workers.")
@paths_argument
@output_option("yaml", "json")
@options("timeout", "namespace", "no_cluster", "allow_unlisted_connections", "strict", "quiet")
def command(output: str, **params: Any) -> None:
    """Record what Temporal says of the workers right now, for --snapshot.

    \b
    twgen snapshot . > world.yaml
    """
    asked = request(params)
    specs = load_specs(asked)
    world = read_live(asked, specs.workers, for_routing=True)
    write(one_document(write_snapshot(world), output))
