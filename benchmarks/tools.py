"""The same manifests, as the tools that people use instead would have them."""

from pathlib import Path

from twgen.yaml.reader import read_documents


def write_kustomization(folder: Path, manifests: bytes) -> Path:
    """A kustomization of the manifests, a folder in the given one."""
    overlay = folder / "kustomize"
    overlay.mkdir()
    (overlay / "manifests.yaml").write_bytes(manifests)
    (overlay / "kustomization.yaml").write_text("resources:\n- manifests.yaml\n")
    return overlay


def write_chart(folder: Path, manifests: bytes) -> Path:
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
