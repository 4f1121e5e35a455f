"""`make bench`: speed as ratios to what people use instead, each timed in the same run."""

import compileall
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import twgen
from benchmarks.argocd import sidecar
from benchmarks.fixtures import write_drained, write_history, write_inputs
from benchmarks.fleet import fleet
from benchmarks.live import live
from benchmarks.measuring import TWGEN, Row, measured, times
from benchmarks.tools import write_chart, write_kustomization
from testing.install import CannotInstall, installed
from testing.recipes import HELM, KUBECTL
from twgen.specs.kinds import LEDGER_FOLDER

READ_FILES = [sys.executable, str(Path(__file__).with_name("read_files.py"))]


def start(folder: Path) -> Iterator[Row]:
    """Start-up, and one worker."""
    specs = write_inputs(folder, 1, versions=1)
    bare, version, usage, render = measured(
        [sys.executable, "-c", "pass"],
        [TWGEN, "version"],
        [TWGEN, "--help"],
        [TWGEN, "render", str(specs), "--snapshot", str(folder / "snapshot.yaml")],
        rounds=15,
    )
    yield times("twgen version", (version, bare), 4.5, "bare python")
    yield times("twgen --help", (usage, bare), 4.5, "bare python")
    yield times("offline render of one worker", (render, bare), 11, "bare python", most_mib=32)


def large(folder: Path) -> Iterator[Row]:
    """2,000 manifests, beside kustomize and helm."""
    specs = write_inputs(folder, 200)
    yaml = [TWGEN, "render", str(specs), "--snapshot", str(folder / "snapshot.yaml")]
    as_json = [TWGEN, "render", str(specs), "--snapshot", str(folder / "snapshot.json"), "-o", "json"]
    ours, rendered = measured(_validation(folder, yaml), yaml, rounds=3)
    yield times("validate of 2,000 manifests", (ours, rendered), 1.5, "their render")
    manifests = subprocess.run(yaml, check=True, capture_output=True).stdout
    overlay = write_kustomization(folder, manifests)
    ours, theirs = measured(yaml, [str(installed(KUBECTL)), "kustomize", str(overlay)], rounds=3)
    yield times("2,000 manifests, YAML", (ours, theirs), 1 / 20, "kustomize")
    chart = write_chart(folder, manifests)
    ours, theirs = measured(as_json, [str(installed(HELM)), "template", "workers", str(chart)])
    yield times("2,000 manifests, JSON", (ours, theirs), 1, "helm", most_mib=theirs.mib)


def _validation(folder: Path, render: Sequence[str]) -> list[str]:
    """The command that checks the manifests of a render, up to 8,000 in each run: more are not accepted."""
    manifests = subprocess.run(render, check=True, capture_output=True, text=True).stdout.split("\n---\n")
    (output := folder / "rendered").mkdir(exist_ok=True)
    for start in range(0, len(manifests), 2000):
        (output / f"{start}.yaml").write_text("\n---\n".join(manifests[start : start + 2000]))
    return ["sh", "-c", f"printf '%s\\n' {output}/*.yaml | xargs -n 4 {TWGEN} validate -q"]


def growth(folder: Path) -> Iterator[Row]:
    """Ten times as much in ten times the time."""
    commands = []
    for workers in (200, 2000):
        specs = write_inputs(folder / str(workers), workers)
        commands.append([TWGEN, "render", str(specs), "--snapshot", str(specs.parent / "snapshot.yaml")])
    fewer, more = measured(*commands, rounds=2)
    yield times("20,000 manifests, YAML", (more, fewer), 12, "2,000")
    checks = [
        _validation(folder / str(number), render)
        for number, render in zip((200, 2000), commands, strict=True)
    ]
    fewer, more = measured(*checks, rounds=2)
    yield times("validate of 20,000 manifests", (more, fewer), 12, "2,000")
    commands = []
    for versions in (10_000, 100_000):
        specs = write_drained(folder / f"drained-{versions}", versions)
        commands.append([TWGEN, "plan", str(specs), "--snapshot", str(specs.parent / "snapshot.json")])
    fewer, more = measured(*commands, rounds=2)
    yield times("plan of 100,000 drained versions", (more, fewer), 12, "10,000")


def many(folder: Path) -> Iterator[Row]:
    """Many workers: planned, locked and simulated."""
    specs = write_inputs(folder / "1500", 1500)
    snapshot = str(specs.parent / "snapshot.json")
    plan = [TWGEN, "plan", str(specs), "--snapshot", snapshot, "-o", "json"]
    ours, reading = measured(plan, [*READ_FILES, snapshot, str(specs)], rounds=3)
    # each worker takes 0.7 ms for its spec, pods, attached objects and five Deployments, and no part of
    # that is a third: to save more would take compiled code or a second process
    yield times("plan of 1,500 workers, 7,500 versions", (ours, reading), 2.2, "json.load and CSafeLoader")
    specs = write_inputs(folder / "1000", 1000, versions=1)
    render = [TWGEN, "render", str(specs), "--snapshot", str(specs.parent / "snapshot.json"), "-q"]
    lock = [TWGEN, "lock", "-q", str(specs)]
    # each lock after the first finds its ledger current, as in CI; the first is the round that is not counted
    commands = (render, lock, [*lock, "--check"], [TWGEN, "simulate", str(specs), "-o", "json"])
    rendered, *others = measured(*commands, rounds=3)
    # a simulation plans each worker 17 times
    reaches = {"lock": 4, "lock --check": 4, "simulate": 5}
    for (name, reach), cost in zip(reaches.items(), others, strict=True):
        yield times(f"{name} of 1,000 workers", (cost, rendered), reach, "render")
    yield from _new_versions(folder / "next", specs / LEDGER_FOLDER)


def _new_versions(folder: Path, ledger: Path) -> Iterator[Row]:
    """All of 1,000 workers have a new version, or one of them, whose ledger somebody wrote a comment in."""
    specs = write_inputs(folder, 1000, versions=2)
    render = [TWGEN, "render", str(specs), "--snapshot", str(specs.parent / "snapshot.json"), "-q"]
    edited = ledger / "shop.worker-0.yaml"
    edited.write_text(f"# ours\n{edited.read_text()}")
    again = f"cp -R {ledger} {specs} && exec {TWGEN} lock -q {specs}"
    subprocess.run(["sh", "-c", again], check=True)
    only_one = f"cp {edited} {specs / LEDGER_FOLDER} && exec {TWGEN} lock -q {specs}"
    rendered, *others = measured(render, ["sh", "-c", again], ["sh", "-c", only_one], rounds=3)
    for name, cost in zip(("1,000 new versions", "one, beside comments"), others, strict=True):
        yield times(f"lock of {name}", (cost, rendered), 4, "render of 1,000 workers")


def history(folder: Path) -> Iterator[Row]:
    """A version that only the first of 20,000 commits has."""
    specs = write_history(folder, 20_000)
    render = [TWGEN, "render", str(specs), "--snapshot", str(specs.parent / "snapshot.json"), "-q"]
    log = ["git", "-C", str(specs), "log", "--format=%H", "--", "worker-0.yaml"]
    rendered = subprocess.run(render, check=True, capture_output=True, text=True).stdout
    if rendered.count("\nkind: Deployment\n") != 2:
        raise subprocess.CalledProcessError(1, render)
    ours, theirs = measured(render, log, rounds=3)
    yield times("a version of the first of 20,000 commits", (ours, theirs), 5, "git log of its file")


def main() -> int:
    """Print the table, row by row; 1 when a row fails or cannot be measured."""
    # as pip leaves an installed program: otherwise every run may compile it again
    compileall.compile_dir(os.path.dirname(twgen.__file__), quiet=1)  # noqa: PTH120
    failed = False
    with tempfile.TemporaryDirectory() as name:
        for part in (start, live, large, growth, many, history, sidecar, fleet):
            if len(sys.argv) > 1 and part.__name__ not in sys.argv[1:]:
                continue
            try:
                for row in part(Path(name) / part.__name__):
                    failed |= not row.holds
                    print(row, flush=True)
            except (subprocess.CalledProcessError, CannotInstall) as error:
                failed = True
                print(f"NO   {part.__name__}: left out, with what follows in this part: {error}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
