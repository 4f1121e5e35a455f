"""Reports as JSON."""

import json
from collections.abc import Mapping
from typing import Any

from twgen.model.credentials import without_credentials


def json_text(document: Mapping[str, Any]) -> str:
    """A report as JSON that a person can read too."""
    return without_credentials(json.dumps(document, indent=2, ensure_ascii=False)) + "\n"
