"""What was sent to a server is shown by nobody, in whatever form it comes back."""

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from html import escape
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twgen.model import credentials
from twgen.model.credentials import remember, without_credentials

SECRET = "eyJ-a/long+secret~key?"  # noqa: S105
KEYS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=16, max_size=40)
BESIDE = st.binary(max_size=7)


@pytest.fixture(autouse=True)
def _nothing_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "_sent", {})


@pytest.mark.parametrize(
    "form",
    [
        str,
        lambda text: json.dumps(text)[1:-1],
        lambda text: quote(text, safe=""),
        quote,
        quote_plus,
        lambda text: re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), quote(text)),
        escape,
        lambda text: b64encode(text.encode()).decode(),
        lambda text: urlsafe_b64encode(text.encode()).decode(),
    ],
)
@given(key=KEYS)
def test_key_is_replaced_however_it_is_written(form: Callable[[str], str], key: str) -> None:
    told = without_credentials(f"was sent <{form(key)}>", (key,))
    assert told in {"was sent <...>", "was sent <...=>", "was sent <...==>"}


@given(KEYS, BESIDE, BESIDE)
def test_base64_of_a_text_around_a_key_does_not_tell_it(key: str, before: bytes, after: bytes) -> None:
    for encode in (b64encode, urlsafe_b64encode):
        encoded = encode(before + key.encode() + after).decode()
        told = without_credentials(encoded, (key,))
        assert "..." in told
        # what is left of it tells no more than a part of its first and its last character
        assert len(told) <= len(encoded) - len(key) * 8 // 6 + 2 + len("...")


@pytest.mark.parametrize(
    "form",
    [
        lambda text: text[:24],
        lambda text: text[5:],
        str.swapcase,
        lambda text: "\n".join((text[:20], text[20:])),
        lambda text: "\u200b".join((text[:20], text[20:])),
        "-".join,
    ],
)
def test_what_is_left_of_a_key_is_replaced_too(form: Callable[[str], str]) -> None:
    told = without_credentials(f"token {form(SECRET)} of shop", (SECRET,))
    assert re.fullmatch(r"token [^a-zA-Z0-9]+ of shop", told)


def test_blanks_of_a_password_may_have_become_one() -> None:
    assert without_credentials("was sent two blanks", ("two  blanks",)) == "was sent ..."


def test_what_was_sent_is_looked_for_everywhere_and_a_short_word_is_not() -> None:
    remember((SECRET, "payments", ""))
    assert without_credentials(f"shop/payments {SECRET}") == "shop/payments ..."
    assert without_credentials("shop/payments", ("payments",)) == "shop/..."
    assert not without_credentials("", (SECRET,))


def test_newest_credentials_are_remembered_and_no_more() -> None:
    keys = [f"{SECRET}-{number:03}-" for number in range(100)]
    for key in keys:
        remember((key,))
    remember(keys[50:51])
    shown = [key for key in keys if without_credentials(key) == key]
    assert shown == keys[:36]
