"""`twgen version`."""

import click

import twgen
from twgen.cli.options import Grouped, output_option
from twgen.cli.output import write


def commit() -> str:
    """The commit that this installation was built from; empty if it is unknown, as in a checkout."""
    try:
        # importing pathlib would take a tenth of this command's time
        with open(f"{twgen.__path__[0]}/revision", encoding="utf-8") as file:  # noqa: PTH123
            return file.read().strip()
    except OSError:
        return ""


def full_version() -> str:
    """The version, for a development build with its commit, such as `0.1.0.dev0+g1a2b3c4d5e6f`."""
    built_from = commit() if "dev" in twgen.__version__ else ""
    return f"{twgen.__version__}+g{built_from}" if built_from else twgen.__version__


@click.command(cls=Grouped)
@output_option("text", "json")
def command(output: str) -> None:
    """Print the version of twgen."""
    version = full_version()
    if output == "text":
        write(f"twgen {version}\n")
        return
    built_from = commit()
    commit_json = f'"{built_from}"' if built_from else "null"
    write(f'{{"twgen": "{version}", "commit": {commit_json}}}\n')
