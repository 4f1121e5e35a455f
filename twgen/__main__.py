"""The entry point of `twgen` and `python -m twgen`."""

import gc

from twgen.cli.signals import answer_at_once


def main() -> None:
    """Run the program and exit."""
    answer_at_once()  # before the imports below, which take most of the time of a short run
    gc.disable()  # this makes starts and large renders faster, and twgen creates few reference cycles
    from twgen.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
