"""The cases that the controller itself computed."""

import json
from pathlib import Path
from typing import Any

_VECTORS = Path(__file__).parents[1] / "fixtures" / "vectors"


def vectors(name: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads((_VECTORS / name).read_text(encoding="utf-8"))
    return cases
