"""`twgen version` and `twgen completion`."""

import click

import twgen
from twgen.cli.environment import COMPLETION
from twgen.cli.option import Choice
from twgen.cli.options import Grouped, output_option
from twgen.cli.output import write


def commit() -> str:
    """The commit that this installation was built from, or empty if it is unknown, as in a checkout."""
    try:
        # do not use pathlib: importing it would take a tenth of this command's time
        with open(f"{twgen.__path__[0]}/revision", encoding="utf-8") as file:  # noqa: PTH123
            return file.read().strip()
    except OSError:
        return ""


def source_address() -> str:
    """The public address of twgen's source in the package metadata, or empty if there is none."""
    from importlib.metadata import metadata

    urls = (url.partition(", ") for url in metadata("twgen").get_all("Project-URL") or ())
    return next((address for label, _, address in urls if label == "Source"), "")


@click.command(cls=Grouped)
@output_option("text", "json")
def command(output: str) -> None:
    """Print the version of twgen."""
    if output == "text":
        write(f"twgen {twgen.__version__}\n")
        return
    built_from = commit()
    commit_json = f'"{built_from}"' if built_from else "null"
    write(f'{{"twgen": "{twgen.__version__}", "commit": {commit_json}}}\n')


@click.command(cls=Grouped)
@click.argument("shell", metavar="SHELL", type=Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script for shell completion. SHELL is bash, zsh or fish.

    \b
    bash: twgen completion bash > ~/.local/share/bash-completion/completions/twgen
    zsh:  twgen completion zsh > "${fpath[1]}/_twgen"
    fish: twgen completion fish > ~/.config/fish/completions/twgen.fish
    """
    from click.shell_completion import get_completion_class

    if script := get_completion_class(shell):
        program = click.get_current_context().find_root().command
        write(f"{script(program, {}, 'twgen', COMPLETION).source()}\n")
