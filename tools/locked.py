"""Print locked dependencies with their hashes: `python tools/locked.py requirements.lock PACKAGE...`.

It uses only the standard library, because the build of an image runs it before anything is installed.
"""

import re
import sys
from pathlib import Path

_ENTRY = re.compile(r"^([\w.-]+)==.*\n(?: {4}--hash=.*\n)+ {4}# via((?: .*|\n {4}# {3}.*)+)\n", re.MULTILINE)


def locked(lock: str, *packages: str) -> str:
    """The entries of the packages and of all their dependencies. The locked project may be one of them."""
    entries = {match[1]: match for match in _ENTRY.finditer(lock)}
    needed_by = {
        name: set(re.findall(r"^[ #]*(.+?)(?: \(pyproject\.toml\))?$", entry[2], re.MULTILINE))
        for name, entry in entries.items()
    }
    wanted = set(packages)
    while more := {name for name, users in needed_by.items() if name not in wanted and users & wanted}:
        wanted |= more
    return "".join(entry[0] for name, entry in entries.items() if name in wanted)


if __name__ == "__main__":
    print(locked(Path(sys.argv[1]).read_text(), *sys.argv[2:]), end="")
