"""Removes the credentials that this process has sent from messages, in all forms that a server may return."""

import json
import re
from base64 import b64encode
from collections.abc import Iterable
from functools import lru_cache
from html import escape
from urllib.parse import quote, quote_plus

LEAST_EVERYWHERE = 16
"""The fewest characters of a remembered credential. A shorter one might be an ordinary word."""
_MOST = 64
"""How many credentials are remembered. Credentials are renewed, so the oldest are forgotten."""
_LEAST_PART = 8
"""The fewest characters of a part of a base64 text that is searched for."""
_LEAST_RUN = 12
"""How many consecutive letters and digits of a credential are recognized as a part of it."""
_INSTEAD = "..."
_PERCENT = re.compile("%[0-9A-F]{2}")
_OF_URLS = str.maketrans("+/", "-_")
_sent: dict[str, None] = {}


def remember(secrets: Iterable[str]) -> None:
    """Remember these secrets, to hide them in all later messages."""
    for secret in secrets:
        if len(secret) >= LEAST_EVERYWHERE:
            _sent.pop(secret, None)
            _sent[secret] = None
    while len(_sent) > _MOST:
        del _sent[next(iter(_sent))]


def without_credentials(text: str, secrets: tuple[str, ...] = ()) -> str:
    """The text with `...` instead of these secrets and all remembered secrets."""
    if not (secrets or _sent):
        return text
    text = _pattern((*secrets, *_sent)).sub(_INSTEAD, text)
    for secret in secrets:
        text = _without_runs(text, secret)
    return text


def _without_runs(text: str, secret: str) -> str:
    """The text without parts of a secret, even if the secret was cut, wrapped, escaped or changed in case."""
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
    # the longest first, because the base64 of user and password begins with the base64 of the user
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
        # the base64 of a longer text with the secret in it: only the characters in the middle are known,
        # because the first and the last depend on the text before and after the secret
        characters = b64encode(bytes(before) + content).decode()
        part = characters[-(-before * 8 // 6) : (before + len(content)) * 8 // 6]
        if len(part) >= _LEAST_PART:
            yield part
            yield part.translate(_OF_URLS)
