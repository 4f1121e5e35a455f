"""Installing the servers that the tests use, once for all clones: `python -m testing.install`."""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from testing.building import CannotInstall, build, cached, run, say
from testing.processes import ENVIRONMENT
from testing.recipes import SERVERS, TEMPORAL_CLI, TEMPORAL_SERVER, VERSIONED, Server, Source

__all__ = ["TEMPORAL_CLI", "TEMPORAL_SERVER", "CannotInstall", "installed", "main"]

_APT = ("apt-get", "-o", "DPkg::Lock::Timeout=120")
_UNATTENDED = {"DEBIAN_FRONTEND": "noninteractive"}


def installed(server: Server) -> Path:
    """The server's program, installed first when it is not there yet; raises CannotInstall."""
    if not _found(server):
        _install([server])
    if found := _found(server):
        return found
    message = f"{server.package} was installed, but {server.program} is not on PATH: correct PATH"
    raise CannotInstall(message)


def main() -> int:
    """Install every server that is missing, saying where each is."""
    try:
        if missing := [server for server in SERVERS if not _found(server)]:
            say("missing: " + ", ".join(f"{server.program} ({server.source.value})" for server in missing))
            _install(missing)
        for server in SERVERS:
            say(f"{server.name}: {installed(server)}")
    except CannotInstall as reason:
        say(f"the servers are not complete: {reason}")
        return 1
    return 0


def _found(server: Server) -> Path | None:
    if found := _named(server):
        return found
    if server not in VERSIONED and (on_path := shutil.which(server.program)):
        return Path(on_path)
    built = cached(server)
    return built if built.exists() else None


def _named(server: Server) -> Path | None:
    value = ENVIRONMENT.get(server.variable)
    if not value:
        return None
    named = Path(value)
    if named.is_dir():
        # the assets of envtest have no kube-controller-manager: a folder need not hold every program
        inside = named / server.program
        return inside if inside.exists() else None
    if not os.access(named, os.X_OK):
        message = f"{server.variable} names {named}, which is no program: correct or unset it"
        raise CannotInstall(message)
    return named


def _install(servers: Sequence[Server]) -> None:
    # Debian's come first: what they lack is said before Go has built for minutes
    if packages := [server.package for server in servers if server.source is Source.DEBIAN]:
        _from_debian(packages)
    for server in servers:
        if server.source is not Source.DEBIAN:
            build(server)


def _from_debian(packages: Sequence[str]) -> None:
    if not shutil.which("apt-get"):
        message = f"install {', '.join(packages)} by the means of this system, onto PATH"
        raise CannotInstall(message)
    if os.geteuid() != 0:
        message = f"run `apt-get install -y {' '.join(packages)}` as root, then this again"
        raise CannotInstall(message)
    install = [*_APT, "install", "-y", "--no-install-recommends", *packages]
    try:
        run(install, _UNATTENDED)
    except CannotInstall:
        # the lists may be absent or too old to name a package that the mirror still has
        run([*_APT, "update"], _UNATTENDED)
        run(install, _UNATTENDED)


if __name__ == "__main__":
    sys.exit(main())
