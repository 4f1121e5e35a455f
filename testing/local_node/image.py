"""The file system of an image, and what runs in it as in a Pod."""

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
    """Its file system, which nobody may change."""
    config: Mapping[str, Any]
    """`User`, `Env`, `Entrypoint`, `Labels` and the like, as OCI has them."""

    @property
    def variables(self) -> dict[str, str]:
        """Its environment."""
        return dict(entry.split("=", 1) for entry in self.config["Env"])

    def command(
        self,
        words: Sequence[str],
        scratch: Path,
        mounts: Sequence[Mount] = (),
        folder: str = "",
        variables: Mapping[str, str] | None = None,
    ) -> list[str]:
        """The command that runs these words as a Pod does: as the image's user, its root read-only.

        Scratch is an empty folder; the container's `/tmp` is in it.
        """
        (scratch / "tmp").mkdir(exist_ok=True)
        os.chown(scratch / "tmp", self.user, self.user)
        seen = [Mount(scratch / "tmp", "/tmp", read_only=False), *mounts]  # noqa: S108 - of the container
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
        """The number of the user that it runs as."""
        return int(self.config["User"].partition(":")[0])


def entering(
    root: Path, words: Sequence[str], mounts: Sequence[Mount], folder: str = "", image: Image | None = None
) -> list[str]:
    """What is run in a mount namespace of its own to see the mounts, beside an image or beside the machine.

    The root is an empty folder.
    """
    seen = [[str(mount.source), mount.target, mount.read_only] for mount in mounts]
    wanted: dict[str, Any] = {"root": str(root), "workingDir": folder or "/", "command": list(words)}
    if image:
        wanted |= {"image": str(image.root), "user": image.user}
        wanted["workingDir"] = folder or image.config["WorkingDir"]
        seen = [*_OF_MACHINE, *seen]
    return [sys.executable, "-I", "-S", str(enter.__file__), json.dumps({**wanted, "mounts": seen})]
