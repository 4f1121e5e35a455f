"""`twgen status --watch`: reading again and again, and showing what was read."""

import gc
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from time import monotonic, sleep

from twgen.cli.display import FRAME_SECONDS, Log, display
from twgen.cli.observer import Observer
from twgen.cli.settings import Settings
from twgen.errors import InvalidDocuments, NegativeAnswer, TwgenError
from twgen.model.plan import Phase
from twgen.planning.sentences import listed


def watch_status(settings: Settings, output: str, color: str, interval: float) -> None:
    """Show what changes: on a terminal until it is interrupted, else until no rollout goes on by itself.

    Raises NegativeAnswer when one is blocked then, and as reading does when the first read fails.
    """
    gc.enable()  # what a render leaves to the end of the process would add up here
    pool = ThreadPoolExecutor(1)
    # without a worker all would be settled at once, and a script would go on after a rollout that never was
    with Observer(settings, needs_worker=True) as observer, display(output, color) as shown:
        observation, failure = observer.observe(), ""
        try:
            while True:
                due = monotonic() + interval
                shown.show(observation, failure)
                plans = observation.plan.workers
                phases = [(plan.spec.worker_deployment, plan.routing.phase) for plan in plans]
                if isinstance(shown, Log) and not any_goes_on(phases):
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


def any_goes_on(phases: Sequence[tuple[str, Phase]]) -> bool:
    """Some rollout of these workers goes on by itself; raises NegativeAnswer for one that is blocked else."""
    if any(phase.goes_on for _, phase in phases):
        return True
    if blocked := [worker for worker, phase in phases if phase is Phase.BLOCKED]:
        raise NegativeAnswer(f"blocked: {listed(blocked)}")
    return False
