"""`twgen completion`."""

import click

from twgen.cli.option_forms import Choice
from twgen.cli.options import Grouped
from twgen.cli.output import write


@click.command(cls=Grouped)
@click.argument("shell", metavar="SHELL", type=Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script for shell completion. SHELL: bash, zsh, fish.

    \b
    bash: twgen completion bash > ~/.local/share/bash-completion/completions/twgen
    zsh:  twgen completion zsh > "${fpath[1]}/_twgen"
    fish: twgen completion fish > ~/.config/fish/completions/twgen.fish
    """
    from click.shell_completion import get_completion_class

    from twgen.cli.main import COMPLETION, twgen

    if completion := get_completion_class(shell):
        write(f"{completion(twgen, {}, 'twgen', COMPLETION).source()}\n")
