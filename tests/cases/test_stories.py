import json
from pathlib import Path

import pytest

from tests.cases.story import folders, told
from tests.json_schemas import schema_problems
from twgen.model.problem import Document


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: folder.name)
def test_story_is_told_as_before(folder: Path) -> None:
    for name, text in told(folder).items():
        assert text == (folder / name).read_text(), name


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: folder.name)
def test_plan_of_a_story_has_the_promised_form(folder: Path) -> None:
    text = (folder / "plan.json").read_text()
    if text.startswith("{"):
        assert list(schema_problems([Document("plan.json", 0, json.loads(text))])) == []
