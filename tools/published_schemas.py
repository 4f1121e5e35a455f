"""The schemas as the site publishes them: their addresses, and the entries for SchemaStore's catalog."""

import json
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SCHEMAS = ROOT / "schemas"
CATALOG = ROOT / "tools" / "schemastore.json"
"""Not in the folder of the schemas, whose files are all schemas."""
_FILES = {
    "workerdeployment": ("*.workerdeployment.yaml", "*.workerdeployment.yml"),
    "connection": ("*.temporalconnection.yaml", "*.temporalconnection.yml"),
    "workerresourcetemplate": ("*.workerresourcetemplate.yaml", "*.workerresourcetemplate.yml"),
    "rolloutpolicy": ("*.rolloutpolicy.yaml", "*.rolloutpolicy.yml"),
    "operatorconfig": ("*.operatorconfig.yaml", "*.operatorconfig.yml"),
    "ledger": ("**/twgen.lock/*.yaml",),
}
"""The schema of each kind that is kept in Git, with the names of its files."""


def schema_address(name: str) -> str:
    """The `$id` of the schema in this file: its address on the site."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return f"{project['urls']['Documentation']}schemas/{name}"


def catalog_text() -> str:
    """The entries for SchemaStore, as JSON."""
    return json.dumps([_entry(name) for name in _FILES], indent=2) + "\n"


def _entry(name: str) -> dict[str, Any]:
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())
    return {
        "name": f"twgen {name}",
        "description": schema["title"],
        "fileMatch": list(_FILES[name]),
        "url": schema_address(f"{name}.json"),
    }
