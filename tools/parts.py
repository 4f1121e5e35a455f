"""Finds the generated parts of a page. Each part is between two comments that contain its name."""

import re

_PART = re.compile(r"^<!-- generated: (.+?) -->\n(.*?)^<!-- end of \1 -->$", re.MULTILINE | re.DOTALL)


def parts(page: str) -> dict[str, str]:
    """The generated parts of a page, by their names."""
    return dict(_PART.findall(page))


def with_part(page: str, name: str, text: str) -> str:
    """The page with a new text in the part with this name. Raises KeyError if there is no such part."""
    before = parts(page)[name]
    begin, end = f"<!-- generated: {name} -->\n", f"<!-- end of {name} -->"
    return page.replace(f"{begin}{before}{end}", f"{begin}{text}{end}")


def without_parts(page: str) -> str:
    """The page without its generated parts."""
    return _PART.sub("", page)
