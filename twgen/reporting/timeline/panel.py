"""Where the parts of one worker's picture are, and the words above and below it."""

from dataclasses import dataclass

from twgen.model.timeline import Timeline, WorkerTimeline
from twgen.planning.sentences import spoken
from twgen.reporting.timeline.phrases import assumptions, rollout_phrase, summary, sunset_phrase
from twgen.reporting.timeline.scale import Scale
from twgen.reporting.timeline.svg import lines_within

MARGIN = 24.0
NAMES = 170.0
"""Width of the column that names the versions, in pixels as all else here."""
LINE = 17.0
"""From one line of words to the next."""
SHARE_HEIGHT = 110.0
LANE_HEIGHT = 34.0
FAINT = "#64748b"


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
        words = f"{rollout_phrase(self.worker.rollout)}. A drained version goes {sunset_phrase(self.worker)}."
        return lines_within(words, self.width - 2 * MARGIN)

    @property
    def foot(self) -> list[str]:
        """The words below."""
        assumed = "; ".join(words for words, _ in assumptions(self.worker, self.timeline))
        notes = (f"Note: {note}." for note in self.worker.notes)
        sentences = [*summary(self.worker), *notes, f"Assumed: {assumed}.", self.axis]
        return [line for words in sentences for line in lines_within(words, self.width - 2 * MARGIN)]

    @property
    def axis(self) -> str:
        """How the axis is to be read."""
        longest = spoken(self.scale.to_scale_up_to, 1)
        return (
            f"Time is to scale up to about {longest} between two marks: what is longer is cut (//), what is"
            " too short for its label is widened."
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
