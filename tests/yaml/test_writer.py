import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
import ruamel.yaml
import yaml
from hypothesis import given
from hypothesis import strategies as st

from twgen.yaml.reader import read_documents
from twgen.yaml.scalars import json_number
from twgen.yaml.writer import write_documents

NASTY: list[str] = json.loads((Path(__file__).parent / "nasty_strings.json").read_text(encoding="utf-8"))
NASTY.append("x" * 5000)
INTEGERS = st.integers(-(2**63), 2**64 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False).map(json_number)
NUMBER_LIKE = st.text("0123456789+-._:eExXoObBaftTZ ", max_size=14)
LINES = st.text("ab: -#'\"\n\t\\|>%\xe9\u2028\r", max_size=14)
STRINGS = st.sampled_from(NASTY) | NUMBER_LIKE | LINES | st.text(max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | INTEGERS | FLOATS | STRINGS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(STRINGS, inner, max_size=4),
    max_leaves=12,
)


def by_yaml_1_1(text: str) -> list[Any]:
    return list(yaml.load_all(text, Loader=yaml.CSafeLoader))


def by_yaml_1_2(text: str) -> list[Any]:
    return list(ruamel.yaml.YAML(typ="safe", pure=True).load_all(io.StringIO(text)))


def everywhere(text: str) -> list[Any]:
    return [
        {"key": text, "list": [text, [text], {"a": text}], "map": {"b": text, "c": 1}},
        {text: [{text: 1}]},
        [text],
        text,
    ]


@given(st.lists(VALUES, max_size=3))
def test_documents_are_read_back_as_they_were_written(documents: list[Any]) -> None:
    assert read_documents(write_documents(documents)) == documents


@pytest.mark.parametrize("text", NASTY)
def test_every_reader_reads_a_string_as_the_same_string(text: str) -> None:
    written = write_documents(everywhere(text))
    assert read_documents(written) == everywhere(text)
    assert by_yaml_1_1(written) == everywhere(text)
    assert by_yaml_1_2(written) == everywhere(text)


@given(STRINGS)
def test_other_readers_agree_on_any_string(text: str) -> None:
    written = write_documents(everywhere(text))
    assert by_yaml_1_1(written) == everywhere(text)
    assert by_yaml_1_2(written) == everywhere(text)


@given(INTEGERS | FLOATS)
def test_other_readers_agree_on_numbers(number: float) -> None:
    written = write_documents([[number]])
    assert by_yaml_1_1(written) == [[number]]
    assert by_yaml_1_2(written) == [[number]]


def test_strings_of_the_vectors_are_read_back(yaml_vectors: list[dict[str, Any]]) -> None:
    strings = [str(case.get("yaml", case.get("document"))) for case in yaml_vectors]
    documents = [document for text in strings for document in everywhere(text)]
    written = write_documents(documents)
    assert read_documents(written) == by_yaml_1_1(written) == documents


def test_manifests_look_as_kubectl_prints_them() -> None:
    deployment = {
        "apiVersion": "apps/v1",
        "metadata": {"name": "a", "labels": {"b/c": "1", "d": ""}, "annotations": {}},
        "spec": {"args": ["--port=80", ["x", {"y": None}], []], "ports": [{"port": 80, "name": "http"}]},
        "script": "set -e\nrun\n",
        "json": '{"a": 1}',
        "half": 0.5,
        "y": True,
    }
    assert write_documents([deployment, None]) == (
        "---\n"
        "apiVersion: apps/v1\n"
        "metadata:\n"
        "  name: a\n"
        "  labels:\n"
        '    b/c: "1"\n'
        '    d: ""\n'
        "  annotations: {}\n"
        "spec:\n"
        "  args:\n"
        "  - --port=80\n"
        "  - - x\n"
        '    - "y": null\n'
        "  - []\n"
        "  ports:\n"
        "  - port: 80\n"
        "    name: http\n"
        "script: |\n"
        "  set -e\n"
        "  run\n"
        "json: '{\"a\": 1}'\n"
        "half: 0.5\n"
        '"y": true\n'
        "--- null\n"
    )


@pytest.mark.parametrize(
    "text", ["100m", "1Gi", "10.0.0.1", "v1", "a/b:c", ":8080", "-c", "é", "$(A)", "a b"]
)
def test_an_unambiguous_string_stays_plain(text: str) -> None:
    assert write_documents([{"a": text}]) == f"---\na: {text}\n"


def test_shared_values_are_written_in_full() -> None:
    shared = {"a": [1]}
    assert write_documents([[shared, shared]]) == "---\n- a:\n  - 1\n- a:\n  - 1\n"


def test_numbers_are_written_as_go_writes_them_in_json() -> None:
    assert write_documents([[1.0, -0.0, 1e20, 1e21, 1e-7, 2**64 - 1]]) == (
        "---\n- 1\n- 0\n- 100000000000000000000\n- 1.0e+21\n- 1.0e-07\n- 18446744073709551615\n"
    )


def test_a_value_that_json_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match="infinity"):
        write_documents([math.inf])
    with pytest.raises(TypeError, match="tuple"):
        write_documents([{"a": (1,)}])


def test_json_is_yaml_too() -> None:
    document = {"a": [1, {"b": "\u2028\x7f"}]}
    assert (
        read_documents(json.dumps(document, indent=1))
        == read_documents(write_documents([document]))
        == [document]
    )
