"""The upper part of a worker's picture: which version gets which share of new workflows."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from itertools import groupby
from xml.etree.ElementTree import Element

from twgen.model.timeline import Lane, Span, Stage
from twgen.reporting.timeline.panel import FAINT, MARGIN, SHARE_HEIGHT, Panel, x_of
from twgen.reporting.timeline.phrases import version_name
from twgen.reporting.timeline.scale import LABEL_SIZE
from twgen.reporting.timeline.svg import INK, draw, width_of, write_text

_ALL = 100
_LINE = 13.0
"""Pixels of a line of words."""

Fills = Mapping[Stage, tuple[str, str]]
"""The colour of each stage, and that of words on it."""


def draw_shares(root: Element, panel: Panel, fills: Fills) -> None:
    """Draw the target's share from the bottom up, others above it, in the colours of their stages."""
    write_text(root, "share of", MARGIN, panel.share_top + 12, 12, fill=FAINT)
    write_text(root, "new workflows", MARGIN, panel.share_top + 27, 12, fill=FAINT)
    for percentage in (0, 50, 100):
        y = _height_of(panel, percentage)
        write_text(root, f"{percentage} %", x_of(-8), y + 4, LABEL_SIZE, text_anchor="end", fill=FAINT)
    target = panel.worker.target_build_id
    lanes = sorted(panel.worker.lanes, key=lambda lane: lane.build_id != target)
    labels = []
    for index, lane in enumerate(lanes):
        for (stage, percentage), group in groupby(lane.spans, key=lambda span: (span.stage, span.percentage)):
            spans = list(group)
            if percentage:
                begin, end = spans[0].begin, spans[-1].end
                base = sum(span.percentage for span in _at(lanes[:index], begin))
                above = [fills[span.stage][1] for span in _at(lanes[index + 1 :], begin) if span.percentage]
                left, right = x_of(panel.scale.of(begin)), x_of(panel.scale.of(end))
                top, bottom = (_height_of(panel, share) for share in (base + percentage, base))
                place = {"x": left, "y": top, "width": right - left, "height": bottom - top}
                draw(root, "rect", fill=fills[stage][0], stroke="#ffffff", **place)
                inks = (fills[stage][1], above[0] if above else INK)
                labels.append(((version_name(lane.build_id), f"{percentage:g} %"), place, inks))
    for label in labels:  # above every band, also where one is written above its own
        _label(root, *label)


def _at(lanes: Iterable[Lane], moment: timedelta) -> list[Span]:
    return [span for lane in lanes for span in lane.spans if span.covers(moment)]


def _label(root: Element, words: tuple[str, str], place: Mapping[str, float], inks: tuple[str, str]) -> None:
    """Whose share it is and how much, as far as there is room: in it, or, for a low one, just above it."""
    fits = place["height"] >= _LINE
    y = place["y"] + (_LINE if fits else -4)
    for text in (" ".join(words), words[1]):
        if width_of(text) <= place["width"] - 8 and y - _LINE >= 0:
            write_text(root, text, place["x"] + 6, y, font_weight="bold", fill=inks[not fits])
            return


def _height_of(panel: Panel, percentage: float) -> float:
    return panel.share_top + SHARE_HEIGHT * (1 - percentage / _ALL)
