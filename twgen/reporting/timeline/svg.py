"""The elements of a picture, as XML; its texts have been made printable, so that XML can hold them all."""

from textwrap import wrap
from xml.etree.ElementTree import Element, SubElement

_WIDTH_OF_CHARACTER = 0.6
"""Of its height: more than most fonts need, since the one that is used is not known."""
INK = "#1e293b"
"""The colour of words, on the background."""
_FONT = "system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"

Attribute = str | float


def picture(width: float, height: float, title: str, description: str) -> Element:
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
    draw(root, "rect", width=width, height=height, fill="#ffffff", rx=8)
    return root


def draw(parent: Element, name: str, **attributes: Attribute) -> Element:
    """One element; an underscore in the name of an attribute is a hyphen."""
    written = {key.replace("_", "-"): _number(value) for key, value in attributes.items()}
    return SubElement(parent, name, written)


def write_text(
    parent: Element, words: str, x: float, y: float, size: float = 12, **attributes: Attribute
) -> None:
    """Words whose baseline is at y."""
    written: dict[str, Attribute] = {"fill": INK, **attributes}
    draw(parent, "text", x=x, y=y, font_size=size, **written).text = words


def explain(element: Element, words: str) -> None:
    """What a viewer shows beside the pointer."""
    SubElement(element, "title").text = words


def width_of(words: str, size: float = 12) -> float:
    """About how wide words are, in pixels."""
    return len(words) * size * _WIDTH_OF_CHARACTER


def lines_within(words: str, width: float, size: float = 12) -> list[str]:
    """Words broken into lines that fit."""
    return wrap(words, max(20, int(width / (size * _WIDTH_OF_CHARACTER))), break_long_words=True)


def _number(value: Attribute) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
