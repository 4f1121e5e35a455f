"""Laying text out for eyes: what the reports for a terminal or a log have in common."""

from collections.abc import Iterable, Mapping
from io import StringIO

from rich.console import Console, RenderableType
from rich.text import Text

from twgen.model.plan import Phase

PHASES: Mapping[Phase, tuple[str, str]] = {
    Phase.SETTLED: ("✓", "green"),
    Phase.WAITING: ("…", "yellow"),
    Phase.MOVING: ("→", "cyan"),
    Phase.BLOCKED: ("✗", "red"),
}
"""The sign and the style of each phase."""


def laid_out(parts: Iterable[RenderableType], *, colour: bool, width: int) -> str:
    """The parts below each other, without blanks at the ends of lines; `width` in characters."""
    text = StringIO()
    console = Console(
        file=text, force_terminal=colour, no_color=not colour, width=width, highlight=False, emoji=False
    )
    for part in parts:
        console.print(part)
    return "\n".join(line.rstrip() for line in text.getvalue().split("\n"))


def apart(parts: Iterable[RenderableType]) -> Iterable[RenderableType]:
    """The parts with an empty line between each two."""
    for index, part in enumerate(parts):
        if index:
            yield ""
        yield part


def warning(text: str) -> Text:
    """A warning of a plan."""
    return Text.assemble(("warning: ", "bold yellow"), text)
