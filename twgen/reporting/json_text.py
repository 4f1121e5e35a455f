"""Reports as JSON."""

import json
from collections.abc import Mapping
from typing import Any


def json_text(document: Mapping[str, Any]) -> str:
    """A report as JSON that a person can read too."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
