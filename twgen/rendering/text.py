"""Manifests as the text that kubectl and Argo CD read."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twgen.rendering.manifests import Manifest
from twgen.yaml.writer import encode_documents, write_documents


def _as_list(manifests: Sequence[Manifest]) -> bytes:
    # one document: a list cut short can never be a valid shorter one
    items = [json.dumps(manifest, ensure_ascii=False).encode() for manifest in manifests]
    return b'{"apiVersion": "v1", "kind": "List", "items": [' + b", ".join(items) + b"]}\n"


def one_document(document: Any, output: str) -> str:
    """One document as `yaml` or `json`."""
    if output == "json":
        return json.dumps(document, ensure_ascii=False) + "\n"
    return write_documents([document])


FORMATS: Mapping[str, Callable[[Sequence[Manifest]], bytes]] = {"yaml": encode_documents, "json": _as_list}
"""How a render is printed: `---`-led YAML documents, or one JSON List."""
