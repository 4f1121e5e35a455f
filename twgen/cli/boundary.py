"""The only error boundary: every end of the program becomes a line on stderr and an exit code."""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import NoReturn

import click

from twgen.cli.output import open_streams, say
from twgen.cli.signals import (
    answer_signals,
    code_of,
    hold_signals,
    interrupt_soon,
    print_failed_render,
    reason_of,
    release_signals,
)
from twgen.errors import InvalidDocuments, TwgenError
from twgen.reporting.printable import printable

_NO_MEMORY = 2
_BUG = 70
_INTERRUPTED = 130
_CLOSED_PIPE = 141
_OF_HELM = {"-f": "--value-files", **dict.fromkeys(("--set", "--set-string", "--set-json"), "--values")}
"""Options of helm that have another name here."""


def exit_code_of(run: Callable[[], object]) -> int:
    """Run the program, and print why it failed."""
    ended_by = 0

    def terminate(number: int, frame: FrameType | None) -> None:
        nonlocal ended_by
        ended_by = number
        # as an interrupt does, end the task of a running event loop: an exception that is raised here
        # gets lost if Python happens to run a destructor or the callback of a weak reference
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
    except BaseException as error:  # noqa: BLE001 - an unexpected error is a bug, also a library's panic
        hold_signals()  # a second signal may have prevented it above: `timeout` sends two
        code, lines = _ending(error)
        if ended_by and code == _INTERRUPTED:
            code = code_of(ended_by)
        if reason := _reason(lines) or reason_of(code):
            print_failed_render(reason)
        if lines:
            release_signals()  # the reader of stderr may let it wait
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
    """End the process at once; all output has been flushed.

    A thread of Temporal's SDK that still reports an answer aborts an interpreter that is shutting down
    (https://github.com/temporalio/sdk-python/issues/300). Everything that needs cleanup is a context manager.
    """
    os._exit(code)


def _ending(error: BaseException) -> tuple[int, Sequence[str]]:
    """The exit code, and the lines with the reason."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, RuntimeError) and isinstance(error.__cause__, KeyboardInterrupt):
        # before 3.12, Python wraps an error of `__set_name__` so, which runs as a class is made
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
            remedy = "raise the memory limit (`ulimit -d`, `ulimit -v`, or the limit of its container)"
            return _NO_MEMORY, [f"twgen: out of memory: {remedy}, or read fewer files at once"]
        case _:
            return _BUG, bug_lines(error)


def _reason(lines: Sequence[str]) -> str:
    more = f" (the first of {len(lines)} lines on stderr)" if len(lines) > 1 else ""
    return printable(lines[0].removeprefix("twgen: ")) + more if lines else ""


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
            # click starts a new line for each choice
            message = " ".join(error.format_message().split()).rstrip(".")
            if isinstance(error, click.exceptions.NoSuchOption):
                from twgen.model.problem import did_you_mean

                # without the dashes, which all of them have
                options = [option.lstrip("-") for option in error.possibilities or ()]
                similar = did_you_mean(error.option_name.lstrip("-"), options).replace("mean ", "mean --")
                options_of_command = error.ctx.command.params if error.ctx else ()
                instead = _OF_HELM.get(error.option_name)
                if instead and any(instead in option.opts for option in options_of_command):
                    similar = f"; with --input Helm, did you mean {instead}?"
                message = f"no such option {error.option_name!r}{similar}"
            context = getattr(error, "ctx", None)
            hint = f"; see {context.command_path} --help" if context and not message.endswith("?") else ""
            return [f"twgen: {message}{hint}"]


def bug_lines(error: BaseException) -> Sequence[str]:
    """The lines about an unexpected error, which name the file with its report."""
    import tempfile

    report, head = bug_report(error), f"twgen: a bug ({type(error).__name__}); please report"
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="twgen-bug-", suffix=".txt", delete=False, encoding="utf-8"
        ) as file:
            file.write(report)
    except OSError:
        return [f"{head} this:", *report.splitlines()]
    return [f"{head} the content of {file.name}"]


def bug_report(error: BaseException) -> str:
    """The chain of errors and where they were raised, the newest last, without their messages.

    The message of an unexpected error can quote anything: a token in a header that a library
    refused, a line of a kubeconfig, the value of a Secret.
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
