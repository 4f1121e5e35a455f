import json
from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broken_documents import json_values
from tests.yaml.test_writer import VALUES as WRITTEN
from twgen.yaml.events import read_all
from twgen.yaml.reader import read_block, read_documents, read_json
from twgen.yaml.source import Budget, Limits, YamlError
from twgen.yaml.writer import write_documents


def failure(text: bytes | str, limits: Limits | None = None) -> tuple[int | None, str]:
    with pytest.raises(YamlError) as caught:
        read_documents(text, Budget(limits or Limits()))
    return caught.value.line, caught.value.message


def test_all_documents_are_read_and_empty_ones_are_null() -> None:
    assert read_documents("a: 1\n---\n---\n- b\n...\n---\nc") == [{"a": 1}, None, ["b"], "c"]
    assert read_documents("") == read_documents("# nothing\n") == []


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2\n",
        "y: 1\ntrue: 2\n",
        '1: a\n"1": b\n',
        "{a: 1, a: 1}",
        '{"a": 1, "a": 1}',
        '{"a" : 1, "a": 1}',
        '{"a":1,"a"\n:1}',
        '{"a": {"b": ":"}, "c": [{"d": 1}, {"d": 1, "d": 2}]}',
        '{"a\\"": 1, "a\\"": ":"}',
        '{"a\\\\": 1, "a\\\\": 1}',
        "<<: {a: 1}\na: 2\na: 3\n",
    ],
)
def test_a_key_that_is_there_twice_is_refused(text: str) -> None:
    assert "appears twice" in failure(text)[1]


@given(
    st.lists(st.tuples(st.sampled_from(("a", 'a"', "b:", ":", " :", "\\")), json_values), max_size=4),
    st.sampled_from((":", ": ", " :", "\n:", "\t: ")),
)
def test_json_is_what_python_reads_unless_a_key_is_there_twice(
    pairs: list[tuple[str, Any]], colon: str
) -> None:
    text = json.dumps([{}])[:-2] + ",".join(
        f"{json.dumps(key)}{colon}{json.dumps(item)}" for key, item in pairs
    )
    budget = Budget()
    is_unique = len(dict(pairs)) == len(pairs)
    assert (read_json(f"{text}}}]", budget) is not None) == is_unique


def test_a_merged_key_may_be_overridden_after_the_merge() -> None:
    assert read_documents("b: &b {x: 1, y: 2}\nc: {<<: *b, x: 3}\n")[0]["c"] == {"x": 3, "true": 2}


def test_the_first_of_several_merged_mappings_wins() -> None:
    text = "- &a {x: 1}\n- &b {x: 2, z: 3}\n- {<<: [*a, *b]}\n"
    assert read_documents(text)[0][2] == {"x": 1, "z": 3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{x: 1, <<: {x: 2}}", "the key 'x' is set before << adds it: put << first"),
        ("<<: 1", "<< takes a mapping or a list of mappings"),
        ("a: &a [{}]\nb: {<<: *a}", "<< takes a mapping or a list of mappings"),
        ("- <<: [1]", "<< takes a mapping or a list of mappings"),
    ],
)
def test_a_merge_without_one_meaning_is_refused(text: str, message: str) -> None:
    assert failure(text)[1] == message


def test_a_quoted_merge_key_is_a_key() -> None:
    assert read_documents("'<<': {a: 1}") == [{"<<": {"a": 1}}]


def test_aliases_share_what_they_stand_for() -> None:
    (found,) = read_documents("a: &x {b: [1]}\nc: *x\n&k d: 1\ne: *k\n")
    assert found == {"a": {"b": [1]}, "c": {"b": [1]}, "d": 1, "e": "d"}
    assert found["a"] is found["c"]
    assert read_documents("- &k d\n- {*k : 1}") == [["d", {"d": 1}]]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: *b\n", 1, "there is no such anchor before this line: text that begins with * needs quotes"),
        (
            "&a b\n---\n*a",
            3,
            ("there is no such anchor before this line: text that begins with * needs quotes"),
        ),
        ("- &a\n  - *a\n", 2, "this alias is inside its own anchor"),
        ("a:\n  [b]: c\n", 2, "a key must be text, not a mapping or a list"),
        ("- &a {b: c}\n- *a : 1\n", 2, "a key must be text, not a mapping or a list"),
        ("a: {{ x }}\n", 1, "a key must be text, not a mapping or a list; {{ }} needs quotes"),
        ("a: 1\nb: .inf\n", 2, "infinity and NaN are not JSON numbers: quote the value"),
        ("a: 1\n~: b\n", 2, "null cannot be a key: quote it"),
        ("a: !!int x\n", 1, "this is not of type int: drop the tag or quote the value"),
        ("a: !x!y z\n", 1, "a text that begins with ! needs quotes"),
        ("a:\n\tb: 1\n", 2, "a tab cannot indent: use spaces"),
        ("a: b\n\tc: 1\n", 2, "a tab cannot indent: use spaces"),
        ("a: 1\n\u00a0\u00a0b: 1\n", 2, "a blank that is not a plain space cannot indent: use spaces"),
        ("a:\n \u00a0b: 1\n", 2, "a blank that is not a plain space cannot indent: use spaces"),
        ("a:\n  - b\n\u00a0 @\n", 3, "a blank that is not a plain space cannot indent: use spaces"),
        ("a: 1\nb: @c\n", 2, "text cannot begin with this character: quote the text"),
        (
            "a: b: c\n",
            1,
            "a colon makes this a key, but no key is allowed here: fix the indentation, or quote the text",
        ),
        ('a: 1\nb: "x\nc: y\n', 2, "the quote that opens here is not closed"),
        ('a: 1\nb: "x\n---\nc: y\n', 2, "the quote that opens here is not closed"),
        ("a: 1\nb: 'x\nc: 'y'\n", 2, "the quote that opens here is not closed"),
        ("a: 1\nb: 'it's'\n", 2, "the text continues after its closing quote: double every ' inside"),
        ("a: 1\n--\nb: 2\n", 2, "write three dashes (---) between two documents"),
        ("a: 1\n----\na: 2\n", 2, "write three dashes (---) between two documents"),
        (
            "a: [1,\n 2\nb: 3\n",
            1,
            "the [ that opens here is not closed: write , between its items, and ] at its end",
        ),
        ("a: [\n", 2, "a [ or { is not closed before this, or a value is missing"),
        ("a:\n  - b\n  c: 1\n", 3, "this line is in a list but has no -: fix the indentation"),
        ("kind: A\nb: 1\nkind: B\n", 3, "the key 'kind' appears twice; write --- between two documents"),
        ("a:\n  kind: A\n  kind: B\n", 3, "the key 'kind' appears twice"),
        ("é: 1\nb: \x07\n", 2, "U+0007 is not allowed: write it as an escape in double quotes"),
        (b"a: 1\nb: \xff\n", 2, "this is not UTF-8 text: save the file as UTF-8"),
        (b"\xff\xfea", None, "this is not UTF-8 text: save the file as UTF-8"),
        ('{"a": 1,\n "a": 2}', 2, "the key 'a' appears twice"),
        ('{"a":\n [1, NaN]}', 2, "NaN is not a JSON number: quote it"),
        ('{"NaN": -Infinity}', 1, "-Infinity is not a JSON number: quote it"),
    ],
)
def test_an_error_has_its_line_and_says_what_to_do(text: bytes | str, line: int | None, message: str) -> None:
    assert failure(text) == (line, message)


def test_an_error_shows_little_of_the_content() -> None:
    line, message = failure(f"{'secret' * 99}: 1\n{'secret' * 99}: 2\n")
    assert line == 2
    assert len(message) < 60


@pytest.mark.parametrize(
    "broken",
    [
        "stringData: {hunter2: a, hunter2: b}",
        "stringData: {a: *hunter2}",
        "stringData: {a: !!int hunter2}",
        "stringData: {a: 'hunter2's'}",
        "hunter2: {a: 1}\n<<: {hunter2: 1}",
    ],
)
def test_error_in_a_secret_shows_nothing_of_it(broken: str) -> None:
    for text in (f"kind: Secret\n{broken}\n", f'{broken}\n"kind" : "Secret"\n'):
        assert "hunter2" not in failure(text)[1]


LIBYAML = ["did not find", "could not find", "found ", "not allowed in this context", "expected"]


PIECES = [*"[]{}&*!|>'\"%@`,?:-#ab~\\\t\n", "  ", "\n- ", ": ", "\u00a0", "---"]


@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_no_error_speaks_the_words_of_the_library(pieces: list[str]) -> None:
    try:
        read_documents("".join(pieces))
    except YamlError as error:
        message = error.message
    else:
        message = ""
    assert message.isprintable()
    assert not any(words in message for words in LIBYAML), message


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_bytes_are_read_in_the_encoding_they_have(encoding: str) -> None:
    assert read_documents("ä: ö\r\nb: |\r\n  c\r\n".encode(encoding)) == [{"ä": "ö", "b": "c\n"}]


def test_a_lone_surrogate_becomes_the_replacement_character() -> None:
    assert read_documents('{"a": "x\\ud800y \\ud83d\\ude00"}') == [{"a": "x\ufffdy \U0001f600"}]
    assert read_documents("a: \ud800\n") == [{"a": "\ufffd"}]


def test_json_numbers_are_those_of_yaml() -> None:
    numbers = "[1, 1.0, -0.0, 1e3, 0.5, 1e21, 18446744073709551615, 18446744073709551616, 1E400]"
    assert read_documents(numbers) == read_documents(f"\n---\n{numbers}")
    assert [type(number) for number in read_documents("[1.0, 1e21, 18446744073709551615]")[0]] == [
        int,
        float,
        int,
    ]


TEXTS = st.text(
    st.characters(max_codepoint=0xFFFF, exclude_characters="\x7f", exclude_categories=["Cs"]), max_size=6
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=15,
)


@given(VALUES)
def test_json_is_read_as_the_same_text_in_yaml(value: Any) -> None:
    text = json.dumps([value])
    assert read_documents(text) == read_documents(f"---\n{text}")


DEEP = 100


@pytest.mark.parametrize("pair", ["[]", "{}"])
@pytest.mark.parametrize("separator", ["", " "])
def test_the_deepest_nesting_allowed_is_read_and_one_more_is_not(pair: str, separator: str) -> None:
    opening = pair[0] + ('"a":' if pair == "{}" else separator)
    assert len(read_documents(opening * (DEEP - 1) + pair + pair[1] * (DEEP - 1))) == 1
    assert failure(opening * DEEP + pair + pair[1] * DEEP) == (1, "nested deeper than 100 levels")


def test_brackets_in_strings_are_no_nesting() -> None:
    value = ['"[' * 200, "\\", "{" * 200, '\\\\"', ["]" * 200, '\\"[']]
    assert read_documents(json.dumps(value)) == [value]


def test_aliases_count_as_what_they_stand_for() -> None:
    laughs = "- &a0 [lol, lol]\n" + "".join(f"- &a{n + 1} [*a{n}, *a{n}]\n" for n in range(40))
    assert failure(laughs)[1].startswith("more than 8388608 characters from aliases")
    ladder = "- &a0 [x]\n" + "".join(f"- &a{n + 1} [*a{n}]\n" for n in range(100))
    assert failure(ladder) == (100, "nested deeper than 100 levels")
    merges = "- &a {" + ", ".join(f"k{n}: 1" for n in range(1000)) + "}\n" + "- <<: *a\n" * 5000
    assert failure(merges)[1].startswith("more than 8388608 characters from aliases")


def test_keys_items_and_documents_are_counted() -> None:
    assert failure("[a, b, c, d, e]\n", Limits(nodes=5)) == (
        1,
        "more than 5 keys and list items in all: read fewer files at once",
    )
    assert failure('["a", "b", "c", "d"]', Limits(nodes=3))[1].startswith("more than 3 keys")
    assert failure("{a: 1, b: 1, c: 1, d: 1}", Limits(nodes=5))[1].startswith("more than 5 keys")
    assert failure("a\n---\nb\n---\nc\n", Limits(documents=2)) == (
        4,
        "more than 2 documents in all: read fewer files at once",
    )
    assert len(read_documents("a\n---\nb\n", Budget(Limits(documents=2)))) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 16_000_000, "nested deeper"),
        ("- " * 8_000_000, "nested deeper"),
        ('{"a":' * 400_000 + "1" + "}" * 400_000, "nested deeper"),
        ("%TAG !a! x\n" * 200_000, "%TAG"),
        ("---\n" * 2_000_000, "documents"),
        (" " * (16 * 2**20 + 1), "bytes: split the file"),
    ],
    ids=["brackets", "dashes", "json", "tags", "documents", "bytes"],
)
def test_hostile_text_is_refused_quickly(text: str, message: str) -> None:
    started = process_time()
    assert message in failure(text)[1]
    assert process_time() - started < 5


LINES = """\
a: 1|b:|c: x y|- d|  e: f|  g:|- h: i|  - j|- - k|    l: m|    - n|      o:|---||  # c| p: 1|- q:|  - r:
    - - s: t|u: {}|v: []|   w:|x: "y"|  - z|- - - |...|--- a|-|- |y: no|~: 1|a: b: c|'k': v|k: 'it''s'
k: "\\n"|k: &a b|k: *a|k: >|k: v # c|k:  v|k : v|? k|<<: {}|k: -1|- -|- ---|k: .inf|k: 0x1F|k: http://a:80
f:k: {}|f:k:v: w|f:k::|a:b|- f:k:|k: a#b|k: "a: b # c"|\tk: v|k: v |é: v"""
BLOCK_TEXTS = st.lists(st.sampled_from(LINES.replace("\n", "|").split("|")), max_size=8).map("\n".join)
BLOCK_PIECES = st.lists(
    st.sampled_from([*"ab: -#'\"\n{}[]&*!|>%@?,~.01yn", "\n  ", "\n- ", ": ", "key:\n", "---\n", "- - "]),
    max_size=14,
).map("".join)


def same_as_the_reader(text: str) -> bool:
    fast = read_block(text, Budget())
    # a difference between 1, 1.0 and true matters
    return fast is None or repr(fast) == repr(read_all(text, Budget()))


@settings(max_examples=10 * settings.default.max_examples)
@given(BLOCK_TEXTS | BLOCK_PIECES)
def test_any_text_is_read_as_the_reader_reads_it_or_left_to_it(text: str) -> None:
    assert same_as_the_reader(text)


@given(st.lists(WRITTEN, max_size=3))
def test_what_the_writer_wrote_is_read_as_the_reader_reads_it(values: list[Any]) -> None:
    assert same_as_the_reader(write_documents(values))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing\n",
        "---\n---\na: 1\n",
        "a:\nb:\n- c: 1\n  d:\n  - - e\n    - f: g\n  h: {}\n",
        "a: 1\n\n---\n- x\n# c\n- y: 0x1f\n---\n",
        "image: registry.example.com:5000/a/b:v1.2\nargs:\n- --queue\n- \"main queue\"\n- '{{ .BuildID }}'\n",
        "y: no\n",
        "fieldsV1:\n  f:spec:\n    f:replicas: {}\n",
    ],
)
def test_manifests_as_programs_write_them_take_the_fast_path(text: str) -> None:
    assert read_block(text, Budget()) == read_all(text, Budget())


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2\n",
        "a: b: c\n",
        "a: b\n  c\n",
        "a: b\n  c: d\n",
        "- a\n - b\n",
        "a:\n  b\n",
        "a: |\n  b\n",
        "a: &x b\n",
        "a: b # c\n",
        "- \n",
        "a: .inf\n",
        "null: 1\n",
        "a: é\n",
        "a: b\r\n",
        "--- a\n",
        "  a: 1\n",
        "a: 1\n- b\n",
    ],
)
def test_all_else_is_left_to_the_reader(text: str) -> None:
    assert read_block(text, Budget()) is None


def test_what_is_read_counts_towards_the_limits() -> None:
    text = "---\na: 1\nb:\n- c\n- d\n---\ne: f\n"
    budget = Budget()
    read_block(text, budget)
    assert (budget.documents, budget.nodes) == (2, 5)
    assert read_block(text, Budget(Limits(nodes=4))) is None
    assert read_block(text, Budget(Limits(documents=1))) is None
    assert read_block(text, Budget(Limits(depth=1))) is None


def test_text_longer_than_a_window_is_read_whole() -> None:
    values = [{"items": [{"name": f"n{number}", "list": [number, {}]} for number in range(4000)]}]
    text = write_documents(values)
    assert read_block(text, Budget()) == values == read_documents(text)
