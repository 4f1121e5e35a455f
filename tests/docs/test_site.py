"""The site: what its pages share."""

import re
import tomllib

from tests.docs.pages import ROOT
from tools.website import configuration
from twgen import __version__


def test_site_knows_the_version_and_the_one_address_of_the_source() -> None:
    project = tomllib.loads(configuration())["project"]
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    address = urls["Source"]
    assert (project["repo_url"], project["extra"]["version"]) == (address, __version__)
    # the page for an address without a page finds its styles and links only with this one
    assert project["site_url"] == urls["Documentation"]
    header = (ROOT / "tools" / "site" / "partials" / "source.html").read_text()
    assert "{{ config.repo_url }}" in header
    assert "{{ config.extra.version }}" in header
    assert (ROOT / "zensical.toml").read_text().count(address) == 0


def test_pictures_that_the_styles_name_are_there() -> None:
    sheet = ROOT / "docs" / "stylesheets" / "site.css"
    pictures = re.findall(r'url\("(.+?)"\)', sheet.read_text())
    assert pictures
    assert [picture for picture in pictures if not (sheet.parent / picture).is_file()] == []
