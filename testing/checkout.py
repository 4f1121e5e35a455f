"""Copies the checkout, which may be a worktree and may have uncommitted changes."""

import shutil
import subprocess
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_IDENTITY = ("-c", "user.name=test", "-c", "user.email=test@example.com")


def copy_checkout(folder: Path) -> str:
    """Copy all files of the checkout into a new repository; returns its only commit."""
    for name in _git(_ROOT, "ls-files", "--cached", "--others", "--exclude-standard").splitlines():
        if (_ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(_ROOT / name, folder / name)
    return commit_all(folder)


def commit_all(folder: Path) -> str:
    """Make a folder a repository with one commit; returns the commit."""
    _git(folder, "init", "-q", "-b", "main")
    _git(folder, "add", "-A")
    _git(folder, *_IDENTITY, "commit", "-q", "-m", "all of it")
    return _git(folder, "rev-parse", "HEAD")


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.check_output(["git", *arguments], cwd=folder, text=True).strip()
