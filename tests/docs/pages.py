"""The pages of the documentation, their blocks of code, and the example that they show."""

import re
import subprocess
from pathlib import Path
from typing import Any

from testing.forking import forker
from testing.processes import ENVIRONMENT
from twgen.yaml.reader import read_documents

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "three-versions"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: str | Path, language: str) -> list[str]:
    """The blocks of a language in a page, or in the text of one; commands have none."""
    text = page.read_text() if isinstance(page, Path) else page
    return [block for name, block in BLOCK.findall(text) if name == language]


def documents(*pages: str | Path, kind: str = "") -> list[dict[str, Any]]:
    """The documents in the YAML of pages, of one kind or of any."""
    found = [each for page in pages for text in blocks(page, "yaml") for each in read_documents(text)]
    return [each for each in found if not kind or (isinstance(each, dict) and each.get("kind") == kind)]


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command of twgen in a folder."""
    return forker().run(command, folder, ENVIRONMENT)
