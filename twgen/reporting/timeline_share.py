"""The upper part of a worker's picture: which version gets which share of new workflows."""

from collections.abc import Sequence
from datetime import timedelta
from xml.etree.ElementTree import Element

from twgen.model.timeline import Lane, Span
from twgen.reporting.svg import INK, draw, width_of, write_text
from twgen.reporting.timeline_panel import FAINT, MARGIN, SHARE_HEIGHT, Panel, x_of
from twgen.reporting.timeline_scale import LABEL_SIZE
from twgen.reporting.timeline_words import version_words

_ALL = 100
_TARGET = "#2563eb"
_OTHERS = ("#b6c2d1", "#cbd5e1", "#e2e8f0")


def draw_shares(root: Element, panel: Panel) -> None:
    """Draw the target's share from the bottom up, those of other versions above it."""
    write_text(root, "share of", MARGIN, panel.share_top + 12, 12, fill=FAINT)
    write_text(root, "new workflows", MARGIN, panel.share_top + 27, 12, fill=FAINT)
    for percentage in (0, 50, 100):
        y = _height_of(panel, percentage)
        write_text(root, f"{percentage} %", x_of(-8), y + 4, LABEL_SIZE, text_anchor="end", fill=FAINT)
    sharing = [lane for lane in panel.worker.lanes if any(span.percentage for span in lane.spans)]
    lanes = sorted(sharing, key=lambda lane: lane.build_id != panel.worker.target_build_id)
    moments = list(panel.scale.positions)
    for begin, end in zip(moments, [*moments[1:], None], strict=True):
        base = 0.0
        for index, lane in enumerate(lanes):
            share = sum(span.percentage for span in lane.spans if span.covers(begin))
            if share:
                _band(root, panel, (begin, end), (base, base + share), _colour(panel, lane, index))
            base += share
    _percentages(root, panel, lanes)


def _colour(panel: Panel, lane: Lane, index: int) -> str:
    is_target = lane.build_id == panel.worker.target_build_id
    return _TARGET if is_target else _OTHERS[index % len(_OTHERS)]


def _height_of(panel: Panel, percentage: float) -> float:
    return panel.share_top + SHARE_HEIGHT * (1 - percentage / _ALL)


def _band(
    root: Element,
    panel: Panel,
    time: tuple[timedelta, timedelta | None],
    share: tuple[float, float],
    fill: str,
) -> None:
    left, right = (x_of(panel.scale.of(moment)) for moment in time)
    bottom, top = (_height_of(panel, percentage) for percentage in share)
    draw(
        root,
        "rect",
        x=left,
        y=top,
        width=right - left,
        height=bottom - top,
        fill=fill,
        shape_rendering="crispEdges",
    )


def _percentages(root: Element, panel: Panel, lanes: Sequence[Lane]) -> None:
    """The target's share, above what is filled while there is room; of the others, whose theirs is."""
    for lane in lanes:
        is_target = lane.build_id == panel.worker.target_build_id
        before = 0.0
        for span in lane.spans:
            if span.percentage and span.percentage != before and is_target:
                _percentage(root, panel, lane, span)
            before = span.percentage
        sharing = [span for span in lane.spans if span.percentage]
        if sharing and not is_target:
            left, right = x_of(panel.scale.of(sharing[0].begin)), x_of(panel.scale.of(sharing[-1].end))
            if width_of(version_words(lane.build_id)) <= right - left - 12:
                write_text(root, version_words(lane.build_id), left + 6, panel.share_top + 17)


def _percentage(root: Element, panel: Panel, lane: Lane, span: Span) -> None:
    left, right = (x_of(panel.scale.of(moment)) for moment in (span.begin, span.end))
    inside = span.percentage > _ALL / 2
    percentage = f"{span.percentage:g} %"
    named = f"{lane.build_id} {percentage}"
    fits = span.percentage == _ALL and width_of(named) <= right - left
    write_text(
        root,
        named if fits else percentage,
        (left + right) / 2,
        _height_of(panel, span.percentage) + (17 if inside else -5),
        text_anchor="middle",
        font_weight="bold",
        fill="#ffffff" if inside else INK,
    )
