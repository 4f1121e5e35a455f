"""A Git repository for Argo CD, and a clone to commit in."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from testing.processes import ENVIRONMENT

_AUTHOR = ("-c", "user.name=testing", "-c", "user.email=testing@example.com")


@dataclass(frozen=True, slots=True)
class Repository:
    """A bare repository on this machine with the branch `main`."""

    address: str
    """The URL for Argo CD, and for clones."""
    clone: Path
    """A clone; changes there take effect with `commit`."""

    def commit(self, message: str) -> str:
        """Commit and push all files in the clone, even if nothing has changed; returns the commit's hash."""
        self._git("add", "--all")
        self._git(*_AUTHOR, "commit", "--quiet", "--allow-empty", "--message", message)
        self._git("push", "--quiet", "origin", "HEAD:main")
        return self._git("rev-parse", "HEAD").strip()

    def revert(self) -> str:
        """Revert the newest commit; returns the new commit's hash."""
        self._git(*_AUTHOR, "revert", "--no-edit", "HEAD")
        return self.commit("An empty commit after the revert")

    def _git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.clone), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=ENVIRONMENT).stdout


def new_repository(folder: Path) -> Repository:
    """Create a repository and a clone in the folder, with one commit."""
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
