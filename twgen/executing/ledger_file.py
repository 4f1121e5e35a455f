"""Writing the ledger, a file that people own: comments, order and all other entries stay."""

from collections.abc import Iterable, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from twgen.errors import InvalidInput
from twgen.records.ledger import API_VERSION, KIND
from twgen.yaml.reader import read_documents
from twgen.yaml.strings import is_plain


def updated_ledger(path: Path, entries: Iterable[Mapping[str, Any]]) -> str:
    """The text of the ledger with these versions: a changed one in its place, a new one at the end."""
    yaml = _round_trip()
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    ledger = yaml.load(text) or {}
    if not ledger:
        ledger = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "versions"}, "versions": []}
    if ledger.get("kind") != KIND:
        raise InvalidInput(f"{path} is not a ledger: move it away")
    changed = not text
    for entry in entries:
        changed |= _put(ledger["versions"], entry)
    if not changed:
        return text
    stream = StringIO()
    yaml.dump(ledger, stream)
    if read_documents(stream.getvalue()) != [_plain(ledger)]:
        raise InvalidInput(f"{path} cannot be rewritten without a change of meaning: quote its strings")
    return stream.getvalue()


def write_ledger(path: Path, text: str) -> None:
    """Replace the ledger at once; a reader sees the old one or the new one."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def _put(versions: list[Any], entry: Mapping[str, Any]) -> bool:
    for existing in versions:
        if (existing["worker"], existing["buildID"]) == (entry["worker"], entry["buildID"]):
            if _plain(existing["deployment"]) == entry["deployment"]:
                return False
            existing.update(entry)
            return True
    versions.append(dict(entry))
    return True


def _round_trip() -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.representer import RoundTripRepresenter

    class Representer(RoundTripRepresenter):
        """Quotes what Kubernetes would not read back as the same string."""

    def represent(representer: Any, text: str) -> Any:
        style = None if is_plain(text) else '"'
        return representer.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Representer.add_representer(str, represent)
    yaml = YAML(typ="rt")
    yaml.Representer = Representer
    yaml.preserve_quotes = True
    yaml.width = 1_000_000
    yaml.indent(mapping=2, sequence=2, offset=0)
    return yaml


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, str):
        return str(value)
    return value
