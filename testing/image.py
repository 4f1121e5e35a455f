"""Builds the Dockerfile's image, and an image with a newer Python for tests."""

import fcntl
import hashlib
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import certifi

from testing.building import CannotInstall, cache, complete_or_absent, run, say
from testing.install import installed
from testing.local_node.image import Image
from testing.recipes import BUILDAH, DEBOOTSTRAP
from twgen import __version__

_ROOT = Path(__file__).parents[1]
_SUITE = "trixie"
_DEBIAN = f"debian-{_SUITE}"
# folders that Debian's slim images leave out
_SLIM = ("/usr/share/doc", "/usr/share/info", "/usr/share/locale", "/usr/share/man", "/var/cache", "/var/log")
_OWN_MOUNTS = ("unshare", "--mount")
"""Makes a program's mounts end with it: if /proc stayed mounted in a folder, it would be deleted with it."""
_OF_INDEX = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout")
_DAY = 24 * 3600
_REVISION = "1a2b3c4d5e6f" + "0" * 28
_PYTHON = "testing/python.Dockerfile"


def built_image() -> Image:
    """The image of the current checkout; raises CannotInstall."""
    arguments = {"VERSION": __version__, "REVISION": _REVISION}
    return _built("image", "Dockerfile", tuple(_inputs()), arguments, _DAY)


def python_image() -> Image:
    """Debian's Python with the packages of `requirements.lock`; raises CannotInstall."""
    inputs = [_ROOT / name for name in ("requirements.lock", "pyproject.toml")]
    return _built("python", _PYTHON, inputs, {}, 30 * _DAY)


def _built(
    name: str, dockerfile: str, inputs: Sequence[Path], arguments: Mapping[str, str], kept: int
) -> Image:
    """The image of a Dockerfile, built once for these inputs. Others are removed after `kept` seconds."""
    inputs = (_ROOT / dockerfile, *inputs)
    content = _content(inputs, arguments)
    folder = cache() / f"{name}-{content}"
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f"{name}.lock").open("w") as lock:
        # test modules in several processes use it: all but the first wait
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            if os.geteuid():
                message = "only root can build an image: Debian's base has devices and files of other users"
                raise CannotInstall(message)
            say(f"building {dockerfile} into {folder} (a minute or two, once for these sources)")
            started = time.monotonic()
            with complete_or_absent(folder) as unfinished:
                _build(dockerfile, arguments, unfinished)
                if _content(inputs, arguments) != content:
                    raise CannotInstall("the image's sources were changed while it was built: try again")
            say(f"built it in {time.monotonic() - started:.0f} s")
    os.utime(folder)
    for other in cache().glob(f"{name}-*"):
        if time.time() - other.stat().st_mtime > kept:  # noqa: TID251 - the age of a file
            shutil.rmtree(other, ignore_errors=True)
    return Image(folder / "root", json.loads((folder / "config.json").read_text()))


def _content(inputs: Sequence[Path], arguments: Mapping[str, str]) -> str:
    """A hash of everything that the image depends on."""
    content = hashlib.sha256(f"{_DEBIAN} {arguments}".encode())
    for file in inputs:
        content.update(f"{file.relative_to(_ROOT)} {file.stat().st_size}\n".encode() + file.read_bytes())
    return content.hexdigest()[:12]


def _inputs() -> Iterator[Path]:
    """The files that a Dockerfile can use."""
    ignored = _ROOT / ".dockerignore"
    for name in (".dockerignore", *re.findall(r"^!(.+)$", ignored.read_text(), re.MULTILINE)):
        files = [_ROOT / name] if (_ROOT / name).is_file() else sorted((_ROOT / name).rglob("*"))
        yield from (file for file in files if file.is_file() and "__pycache__" not in file.parts)


def _debian() -> Path:
    """A folder with a slim Debian as `base.tar`, and the Dockerfile of its image."""
    folder = cache() / _DEBIAN
    if not folder.exists():
        say(f"making a Debian {_SUITE} in {folder} (a minute or two, once)")
        with complete_or_absent(folder) as unfinished:
            root = unfinished / "root"
            run([*_OWN_MOUNTS, str(installed(DEBOOTSTRAP)), "--variant=minbase", _SUITE, str(root)], {})
            for left_out in (*_SLIM, "/var/lib/apt/lists"):
                for entry in (root / left_out.removeprefix("/")).iterdir():
                    shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
            excludes = "".join(f"path-exclude {place}/*\n" for place in _SLIM)
            (root / "etc/dpkg/dpkg.cfg.d/slim").write_text(excludes)
            run(["tar", "-C", str(root), "-cf", str(unfinished / "base.tar"), "."], {})
            shutil.rmtree(root)
            (unfinished / "Dockerfile").write_text("FROM scratch\nADD base.tar /\n")
    return folder


def _build(dockerfile: str, arguments: Mapping[str, str], folder: Path) -> None:
    # in the same parent folder, so that the file system can be moved in one step
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        store = ["--root", f"{work}/store", "--runroot", f"{work}/run", "--storage-driver", "vfs"]
        buildah = [*_OWN_MOUNTS, str(installed(BUILDAH)), *store]
        build = [*buildah, "bud", "--isolation", "chroot", "--network", "host", "--pull-never"]
        run([*build, "--tag", "localhost/base", str(_debian())], {})
        secrets = [
            f"--secret=id=pip,src={work}/pip.conf",
            f"--secret=id=ca,src={_write_pip_settings(Path(work))}",
        ]
        given = {"BASE": "localhost/base", **arguments}.items()
        image = [*(f"--build-arg={name}={value}" for name, value in given), "--tag", "localhost/twgen"]
        run([*build, *secrets, *image, "--file", str(_ROOT / dockerfile), str(_ROOT)], {})

        def said(*command: str) -> str:
            return subprocess.check_output([*buildah, *command], text=True).strip()

        inspected = json.loads(said("inspect", "--type", "image", "localhost/twgen"))
        (folder / "config.json").write_text(json.dumps(inspected["OCIv1"]["config"]))
        container = said("from", "--pull-never", "localhost/twgen")
        Path(said("mount", container)).rename(folder / "root")


def _write_pip_settings(folder: Path) -> str:
    """Write a `pip.conf` with the machine's package index for the build; returns the file of its CAs."""
    listed = subprocess.check_output([sys.executable, "-m", "pip", "config", "list"], text=True)
    settings = dict(re.findall(r"^\S+\.([\w-]+)='(.*)'$", listed, re.MULTILINE))
    lines = [f"{name} = {settings[name]}\n" for name in _OF_INDEX if name in settings]
    (folder / "pip.conf").write_text("".join(["[global]\n", *lines]))
    return settings.get("cert") or ssl.get_default_verify_paths().cafile or certifi.where()
