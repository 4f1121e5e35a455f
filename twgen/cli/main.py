"""The program. It finds the command, runs it, and turns every outcome into an exit code."""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from types import FrameType
from typing import NoReturn

import click

from twgen.cli.environment import COMPLETION, environment
from twgen.cli.output import open_streams, say, write
from twgen.cli.signals import (
    answer_signals,
    code_of,
    hold_signals,
    interrupt_soon,
    print_failed_render,
    reason_of,
    release_signals,
)
from twgen.errors import InvalidDocuments, InvalidInput, TwgenError
from twgen.model.problem import did_you_mean, quoted
from twgen.reporting.printable import printable

_NO_MEMORY = 2
_BUG = 70
_INTERRUPTED = 130
_CLOSED_PIPE = 141
_OF_HELM = {"-f": "--value-files", **dict.fromkeys(("--set", "--set-string", "--set-json"), "--values")}
"""Helm's options, with their names in twgen."""
_OF_KUBECTL = ("-f", "--file", "--filename", "-k", "--kustomize")
"""kubectl's options for files and folders. In twgen, files and folders are arguments."""


def exit_code_of(run: Callable[[], object]) -> int:
    """Run the program, print the reason if it fails, and return its exit code."""
    ended_by = 0

    def terminate(number: int, frame: FrameType | None) -> None:
        nonlocal ended_by
        ended_by = number
        # end the task of a running event loop, as an interrupt does: an exception that is raised here would
        # get lost if Python happens to be in a destructor or a weak reference's callback
        interrupt = signal.getsignal(signal.SIGINT)
        (interrupt if callable(interrupt) else signal.default_int_handler)(number, frame)

    try:
        try:
            open_streams()
            sys.unraisablehook = _answer_lost_error
            answer_signals(signal.default_int_handler, terminate)
            outcome = run()
        finally:
            hold_signals()
    except BaseException as error:  # noqa: BLE001 - unexpected errors and libraries' panics are bugs
        hold_signals()  # again, because a second signal may have interrupted the first call
        code, lines = _ending(error)
        if ended_by and code == _INTERRUPTED:
            code = code_of(ended_by)
        more = f" (the first of {len(lines)} lines on stderr)" if len(lines) > 1 else ""
        first = printable(lines[0].removeprefix("twgen: ")) + more if lines else ""
        if reason := first or reason_of(code):
            print_failed_render(reason)
        if lines:
            release_signals()  # writing may block if the reader of stderr is slow
        for line in lines:
            say(line)
        return code
    return outcome if isinstance(outcome, int) else 0


def _answer_lost_error(lost: "sys.UnraisableHookArgs") -> None:
    if issubclass(lost.exc_type, KeyboardInterrupt):
        interrupt_soon()
    else:
        sys.__unraisablehook__(lost)


def leave(code: int) -> NoReturn:
    """End the process at once, after all output has been flushed.

    A normal shutdown could abort: a thread of Temporal's SDK may still deliver a response while the
    interpreter shuts down (https://github.com/temporalio/sdk-python/issues/300). Everything that needs
    cleanup is a context manager.
    """
    os._exit(code)


def _ending(error: BaseException) -> tuple[int, Sequence[str]]:
    """The exit code, and the lines that explain the error."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, RuntimeError) and isinstance(error.__cause__, KeyboardInterrupt):
        # before 3.12, Python wraps an interrupt this way if it arrives in `__set_name__` of a new class
        error = error.__cause__
    match error:
        case TwgenError() | click.ClickException():
            return error.exit_code, _lines(error)
        case click.exceptions.Exit():
            return error.exit_code, ()
        case SystemExit():
            return error.code if isinstance(error.code, int) else 0, ()
        case KeyboardInterrupt() | click.Abort() | BrokenPipeError():
            return (_CLOSED_PIPE if isinstance(error, BrokenPipeError) else _INTERRUPTED), ()
        case MemoryError():
            remedy = "raise the memory limit (`ulimit -d`, `ulimit -v`, or the container's limit)"
            return _NO_MEMORY, [f"twgen: out of memory: {remedy}, or read fewer files at once"]
        case _:
            return _BUG, bug_lines(error)


def _lines(error: TwgenError | click.ClickException) -> Sequence[str]:
    match error:
        case InvalidDocuments():
            count = len(error.problems)
            return [*error.problems, f"twgen: {count} problem{'s' if count > 1 else ''} found"]
        case TwgenError():
            return [f"twgen: {error}"]
        case click.exceptions.NoArgsIsHelpError():
            return error.format_message().splitlines()
        case _:
            # click puts each choice on its own line: join the lines
            message = " ".join(error.format_message().split()).rstrip(".")
            if isinstance(error, click.exceptions.NoSuchOption):
                # compare without dashes, because all options start with dashes
                options = [option.lstrip("-") for option in error.possibilities or ()]
                similar = did_you_mean(error.option_name.lstrip("-"), options).replace("mean ", "mean --")
                here = error.ctx.command.params if error.ctx else ()
                instead = _OF_HELM.get(error.option_name)
                hints = []
                if error.option_name in _OF_KUBECTL and any(param.name == "paths" for param in here):
                    hints.append("; give files and folders as arguments")
                if instead and any(instead in param.opts for param in here):
                    hints.append(f"; with --input Helm, did you mean {instead}?")
                similar = "".join(hints) or similar
                message = f"no such option {error.option_name!r}{similar}"
            context = getattr(error, "ctx", None)
            hint = f"; see {context.command_path} --help" if context and not message.endswith("?") else ""
            return [f"twgen: {message}{hint}"]


def bug_lines(error: BaseException) -> Sequence[str]:
    """The message about an unexpected error, with the name of the file that contains the report."""
    import tempfile

    report, head = bug_report(error), f"twgen: a bug ({type(error).__name__}); please report"
    try:
        number, name = tempfile.mkstemp(".txt", "twgen-bug-")
        with open(number, "w", encoding="utf-8") as file:  # noqa: PTH123 - it is open
            file.write(report)
    except OSError:
        return [f"{head} this:", *report.splitlines()]
    return [f"{head} the content of {name}"]


def bug_report(error: BaseException) -> str:
    """The chain of errors with their tracebacks, the newest last, but without their messages.

    A message could contain anything, such as a token in a header that a library rejected, a line of a
    kubeconfig, or the value of a Secret.
    """
    import platform
    import traceback

    from twgen import __version__
    from twgen.cli.version import commit

    chain: list[BaseException] = []
    pending: list[BaseException | None] = [error]
    while pending:
        link = pending.pop()
        if link is not None and link not in chain:
            chain.append(link)
            pending += link.exceptions if isinstance(link, BaseExceptionGroup) else ()
            pending.append(link.__cause__ or link.__context__)
    built_from = f" ({commit()})" if commit() else ""
    lines = [f"twgen {__version__}{built_from}, Python {platform.python_version()}, {sys.platform}\n"]
    for link in reversed(chain):
        lines.append(f"{type(link).__module__}.{type(link).__qualname__}\n")
        lines += traceback.format_tb(link.__traceback__)
    return "".join(lines)


_PLUGINS = {"kubectl-twgen": "kubectl twgen", "temporal-twgen": "temporal twgen"}
_OF_TEMPORAL = "temporal twgen"
_COMPLETE = ("__complete", "__completeNoDesc")
_FILES, _NO_FILES = ":0", ":4"
"""Whether to complete file names too, in the protocol of Cobra, which kubectl and the Temporal CLI use."""
_GROUPS = {
    "Look": {
        "plan": "Show the next change to the traffic and to each version, with the reason.",
        "status": "Show the state of each worker, its manager and its versions.",
        "diff": "Compare the rendered manifests with the cluster.",
        "simulate": "Predict a whole rollout, with the time of each change.",
        "drain": "List the workflows that keep old versions running.",
        "dashboard": "Open a page to watch and steer the rollouts of a cluster.",
        "version": "Print the version of twgen.",
    },
    "Ship": {
        "validate": "Check specs and manifests without reading a server.",
        "render": "Print the manifests of all versions that still have work.",
        "lock": "Record the target versions in the ledger next to the specs.",
        "rollout": "Roll out the target: run its gate, ramp its traffic, make it current.",
    },
    "Steer": {
        "promote": "Move a rollout to its next step now.",
        "abort": "Stop the ramp of a target until `retry`.",
        "retry": "Continue after an abort, a failed gate or a failed replay.",
        "pause": "Pause a rollout until `resume`.",
        "resume": "Continue a paused rollout.",
        "retire": "Send new workflows to unversioned workers, to drain all versions.",
        "end": "End or move the workflows that keep an old version running.",
        "forget": "Delete the records of old versions in Temporal.",
    },
    "Run in a cluster": {
        "tick": "Keep Argo CD's rendered manifests up to date.",
        "doctor": "Check the installation, and say how to fix each problem.",
        "completion": "Print the script for shell completion.",
    },
    "Move in and out": {
        "import": "Write specs for workers that already run.",
        "snapshot": "Print the state that other commands read with --snapshot.",
        "ownership": "Become the manager of a worker, or release the worker.",
    },
}
"""The commands and their short help, by the title of the group."""
_LISTED = [name for group in _GROUPS.values() for name in group]
_COMMANDS = [*_LISTED, "histories"]
"""All commands. The help does not list `histories`, because replay Jobs run it, and people rarely do."""
_SAY_INSTEAD = {
    "undo": "to go back, commit the spec of the older version; during a ramp, run `twgen abort`",
    "rollback": "to go back, commit the spec of the older version; during a ramp, run `twgen abort`",
    "set": "change the image in the spec, and commit it: a rollout of the new version follows",
    "restart": "change the pod template in the spec, and commit it; `twgen retry` continues a failed rollout",
    "wait": "`twgen status . -w --within 30m` waits until the rollouts have ended",
    "lint": "`twgen validate .` checks specs",
    "check": "`twgen validate .` checks specs; `twgen doctor` checks the installation",
    "template": "`twgen render .` prints the manifests",
    "build": "`twgen render .` prints the manifests",
    "init": "`twgen import` writes specs for running workers; docs/specs.md has an example of each kind",
    "get": "`twgen status --from-cluster -A` lists all rollouts",
    "list": "`twgen status --from-cluster -A` lists all rollouts",
    "apply": "`twgen render . | kubectl apply --server-side -f -` applies the manifests",
    "delete": "remove the worker's spec from Git: docs/upgrade.md",
}
"""Command names from other tools that users may try, with the advice to show for each."""
_OF_ONE_FILE = {
    "completion": "version",
    "diff": "render",
    **dict.fromkeys(("lock", "snapshot"), "recording"),
    **dict.fromkeys(("promote", "abort", "retry", "pause", "resume", "retire", "ownership"), "intervention"),
}
"""The module of each command that shares its module with another command."""
_RENAMED = {"import": "importing"}
"""The modules whose names differ from their commands: a Python keyword cannot be the name of a module."""


class _Commands(click.Group):
    """Imports a command's module only when the command runs: `twgen version` does not import the planner."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_LISTED)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            if ctx.resilient_parsing:  # a shell asks for completions
                return None
            hint = f"; {_SAY_INSTEAD[cmd_name]}" if cmd_name in _SAY_INSTEAD else ""
            hint = hint or did_you_mean(cmd_name, _COMMANDS) or f"; see {ctx.command_path} --help"
            raise InvalidInput(f"no such command {quoted(cmd_name)}{hint}")
        file = _OF_ONE_FILE.get(cmd_name) or _RENAMED.get(cmd_name, cmd_name)
        module = import_module(f"twgen.cli.{file}")
        command: click.Command = getattr(module, cmd_name if cmd_name in _OF_ONE_FILE else "command")
        command.name = cmd_name
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        longest = max(map(len, _LISTED))
        for title, commands in _GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(longest), text) for name, text in commands.items()])


def _print_version(context: click.Context, _: click.Parameter, is_given: bool) -> None:  # noqa: FBT001 - click's signature
    if is_given and not context.resilient_parsing:
        context.invoke(import_module("twgen.cli.version").command, output="text")
        context.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-V",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version of twgen.",
)
def twgen() -> None:
    """Render and roll out Temporal workers. Each version that still has work gets its own Deployment.

    \b
    Examples:
      twgen validate .
      twgen plan . --snapshot world.yaml
      twgen diff .
      twgen render . | kubectl apply --server-side -f -

    \b
    Exit codes: 0 done, 1 problems or changes were found, or a rollout failed,
    2 usage or invalid spec, 3 state not available, 4 out of time,
    5 another manager owns the worker, 70 a bug.
    """


def typed_name(program: str) -> str:
    """The command that the user typed to start this program, such as `kubectl twgen`."""
    return _PLUGINS.get(program.rpartition("/")[2], "twgen")


def arguments_of(name: str, arguments: Sequence[str]) -> list[str]:
    """The arguments in the order in which the user typed them.

    The Temporal CLI moves its own options, such as `-o json`, in front of the command. It also turns
    `temporal help twgen plan` into `temporal-twgen help plan`.
    """
    if name != _OF_TEMPORAL or asks_for_completion(name, arguments):
        return list(arguments)
    if arguments[:1] == ["help"]:
        return [*arguments[1:], "--help"]
    command = next((place for place, word in enumerate(arguments) if word in _COMMANDS), 0)
    return [*arguments[command:], *arguments[:command]]


def asks_for_completion(name: str, arguments: Sequence[str]) -> bool:
    """Whether the Temporal CLI requests completions."""
    return name == _OF_TEMPORAL and next(iter(arguments), "") in _COMPLETE


def completions(words: Sequence[str]) -> list[str]:
    """The completions of the last word, as lines in Cobra's protocol."""
    from click.shell_completion import ShellComplete

    *complete, incomplete = words or [""]
    items = ShellComplete(twgen, {}, "twgen", "").get_completions(complete, incomplete)
    lines = [f"{item.value}\t{item.help or ''}".rstrip() for item in items if item.type == "plain"]
    return [*lines, _NO_FILES if len(lines) == len(items) else _FILES]


def main() -> None:
    """The entry point of the program."""
    name = typed_name(sys.argv[0])
    sys.argv[1:] = arguments_of(name, sys.argv[1:])
    leave(exit_code_of(lambda: _run(name)))


def _run(name: str) -> object:
    if instruction := os.environ.get(COMPLETION):
        from click.shell_completion import shell_complete

        try:
            return shell_complete(twgen, {}, "twgen", COMPLETION, instruction)
        except (LookupError, ValueError) as error:
            mistake = "COMP_WORDS and COMP_CWORD do not say which word to complete"
            remedy = f"use the script that `twgen completion` prints, or unset {COMPLETION}"
            raise InvalidInput(f"{mistake}: {remedy}") from error
    if asks_for_completion(name, sys.argv[1:]):
        write("".join(f"{line}\n" for line in completions(sys.argv[2:])))
        return None
    if environment().settings_of_application:
        from twgen.cli.options import refuse_settings_of_operator

        refuse_settings_of_operator()
    # click's own main would exit with other codes after an interrupt or a closed pipe
    with twgen.make_context(name, sys.argv[1:]) as context:
        return twgen.invoke(context)


def complete_for_kubectl() -> None:
    """Print completions. kubectl runs `kubectl_complete-twgen` with the words after `kubectl twgen`."""
    write("".join(f"{line}\n" for line in completions(sys.argv[1:])))
