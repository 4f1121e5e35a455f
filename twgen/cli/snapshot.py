"""`twgen snapshot`."""

from typing import Any

import click

from twgen.cli.inputs import load_specs
from twgen.cli.live import Servers
from twgen.cli.options import INPUT, MEASURING, Grouped, options, output_option, paths_argument
from twgen.cli.output import write
from twgen.cli.settings import settings_of
from twgen.records.snapshot import write_snapshot
from twgen.rendering.manifests import one_document


@click.command(cls=Grouped)
@paths_argument
@output_option("yaml", "json")
@options(*MEASURING, *INPUT, "namespace", "operator_config", "strict", "quiet")
def command(output: str, **params: Any) -> None:
    """Print Temporal's current state of the workers, to be saved for --snapshot.

    \b
    twgen snapshot . > world.yaml
    """
    settings = settings_of(params)
    specs = load_specs(settings)
    with Servers(settings) as servers:
        world = servers.read(specs.workers, for_routing=True)
    write(one_document(write_snapshot(world), output))
