"""The job of the GitLab example that deploys without Argo CD, on real servers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from testing.install import installed
from testing.recipes import KUBECTL
from tests.servers.live import ENVIRONMENT
from tests.servers.rollouts import Story
from tests.servers.side_by_side import side_by_side
from twgen.yaml.reader import read_documents

pytestmark = pytest.mark.server
PIPELINE = Path(__file__).parents[2] / "examples" / "ci" / "gitlab.yaml"


@side_by_side
def test_job_applies_what_is_rendered_and_rolls_it_out(story: Story) -> None:
    [pipeline] = read_documents(PIPELINE.read_text())
    (commands := story.folder.parent / "bin").mkdir()
    (commands / "twgen").symlink_to(Path(sys.executable).with_name("twgen"))
    (commands / "kubectl").symlink_to(installed(KUBECTL))
    variables = {
        **ENVIRONMENT,
        "PATH": f"{commands}{os.pathsep}{ENVIRONMENT['PATH']}",
        "KUBECONFIG": str(story.cluster.kubeconfig),
        "HOME": str(commands),
    }
    for build_id in ("v1", "v2"):
        story.describe(build_id, steps=())
        for line in pipeline["rollout"]["script"]:
            command = line.replace("/tmp/", f"{story.folder.parent}/")  # noqa: S108 - the example's own
            ended = subprocess.run(
                ["bash", "-e", "-c", command],
                cwd=story.folder,
                env=variables,
                capture_output=True,
                text=True,
                check=False,
                timeout=300,
            )
            assert ended.returncode == 0, (line, ended.stderr)
        assert story.share(build_id) == 100
    assert story.replicas()["v1"] == 1, "it drains"
