"""The program that kubectl starts to complete words after `kubectl twgen`."""

import sys

from twgen.cli.main import completions
from twgen.cli.output import write


def complete_for_kubectl() -> None:
    """Answer kubectl, which starts `kubectl_complete-twgen` with the words after `kubectl twgen`."""
    write("".join(f"{line}\n" for line in completions(sys.argv[1:])))
