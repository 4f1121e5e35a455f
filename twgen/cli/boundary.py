"""The one error boundary: every end of the program is a line on stderr and an exit code."""

import os
import re
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import NoReturn

import click

from twgen.errors import InvalidDocuments, TwgenError

_BUG = 70
_INTERRUPTED = 130
_CLOSED_PIPE = 141
_TERMINATED = 143
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_SHORTEST_SECRET = 6


def exit_code_of(run: Callable[[], object]) -> int:
    """Run the program and say how it ended."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        ended = run()
    except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001 - what nobody expected is a bug
        return _ending(error)
    return ended if isinstance(ended, int) else 0


def leave(code: int) -> NoReturn:
    """End the process at once.

    A thread of Temporal's SDK that still reports an answer aborts an interpreter that is being taken apart
    (https://github.com/temporalio/sdk-python/issues/300). All that needs an end is a context manager.
    """
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(code)


def _ending(error: BaseException) -> int:
    match error:
        case TwgenError():
            _say(error)
            code = error.exit_code
        case click.exceptions.NoArgsIsHelpError():
            _print(error.format_message())
            code = error.exit_code
        case click.ClickException():
            context = getattr(error, "ctx", None)
            hint = f"; see {context.command_path} --help" if context else ""
            _print(f"twgen: {error.format_message().rstrip('.')}{hint}")
            code = error.exit_code
        case click.exceptions.Exit():
            code = error.exit_code
        case SystemExit():
            code = error.code if isinstance(error.code, int) else 0
        case KeyboardInterrupt() | click.Abort():
            code = _INTERRUPTED
        case BrokenPipeError():
            _abandon_stdout()
            code = _CLOSED_PIPE
        case _:
            _report_bug(error)
            code = _BUG
    return code


def _say(error: TwgenError) -> None:
    if isinstance(error, InvalidDocuments):
        for problem in error.problems:
            _print(problem)
        count = len(error.problems)
        _print(f"twgen: {count} problem{'s' if count > 1 else ''} found")
    else:
        _print(f"twgen: {error}")


def _report_bug(error: BaseException) -> None:
    import tempfile
    import traceback

    report = scrubbed("".join(traceback.format_exception(error)))
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="twgen-bug-", suffix=".txt", delete=False, encoding="utf-8"
        ) as file:
            file.write(report)
        _print(f"twgen: a bug ({type(error).__name__}); please report what is in {file.name}")
    except OSError:
        _print(f"twgen: a bug ({type(error).__name__}); please report this:\n{report}")


def scrubbed(report: str) -> str:
    """The report without the values of variables whose names promise a secret."""
    for name, value in os.environ.items():
        if _SECRET_NAME.search(name) and len(value) >= _SHORTEST_SECRET:
            report = report.replace(value, "***")
    return report


def _print(line: str) -> None:
    with suppress(OSError):
        print(line, file=sys.stderr)  # noqa: T201 - stderr is where it belongs


def _abandon_stdout() -> None:
    # the interpreter flushes stdout once more at its end
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _terminate(_: int, __: FrameType | None) -> None:
    sys.exit(_TERMINATED)
