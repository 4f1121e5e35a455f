"""twgen as a plugin of kubectl and of the Temporal CLI: its name, its arguments, and completion for both."""

import sys
from collections.abc import Collection, Sequence

_NAMES = {"kubectl-twgen": "kubectl twgen", "temporal-twgen": "temporal twgen"}
_OF_TEMPORAL = "temporal twgen"
_COMPLETE = ("__complete", "__completeNoDesc")
_FILES, _NO_FILES = ":0", ":4"
"""Whether a shell also completes file names, in the protocol of Cobra, which both hosts use."""


def typed_name(program: str) -> str:
    """The name by which the person started this program."""
    return _NAMES.get(program.rpartition("/")[2], "twgen")


def arguments_of(name: str, arguments: Sequence[str], commands: Collection[str]) -> list[str]:
    """The arguments in the order in which a person typed them.

    The Temporal CLI puts options that it knows itself, such as `-o json`, in front of the command, and turns
    `temporal help twgen plan` into `temporal-twgen help plan`.
    """
    if name != _OF_TEMPORAL or asks_for_completion(name, arguments):
        return list(arguments)
    if arguments[:1] == ["help"]:
        return [*arguments[1:], "--help"]
    command = next((place for place, word in enumerate(arguments) if word in commands), 0)
    return [*arguments[command:], *arguments[:command]]


def asks_for_completion(name: str, arguments: Sequence[str]) -> bool:
    """Whether the Temporal CLI asks for the words that could come next."""
    return name == _OF_TEMPORAL and next(iter(arguments), "") in _COMPLETE


def completions(words: Sequence[str]) -> list[str]:
    """The lines of an answer in Cobra's protocol; the last word is incomplete."""
    from click.shell_completion import ShellComplete

    from twgen.cli.main import twgen

    *complete, incomplete = words or [""]
    items = ShellComplete(twgen, {}, "twgen", "").get_completions(complete, incomplete)
    lines = [f"{item.value}\t{item.help or ''}".rstrip() for item in items if item.type == "plain"]
    return [*lines, _NO_FILES if len(lines) == len(items) else _FILES]


def complete_for_kubectl() -> None:
    """Answer kubectl, which starts `kubectl_complete-twgen` with the words after `kubectl twgen`."""
    from twgen.cli.output import write

    write("".join(f"{line}\n" for line in completions(sys.argv[1:])))
