"""Build the documentation as a site, and end with 1 when a link of it leads nowhere: `make docs`."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
_COPY = ROOT / "build" / "docs"
_LINK = re.compile(r"\]\(\.\./([^)#]+)")


def main() -> None:
    """Copy the pages, with all that they link to out of their folder, and build what was copied."""
    shutil.rmtree(_COPY, ignore_errors=True)
    shutil.copytree(ROOT / "docs", _COPY)
    # at the addresses that they have as `$id`
    shutil.copytree(ROOT / "schemas", _COPY / "schemas")
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
        [Path(sys.executable).with_name("zensical"), "build", "--strict"], cwd=ROOT, check=False
    )
    sys.exit(built.returncode)


def _place(path: str) -> str:
    """As text: a browser would not show YAML, and Markdown would become a page."""
    if path.startswith("schemas/"):
        return path
    return f"files/{path}" + ("" if path.endswith((".json", ".svg")) else ".txt")


if __name__ == "__main__":
    main()
