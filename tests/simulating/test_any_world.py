"""A simulated rollout from any world: it ends, misses nothing, and takes no pods from a version with work."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulating.stories import a_worker_spec, tell
from tests.simulating.workers import ASSUMED, ME, MINUTE, SECOND, a_worker
from tests.strategies import NOW, specs, worlds
from twgen.model.spec import Gate, Rollout, RolloutStep, Strategy, Sunset, WorkerSpec
from twgen.model.timeline import Outcome, WorkerTimeline
from twgen.model.world import World
from twgen.simulating.frames import events_of, frame_of
from twgen.simulating.simulate import run, usual_world


def stepped(spec: WorkerSpec, until: timedelta) -> list[tuple[str, str, timedelta]]:
    """What happens when the clock does not jump, but goes second by second."""
    worker = a_worker(spec, usual_world([spec], NOW, ME), assumed=QUICK_LIFE)
    frames = [frame_of(worker)]
    while worker.now - NOW <= until:
        if worker.is_render_due():
            worker.sync(worker.plan())
            frames.append(frame_of(worker))
        worker.roll_out()
        frames.append(frame_of(worker))
        worker.advance(worker.now + SECOND)
        frames.append(frame_of(worker))
    return [(event.happening, event.build_id, event.at) for event in events_of(frames)]


QUICK_LIFE = replace(ASSUMED, workflow_duration=4 * MINUTE, render_interval=100 * SECOND)
SHORT_STEPS = (RolloutStep(5, 31 * SECOND), RolloutStep(50, 150 * SECOND))
SHORT_SUNSET = Sunset(2 * MINUTE, 3 * MINUTE)


@pytest.mark.parametrize("strategy", [Strategy.PROGRESSIVE, Strategy.ALL_AT_ONCE])
@pytest.mark.parametrize("gate", [None, Gate("SmokeTest")])
def test_clock_that_jumps_misses_nothing(strategy: Strategy, gate: Gate | None) -> None:
    spec = a_worker_spec(Rollout(strategy, SHORT_STEPS, gate), sunset=SHORT_SUNSET)
    (worker,) = tell([spec], assumed=QUICK_LIFE).workers
    jumped = [(event.happening, event.build_id, event.at) for event in worker.events]
    by_seconds = stepped(spec, worker.ends + MINUTE)
    assert [what for *what, _ in jumped] == [what for *what, _ in by_seconds]
    # a pause is over after its last moment: a clock of whole seconds sees it a second later
    late = [seen - at for (*_, at), (*_, seen) in zip(jumped, by_seconds, strict=True)]
    assert timedelta() <= min(late)
    assert max(late) <= QUICK_LIFE.render_interval


@given(specs, worlds(), st.integers(0, 10_000_000))
def test_it_ends_from_any_world(spec: WorkerSpec, found: World, minutes: int) -> None:
    timeline = tell([spec], found, NOW, workflow_duration=timedelta(minutes=minutes))
    (worker,) = timeline.workers
    assert worker.outcome is not Outcome.UNFINISHED
    assert worker.because
    times = [event.at for event in worker.events]
    assert times == sorted(times)
    assert lanes_are_whole(worker)


def lanes_are_whole(worker: WorkerTimeline) -> bool:
    """Every span ends where the next begins, or later; all shares of a moment add up to no more than all."""
    spans = [span for lane in worker.lanes for span in lane.spans]
    for lane in worker.lanes:
        ends = [span.end for span in lane.spans]
        begins = [span.begin for span in lane.spans[1:]]
        assert all(end is not None and end <= begin for end, begin in zip(ends, begins, strict=False))
    moments = {span.begin for span in spans}
    return all(
        sum(span.percentage for span in spans if span.covers(moment)) <= 100 + 1e-6 for moment in moments
    )


@given(specs, worlds(), st.integers(0, 100_000))
def test_no_version_that_is_held_ever_loses_its_pods(spec: WorkerSpec, found: World, minutes: int) -> None:
    assumed = replace(ASSUMED, workflow_duration=timedelta(minutes=minutes))
    frames = [seen for seen, _ in run(a_worker(spec, found, assumed=assumed))]
    for before, after in pairwise(frames):
        serving = {name for name, seen in before.versions.items() if seen.serves and seen.is_held}
        lost = {name for name in serving if not after.versions[name].serves and after.versions[name].is_held}
        if spec.replicas == 0:
            lost -= {name for name in lost if name == spec.build_id or before.versions[name].percentage}
        assert lost == set()
