"""Redacts credentials in messages, in every encoding in which a server may return them."""

import json
import re
from base64 import b64encode
from collections.abc import Iterable
from functools import lru_cache
from html import escape
from urllib.parse import quote, quote_plus

LEAST_EVERYWHERE = 16
"""The minimum length of a remembered credential. A shorter credential might be an ordinary word."""
_MOST = 64
"""The maximum number of remembered credentials. When credentials are renewed, the oldest are forgotten."""
_LEAST_PART = 8
"""The minimum length of a base64 fragment that is redacted."""
_LEAST_RUN = 12
"""The minimum number of consecutive letters and digits that identify a part of a credential."""
_INSTEAD = "..."
_PERCENT = re.compile("%[0-9A-F]{2}")
_OF_URLS = str.maketrans("+/", "-_")
_sent: dict[str, None] = {}


def remember(secrets: Iterable[str]) -> None:
    """Remember these secrets, so that they are redacted in all later messages."""
    for secret in secrets:
        if len(secret) >= LEAST_EVERYWHERE:
            _sent.pop(secret, None)
            _sent[secret] = None
    while len(_sent) > _MOST:
        del _sent[next(iter(_sent))]


def without_credentials(text: str, secrets: tuple[str, ...] = ()) -> str:
    """Replace these secrets and all remembered secrets in a text with `...`."""
    if not (secrets or _sent):
        return text
    text = _pattern((*secrets, *_sent)).sub(_INSTEAD, text)
    for secret in secrets:
        text = _without_runs(text, secret)
    return text


def _without_runs(text: str, secret: str) -> str:
    """Redact parts of a secret, even if the secret was truncated, wrapped, escaped or changed in case."""
    own = "".join(character.lower() for character in secret if character.isalnum())
    places = [place for place, character in enumerate(text) if character.isalnum()]
    letters = "".join(text[place].lower()[:1] for place in places)
    kept, shown = "", 0
    for first in range(len(letters) - _LEAST_RUN + 1):
        if letters[first : first + _LEAST_RUN] in own:
            begins, ends = places[first], places[first + _LEAST_RUN - 1] + 1
            kept += f"{text[shown:begins]}{_INSTEAD}" if begins >= shown else ""
            shown = ends
    return kept + text[shown:]


@lru_cache(8)
def _pattern(secrets: tuple[str, ...]) -> re.Pattern[str]:
    forms = {form for secret in secrets for form in _forms(secret) if form}
    # the longest first, because the base64 of `user:password` begins with the base64 of `user`
    return re.compile("|".join(map(re.escape, sorted(forms, key=lambda form: (-len(form), form)))) or "(?!)")


def _forms(secret: str) -> Iterable[str]:
    yield secret
    yield " ".join(secret.split())
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    for quoted in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        yield quoted
        yield _PERCENT.sub(lambda code: code[0].lower(), quoted)
    yield escape(secret)
    content = secret.encode(errors="replace")
    whole = b64encode(content).decode()
    yield whole
    yield whole.translate(_OF_URLS)
    for before in range(3):
        # if a longer text contains the secret, only the middle characters of its base64 are known, because
        # the first and the last characters depend on the surrounding text
        characters = b64encode(bytes(before) + content).decode()
        part = characters[-(-before * 8 // 6) : (before + len(content)) * 8 // 6]
        if len(part) >= _LEAST_PART:
            yield part
            yield part.translate(_OF_URLS)
