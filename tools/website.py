"""Build the documentation as a site, and end with 1 when a link of it leads nowhere: `make docs`."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
_COPY = ROOT / "build" / "docs"
_LINK = re.compile(r"\]\(\.\./([^)#]+)")
"""The beginning of a link from a page to a file outside `docs`."""
_FROM_THE_ROOT = re.compile(r"""(\]\(|src="|srcset="|href=")(?!https?:|\.\./|#)(?:docs/)?""")
"""The beginning of a link of the README, with the folder that the pages are in."""
_WARNING = re.compile(r"^> \*\*(.+?)[.:]?\*\* *((?:.*\n> )*.*)$", re.MULTILINE)
"""A quotation of the README that begins with bold words: GitHub and PyPI know no other box."""


def main() -> None:
    """Copy the pages, with every file that they link to outside `docs`, and build the site from the copy."""
    shutil.rmtree(_COPY, ignore_errors=True)
    shutil.copytree(ROOT / "docs", _COPY)
    # at the addresses that they have as `$id`
    shutil.copytree(ROOT / "schemas", _COPY / "schemas")
    (_COPY / "index.md").write_text(home((ROOT / "README.md").read_text()))
    linked = set()
    for page in _COPY.glob("*.md"):
        text = page.read_text()
        linked |= set(_LINK.findall(text))
        page.write_text(_LINK.sub(lambda link: f"]({_place(link[1])}", text))
    for path in linked - {"README.md"}:
        place = _COPY / _place(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, place)
    built = subprocess.run(
        [Path(sys.executable).with_name("zensical"), "build", "--strict"], cwd=ROOT, check=False
    )
    sys.exit(built.returncode)


def home(readme: str) -> str:
    """The README as a page of `docs`: its links begin in that folder, and its warning is an admonition."""
    page = _FROM_THE_ROOT.sub(lambda link: link[1] + ("" if link[0].endswith("docs/") else "../"), readme)
    return _WARNING.sub(_box, page)


def _box(warning: re.Match[str]) -> str:
    title, text = warning.groups()
    return f'!!! danger "{title}"\n    ' + text.replace("\n> ", "\n    ")


def _place(path: str) -> str:
    """Other files are copied as text: a browser would download YAML, and Markdown would become a page."""
    if path == "README.md":
        return "index.md"
    if path.startswith("schemas/"):
        return path
    return f"files/{path}" + ("" if path.endswith((".json", ".svg")) else ".txt")


if __name__ == "__main__":
    main()
