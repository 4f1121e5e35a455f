"""The elements of a picture, as XML; text is made legal, never trusted."""

import re
from textwrap import wrap
from xml.etree.ElementTree import Element, SubElement, indent, tostring

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 has no way to write (https://www.w3.org/TR/xml/#charsets)."""
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
    SubElement(root, "title").text = legal(title)
    SubElement(root, "desc").text = legal(description)
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
    draw(parent, "text", x=x, y=y, font_size=size, **written).text = legal(words)


def explain(element: Element, words: str) -> None:
    """What a viewer shows beside the pointer."""
    SubElement(element, "title").text = legal(words)


def width_of(words: str, size: float = 12) -> float:
    """About how wide words are, in pixels."""
    return len(words) * size * _WIDTH_OF_CHARACTER


def lines_within(words: str, width: float, size: float = 12) -> list[str]:
    """Words broken into lines that fit."""
    return wrap(words, max(20, int(width / (size * _WIDTH_OF_CHARACTER))), break_long_words=True)


def legal(text: str) -> str:
    """The text with what XML cannot hold replaced."""
    return _ILLEGAL.sub("\ufffd", text)


def finished(root: Element) -> str:
    """The picture as a file."""
    indent(root)
    return tostring(root, encoding="unicode") + "\n"


def _number(value: Attribute) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
