"""Entry point of `twgen` and of `python -m twgen`."""

import gc

from twgen.cli.signals import answer_at_once


def main() -> None:
    """Run the program and exit."""
    answer_at_once()  # before the imports below, which take most of a short run
    gc.disable()  # twgen makes few reference cycles, and large renders and each start are faster
    from twgen.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
