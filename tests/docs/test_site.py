"""The site: what its pages share."""

import re
import tomllib

import pytest

from tests.docs.pages import ROOT
from tools.home import Home
from tools.website import configuration
from twgen import __version__

HOMES = [None, Home("https://git.example.com/twgen", "https://twgen.example.com/")]


@pytest.mark.parametrize("found", HOMES, ids=["without a home", "with a home"])
def test_site_knows_the_version_and_the_public_addresses(found: Home | None) -> None:
    project = tomllib.loads(configuration(found))["project"]
    assert project["extra"]["version"] == __version__
    # the page for an address without a page finds its styles and links only with `site_url`
    assert (project.get("repo_url"), project.get("site_url")) == (found or (None, None))
    header = (ROOT / "tools" / "site" / "partials" / "source.html").read_text()
    assert "{{ config.repo_url }}" in header
    assert "{{ config.extra.version }}" in header


def test_pictures_that_the_styles_name_are_there() -> None:
    sheet = ROOT / "docs" / "stylesheets" / "site.css"
    pictures = re.findall(r'url\("(.+?)"\)', sheet.read_text())
    assert pictures
    assert [picture for picture in pictures if not (sheet.parent / picture).is_file()] == []
