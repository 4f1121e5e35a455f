"""Installs the servers for the tests, once for all clones: `python -m testing.install`."""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from testing.building import CannotInstall, build, cache, cached, run, say
from testing.processes import ENVIRONMENT
from testing.progress import Steps
from testing.recipes import SERVERS, TEMPORAL_CLI, TEMPORAL_SERVER, VERSIONED, Server, Source

__all__ = ["TEMPORAL_CLI", "TEMPORAL_SERVER", "CannotInstall", "installed", "main"]

_APT = ("apt-get", "-o", "DPkg::Lock::Timeout=120")
_UNATTENDED = {"DEBIAN_FRONTEND": "noninteractive"}


def installed(server: Server) -> Path:
    """The server's program. It is installed first if necessary; raises CannotInstall."""
    if not _found(server):
        _install([server], _steps([server]))
    if found := _found(server):
        return found
    message = f"{server.package} was installed, but {server.program} is not on PATH: correct PATH"
    raise CannotInstall(message)


def main() -> int:
    """Install all missing servers, and print the paths of all servers."""
    try:
        if missing := [server for server in SERVERS if not _found(server)]:
            say("missing: " + ", ".join(f"{server.program} ({server.source.value})" for server in missing))
            steps = _steps(missing)
            cores = os.cpu_count() or 1
            say(f"installing them into {cache()}, once for all clones, takes {steps.left} with {cores} cores")
            _install(missing, steps)
        for server in SERVERS:
            say(f"{server.name}: {installed(server)}")
    except CannotInstall as reason:
        say(f"some servers are missing: {reason}")
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
        # a folder need not contain every program: envtest has no kube-controller-manager
        inside = named / server.program
        return inside if inside.exists() else None
    if not os.access(named, os.X_OK):
        message = f"{server.variable} names {named}, which is not a program: correct or unset it"
        raise CannotInstall(message)
    return named


def _steps(servers: Sequence[Server]) -> Steps:
    """One step for all Debian packages, and one for each program that Go builds."""
    seconds = {_step(server): 0.0 for server in servers}
    for server in servers:
        seconds[_step(server)] += server.seconds
    return Steps(seconds)


def _step(server: Server) -> str:
    return "Debian's packages" if server.source is Source.DEBIAN else f"{server.name} {server.version}"


def _install(servers: Sequence[Server], steps: Steps) -> None:
    with steps.shown():
        # Debian's packages first, so that their errors come before Go builds for minutes
        if packages := [server for server in servers if server.source is Source.DEBIAN]:
            with steps.step(_step(packages[0])):
                _from_debian([server.package for server in packages])
        for server in servers:
            if server.source is not Source.DEBIAN:
                with steps.step(_step(server)):
                    build(server)


def _from_debian(packages: Sequence[str]) -> None:
    if not shutil.which("apt-get"):
        message = f"install {', '.join(packages)} with this system's package manager"
        raise CannotInstall(message)
    if os.geteuid() != 0:
        message = f"run `apt-get install -y {' '.join(packages)}` as root, then this again"
        raise CannotInstall(message)
    install = [*_APT, "install", "-y", "--no-install-recommends", *packages]
    try:
        run(install, _UNATTENDED)
    except CannotInstall:
        # the package lists may be missing or outdated
        run([*_APT, "update"], _UNATTENDED)
        run(install, _UNATTENDED)


if __name__ == "__main__":
    sys.exit(main())
