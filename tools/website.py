"""Build the documentation as a site, and end with 1 when a link of it leads nowhere: `make docs`."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from string import Template

from twgen import __version__

ROOT = Path(__file__).parents[1]
_BUILD = ROOT / "build"
_COPY = _BUILD / "docs"
_SITE = ROOT / "site"
_LINK = re.compile(r"\]\(\.\./([^)#]+)(?:#[^)]*)?")
"""Without its anchor, which a file that is shown as text does not have."""


def main() -> None:
    """Copy the pages, with all that they link to out of their folder, and build what was copied."""
    shutil.rmtree(_COPY, ignore_errors=True)
    shutil.copytree(ROOT / "docs", _COPY)
    linked = set()
    for page in _COPY.glob("*.md"):
        text = page.read_text()
        linked |= set(_LINK.findall(text))
        page.write_text(_LINK.sub(lambda link: f"]({_place(link[1])}", text))
    for path in linked:
        place = _COPY / _place(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, place)
    built = subprocess.run(
        [Path(sys.executable).with_name("zensical"), "build", "--strict", "-f", _configuration()],
        cwd=_BUILD,
        check=False,
    )
    shutil.rmtree(_SITE, ignore_errors=True)
    if not built.returncode:
        (_BUILD / "site").rename(_SITE)
    sys.exit(built.returncode)


def _configuration() -> Path:
    shutil.copytree(ROOT / "tools" / "site", _BUILD / "theme", dirs_exist_ok=True)
    file = _BUILD / "zensical.toml"
    file.write_text(configuration())
    return file


def configuration() -> str:
    """The configuration of the site, with the address of the source and the version of the program."""
    source = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Source"]
    return Template((ROOT / "zensical.toml").read_text()).substitute(source=source, version=__version__)


def _place(path: str) -> str:
    """As text: a browser would not show YAML, and what is Markdown would be a page."""
    return f"files/{path}" + ("" if path.endswith((".json", ".svg")) else ".txt")


if __name__ == "__main__":
    main()
