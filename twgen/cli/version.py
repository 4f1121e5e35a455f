"""`twgen version`."""

import click

from twgen.cli.options import output_option
from twgen.cli.output import write


@click.command(short_help="Print the version of twgen.")
@output_option("text", "json")
def command(output: str) -> None:
    """Print the version of twgen."""
    from importlib.metadata import version

    found = version("twgen")
    write(f'{{"twgen": "{found}"}}\n' if output == "json" else f"twgen {found}\n")
