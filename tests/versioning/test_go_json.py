from typing import Any

import pytest

from twgen.versioning.stored_form import template_json


def test_empty_template_still_has_what_go_never_leaves_out() -> None:
    assert template_json({}) == '{"metadata":{},"spec":{"containers":null}}'


def test_fields_come_in_gos_order_and_map_keys_sorted_by_bytes() -> None:
    labels = {"b": "1", "\U0001f600": "3", "\uffee": "2", "a": "0"}
    template = {"spec": {"containers": [], "volumes": []}, "metadata": {"labels": labels, "name": "x"}}
    assert template_json(template) == (
        '{"metadata":{"name":"x","labels":{"a":"0","b":"1","\uffee":"2","\U0001f600":"3"}},"spec":{"containers":[]}}'
    )


@pytest.mark.parametrize(
    ("text", "encoded"),
    [
        ("<a href='x'>&</a>", "\\u003ca href='x'\\u003e\\u0026\\u003c/a\\u003e"),
        ("\u2028\u2029", "\\u2028\\u2029"),
        ('"\\', '\\"\\\\'),
        ("\b\f\n\r\t", "\\b\\f\\n\\r\\t"),
        ("\x00\x1b\x7f", "\\u0000\\u001b\x7f"),
        ("é日😀", "é日😀"),
    ],
)
def test_strings_are_escaped_as_go_escapes_them(text: str, encoded: str) -> None:
    assert template_json({"metadata": {"name": text}}).startswith(f'{{"metadata":{{"name":"{encoded}"}}')


def test_pointer_to_zero_is_written_and_a_plain_zero_is_not() -> None:
    spec = _spec(
        {"hostNetwork": False, "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0}
    )
    assert spec == '"terminationGracePeriodSeconds":0,"automountServiceAccountToken":false'


def test_quantity_that_is_no_pointer_is_written_when_absent() -> None:
    field_ref = {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}
    encoded = template_json({"spec": {"containers": [{"name": "w", "env": [field_ref]}]}})
    assert '{"resourceFieldRef":{"resource":"limits.cpu","divisor":"0"}}' in encoded


def _spec(fields: dict[str, Any]) -> str:
    encoded = template_json({"spec": fields})
    return encoded.removeprefix('{"metadata":{},"spec":{"containers":null,').removesuffix("}}")
