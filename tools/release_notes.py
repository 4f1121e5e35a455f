"""Print the changelog's section about a release: `python -m tools.release_notes VERSION`."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main(version: str) -> None:
    """Print the notes. Exit with 1 if the program or the changelog names another version."""
    program = re.search(r'^__version__ = "(.*)"$', (ROOT / "twgen" / "__init__.py").read_text(), re.MULTILINE)
    if program is None or program[1] != version:
        sys.exit(f"the tag is for {version}, and twgen/__init__.py has {program and program[1]}")
    print(notes((ROOT / "CHANGELOG.md").read_text(), version))


def notes(changelog: str, version: str) -> str:
    """The section of a version. If it is missing or empty, the program exits with 1."""
    heading = rf"^## {re.escape(version)}\n"
    section = re.search(rf"{heading}(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if section is None or not section[1].strip():
        sys.exit(f"CHANGELOG.md has no section for {version}")
    return section[1].strip()


if __name__ == "__main__":
    main(sys.argv[1])
