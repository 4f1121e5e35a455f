"""`make bench`: speed, side by side in one run with the tools that people use instead."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.fixtures import write_inputs
from benchmarks.live import live
from benchmarks.measuring import TWGEN, Row, measured
from testing.building import CannotInstall
from twgen.yaml.reader import read_documents

VERDICTS = {True: "yes", False: "NO", None: "?"}
HELM = "go install helm.sh/helm/v3/cmd/helm@latest"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))  # noqa: TID251 - where helm may be


def small(folder: Path) -> list[Row]:
    """Start-up, and one worker."""
    specs = write_inputs(folder, 1, versions=1)
    render = [TWGEN, "render", str(specs), "--snapshot", str(folder / "snapshot.yaml")]
    bare, version, usage, one = measured(
        [sys.executable, "-c", "pass"], [TWGEN, "version"], [TWGEN, "--help"], render, rounds=10
    )
    starts = [
        Row(
            name,
            f"{cost} (bare python {bare.seconds:.3f} s)",
            "bare python + 0.06 s",
            cost.seconds - bare.seconds < 0.06,
        )
        for name, cost in (("twgen version", version), ("twgen --help", usage))
    ]
    return [
        *starts,
        Row("offline render of one worker", str(one), "0.2 s, 40 MB", one.seconds < 0.2 and one.mib < 40),
    ]


def large(folder: Path) -> Iterator[Row]:
    """2,000 manifests, beside kustomize and helm."""
    specs = write_inputs(folder, 200)
    yaml = [TWGEN, "render", str(specs), "--snapshot", str(folder / "snapshot.yaml")]
    as_json = [TWGEN, "render", str(specs), "--snapshot", str(folder / "snapshot.json"), "-o", "json"]
    manifests = subprocess.run(yaml, check=True, capture_output=True).stdout
    yield _beside_kustomize(folder, yaml, manifests)
    yield _beside_helm(folder, as_json, manifests)


def _beside_kustomize(folder: Path, render: list[str], manifests: bytes) -> Row:
    what, reach = "2,000 manifests, YAML", "a fifteenth of kustomize"
    if not shutil.which("kubectl"):
        return Row(what, f"{measured(render)[0]}; no kubectl here", reach, holds=None)
    ours, theirs = measured(
        render, ["kubectl", "kustomize", str(_kustomization(folder, manifests))], rounds=3
    )
    return Row(what, f"{ours}; kustomize {theirs}", reach, ours.seconds * 15 <= theirs.seconds)


def _beside_helm(folder: Path, render: list[str], manifests: bytes) -> Row:
    what, reach = "2,000 manifests, JSON", "1.5 times helm, in less memory"
    if not (helm := _helm()):
        return Row(what, f"{measured(render)[0]}; no helm here: {HELM}", reach, holds=None)
    ours, theirs = measured(render, [helm, "template", "workers", str(_chart(folder, manifests))])
    holds = ours.seconds <= 1.5 * theirs.seconds and ours.mib < theirs.mib
    return Row(what, f"{ours}; helm {theirs}", reach, holds)


def linear(folder: Path) -> list[Row]:
    """Ten times as much in ten times the time; 1,500 workers planned."""
    commands = []
    for workers in (200, 2000):
        specs = write_inputs(folder / str(workers), workers)
        commands.append([TWGEN, "render", str(specs), "--snapshot", str(specs.parent / "snapshot.yaml")])
    fewer, more = measured(*commands, rounds=2)
    many = write_inputs(folder / "plan", 1500)
    (plan,) = measured(
        [TWGEN, "plan", str(many), "--snapshot", str(many.parent / "snapshot.json"), "-o", "json"], rounds=2
    )
    factor = more.seconds / fewer.seconds
    return [
        Row("20,000 manifests", f"{more}: {factor:.1f} times 2,000", "linear", factor < 12),
        Row("plan of 1,500 workers, 7,500 versions", str(plan), "2 s", plan.seconds < 2),
    ]


def _kustomization(folder: Path, manifests: bytes) -> Path:
    overlay = folder / "kustomize"
    overlay.mkdir()
    (overlay / "manifests.yaml").write_bytes(manifests)
    (overlay / "kustomization.yaml").write_text("resources:\n- manifests.yaml\n")
    return overlay


def _chart(folder: Path, manifests: bytes) -> Path:
    """A chart that writes as many manifests, with names of their own, from a loop over its values."""
    chart = folder / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: workers\nversion: 0.1.0\n")
    (chart / "values.yaml").write_text("workers: 200\nversions: 5\n")
    documents = manifests.decode().split("---\n")
    kinds = ("kind: Deployment", "kind: HorizontalPodAutoscaler")
    body = "".join("---\n" + next(text for text in documents if kind in text) for kind in kinds)
    deployment, autoscaler = (document["metadata"] for document in read_documents(body))
    worker, build_id = (
        deployment["labels"][f"temporal.io/{label}"] for label in ("deployment-name", "build-id")
    )
    for text, variable in (
        (autoscaler["name"], f"{worker}-scale-{build_id}"),
        (worker, "worker-{{ $worker }}"),
        (build_id, "v{{ $version }}"),
    ):
        body = body.replace(text, variable)
    loops = "".join(
        f"{{{{- range ${name} := until (int $.Values.{name}s) }}}}" for name in ("worker", "version")
    )
    (chart / "templates" / "workers.yaml").write_text(f"{loops}\n{body}{{{{- end }}}}{{{{- end }}}}\n")
    return chart


def _helm() -> str | None:
    return shutil.which("helm") or shutil.which("helm", path=str(CACHE / "twgen" / "helm"))


def main() -> None:
    """Print the table, row by row; a command that fails costs the rest of its part, not the others."""
    with tempfile.TemporaryDirectory() as name:
        for part in (small, live, large, linear):
            try:
                for row in part(Path(name) / part.__name__):
                    print(_line(row), flush=True)
            except (subprocess.CalledProcessError, CannotInstall) as error:
                print(f"?    {part.__name__}: {error}", flush=True)


def _line(row: Row) -> str:
    return f"{VERDICTS[row.holds]:3}  {row.what:37} {row.measured:60} reach: {row.reach}"


if __name__ == "__main__":
    main()
