import json
import random
import subprocess
from pathlib import Path

import pytest

from testing.building import built_program
from tests.versioning.random_templates import random_quantity, random_template
from twgen.versioning import stored_form
from twgen.versioning.quantities import canonical_quantity
from twgen.versioning.stored_form import stored_template, template_json

_TOOL = Path(__file__).parents[2] / "tools" / "kubernetes_types"
_DEFINITIONS = Path(__file__).parents[2] / "testing" / "kubernetes" / "definitions"

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def go_tool() -> Path:
    return built_program(_TOOL)


def _answers(go_tool: Path, mode: str, lines: list[str]) -> list[str]:
    asked = "".join(f"{line}\n" for line in lines)
    run = subprocess.run([go_tool, mode], input=asked, capture_output=True, encoding="utf-8", check=True)
    return run.stdout.removesuffix("\n").split("\n")


def test_table_is_what_the_tool_writes(go_tool: Path) -> None:
    written = subprocess.run([go_tool], cwd=_TOOL, capture_output=True, encoding="utf-8", check=True).stdout
    assert (
        Path(stored_form.__file__).with_name("kubernetes_types.json").read_text(encoding="utf-8") == written
    )


@pytest.mark.parametrize(("kind", "file"), [("ScaledObject", "keda"), ("VerticalPodAutoscaler", "vpa")])
def test_definition_is_what_the_tool_writes(go_tool: Path, kind: str, file: str) -> None:
    command = [go_tool, "-definition", kind]
    written = subprocess.run(command, cwd=_TOOL, capture_output=True, encoding="utf-8", check=True).stdout
    assert (_DEFINITIONS / f"{file}.yaml").read_text(encoding="utf-8") == written


def test_templates_are_encoded_as_go_encodes_them(go_tool: Path) -> None:
    chance = random.Random(20261121)  # noqa: S311 - not for secrets
    stored = [stored_template(random_template(chance), "") for _ in range(2000)]
    assert [each.problems for each in stored if each.problems] == []
    templates = [each.value for each in stored]
    answers = _answers(go_tool, "-encode", [json.dumps(template) for template in templates])
    for template, answer in zip(templates, answers, strict=True):
        assert template_json(template) == answer


def test_invalid_surrogates_are_read_as_go_reads_them(go_tool: Path) -> None:
    texts = ["\ud83d", "\ude00", "\ud83d\ud83d", "\ud83da", "\ude00\ud83d", "a\udfff\ud800z"]
    templates = [{"metadata": {"labels": {"a": text}}} for text in texts]
    answers = _answers(go_tool, "-encode", [json.dumps(template) for template in templates])
    assert [template_json(stored_template(template, "").value) for template in templates] == answers


def test_quantities_are_written_as_go_writes_them(go_tool: Path) -> None:
    chance = random.Random(20261121)  # noqa: S311 - not for secrets
    texts = [random_quantity(chance) for _ in range(20_000)]
    texts += ["".join(chance.choices("0019.+-eEimKMn ", k=chance.randrange(7))) for _ in range(5000)]
    answers = _answers(go_tool, "-quantities", [json.dumps(text) for text in texts])
    for text, answer in zip(texts, answers, strict=True):
        assert (text, _python_answer(text)) == (text, answer.partition(" ")[0])


def _python_answer(text: str) -> str:
    try:
        return json.dumps(canonical_quantity(text))
    except ValueError:
        return "error:"
