import json
from pathlib import Path
from typing import Any

import pytest

VECTORS = Path(__file__).parents[1] / "fixtures" / "vectors" / "yaml.json"


@pytest.fixture(scope="session")
def yaml_vectors() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads(VECTORS.read_text(encoding="utf-8"))
    return cases
