"""`twgen status --watch`: reading again and again, and showing what was read."""

import gc
from concurrent.futures import ThreadPoolExecutor, wait
from time import monotonic, sleep

from twgen.cli.display import TICK, Log, display
from twgen.cli.observer import Observation, Observer
from twgen.cli.settings import Settings
from twgen.errors import InvalidDocuments, NegativeAnswer, TwgenError
from twgen.model.plan import Phase
from twgen.model.status import Status


def watch_status(settings: Settings, output: str, color: str, interval: float) -> None:
    """Show what changes: on a terminal until it is interrupted, else until no rollout goes on by itself.

    Raises NegativeAnswer when one is blocked then, and as reading does when the first read fails.
    """
    gc.enable()  # what a render leaves to the end of the process would add up here
    pool = ThreadPoolExecutor(1)
    # without a worker all would be settled at once, and a script would go on after a rollout that never was
    with Observer(settings, needs_worker=True) as observer, display(output, color) as shown:
        observation, failure = _read(observer), ""
        try:
            while True:
                due = monotonic() + interval
                shown.show(observation, failure)
                if isinstance(shown, Log) and not _goes_on(observation.status()):
                    return
                while (left := due - monotonic()) > 0:
                    sleep(min(TICK, left))
                    shown.repaint()
                reading = pool.submit(_read, observer)
                while not wait([reading], TICK).done:
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


def _read(observer: Observer) -> Observation:
    observation = observer.observe()
    observation.status()  # what cannot be planned was not read well
    return observation


def _goes_on(status: Status) -> bool:
    """Some rollout can still move by itself; raises NegativeAnswer when none can and one is blocked."""
    phases = [worker.plan.routing.phase for worker in status.workers]
    if any(phase not in {Phase.SETTLED, Phase.BLOCKED} for phase in phases):
        return True
    blocked = [
        worker.plan.spec.worker_deployment
        for worker, phase in zip(status.workers, phases, strict=True)
        if phase is Phase.BLOCKED
    ]
    if blocked:
        raise NegativeAnswer(f"blocked: {', '.join(blocked)}")
    return False
