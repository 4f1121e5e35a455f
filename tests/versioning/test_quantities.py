from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.versioning.vectors import vectors
from twgen.versioning.quantities import canonical_quantity, quantity_text


@pytest.mark.parametrize(
    "case", [case for case in vectors("quantities.json") if "json" in case], ids=lambda case: case["quantity"]
)
def test_quantity_is_written_as_go_writes_it(case: dict[str, Any]) -> None:
    assert canonical_quantity(case["quantity"]) == case["json"]


@pytest.mark.parametrize(
    "case",
    [case for case in vectors("quantities.json") if "error" in case],
    ids=lambda case: case["quantity"],
)
def test_text_that_is_no_quantity_is_an_error(case: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        canonical_quantity(case["quantity"])


def test_enormous_exponents_cost_nothing() -> None:
    assert canonical_quantity("1e-2147483647") == "1e-9"
    assert canonical_quantity("1e2147483646") == "1e2147483646"
    assert canonical_quantity("10000e4294967296") == "10e3"
    with pytest.raises(ValueError, match="is not a quantity"):
        canonical_quantity("1e9223372036854775808")


@pytest.mark.parametrize("text", ["1" * 1_000_000 + "x", "0" * 1_000_000 + "x", "1e" * 500_000])
def test_long_text_takes_no_longer_than_its_length(text: str) -> None:
    started = process_time()
    with pytest.raises(ValueError, match="is not a quantity"):
        canonical_quantity(text)
    assert process_time() - started < 5


@given(
    st.from_regex(r"[+-]?[0-9]{1,25}(\.[0-9]{0,15})?(n|u|m|k|M|G|T|P|Ki|Mi|Gi|Ti|e-?[0-9])?", fullmatch=True)
)
def test_canonical_text_is_canonical(text: str) -> None:
    canonical = canonical_quantity(text)
    assert canonical_quantity(canonical) == canonical


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1.50", "1.50"),
        (2, "2"),
        (2.0, "2"),
        (-0.0, "-0"),
        (0.25, "0.25"),
        (1e-5, "0.00001"),
        (1e-7, "1e-7"),
        (1.5e-10, "1.5e-10"),
        (1e17, "100000000000000000"),
        (1.2345678901234567e19, "12345678901234567000"),
        (1e21, "1e+21"),
        (2**63 - 1, "9223372036854775807"),
        (2**63, "9223372036854776000"),
        (2**70, "1.1805916207174113e+21"),
    ],
)
def test_number_is_read_as_its_json(value: str | float, text: str) -> None:
    assert quantity_text(value) == text
