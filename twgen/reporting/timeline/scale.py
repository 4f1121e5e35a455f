"""Where the moments of a simulation are drawn: to scale, but so that minutes and days are both readable."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from statistics import median_low

from twgen.model.timeline import Happening, WorkerTimeline
from twgen.reporting.timeline.phrases import offset
from twgen.reporting.timeline.svg import width_of

LABEL_SIZE = 10
_LONGEST = 210.0
"""Pixels of the longest distance that is to scale."""
_BREAK = 130.0
_BETWEEN_LABELS = 12.0
_NARROWEST = 66.0
_TOLERANCE = 1.25
"""Little longer than the longest is drawn to scale too."""
_TAIL = 125.0
"""Pixels after the last moment: what stays so for ever."""


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
    moments = sorted({timedelta(), *(event.at for event in worker.events)})
    longest = _reference(worker, moments)
    pixels = _LONGEST / longest.total_seconds()
    positions, breaks = {moments[0]: 0.0}, []
    for before, after in pairwise(moments):
        begin, length = positions[before], after - before
        cut = length > longest * _TOLERANCE
        drawn = _BREAK if cut else length.total_seconds() * pixels
        positions[after] = begin + max(drawn, _room(before, after))
        if cut:
            breaks.append((begin, positions[after]))
    return Scale(positions, breaks, longest * _TOLERANCE)


def _reference(worker: WorkerTimeline, moments: Sequence[timedelta]) -> timedelta:
    """The longest wait of the rollout itself; where it has none to speak of, a usual one of all."""
    gaps = [after - before for before, after in pairwise(moments)]
    current = worker.first(Happening.BECAME_CURRENT, worker.target_build_id)
    is_over = worker.ends if current is None else current
    in_rollout = [after - before for before, after in pairwise(moments) if after <= is_over]
    return max([*in_rollout, median_low(gaps) if gaps else timedelta(), timedelta(seconds=1)])


def _room(before: timedelta, after: timedelta) -> float:
    widths = (width_of(offset(moment), LABEL_SIZE) for moment in (before, after))
    return max(sum(widths) / 2 + _BETWEEN_LABELS, _NARROWEST)
