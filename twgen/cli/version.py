"""`twgen version`."""

import click

from twgen import __version__
from twgen.cli.options import output_option
from twgen.cli.output import write


@click.command()
@output_option("text", "json")
def command(output: str) -> None:
    """Print the version of twgen."""
    write(f'{{"twgen": "{__version__}"}}\n' if output == "json" else f"twgen {__version__}\n")
