"""Runs commands in the file system of an image."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from testing.local_node import enter
from testing.local_node.volumes import Mount

_OF_MACHINE = [["/dev", "/dev", False], ["/proc", "/proc", False], ["/etc/hosts", "/etc/hosts", True]]


class Image(NamedTuple):
    """A built image."""

    root: Path
    """The file system, which must not be changed."""
    config: Mapping[str, Any]
    """The OCI configuration: `User`, `Env`, `Entrypoint`, `Labels` and others."""

    @property
    def variables(self) -> dict[str, str]:
        """The image's environment variables."""
        return dict(entry.split("=", 1) for entry in self.config["Env"])

    def command(
        self,
        words: Sequence[str],
        scratch: Path,
        mounts: Sequence[Mount] = (),
        folder: str = "",
        variables: Mapping[str, str] | None = None,
    ) -> list[str]:
        """The command that runs these words like a Pod: as the image's user, with a read-only root.

        `scratch` is an empty folder, which also contains the container's `/tmp`.
        """
        (scratch / "tmp").mkdir(exist_ok=True)
        os.chown(scratch / "tmp", self.user, self.user)
        seen = [Mount(scratch / "tmp", "/tmp", read_only=False), *mounts]  # noqa: S108 - in the container
        (scratch / "root").mkdir(exist_ok=True)
        own = (f"{name}={value}" for name, value in (self.variables | dict(variables or {})).items())
        return [
            "unshare",
            "--mount",
            "env",
            "-i",
            *own,
            *entering(scratch / "root", words, seen, folder, self),
        ]

    @property
    def user(self) -> int:
        """The user ID of the image."""
        return int(self.config["User"].partition(":")[0])


def entering(
    root: Path, words: Sequence[str], mounts: Sequence[Mount], folder: str = "", image: Image | None = None
) -> list[str]:
    """The command to run in a new mount namespace, to see the mounts and the image or the machine.

    `root` is an empty folder.
    """
    seen = [[str(mount.source), mount.target, mount.read_only] for mount in mounts]
    wanted: dict[str, Any] = {"root": str(root), "workingDir": folder or "/", "command": list(words)}
    if image:
        wanted |= {"image": str(image.root), "user": image.user}
        wanted["workingDir"] = folder or image.config["WorkingDir"]
        seen = [*_OF_MACHINE, *seen]
    return [sys.executable, "-I", "-S", str(enter.__file__), json.dumps({**wanted, "mounts": seen})]
