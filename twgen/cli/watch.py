"""`twgen status --watch`: reading again and again, and showing what was read."""

import gc
from concurrent.futures import ThreadPoolExecutor, wait
from time import monotonic, sleep

from twgen.cli.display import FRAME_SECONDS, Log, display
from twgen.cli.observer import Observer
from twgen.cli.settings import Settings
from twgen.cli.standing import Patience, Standing
from twgen.errors import InvalidDocuments, TwgenError


def watch_status(settings: Settings, output: str, color: str, patience: Patience) -> None:
    """Show what changes until no rollout goes on by itself; on a terminal without --within: until Ctrl-C.

    Raises as `Patience.goes_on` does, and as reading does when the first read fails.
    """
    gc.enable()  # what a render leaves to the end of the process would add up here
    pool = ThreadPoolExecutor(1)
    # without a worker all would be settled at once, and a script would go on after a rollout that never was
    with Observer(settings, needs_worker=True) as observer, display(output, color) as shown:
        observation, failure = observer.observe(), ""
        try:
            while True:
                due = patience.next_read()
                shown.show(observation, failure)
                stand = [Standing.of(plan) for plan in observation.plan.workers]
                if (isinstance(shown, Log) or patience.has_end) and not patience.goes_on(stand):
                    return
                while (left := due - monotonic()) > 0:
                    sleep(min(FRAME_SECONDS, left))
                    shown.repaint()
                reading = pool.submit(observer.observe)
                while not wait([reading], FRAME_SECONDS).done:
                    shown.repaint()
                try:
                    observation, failure = reading.result(), ""
                except InvalidDocuments as error:
                    more = len(error.problems) - 1
                    failure = error.problems[0] + (f" and {more} more" if more else "")
                except TwgenError as error:
                    failure = str(error)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
