"""Reports as JSON."""

import json
from collections.abc import Mapping
from typing import Any

from twgen.model.credentials import without_credentials


def json_text(document: Mapping[str, Any]) -> str:
    """A report as indented JSON, without credentials."""
    return without_credentials(json.dumps(document, indent=2, ensure_ascii=False)) + "\n"
