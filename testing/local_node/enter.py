"""Enters a container: run by `unshare`, it mounts the container's file system, and becomes its command.

Its argument is JSON: `root` (an empty folder), `mounts` ([source, target, whether read-only], outer ones
first), `workingDir` and `command`. For a container from an image, there are also `image`, the folder of its
read-only file system, and `user`, a number. It uses only the standard library, and is run without site
packages. Forked processes (`testing/forking.py`), which have already imported their program, run `become`.
"""

import ctypes
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

# sys/mount.h, sched.h and sys/prctl.h of Linux
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 32, 4096, 16384, 1 << 18
_NEW_MOUNT_NAMESPACE = 0x20000
_PARENT_DEATH_SIGNAL, _NO_NEW_PRIVILEGES = 1, 38
_CANNOT_START = 128

_LIBRARY = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Enter the container, and become the command."""
    with _entered() as command:
        os.execvp(command[0], command)  # noqa: S606 - no shell is involved


def become() -> None:
    """Create a mount namespace, enter the container, and run a function in a new session.

    The second argument is the function, `module:function`.
    """
    module, _, function = sys.argv[2].partition(":")
    if _LIBRARY.unshare(_NEW_MOUNT_NAMESPACE):
        raise OSError(ctypes.get_errno(), "it gets no mount namespace")
    _mount("none", Path("/"), _RECURSIVE | _PRIVATE)
    with _entered() as sys.argv:
        os.setsid()
    getattr(import_module(module), function)()


def end_with_parent() -> None:
    """End this process when its parent ends. This must be called again after a change of user."""
    _LIBRARY.prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)


@contextmanager
def _entered() -> Iterator[list[str]]:
    """Enter the container; returns its command. Exits with 128 and a message if that fails."""
    wanted = json.loads(sys.argv[1])
    try:
        _see(Path(wanted["root"]), Path(wanted.get("image", "/")), wanted["mounts"])
        if user := wanted.get("user"):
            _LIBRARY.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
        end_with_parent()
        os.chdir(wanted["workingDir"])
        yield wanted["command"]
    except OSError as error:
        sys.stderr.write(f"{wanted['command'][0]} cannot be started: {error}\n")
        os._exit(_CANNOT_START)


def _see(root: Path, image: Path, mounts: Sequence[tuple[str, str, bool]]) -> None:
    _mount("tmpfs", root, 0, kind="tmpfs")
    targets = [Path(target).resolve() for _, target, _ in mounts]
    is_machine = image == Path("/")
    in_image = [image / target.relative_to("/") for target in targets]
    _mirror(image, root, in_image, 0 if is_machine else _READ_ONLY)
    for (source, _, read_only), target in zip(mounts, targets, strict=True):
        inside = root / target.relative_to("/")
        _make(inside, is_folder=Path(source).is_dir())
        _mount(source, inside, _BIND | _RECURSIVE)
        if read_only:
            _mount("", inside, _REMOUNT | _BIND | _READ_ONLY)
    if not is_machine:
        _mount("", root, _REMOUNT | _READ_ONLY)
    os.chroot(root)


def _mirror(folder: Path, mirror: Path, targets: Sequence[Path], flags: int) -> None:
    """Mount all entries of the folder in the mirror, with new folders for mount targets that do not exist.

    No file may be created in bind-mounted folders, because they are the machine's own. So folders above a
    missing target are created.
    """
    for entry in folder.iterdir():
        inside = [target for target in targets if entry in target.parents]
        copy = mirror / entry.name
        if entry.is_symlink():
            copy.symlink_to(entry.readlink())
        elif entry.is_dir() and not all(target.exists() for target in inside):
            copy.mkdir()
            _mirror(entry, copy, inside, flags)
        else:
            _make(copy, is_folder=entry.is_dir())
            _mount(str(entry), copy, _BIND | _RECURSIVE)
            if flags:
                _mount("", copy, _REMOUNT | _BIND | flags)


def _make(path: Path, *, is_folder: bool) -> None:
    if path.exists():
        return
    (path if is_folder else path.parent).mkdir(parents=True, exist_ok=True)
    if not is_folder:
        path.touch()


def _mount(source: str, target: Path, flags: int, kind: str = "") -> None:
    names = (source.encode(), os.fsencode(target), kind.encode() or None)
    if _LIBRARY.mount(*names, ctypes.c_ulong(flags), None):
        code = ctypes.get_errno()
        raise OSError(code, f"{os.strerror(code)} while mounting {source or 'it'}", str(target))


if __name__ == "__main__":
    main()
