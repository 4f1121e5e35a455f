"""The signals that end the program, and the object that a failed render prints into a pipe.

It imports almost nothing: a signal may arrive during the other imports, which take most of a short run.
"""

import os
import signal
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

_SIGNALLED = 128
"""A program that a signal ends exits with this number plus the signal's number."""
_SOON = 0.01
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU)
# written by hand: a signal may have interrupted the import of what writes documents
_YAML = "---\napiVersion: twgen.io/v1alpha1\nkind: RenderFailed\nmetadata:\n  name: {0}\nmessage: {0}\n"
_JSON = (
    '{{"apiVersion": "twgen.io/v1alpha1", "kind": "RenderFailed", '
    '"metadata": {{"name": {0}}}, "message": {0}}}\n'
)
_Handler = Callable[[int, FrameType | None], object] | signal.Handlers


def answer_signals(interrupt: _Handler, terminate: _Handler) -> None:
    """Answer SIGINT by the first handler, and the other signals that end a program by the second one."""
    for number in _ENDING:
        # nohup, and a shell's `&`, make a program ignore them
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupt if number is signal.SIGINT else terminate)


def answer_at_once() -> None:
    """Let signals end the program at once: there is nothing to clean up yet."""
    answer_signals(_end, _end)


def hold_signals() -> None:
    """Let no signal interrupt what the program prints now."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    # not SIG_IGN: Python complains about a signal that arrives during the change to it
    answer_signals(lambda *_: None, lambda *_: None)


def interrupt_soon() -> None:
    """Interrupt the program again, after the destructor, in which Python drops errors."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, _SOON)


def release_signals() -> None:
    """Let signals kill the program, as if it had no handlers."""
    answer_signals(signal.SIG_DFL, signal.SIG_DFL)


def code_of(number: int) -> int:
    """The exit code after this signal."""
    return _SIGNALLED + number


def reason_of(code: int) -> str:
    """A line about the signal of an exit code; empty: no signal ended the program."""
    number = code - _SIGNALLED
    return f"ended by {signal.Signals(number).name}" if number in _ENDING else ""


def is_plugin() -> bool:
    """Whether Argo CD runs this process as its plugin."""
    return "ARGOCD_APP_NAME" in os.environ


def print_failed_render(reason: str) -> None:
    """Print an object that kubectl rejects if this is a render: an empty pipe would mean "no difference".

    The reason is printable. Argo CD checks the exit code, and a file or a terminal has no kubectl behind it.
    """
    if sys.argv[1:2] != ["render"] or is_plugin() or not _is_pipe():
        return
    # the options may be the mistake; JSON is YAML, so choosing JSON by mistake does no harm
    words = {*sys.argv, os.environ.get("TWGEN_OUTPUT")}
    form = _YAML if words.isdisjoint({"json", "-ojson", "--output=json"}) else _JSON
    text = '"' + reason.replace("\\", r"\\").replace('"', r"\"") + '"'
    data = form.format(text).encode(errors="backslashreplace")
    with suppress(OSError):  # its reader is gone
        while data:
            data = data[os.write(1, data) :]


def _end(number: int, _: FrameType | None) -> None:
    hold_signals()  # or a second one would print a second object
    code = code_of(number)
    print_failed_render(reason_of(code))
    os._exit(code)


def _is_pipe() -> bool:
    """Whether another program reads stdout; the pipes of ksh are sockets."""
    try:
        mode = os.fstat(1).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
