"""The site: what its pages share."""

import tomllib
from pathlib import Path

from tools.website import configuration
from twgen import __version__

ROOT = Path(__file__).parents[2]


def test_site_knows_the_version_and_the_one_address_of_the_source() -> None:
    project = tomllib.loads(configuration())["project"]
    address = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Source"]
    assert (project["repo_url"], project["extra"]["version"]) == (address, __version__)
    header = (ROOT / "tools" / "site" / "partials" / "source.html").read_text()
    assert "{{ config.repo_url }}" in header
    assert "{{ config.extra.version }}" in header
    assert (ROOT / "zensical.toml").read_text().count(address) == 0
