"""Real Git repositories of one team, and what their history tells."""

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from testing.processes import ENVIRONMENT
from twgen.model.spec import WorkerSpec
from twgen.model.world import GitHistory
from twgen.reading.documents import Sources, read_paths
from twgen.reading.history import SpecSources, read_history
from twgen.specs.parse import parse_specs
from twgen.specs.spec_document import NamespaceRule

RULE = NamespaceRule("shop")
CONNECTION = """
apiVersion: temporal.io/v1alpha1
kind: Connection
metadata: {name: temporal}
spec: {hostPort: "%s:7233"}
"""
POLICY = """
apiVersion: twgen.io/v1alpha1
kind: RolloutPolicy
metadata: {name: pay}
spec: {workerRef: {name: pay}, environment: %s, connectionChanges: %s}
"""


def worker(version: str, *, name: str = "pay", replicas: int = 2, custom: str = "") -> str:
    build_id = f", unsafeCustomBuildID: {custom}" if custom else ""
    return f"""
apiVersion: temporal.io/v1alpha1
kind: WorkerDeployment
metadata: {{name: {name}}}
spec:
  replicas: {replicas}
  workerOptions: {{connectionRef: {{name: temporal}}, temporalNamespace: default{build_id}}}
  rollout: {{strategy: AllAtOnce}}
  template: {{spec: {{containers: [{{name: worker, image: "registry.example.com/pay:{version}"}}]}}}}
"""


class Repository:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str, text: str = "") -> str:
        settings = ("-c", "user.name=team", "-c", "user.email=team@example.com", "-c", "commit.gpgSign=false")
        environment = {**ENVIRONMENT, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        command = ["git", *settings, *arguments]
        ended = subprocess.run(
            command, cwd=self.root, env=environment, input=text, text=True, check=True, capture_output=True
        )
        return ended.stdout.strip()

    def commit(self, files: Mapping[str, str | None]) -> dict[str, str]:
        """Write files (None: remove) and commit; the build IDs of the workers in their folder."""
        for name, text in files.items():
            file = self.root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                file.unlink()
            else:
                file.write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=change")
        folders = [self.root / name for name in ("app", "apps/pay") if (self.root / name).exists()]
        return {spec.name: spec.build_id for spec in specs(folders[-1])} if folders else {}


def app(version: str, address: str = "a", policy: tuple[str, str] | None = None) -> dict[str, str | None]:
    """The files of a worker's version in a folder, with its connection, and possibly its policy."""
    files: dict[str, str | None] = {
        "app/pay.yaml": worker(version),
        "app/temporal.yaml": CONNECTION % address,
    }
    return files | ({"app/policy.yaml": POLICY % policy} if policy else {})


def specs(folder: Path) -> tuple[WorkerSpec, ...]:
    return parse_specs(read_paths([str(folder)], Sources()).documents, RULE).workers


def history(folder: Path, *build_ids: str, name: str = "pay", seconds: float = 30) -> GitHistory:
    [spec] = (spec for spec in specs(folder) if spec.name == name)
    sources = SpecSources([str(folder)], RULE, ())
    return read_history(spec, frozenset(build_ids), sources, time.monotonic() + seconds, "there is none")


def pod(found: GitHistory, build_id: str) -> dict[str, Any]:
    template: dict[str, Any] = found.versions[build_id].manifest["spec"]["template"]["spec"]
    return template


def variables(found: GitHistory, build_id: str) -> dict[str, str]:
    return {item["name"]: item["value"] for item in pod(found, build_id)["containers"][0]["env"]}
