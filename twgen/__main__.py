"""The program, as `twgen` and as `python -m twgen`."""

import gc
import signal


def main() -> None:
    """Run the program, and never return."""
    # Python's own answer to an interrupt is a traceback, and the imports below take most of a short run
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()  # nothing here makes cycles in number; a large render, and each start, are that much faster
    from twgen.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
