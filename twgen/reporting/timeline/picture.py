"""Draw a simulation: a panel for each worker, with the shares of new workflows above its versions."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from statistics import median_low
from textwrap import wrap
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from twgen.model.problem import counted
from twgen.model.timeline import Happening, Lane, Span, Stage, Timeline, WorkerTimeline
from twgen.planning.sentences import spoken, version_name
from twgen.reporting.printable import printable_copy
from twgen.reporting.timeline.phrases import (
    OUTCOMES,
    assumptions,
    offset,
    rollout_phrase,
    route,
    summary,
    sunset_phrase,
)

_NARROWEST = 860.0
_TITLE_HEIGHT = 30.0
_BAR_HEIGHT = 22.0
_SHARE_LINE = 13.0
"""The height of a line of words on a share, in pixels."""
_FONT = "system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"
_INK = "#1e293b"
"""The colour of words, on the background."""
_FAINT = "#64748b"
_RULE = "#cbd5e1"
_WRONG = "#b3261e"
# colours that colour-blind people can distinguish: https://jfly.uni-koeln.de/color/
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
"""The colour of each stage, and the colour of words on it, in the lower half of a panel."""
_DASHED = {Stage.STARTING, Stage.AT_ZERO}
_VERSIONS = (("#0f766e", "#ffffff"), ("#a78bfa", _INK), ("#9a5b2e", "#ffffff"), ("#475569", "#ffffff"))
"""The colour of each version, and the colour of words on it, in the upper half: the target has the first."""
_SWATCH = 10.0
_MARGIN = 24.0
_NAMES = 176.0
"""Width of the column that names the versions, in pixels as all else here."""
_LINE = 17.0
"""The distance between two lines of words."""
_SHARE_HEIGHT = 110.0
_LANE_HEIGHT = 34.0
_LABEL_SIZE = 10
_LONGEST = 150.0
"""The longest distance that is drawn to scale, in pixels."""
_BREAK = 76.0
_BETWEEN_LABELS = 12.0
_SHORTEST = 60.0
_TOLERANCE = 1.25
"""A time that is only a little longer is drawn to scale too."""
_TAIL = 118.0
"""Pixels after the last moment, for states that do not end."""
_WIDTH_OF_CHARACTER = 0.6
"""The width of a character as a part of its height. It is generous, because the font is unknown."""


def timeline_svg(timeline: Timeline, *, titled: bool = True) -> str:
    """The picture as one self-contained file: shares of new workflows, stages of versions, and a time axis.

    A page with its own heading shows it without the title.
    """
    timeline = printable_copy(timeline)
    scales = [scale_of(worker) for worker in timeline.workers]
    widest = max((scale.width for scale in scales), default=0.0)
    width = max(_NARROWEST, _NAMES + widest + 2 * _MARGIN)
    legend = _MARGIN + (_TITLE_HEIGHT if titled else 0)
    panels, top = [], legend + 32
    for worker, scale in zip(timeline.workers, scales, strict=True):
        panels.append(_panel_of(worker, timeline, scale, top, width))
        top = panels[-1].bottom + 16
    described = " ".join(sentence for worker in timeline.workers for sentence in summary(worker))
    names = ", ".join(worker.worker for worker in timeline.workers)
    root = _picture(width, top, f"Simulated rollout of {names}", described)
    if titled:
        _write_text(root, "Simulated rollout", _MARGIN, _MARGIN + 12, 18, font_weight="bold")
    _legend(root, legend)
    for panel in panels:
        _draw_panel(root, panel)
    indent(root)
    return tostring(root, encoding="unicode") + "\n"


class Scale(NamedTuple):
    """The distance of each moment from the first, in pixels."""

    positions: Mapping[timedelta, float]
    breaks: Sequence[tuple[float, float]]
    """The beginning and the end of each gap where time is cut."""
    to_scale_up_to: timedelta
    """The longest time between two moments that is to scale."""

    @property
    def width(self) -> float:
        """The width of the whole, in pixels."""
        return max(self.positions.values()) + _TAIL

    def of(self, moment: timedelta | None) -> float:
        """The distance of any moment; None: the distance of the end."""
        if moment is None:
            return self.width
        moments = sorted(self.positions)
        return self.positions[moments[max(bisect_right(moments, moment) - 1, 0)]]


def scale_of(worker: WorkerTimeline) -> Scale:
    """Distances in proportion to time. Too long ones are cut, too short ones are widened."""
    moments = _moments(worker)
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


def _moments(worker: WorkerTimeline) -> list[timedelta]:
    """The moments at which the picture changes: an event that changes no bar needs no mark on the axis."""
    begins = {span.begin for lane in worker.lanes for span in lane.spans}
    ends = {span.end for lane in worker.lanes for span in lane.spans if span.end is not None}
    marked = {event.at for event in worker.events if event.happening is Happening.TAKEN_BACK}
    return sorted({timedelta()} | begins | ends | marked)


def _reference(worker: WorkerTimeline, moments: Sequence[timedelta]) -> timedelta:
    """The longest wait of the rollout itself; if it has no long wait, a typical one of all."""
    gaps = [after - before for before, after in pairwise(moments)]
    current = worker.first(Happening.BECAME_CURRENT, worker.target_build_id)
    is_over = worker.ends if current is None else current
    in_rollout = [after - before for before, after in pairwise(moments) if after <= is_over]
    return max([*in_rollout, median_low(gaps) if gaps else timedelta(), timedelta(seconds=1)])


class _Panel(NamedTuple):
    """One worker in the picture, and the position of each part, in pixels from the top."""

    worker: WorkerTimeline
    begins: datetime | None
    scale: Scale
    width: float
    top: float
    head: Sequence[str]
    """The lines of words above the drawing."""
    share_top: float
    lanes_top: float
    axis_top: float
    foot: Sequence[str]
    """The lines of words below the drawing."""
    foot_top: float
    """The baseline of the first line below."""
    bottom: float
    """Where the next panel may begin."""


def _panel_of(worker: WorkerTimeline, timeline: Timeline, scale: Scale, top: float, width: float) -> _Panel:
    columns = max(20, int((width - 2 * _MARGIN) / _width_of("m")))
    head = wrap(f"{rollout_phrase(worker.rollout)}. Sunset: {sunset_phrase(worker)}.", columns)
    assumed = "; ".join(words for words, _ in assumptions(worker, timeline))
    sentences = [
        *summary(worker),
        *(f"Note: {note}." for note in worker.notes),
        f"Assumed: {assumed}.",
        (
            f"Times of up to about {spoken(scale.to_scale_up_to, 1)} between two marks are to scale. Longer"
            " ones are cut (//), ones that are too short for their label are widened."
        ),
    ]
    foot = [line for sentence in sentences for line in wrap(sentence, columns)]
    share_top = top + 44 + _LINE * len(head)
    lanes_top = share_top + _SHARE_HEIGHT + 14
    axis_top = lanes_top + _LANE_HEIGHT * len(worker.lanes) + 4
    foot_top = axis_top + (70 if timeline.begins else 42)
    return _Panel(
        worker=worker,
        begins=timeline.begins,
        scale=scale,
        width=width,
        top=top,
        head=head,
        share_top=share_top,
        lanes_top=lanes_top,
        axis_top=axis_top,
        foot=foot,
        foot_top=foot_top,
        bottom=foot_top + _LINE * len(foot) + 12,
    )


def _width_of(words: str, size: float = 12) -> float:
    """The approximate width of words, in pixels."""
    return len(words) * size * _WIDTH_OF_CHARACTER


def _x_of(position: float) -> float:
    """The position in the picture of a distance from the first moment."""
    return _MARGIN + _NAMES + position


def _legend(root: Element, top: float) -> None:
    x = _MARGIN
    for stage in Stage:
        fill, _ = _FILLS[stage]
        _bar(root, (x, top), (14, 14), stage, fill)
        _write_text(root, stage.value, x + 20, top + 11, 11)
        x += 32 + _width_of(stage.value, 11)


def _draw_panel(root: Element, panel: _Panel) -> None:
    worker = panel.worker
    _draw(root, "line", x1=_MARGIN, x2=panel.width - _MARGIN, y1=panel.top, y2=panel.top, stroke=_RULE)
    title = f"{worker.worker}: {route(worker)}"
    outcome = f"{OUTCOMES[worker.outcome][0]} {worker.outcome}"
    _write_text(root, f"{title}  {outcome}", _MARGIN, panel.top + 26, 16, font_weight="bold")
    _lines(root, panel.head, panel.top + 46, _FAINT)
    for x in map(_x_of, panel.scale.positions.values()):
        _draw(root, "line", x1=x, x2=x, y1=panel.share_top, y2=panel.axis_top, stroke="#e2e8f0")
    _shares(root, panel)
    for index, lane in enumerate(worker.lanes):
        _lane(root, panel, lane, panel.lanes_top + index * _LANE_HEIGHT)
    _taken_back(root, panel)
    _axis(root, panel)
    _lines(root, panel.foot, panel.foot_top, _INK)


def _lines(root: Element, lines: Sequence[str], top: float, fill: str) -> None:
    for index, line in enumerate(lines):
        _write_text(root, line, _MARGIN, top + index * _LINE, fill=fill)


def _shares(root: Element, panel: _Panel) -> None:
    """Draw the target's share at the bottom and the others above it, each version in its colour."""
    _write_text(root, "share of", _MARGIN, panel.share_top + 12, 12, fill=_FAINT)
    _write_text(root, "new workflows", _MARGIN, panel.share_top + 27, 12, fill=_FAINT)
    for percentage in (0, 50, 100):
        y = _height_of(panel, percentage)
        _write_text(root, f"{percentage}%", _x_of(-8), y + 4, _LABEL_SIZE, text_anchor="end", fill=_FAINT)
    target, colours = panel.worker.target_build_id, _colours(panel.worker)
    lanes = sorted(panel.worker.lanes, key=lambda lane: lane.build_id != target)
    labels = []
    for index, lane in enumerate(lanes):
        fill, ink = colours[lane.build_id]
        for percentage, group in groupby(lane.spans, key=lambda span: span.percentage):
            spans = list(group)
            if percentage:
                begin, end = spans[0].begin, spans[-1].end
                base = sum(span.percentage for span in _at(lanes[:index], begin))
                above = [
                    colours[other.build_id][1]
                    for other in lanes[index + 1 :]
                    for span in _at([other], begin)
                    if span.percentage
                ]
                left, right = _x_of(panel.scale.of(begin)), _x_of(panel.scale.of(end))
                top, bottom = (_height_of(panel, share) for share in (base + percentage, base))
                place = {"x": left, "y": top, "width": right - left, "height": bottom - top}
                _draw(root, "rect", fill=fill, stroke="#ffffff", **place)
                inks = (ink, above[0] if above else _INK)
                labels.append(((version_name(lane.build_id), f"{percentage:g}%"), place, inks))
    for label in labels:  # above every band, also where one is written above its own
        _share_label(root, *label)


def _colours(worker: WorkerTimeline) -> Mapping[str | None, tuple[str, str]]:
    """The colour of each version: the target has the first, and neighbours never have the same."""
    target = worker.target_build_id
    others = [lane.build_id for lane in reversed(worker.lanes) if lane.build_id != target]
    colours: dict[str | None, tuple[str, str]] = {target: _VERSIONS[0]}
    colours.update((build_id, _VERSIONS[1 + index % 3]) for index, build_id in enumerate(others))
    return colours


def _at(lanes: Iterable[Lane], moment: timedelta) -> list[Span]:
    return [span for lane in lanes for span in lane.spans if span.covers(moment)]


def _share_label(
    root: Element, words: tuple[str, str], place: Mapping[str, float], inks: tuple[str, str]
) -> None:
    """The version and its percentage, as far as there is room: in the share, or above it if it is low."""
    fits = place["height"] >= _SHARE_LINE
    y = place["y"] + (_SHARE_LINE if fits else -4)
    for text in (" ".join(words), words[1]):
        if _width_of(text) <= place["width"] - 8 and y - _SHARE_LINE >= 0:
            _write_text(root, text, place["x"] + 6, y, font_weight="bold", fill=inks[not fits])
            return


def _height_of(panel: _Panel, percentage: float) -> float:
    return panel.share_top + _SHARE_HEIGHT * (1 - percentage / 100)


def _taken_back(root: Element, panel: _Panel) -> None:
    """Draw a line where a ramp is taken back: the rest looks like the end of any version."""
    for event in panel.worker.events:
        if event.happening is Happening.TAKEN_BACK:
            x = _x_of(panel.scale.of(event.at))
            place = {"x1": x, "x2": x, "y1": panel.share_top, "y2": panel.axis_top}
            line = _draw(root, "line", stroke=_WRONG, stroke_width=2, **place)
            says = f"{version_name(event.build_id)}: {event.says}, at {offset(event.at)}"
            SubElement(line, "title").text = says
            _write_text(root, "✗ taken back", x + 4, panel.lanes_top - 4, 11, font_weight="bold", fill=_WRONG)


def _axis(root: Element, panel: _Panel) -> None:
    y = panel.axis_top
    _draw(root, "line", x1=_x_of(0), x2=_x_of(panel.scale.width), y1=y, y2=y, stroke=_FAINT)
    for begin, end in panel.scale.breaks:
        middle = _x_of((begin + end) / 2)
        _draw(root, "rect", x=middle - 5, y=y - 4, width=10, height=8, fill="#ffffff")
        for x in (middle - 5, middle + 1):
            _draw(root, "line", x1=x, x2=x + 4, y1=y + 5, y2=y - 5, stroke=_FAINT, stroke_width=1.5)
    for moment, position in panel.scale.positions.items():
        x = _x_of(position)
        _draw(root, "line", x1=x, x2=x, y1=y, y2=y + 4, stroke=_FAINT)
        _write_text(root, offset(moment), x, y + 16, _LABEL_SIZE, text_anchor="middle")
    for position, below, words in _wall_times(panel):
        _write_text(root, words, _x_of(position), y + below, _LABEL_SIZE, text_anchor="middle", fill=_FAINT)


def _wall_times(panel: _Panel) -> Iterator[tuple[float, float, str]]:
    """Time of day under every mark, and the day where it begins."""
    day = None
    for moment, position in panel.scale.positions.items():
        if panel.begins:
            time = panel.begins + moment
            yield position, 30, f"{time:%H:%M}"
            if time.date() != day:
                yield position, 43, f"{time:%Y-%m-%d}"
            day = time.date()


def _lane(root: Element, panel: _Panel, lane: Lane, top: float) -> None:
    is_target = lane.build_id == panel.worker.target_build_id
    name = version_name(lane.build_id)
    longest = int((_NAMES - 26) / (12 * 0.6))
    shown = name if len(name) <= longest else f"{name[: longest - 1]}…"
    weight = "bold" if is_target else "normal"
    fill, _ = _colours(panel.worker)[lane.build_id]
    _draw(root, "rect", x=_MARGIN, y=top + 6, width=_SWATCH, height=_SWATCH, rx=2, fill=fill)
    _write_text(root, shown, _MARGIN + _SWATCH + 6, top + 16, 12, font_weight=weight)
    for _, group in groupby(lane.spans, key=lambda span: (span.stage, span.replicas)):
        spans = list(group)
        _stage(root, panel, lane, replace(spans[0], end=spans[-1].end), top)


def _stage(root: Element, panel: _Panel, lane: Lane, span: Span, top: float) -> None:
    fill, ink = _FILLS[span.stage]
    left, right = (_x_of(panel.scale.of(moment)) for moment in (span.begin, span.end))
    bar = _bar(root, (left, top), (right - left, _BAR_HEIGHT), span.stage, fill)
    until = offset(span.end) if span.end is not None else "the end"
    SubElement(bar, "title").text = (  # a viewer shows it next to the pointer
        f"{version_name(lane.build_id)}: {_span_label(span)}, from {offset(span.begin)} to {until}"
    )
    for words in (_span_label(span), span.stage.value):
        if _width_of(words, 11) <= right - left - 6:
            _write_text(root, words, left + 5, top + 15, 11, fill=ink)
            return


def _span_label(span: Span) -> str:
    if not span.replicas:
        return span.stage.value
    return f"{span.stage}, {counted(span.replicas, 'replica')}"


def _bar(
    root: Element, place: tuple[float, float], size: tuple[float, float], stage: Stage, fill: str
) -> Element:
    return _draw(
        root,
        "rect",
        x=place[0] + 0.5,
        y=place[1],
        width=max(size[0] - 1, 0.5),
        height=size[1],
        rx=3,
        fill=fill,
        stroke=_FAINT,
        stroke_dasharray="3 2" if stage in _DASHED else "none",
    )


def _picture(width: float, height: float, title: str, description: str) -> Element:
    """An empty picture of this size in pixels, with a background of its own."""
    root = Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {_number(width)} {_number(height)}",
            "width": _number(width),
            "height": _number(height),
            "font-family": _FONT,
            "role": "img",
        },
    )
    SubElement(root, "title").text = title
    SubElement(root, "desc").text = description
    _draw(root, "rect", width=width, height=height, fill="#ffffff", rx=8)
    return root


def _draw(parent: Element, name: str, **attributes: str | float) -> Element:
    """One element; an underscore in the name of an attribute is a hyphen."""
    written = {key.replace("_", "-"): _number(value) for key, value in attributes.items()}
    return SubElement(parent, name, written)


def _write_text(
    parent: Element, words: str, x: float, y: float, size: float = 12, **attributes: str | float
) -> None:
    """Words whose baseline is at y."""
    written: dict[str, str | float] = {"fill": _INK, **attributes}
    _draw(parent, "text", x=x, y=y, font_size=size, **written).text = words


def _number(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
