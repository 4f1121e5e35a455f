"""Where everything in the picture of a simulation is: a panel for each worker, with its scale of time."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from statistics import median_low
from textwrap import wrap

from twgen.model.timeline import Happening, Timeline, WorkerTimeline
from twgen.model.values import dataclass
from twgen.planning.sentences import spoken
from twgen.reporting.timeline.phrases import assumptions, offset, rollout_phrase, summary, sunset_phrase

MARGIN = 24.0
NAMES = 176.0
"""Width of the column that names the versions, in pixels as all else here."""
LINE = 17.0
"""From one line of words to the next."""
SHARE_HEIGHT = 110.0
LANE_HEIGHT = 34.0
LABEL_SIZE = 10
_LONGEST = 150.0
"""Pixels of the longest distance that is to scale."""
_BREAK = 76.0
_BETWEEN_LABELS = 12.0
_NARROWEST = 60.0
_TOLERANCE = 1.25
"""Little longer than the longest is drawn to scale too."""
_TAIL = 118.0
"""Pixels after the last moment, for what lasts for ever."""
_WIDTH_OF_CHARACTER = 0.6
"""Of its height: more than most fonts need, since the one that is used is not known."""


def width_of(words: str, size: float = 12) -> float:
    """About how wide words are, in pixels."""
    return len(words) * size * _WIDTH_OF_CHARACTER


@dataclass(frozen=True, slots=True)
class Scale:
    """The distance of each moment from the first, in pixels."""

    positions: Mapping[timedelta, float]
    breaks: Sequence[tuple[float, float]]
    """From where to where time is cut short."""
    to_scale_up_to: timedelta
    """The longest time between two moments that is to scale."""

    @property
    def width(self) -> float:
        """Of the whole, in pixels."""
        return max(self.positions.values()) + _TAIL

    def of(self, moment: timedelta | None) -> float:
        """Where a moment is, one that nothing happens at included; None: the end."""
        if moment is None:
            return self.width
        moments = sorted(self.positions)
        return self.positions[moments[max(bisect_right(moments, moment) - 1, 0)]]


def scale_of(worker: WorkerTimeline) -> Scale:
    """Distances in proportion to time, those that are too long cut, those that are too short widened."""
    moments = _moments(worker)
    longest = _reference(worker, moments)
    pixels = _LONGEST / longest.total_seconds()
    positions, breaks = {moments[0]: 0.0}, []
    for before, after in pairwise(moments):
        begin, length = positions[before], after - before
        cut = length > longest * _TOLERANCE
        drawn = _BREAK if cut else length.total_seconds() * pixels
        labels = sum(width_of(offset(moment), LABEL_SIZE) for moment in (before, after))
        positions[after] = begin + max(drawn, labels / 2 + _BETWEEN_LABELS, _NARROWEST)
        if cut:
            breaks.append((begin, positions[after]))
    return Scale(positions, breaks, longest * _TOLERANCE)


def _moments(worker: WorkerTimeline) -> list[timedelta]:
    """When something in the picture changes: an event that changes no bar needs no mark on the axis."""
    begins = {span.begin for lane in worker.lanes for span in lane.spans}
    ends = {span.end for lane in worker.lanes for span in lane.spans if span.end is not None}
    marked = {event.at for event in worker.events if event.happening is Happening.TAKEN_BACK}
    return sorted({timedelta()} | begins | ends | marked)


def _reference(worker: WorkerTimeline, moments: Sequence[timedelta]) -> timedelta:
    """The longest wait of the rollout itself; where it has none to speak of, a usual one of all."""
    gaps = [after - before for before, after in pairwise(moments)]
    current = worker.first(Happening.BECAME_CURRENT, worker.target_build_id)
    is_over = worker.ends if current is None else current
    in_rollout = [after - before for before, after in pairwise(moments) if after <= is_over]
    return max([*in_rollout, median_low(gaps) if gaps else timedelta(), timedelta(seconds=1)])


@dataclass(frozen=True, slots=True)
class Panel:
    """One worker in the picture, and where it is."""

    worker: WorkerTimeline
    timeline: Timeline
    scale: Scale
    top: float
    width: float

    @property
    def head(self) -> list[str]:
        """The words above."""
        words = f"{rollout_phrase(self.worker.rollout)}. Sunset: {sunset_phrase(self.worker)}."
        return self._lines(words)

    @property
    def foot(self) -> list[str]:
        """The words below."""
        assumed = "; ".join(words for words, _ in assumptions(self.worker, self.timeline))
        notes = (f"Note: {note}." for note in self.worker.notes)
        sentences = [*summary(self.worker), *notes, f"Assumed: {assumed}.", self.axis]
        return [line for words in sentences for line in self._lines(words)]

    def _lines(self, words: str) -> list[str]:
        return wrap(words, max(20, int((self.width - 2 * MARGIN) / width_of("m"))), break_long_words=True)

    @property
    def axis(self) -> str:
        """How to read the axis."""
        longest = spoken(self.scale.to_scale_up_to, 1)
        return (
            f"Times of up to about {longest} between two marks are to scale. Longer ones are cut (//), ones"
            " that are too short for their label are widened."
        )

    @property
    def share_top(self) -> float:
        """Of the shares of new workflows."""
        return self.top + 44 + LINE * len(self.head)

    @property
    def lanes_top(self) -> float:
        """Of the versions."""
        return self.share_top + SHARE_HEIGHT + 14

    @property
    def axis_top(self) -> float:
        """Of the axis."""
        return self.lanes_top + LANE_HEIGHT * len(self.worker.lanes) + 4

    @property
    def foot_top(self) -> float:
        """The baseline of the first line below."""
        return self.axis_top + (70 if self.timeline.begins else 42)

    @property
    def bottom(self) -> float:
        """Where the next one may begin."""
        return self.foot_top + LINE * len(self.foot) + 12


def x_of(position: float) -> float:
    """Where a distance from the first moment is in the picture."""
    return MARGIN + NAMES + position
