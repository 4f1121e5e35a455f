"""Draws a simulation. Each worker has a panel with the shares of new workflows above the versions' stages."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import groupby, pairwise
from statistics import median_low
from textwrap import wrap
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from twgen.model.problem import counted
from twgen.model.timeline import Happening, Lane, Stage, Timeline, WorkerTimeline
from twgen.planning.sentences import spoken, version_name
from twgen.reporting.printable import printable_copy
from twgen.reporting.timeline.summary import (
    OUTCOMES,
    assumptions,
    beginning,
    offset,
    rollout_phrase,
    route,
    summary,
    sunset_phrase,
)

_NARROWEST = 860.0
_TITLE_HEIGHT = 26.0
_BAR_HEIGHT = 22.0
_SHARE_LINE = 13.0
"""The height of a text line inside a version's share, in pixels."""
_FONT = "system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"
_INK = "#1e293b"
"""The text colour on the background."""
_FAINT = "#64748b"
_RULE = "#cbd5e1"
_WRONG = "#b3261e"
# colour-blind people can distinguish these colours: https://jfly.uni-koeln.de/color/
_FILLS = {
    Stage.STARTING: ("#e0f2fe", _INK),
    Stage.IDLE: ("#bfe5d7", _INK),
    Stage.GATE: ("#e3b7d0", _INK),
    Stage.RAMPING: ("#8ccbf0", _INK),
    Stage.CURRENT: ("#0060a0", "#ffffff"),
    Stage.DRAINING: ("#f0b93a", _INK),
    Stage.DRAINED: ("#d6d3d1", _INK),
    Stage.AT_ZERO: ("#ffffff", _FAINT),
}
"""Each stage's fill colour and text colour, in the lower half of a panel."""
_DASHED = {Stage.STARTING, Stage.AT_ZERO}
_VERSIONS = (("#0f766e", "#ffffff"), ("#a78bfa", _INK), ("#9a5b2e", "#ffffff"), ("#475569", "#ffffff"))
"""The fill and text colours of versions, in the upper half of a panel. The first pair is for the target."""
_SWATCH = 10.0
_MARGIN = 24.0
_NAMES = 176.0
"""The width of the column of version names. All lengths in this file are in pixels."""
_LINE = 17.0
"""The distance between two lines of text."""
_SHARE_HEIGHT = 110.0
_LANE_HEIGHT = 34.0
_LABEL_SIZE = 10
_LONGEST = 150.0
"""The width of the reference interval, which is drawn to scale."""
_BREAK = 76.0
_BETWEEN_LABELS = 12.0
_SHORTEST = 60.0
_TOLERANCE = 1.25
"""An interval up to this many times the reference interval is drawn to scale. A longer interval is cut."""
_TAIL = 118.0
"""The width after the last moment, for stages that do not end."""
_WIDTH_OF_CHARACTER = 0.6
"""A character's width relative to its height. The estimate is generous, because the font is unknown."""


def timeline_svg(timeline: Timeline, *, titled: bool = True) -> str:
    """An SVG picture of the shares of new workflows, the stages of the versions, and a time axis.

    Without `titled`, the picture has no title, for a page that has its own.
    """
    timeline = printable_copy(timeline)
    scales = [scale_of(worker) for worker in timeline.workers]
    widest = max((scale.width for scale in scales), default=0.0)
    width = max(_NARROWEST, _NAMES + widest + 2 * _MARGIN)
    panels, top = [], _MARGIN + 32
    for worker, scale in zip(timeline.workers, scales, strict=True):
        panels.append(_Panel(worker, timeline, scale, top, width, titled=titled))
        top = panels[-1].bottom
    size = {"width": _number(width), "height": _number(top)}
    box = {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {size['width']} {size['height']}"}
    root = Element("svg", {**box, **size, "font-family": _FONT, "role": "img"})
    names = ", ".join(worker.worker for worker in timeline.workers)
    SubElement(root, "title").text = f"Simulated rollout of {names}"
    described = (sentence for worker in timeline.workers for sentence in summary(worker))
    SubElement(root, "desc").text = " ".join(described)
    _draw(root, "rect", width=width, height=top, fill="#ffffff", rx=8)
    x = _MARGIN
    drawn = {span.stage for worker in timeline.workers for lane in worker.lanes for span in lane.spans}
    for stage in (stage for stage in Stage if stage in drawn):
        _bar(root, (x, _MARGIN), (14, 14), stage)
        _write_text(root, stage.value, x + 20, _MARGIN + 11, 11)
        x += 32 + _width_of(stage.value, 11)
    for panel in panels:
        panel.draw(root)
    indent(root)
    return tostring(root, encoding="unicode") + "\n"


class Scale(NamedTuple):
    """The horizontal position of each moment, relative to the first moment."""

    positions: Mapping[timedelta, float]
    breaks: Sequence[tuple[float, float]]
    """The start and the end of each interval that is not to scale."""
    to_scale_up_to: timedelta
    """The longest interval that is drawn to scale."""

    @property
    def width(self) -> float:
        """The width of the whole time axis."""
        return max(self.positions.values()) + _TAIL

    def of(self, moment: timedelta | None) -> float:
        """The position of a moment. None means the end of the time axis."""
        if moment is None:
            return self.width
        moments = sorted(self.positions)
        return self.positions[moments[max(bisect_right(moments, moment) - 1, 0)]]


def scale_of(worker: WorkerTimeline) -> Scale:
    """The positions of all moments, to scale, except that long intervals are cut and short ones widened."""
    # an event that changes no bar needs no mark on the axis
    spans = [span for lane in worker.lanes for span in lane.spans]
    changes = {span.begin for span in spans} | {span.end for span in spans if span.end is not None}
    marked = {event.at for event in worker.events if event.happening is Happening.TAKEN_BACK}
    moments = sorted({timedelta()} | changes | marked)
    longest = _reference(worker, moments)
    pixels = _LONGEST / longest.total_seconds()
    positions, breaks = {moments[0]: 0.0}, []
    for before, after in pairwise(moments):
        begin, length = positions[before], after - before
        cut = length > longest * _TOLERANCE
        drawn = _BREAK if cut else length.total_seconds() * pixels
        labels = sum(_width_of(offset(moment), _LABEL_SIZE) for moment in (before, after))
        positions[after] = begin + max(drawn, labels / 2 + _BETWEEN_LABELS, _SHORTEST)
        if cut:
            breaks.append((begin, positions[after]))
    return Scale(positions, breaks, longest * _TOLERANCE)


def _reference(worker: WorkerTimeline, moments: Sequence[timedelta]) -> timedelta:
    """The longest interval within the rollout, or the median interval of the simulation if that is longer."""
    gaps = [after - before for before, after in pairwise(moments)]
    current = worker.first(Happening.BECAME_CURRENT, worker.target_build_id)
    is_over = worker.ends if current is None else current
    in_rollout = [after - before for before, after in pairwise(moments) if after <= is_over]
    return max([*in_rollout, median_low(gaps) if gaps else timedelta(), timedelta(seconds=1)])


def _width_of(words: str, size: float = 12) -> float:
    """The approximate width of a text."""
    return len(words) * size * _WIDTH_OF_CHARACTER


def _x_of(position: float) -> float:
    """Convert a position on the time axis to a position in the picture."""
    return _MARGIN + _NAMES + position


def _share_at(lane: Lane, moment: timedelta) -> float:
    return sum(span.percentage for span in lane.spans if span.covers(moment))


class _Panel:
    """The part of the picture about one worker."""

    def __init__(  # noqa: PLR0913 - the timeline, its place and its look
        self,
        worker: WorkerTimeline,
        timeline: Timeline,
        scale: Scale,
        top: float,
        width: float,
        *,
        titled: bool,
    ) -> None:
        """Compute the positions of the parts of the panel, from the top."""
        self.worker, self.begins, self.scale = worker, timeline.begins, scale
        self.top, self.width, self.titled = top, width, titled
        columns = max(20, int((width - 2 * _MARGIN) / _width_of("m")))
        self.head = wrap(f"{rollout_phrase(worker.rollout)}. Sunset: {sunset_phrase(worker)}.", columns)
        assumed = "; ".join(words for words, _ in assumptions(worker, timeline))
        sentences = [
            *summary(worker),
            *(f"Note: {note}." for note in worker.notes),
            f"Begins {beginning(worker, timeline)}.",
            f"Assumed: {assumed}.",
            (
                f"Intervals of up to about {spoken(scale.to_scale_up_to, 1)} are to scale. Longer ones are"
                " cut (//), and those that are too short for their labels are widened."
            ),
        ]
        self.foot = [line for sentence in sentences for line in wrap(sentence, columns)]
        self.head_top = top + 18 + (_TITLE_HEIGHT if titled else 0)
        self.share_top = self.head_top + _LINE * len(self.head)
        self.lanes_top = self.share_top + _SHARE_HEIGHT + 14
        self.axis_top = self.lanes_top + _LANE_HEIGHT * len(worker.lanes) + 4
        self.foot_top = self.axis_top + (70 if timeline.begins else 42)
        self.bottom = self.foot_top + _LINE * len(self.foot) + 28
        target = worker.target_build_id
        others = [lane.build_id for lane in reversed(worker.lanes) if lane.build_id != target]
        # the target has the first colour, and adjacent versions never have the same colour
        self.colours: dict[str | None, tuple[str, str]] = {target: _VERSIONS[0]}
        self.colours.update((build_id, _VERSIONS[1 + index % 3]) for index, build_id in enumerate(others))

    def _x(self, moment: timedelta | None) -> float:
        return _x_of(self.scale.of(moment))

    def draw(self, root: Element) -> None:
        """Draw the panel into a picture."""
        worker, top = self.worker, self.top
        _draw(root, "line", x1=_MARGIN, x2=self.width - _MARGIN, y1=top, y2=top, stroke=_RULE)
        if self.titled:
            outcome = f"{OUTCOMES[worker.outcome][0]} {worker.outcome}"
            title = f"Simulated rollout of {worker.worker}: {route(worker)}  {outcome}"
            _write_text(root, title, _MARGIN, top + 26, 16, font_weight="bold")
        for index, line in enumerate(self.head):
            _write_text(root, line, _MARGIN, self.head_top + 2 + index * _LINE, fill=_FAINT)
        for x in map(_x_of, self.scale.positions.values()):
            _draw(root, "line", x1=x, x2=x, y1=self.share_top, y2=self.axis_top, stroke="#e2e8f0")
        self._draw_shares(root)
        for index, lane in enumerate(worker.lanes):
            self._draw_lane(root, lane, self.lanes_top + index * _LANE_HEIGHT)
        # mark a ramp that is taken back: without the mark, it would look like a completed rollout's end
        for event in worker.events:
            if event.happening is Happening.TAKEN_BACK:
                x, says = self._x(event.at), f"{version_name(event.build_id)}: {event.says}"
                place = {"x1": x, "x2": x, "y1": self.share_top, "y2": self.axis_top}
                mark = _draw(root, "line", stroke=_WRONG, stroke_width=2, **place)
                SubElement(mark, "title").text = f"{says}, at {offset(event.at)}"
                y = self.lanes_top - 4
                _write_text(root, "✗ taken back", x + 4, y, 11, font_weight="bold", fill=_WRONG)
        self._draw_axis(root)
        for index, line in enumerate(self.foot):
            _write_text(root, line, _MARGIN, self.foot_top + index * _LINE)

    def _draw_shares(self, root: Element) -> None:
        """Draw the share of the target at the bottom and the other shares above it."""
        _write_text(root, "share of", _MARGIN, self.share_top + 12, 12, fill=_FAINT)
        _write_text(root, "new workflows", _MARGIN, self.share_top + 27, 12, fill=_FAINT)
        for percentage in (0, 50, 100):
            y, look = self._y(percentage) + 4, {"text_anchor": "end", "fill": _FAINT}
            _write_text(root, f"{percentage}%", _x_of(-8), y, _LABEL_SIZE, **look)
        target = self.worker.target_build_id
        lanes = sorted(self.worker.lanes, key=lambda lane: lane.build_id != target)
        labels = []
        for index, lane in enumerate(lanes):
            fill, ink = self.colours[lane.build_id]
            for percentage, group in groupby(lane.spans, key=lambda span: span.percentage):
                spans = list(group)
                if percentage:
                    begin, end = spans[0].begin, spans[-1].end
                    base = sum(_share_at(other, begin) for other in lanes[:index])
                    above = [other.build_id for other in lanes[index + 1 :] if _share_at(other, begin)]
                    left, top, bottom = self._x(begin), self._y(base + percentage), self._y(base)
                    place = {"x": left, "y": top, "width": self._x(end) - left, "height": bottom - top}
                    _draw(root, "rect", fill=fill, stroke="#ffffff", **place)
                    inks = (ink, self.colours[above[0]][1] if above else _INK)
                    labels.append((version_name(lane.build_id), f"{percentage:g}%", place, inks))
        for label in labels:  # draw labels after all bands, since a label may be above its own band
            _share_label(root, *label)

    def _y(self, percentage: float) -> float:
        return self.share_top + _SHARE_HEIGHT * (1 - percentage / 100)

    def _draw_axis(self, root: Element) -> None:
        y, day = self.axis_top, None
        _draw(root, "line", x1=_x_of(0), x2=_x_of(self.scale.width), y1=y, y2=y, stroke=_FAINT)
        for begin, end in self.scale.breaks:
            middle = _x_of((begin + end) / 2)
            _draw(root, "rect", x=middle - 5, y=y - 4, width=10, height=8, fill="#ffffff")
            for x in (middle - 5, middle + 1):
                _draw(root, "line", x1=x, x2=x + 4, y1=y + 5, y2=y - 5, stroke=_FAINT, stroke_width=1.5)
        for moment, position in self.scale.positions.items():
            x = _x_of(position)
            _draw(root, "line", x1=x, x2=x, y1=y, y2=y + 4, stroke=_FAINT)
            _write_text(root, offset(moment), x, y + 16, _LABEL_SIZE, text_anchor="middle")
        look = {"text_anchor": "middle", "fill": _FAINT}
        for moment, position in self.scale.positions.items():
            if not self.begins:
                break
            # the time of day under every mark, and the date under the first mark of each day
            time, x = self.begins + moment, _x_of(position)
            _write_text(root, f"{time:%H:%M}", x, y + 30, _LABEL_SIZE, **look)
            if time.date() != day:
                _write_text(root, f"{time:%Y-%m-%d}", x, y + 43, _LABEL_SIZE, **look)
            day = time.date()

    def _draw_lane(self, root: Element, lane: Lane, top: float) -> None:
        name, longest = version_name(lane.build_id), int((_NAMES - 26) / _width_of("m"))
        shown = name if len(name) <= longest else f"{name[: longest - 1]}…"
        weight = "bold" if lane.build_id == self.worker.target_build_id else "normal"
        fill, _ = self.colours[lane.build_id]
        _draw(root, "rect", x=_MARGIN, y=top + 6, width=_SWATCH, height=_SWATCH, rx=2, fill=fill)
        _write_text(root, shown, _MARGIN + _SWATCH + 6, top + 16, 12, font_weight=weight)
        for (stage, replicas), group in groupby(lane.spans, key=lambda span: (span.stage, span.replicas)):
            spans = list(group)
            begin, end = spans[0].begin, spans[-1].end
            left, right = self._x(begin), self._x(end)
            bar = _bar(root, (left, top), (right - left, _BAR_HEIGHT), stage)
            says = f"{stage}, {counted(replicas, 'replica')}" if replicas else stage.value
            period = f"from {offset(begin)} to {'the end' if end is None else offset(end)}"
            # viewers show it as a tooltip
            SubElement(bar, "title").text = f"{name}: {says}, {period}"
            for words in (says, stage.value):
                if _width_of(words, 11) <= right - left - 6:
                    _write_text(root, words, left + 5, top + 15, 11, fill=_FILLS[stage][1])
                    break


def _share_label(
    root: Element, name: str, share: str, place: Mapping[str, float], inks: tuple[str, str]
) -> None:
    """Write the version and its percentage into the share, or above a low share, if the text fits."""
    fits = place["height"] >= _SHARE_LINE
    y = place["y"] + (_SHARE_LINE if fits else -4)
    for text in (f"{name} {share}", share):
        if _width_of(text) <= place["width"] - 8 and y - _SHARE_LINE >= 0:
            _write_text(root, text, place["x"] + 6, y, font_weight="bold", fill=inks[not fits])
            return


def _bar(root: Element, place: tuple[float, float], size: tuple[float, float], stage: Stage) -> Element:
    return _draw(
        root,
        "rect",
        x=place[0] + 0.5,
        y=place[1],
        width=max(size[0] - 1, 0.5),
        height=size[1],
        rx=3,
        fill=_FILLS[stage][0],
        stroke=_FAINT,
        stroke_dasharray="3 2" if stage in _DASHED else "none",
    )


def _draw(parent: Element, name: str, **attributes: str | float) -> Element:
    """Add an element. Underscores in attribute names become hyphens."""
    written = {key.replace("_", "-"): _number(value) for key, value in attributes.items()}
    return SubElement(parent, name, written)


def _write_text(  # noqa: PLR0913 - the text, its position and its style
    parent: Element, words: str, x: float, y: float, size: float = 12, *, fill: str = _INK, **attributes: str
) -> None:
    """Add a text whose baseline is at `y`."""
    _draw(parent, "text", x=x, y=y, font_size=size, fill=fill, **attributes).text = words


def _number(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
