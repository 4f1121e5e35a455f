"""Handles the signals that end the program, and prints the object that makes kubectl reject a failed render.

This module imports almost nothing, because signals may arrive while slower modules are imported.
"""

import os
import signal
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

_SIGNALLED = 128
"""If a signal ends a program, its exit code is this number plus the signal's number."""
_SOON = 0.01
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU)
# do not use the YAML writer, because a signal may have interrupted its import
_YAML = "---\napiVersion: twgen.io/v1alpha1\nkind: RenderFailed\nmetadata:\n  name: {0}\nmessage: {0}\n"
_JSON = (
    '{{"apiVersion": "twgen.io/v1alpha1", "kind": "RenderFailed", '
    '"metadata": {{"name": {0}}}, "message": {0}}}\n'
)
_Handler = Callable[[int, FrameType | None], object] | signal.Handlers


def answer_signals(interrupt: _Handler, terminate: _Handler) -> None:
    """Set the first handler for SIGINT, and the second for the other signals that end a program."""
    for number in _ENDING:
        # nohup and a shell's `&` make a program ignore signals: leave that as it is
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupt if number is signal.SIGINT else terminate)


def answer_at_once() -> None:
    """Let signals end the program at once, because there is nothing to clean up yet."""
    answer_signals(_end, _end)


def hold_signals() -> None:
    """Ignore signals from now on, so that no signal interrupts the output."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    # do not set SIG_IGN: Python prints an error if a signal arrives during that change
    answer_signals(lambda *_: None, lambda *_: None)


def interrupt_soon() -> None:
    """Interrupt the program again shortly, because Python drops an interrupt that arrives in a destructor."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, _SOON)


def release_signals() -> None:
    """Restore the default handlers, with which signals kill the program."""
    answer_signals(signal.SIG_DFL, signal.SIG_DFL)


def code_of(number: int) -> int:
    """The exit code of a program that this signal ends."""
    return _SIGNALLED + number


def reason_of(code: int) -> str:
    """A line that names the signal of an exit code, or empty if no signal ended the program."""
    number = code - _SIGNALLED
    return f"ended by {signal.Signals(number).name}" if number in _ENDING else ""


def is_plugin() -> bool:
    """Whether Argo CD runs this process as its plugin."""
    return "ARGOCD_APP_NAME" in os.environ


def print_failed_render(reason: str) -> None:
    """If this is a render into a pipe, print an object that kubectl rejects.

    To `kubectl diff`, an empty pipe would mean "no difference". Argo CD needs no such object, because it
    checks the exit code. `reason` must be printable.
    """
    if sys.argv[1:2] != ["render"] or is_plugin() or not _is_pipe():
        return
    # the options may be invalid, so guess the format: JSON is also YAML, so a wrong guess of JSON is harmless
    words = {*sys.argv, os.environ.get("TWGEN_OUTPUT")}
    form = _YAML if words.isdisjoint({"json", "-ojson", "--output=json"}) else _JSON
    text = '"' + reason.replace("\\", r"\\").replace('"', r"\"") + '"'
    data = form.format(text).encode(errors="backslashreplace")
    with suppress(OSError):  # the reader may have closed the pipe
        while data:
            data = data[os.write(1, data) :]


def _end(number: int, _: FrameType | None) -> None:
    hold_signals()  # a second signal would print a second object
    code = code_of(number)
    print_failed_render(reason_of(code))
    os._exit(code)


def _is_pipe() -> bool:
    """Whether another program reads stdout. In ksh, pipes are sockets."""
    try:
        mode = os.fstat(1).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
