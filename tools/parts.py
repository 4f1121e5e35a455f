"""The parts of a page that `make documentation` writes: each is between two comments with its name."""

import re

_PART = re.compile(r"^<!-- generated: (.+?) -->\n(.*?)^<!-- end of \1 -->$", re.MULTILINE | re.DOTALL)


def parts(page: str) -> dict[str, str]:
    """The generated parts of a page, by their names."""
    return dict(_PART.findall(page))


def with_part(page: str, name: str, text: str) -> str:
    """The page with another text in the part of this name; KeyError if it has none."""
    before = parts(page)[name]
    begin, end = f"<!-- generated: {name} -->\n", f"<!-- end of {name} -->"
    return page.replace(f"{begin}{before}{end}", f"{begin}{text}{end}")


def without_parts(page: str) -> str:
    """Only what people wrote."""
    return _PART.sub("", page)
