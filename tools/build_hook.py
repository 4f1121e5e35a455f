"""A build hook for hatchling. It records the commit that a package is built from, for `twgen version`."""

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_REVISION = "twgen/revision"


class CustomBuildHook(BuildHookInterface[Any]):
    """Puts the file `twgen/revision` into the wheel and the sdist."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file. An editable installation gets none, because its commit changes with the checkout."""
        if version == "editable" or not (revision := _revision(Path(self.root))):
            return
        self._folder = tempfile.TemporaryDirectory()
        file = Path(self._folder.name, "revision")
        file.write_text(f"{revision}\n")
        build_data["force_include"][str(file)] = _REVISION

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - hatchling's signature
        """Remove the temporary file."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()


def _revision(root: Path) -> str:
    """The commit. It is empty if it is unknown, or in an unpacked sdist, which already has the file."""
    if (root / _REVISION).exists():
        return ""
    if named := os.environ.get("TWGEN_REVISION"):  # noqa: TID251 - an image is built without a repository
        return named[:12]
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "describe", "--always", "--exclude=*", "--abbrev=12", "--dirty=.dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
