"""What the image installs is what the lock file has for the program, and no tool for developing it."""

import re
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tools.locked import locked

LOCK = (Path(__file__).parents[2] / "requirements.lock").read_text()


def installed_closure(name: str) -> set[str]:
    """What this environment's own packages say that they need."""
    found: set[str] = set()
    wanted = [Requirement(name)]
    while wanted:
        each = wanted.pop()
        extras = {"", *each.extras}
        for needed in map(Requirement, requires(each.name) or ()):
            if needed.marker and not any(needed.marker.evaluate({"extra": extra}) for extra in extras):
                continue
            if needed.name not in found:
                wanted.append(needed)
            found.add(re.sub(r"[-_.]+", "-", needed.name).lower())
    return found


def names(entries: str) -> set[str]:
    return set(re.findall(r"^([\w.-]+)==", entries, re.MULTILINE))


@pytest.mark.parametrize("package", ["twgen", "hatchling", "hatch-fancy-pypi-readme"])
def test_locked_packages_are_those_that_the_installed_ones_need(package: str) -> None:
    needed = installed_closure(package)
    assert len(needed) > 3
    assert needed - names(locked(LOCK, package)) == set()


def test_entries_are_those_of_the_lock_with_every_hash() -> None:
    entries = locked(LOCK, "twgen")
    assert entries.count("--hash=sha256:") > 100
    assert all(part in LOCK for part in re.split(r"(?<=\n)(?=\w)", entries))
    assert not {"pytest", "mypy", "ruff", "hatchling", "uv"} & names(entries)
