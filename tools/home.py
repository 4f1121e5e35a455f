"""Writes the project's public addresses into all files that show them (`make home`).

`[project.urls]` in pyproject.toml is the only setting. Without it no file names a public address.
"""

import json
import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
SCHEMAS = ROOT / "schemas"
_KEPT_IN_GIT = {
    "workerdeployment": ("*.workerdeployment.yaml", "*.workerdeployment.yml"),
    "connection": ("*.temporalconnection.yaml", "*.temporalconnection.yml"),
    "workerresourcetemplate": ("*.workerresourcetemplate.yaml", "*.workerresourcetemplate.yml"),
    "rolloutpolicy": ("*.rolloutpolicy.yaml", "*.rolloutpolicy.yml"),
    "operatorconfig": ("*.operatorconfig.yaml", "*.operatorconfig.yml"),
    "ledger": ("**/twgen.lock/*.yaml",),
}
"""The names of the files of each kind that is kept in Git, by the name of the kind's schema."""


class Home(NamedTuple):
    """The public addresses of the project."""

    source: str
    """The Git repository."""
    site: str
    """The documentation. It ends with a slash."""


class _Passage(NamedTuple):
    """A passage of a page, with and without a public address."""

    without: str
    with_home: str
    """`{source}` and `{site}` are the addresses of a Home."""


PAGES = ("README.md", "SECURITY.md", "docs/*.md", "examples/**/*.yaml")
"""The files that contain these passages."""
_ADDRESS = """\
`ADDRESS` is the URL of twgen's Git repository, which is not public yet: ask the person who gave you twgen.
"""
_PASSAGES = (
    *(
        _Passage(
            f"git clone ADDRESS twgen\ncd twgen\n{first}\n```\n\n{_ADDRESS}\n",
            f"git clone {{source}} twgen\ncd twgen\n{first}\n```\n\n",
        )
        for first in ("make demo", "uv tool install .")
    ),
    _Passage(
        "Report it privately to the person who gave you twgen. Please do not publish it.\n",
        (
            "Report it privately with GitHub's form: **Security > Report a vulnerability** in\n"
            "[this repository]({source}/security/advisories/new). Please do not open an issue for it.\n"
        ),
    ),
    _Passage(
        "Replace `/path/to/twgen` with the path of your clone:\n\n"
        "```text\n# yaml-language-server: $schema=/path/to/twgen/schemas/",
        "The site has the schemas:\n\n```text\n# yaml-language-server: $schema={site}schemas/",
    ),
    _Passage("git+https://git.example.com/tools/twgen.git@v", "git+{source}@v"),
    _Passage("- repo: https://git.example.com/tools/twgen.git\n", "- repo: {source}\n"),
)


def home() -> Home | None:
    """The public addresses of the project, or None if it has none yet."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"].get("urls")
    return Home(urls["Source"], urls["Documentation"]) if urls else None


def addressed(text: str, found: Home | None) -> str:
    """The text of a page. These addresses replace any others in it."""
    for without, with_home in _PASSAGES:
        any_home = re.sub(r"\\{(source|site)\\}", r"https://\\S+?", re.escape(with_home))
        text = re.sub(any_home, without.replace("\\", r"\\"), text)
        text = text.replace(without, with_home.format(**found._asdict())) if found else text
    return text


def identified(text: str, name: str, found: Home | None) -> str:
    """The text of a schema whose `$id` is its address on the site.

    Without a home it has no `$id`, so its references are relative to its own file.
    """
    text = re.sub(r'^ +"\$id": .*\n', "", text, count=1, flags=re.MULTILINE)
    if not found:
        return text
    identity = json.dumps(f"{found.site}schemas/{name}")
    return re.sub(
        r'^( +)"\$schema": .*\n', rf'\g<0>\1"$id": {identity},\n', text, count=1, flags=re.MULTILINE
    )


def catalog(found: Home) -> list[dict[str, Any]]:
    """The entries for SchemaStore's catalog."""
    return [
        {
            "name": f"twgen {name}",
            "description": json.loads((SCHEMAS / f"{name}.json").read_text())["title"],
            "fileMatch": list(files),
            "url": f"{found.site}schemas/{name}.json",
        }
        for name, files in _KEPT_IN_GIT.items()
    ]


def main() -> None:
    """Write the addresses into all schemas and pages. With a home, print the entries for SchemaStore."""
    found = home()
    for path in SCHEMAS.glob("*.json"):
        path.write_text(identified(path.read_text(), path.name, found))
    for path in (path for pattern in PAGES for path in ROOT.glob(pattern)):
        path.write_text(addressed(path.read_text(), found))
    if found:
        print(json.dumps(catalog(found), indent=2))


if __name__ == "__main__":
    main()
