"""Build the documentation as a site: `make docs`. Exits with 1 if a link is broken."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from string import Template

from tools.home import Home
from tools.home import home as public_home
from twgen import __version__

ROOT = Path(__file__).parents[1]
_BUILD = ROOT / "build"
_COPY = _BUILD / "docs"
_SITE = ROOT / "site"
_LINK = re.compile(r"\]\(\.\./([^)#]+)(#[^)]*)?")
"""A link from a page to a file outside `docs`, and its anchor."""
_FROM_THE_ROOT = re.compile(r"""(\]\(|src="|srcset="|href=")(?!https?:|\.\./|#)(?:docs/)?""")
"""The beginning of a link in the README, including the folder `docs`, if it is there."""
_WARNING = re.compile(r"^> \*\*(.+?)[.:]?\*\* *((?:.*\n> )*.*)$", re.MULTILINE)
"""A quotation in the README that begins with bold words. GitHub and PyPI support no other kind of box."""


def main() -> None:
    """Build the site from a copy of the pages and of all files outside `docs` that they link to."""
    shutil.rmtree(_COPY, ignore_errors=True)
    # leave out the records of decisions: maintainers read them in the repository
    shutil.copytree(ROOT / "docs", _COPY, ignore=shutil.ignore_patterns("decisions"))
    # if a schema has an `$id`, this is its address
    shutil.copytree(ROOT / "schemas", _COPY / "schemas")
    (_COPY / "index.md").write_text(home((ROOT / "README.md").read_text()))
    linked = set()
    for page in _COPY.glob("*.md"):
        text = page.read_text()
        linked |= {path for path, _ in _LINK.findall(text)}
        page.write_text(_LINK.sub(_link, text))
    for path in linked - {"README.md"}:
        place = _COPY / _place(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, place)
    # zensical comes from the makers of Material for MkDocs, which ends in May 2027. It also checks links
    built = subprocess.run(
        [Path(sys.executable).with_name("zensical"), "build", "--strict", "-f", _configuration()],
        cwd=_BUILD,
        check=False,
    )
    shutil.rmtree(_SITE, ignore_errors=True)
    if not built.returncode:
        (_BUILD / "site").rename(_SITE)
    sys.exit(built.returncode)


def _link(link: re.Match[str]) -> str:
    """The same link within the site. A file that is shown as text has no anchors."""
    anchor = link[2] if link[1] == "README.md" else ""
    return f"]({_place(link[1])}{anchor or ''}"


def _configuration() -> Path:
    shutil.copytree(ROOT / "tools" / "site", _BUILD / "theme", dirs_exist_ok=True)
    file = _BUILD / "zensical.toml"
    file.write_text(configuration(public_home()))
    return file


def configuration(found: Home | None) -> str:
    """The configuration of the site, with the version of twgen and the public addresses, if any."""
    addresses = f'repo_url = "{found.source}"\nsite_url = "{found.site}"' if found else ""
    return Template((ROOT / "zensical.toml").read_text()).substitute(addresses=addresses, version=__version__)


def home(readme: str) -> str:
    """The README as a page of `docs`. Its links start there, and its warning becomes an admonition."""
    page = _FROM_THE_ROOT.sub(lambda link: link[1] + ("" if link[0].endswith("docs/") else "../"), readme)
    return _WARNING.sub(_box, page)


def _box(warning: re.Match[str]) -> str:
    title, text = warning.groups()
    return f'!!! danger "{title}"\n    ' + text.replace("\n> ", "\n    ")


def _place(path: str) -> str:
    """The path of a file's copy. Most become text: browsers download YAML, and Markdown becomes a page."""
    if path == "README.md":
        return "index.md"
    if path.startswith("schemas/"):
        return path
    return f"files/{path}" + ("" if path.endswith((".json", ".svg")) else ".txt")


if __name__ == "__main__":
    main()
