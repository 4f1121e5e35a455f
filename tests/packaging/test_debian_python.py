"""The fast tests on the Python of the image; all others run on the oldest one that is supported."""

import os
import subprocess
from pathlib import Path

import pytest

from testing.checkout import copy_checkout
from testing.image import python_image
from testing.install import installed
from testing.local_node.image import Image
from testing.local_node.volumes import Mount
from testing.recipes import KUSTOMIZE

ROOT = Path(__file__).parents[2]
OF_IMAGE = "3.13"
FAST = ("-m", "not server and not packaging and not heavy")
pytestmark = [
    pytest.mark.packaging,
    pytest.mark.skipif(os.geteuid() != 0, reason="an image is built by root alone"),
]


@pytest.fixture(scope="module")
def image() -> Image:
    return python_image()


def test_debian_has_the_python_of_the_image_that_is_published(image: Image, tmp_path: Path) -> None:
    assert f"\nFROM python:{OF_IMAGE}-slim AS default\n" in (ROOT / "Dockerfile").read_text()
    told = subprocess.check_output(image.command(["python", "--version"], tmp_path), text=True)
    assert told.startswith(f"Python {OF_IMAGE}.")


def test_fast_tests_pass_on_it(image: Image, tmp_path: Path) -> None:
    checkout, scratch = tmp_path / "checkout", tmp_path / "scratch"
    scratch.mkdir()
    copy_checkout(checkout)
    pytest_inside = ["pytest", "-q", "-n", "3", "--dist", "worksteal", "--tb=short", *FAST]
    mounts = [
        Mount(checkout, "/twgen", read_only=False),
        Mount(installed(KUSTOMIZE), "/usr/local/bin/kustomize", read_only=True),
    ]
    variables = {KUSTOMIZE.variable: "/usr/local/bin/kustomize"}
    command = image.command(pytest_inside, scratch, mounts, variables=variables)
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if ended.returncode:
        pytest.fail(ended.stdout, pytrace=False)
