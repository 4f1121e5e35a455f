"""The program, as `twgen` and as `python -m twgen`."""

import gc

from twgen.cli.signals import answer_at_once


def main() -> None:
    """Run the program, and never return."""
    answer_at_once()  # the imports below take most of a short run
    gc.disable()  # nothing here makes cycles in number; a large render, and each start, are that much faster
    from twgen.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
