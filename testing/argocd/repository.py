"""A Git repository that Argo CD fetches from, and a clone of it to commit in."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from testing.processes import ENVIRONMENT

_AUTHOR = ("-c", "user.name=testing", "-c", "user.email=testing@example.com")


@dataclass(frozen=True, slots=True)
class Repository:
    """A bare repository on this machine, whose one branch is `main`."""

    address: str
    """What Argo CD fetches, and what a person clones and pushes to."""
    clone: Path
    """A clone; what is changed there counts once it is committed."""

    def commit(self, message: str) -> str:
        """Commit and push all that the clone has, also when nothing is new; the commit's hash."""
        self._git("add", "--all")
        self._git(*_AUTHOR, "commit", "--quiet", "--allow-empty", "--message", message)
        self._git("push", "--quiet", "origin", "HEAD:main")
        return self._git("rev-parse", "HEAD").strip()

    def revert(self) -> str:
        """Undo the newest commit by another one; its hash."""
        self._git(*_AUTHOR, "revert", "--no-edit", "HEAD")
        return self.commit("An empty commit after the revert")

    def _git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.clone), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=ENVIRONMENT).stdout


def new_repository(folder: Path) -> Repository:
    """A repository with one commit, its files in the folder."""
    bare, clone = folder / "repository.git", folder / "clone"
    for command in (
        ("init", "--quiet", "--bare", "--initial-branch=main", str(bare)),
        ("clone", "--quiet", str(bare), str(clone)),
    ):
        subprocess.run(["git", *command], check=True, capture_output=True, env=ENVIRONMENT)
    (clone / "README.md").write_text("Each folder here is an application of Argo CD.\n")
    repository = Repository(bare.as_uri(), clone)
    repository.commit("Begin")
    return repository
