from typing import Any

import pytest

from twgen.yaml.reader import read_documents
from twgen.yaml.scalars import NotAScalar, resolve_key, resolve_plain, resolve_tagged
from twgen.yaml.source import YamlError

TAG = "tag:yaml.org,2002:"


def test_every_vector_is_read_as_kubernetes_reads_it(yaml_vectors: list[dict[str, Any]]) -> None:
    for case in yaml_vectors:
        text = case.get("document", f"v: {case.get('yaml')}")
        if case.get("error") or case.get("strictError"):
            with pytest.raises(YamlError):
                read_documents(text)
        else:
            found = read_documents(text)
            assert (found[0] if found else None) == case["json"], text


# the rows below were produced by sigs.k8s.io/yaml 1.6.0
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yEs", "yEs"),
        ("0b-101", -5),
        ("-0b101", -5),
        ("0x_1f", 31),
        ("0b12", "0b12"),
        ("0o8", "0o8"),
        ("0xFFFFFFFFFFFFFFFF", 2**64 - 1),
        ("0x1FFFFFFFFFFFFFFFF", "0x1FFFFFFFFFFFFFFFF"),
        ("+18446744073709551615", 18446744073709552000),
        ("-9223372036854775809", -9223372036854776000),
        ("18446744073709551616", 18446744073709552000),
        ("0777777777777777777777777", 777777777777777800000000.0),
        ("1_0.5", 10.5),
        (".5_0", 0.5),
        (".5_", ".5_"),
        ("._5", "._5"),
        (".5e1_0", 5000000000),
        ("1e400", "1e400"),
        ("1e-400", 0),
        (".", "."),
        ("-", "-"),
        ("1e", "1e"),
    ],
)
def test_an_unquoted_scalar_is_what_go_makes_of_it(text: str, value: Any) -> None:
    found = resolve_plain(text)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("y", "true"),
        ("off", "false"),
        ("0x10", "16"),
        ("08", "8"),
        ("1.5", "1.5"),
        ("1e3", "1000"),
        ("1234567.0", "1.234567e+06"),
        ("100000.0", "100000"),
        ("123456.7", "123456.7"),
        ("16777217.0", "1.6777216e+07"),
        ("0.0001", "0.0001"),
        ("0.00001", "1e-05"),
        ("0.1", "0.1"),
        ("1e21", "1e+21"),
        ("3.4e39", ".inf"),
        ("-.inf", "-.inf"),
        (".nan", ".nan"),
        ("1e-50", "0"),
        ("2026-11-21", "2026-11-21"),
    ],
)
def test_an_unquoted_key_becomes_a_string(text: str, key: str) -> None:
    assert resolve_key(text) == key


@pytest.mark.parametrize("text", ["null", "~", "", "18446744073709551615"])
def test_a_key_that_kubernetes_refuses_is_refused(text: str) -> None:
    with pytest.raises(NotAScalar, match="cannot be a key: quote it"):
        resolve_key(text)


@pytest.mark.parametrize(
    ("tag", "text", "value"),
    [
        ("str", "1", "1"),
        ("int", "0x10", 16),
        ("float", "1", 1),
        ("bool", "yes", True),
        ("null", "", None),
        ("binary", "aGk=", "hi"),
        ("binary", "YfCfYg==", "a\ufffd\ufffdb"),
        ("timestamp", "2026-11-21", "2026-11-21"),
        ("other", "1", "1"),
    ],
)
def test_a_tag_decides(tag: str, text: str, value: Any) -> None:
    assert resolve_tagged(TAG + tag, text) == value


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        ("int", "1.5"),
        ("float", "x"),
        ("bool", "1"),
        ("null", "1"),
        ("binary", "a"),
        ("timestamp", "x"),
        ("float", ".inf"),
    ],
)
def test_a_text_that_its_tag_contradicts_is_refused(tag: str, text: str) -> None:
    with pytest.raises(NotAScalar):
        resolve_tagged(TAG + tag, text)
