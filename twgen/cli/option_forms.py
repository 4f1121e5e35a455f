"""The forms of option values: each form has the meaning of a text, or its mistake."""

import json
import os
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import click

from twgen.model.problem import did_you_mean, quoted


class Form(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases of click
    """A text of a certain form; `meaning` returns its value, or raises ValueError with the mistake."""

    def __init__(self, name: str, meaning: Callable[[str], object] = str) -> None:
        self.name = name
        self._meaning = meaning

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """The value of the text; an empty text is an unset variable of a script, never a default."""
        if not value and isinstance(param, click.Option):
            self.fail("must not be empty", param, ctx)
        try:
            return self._meaning(value)
        except ValueError as error:
            self.fail(f"{quoted(value)} {error}", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:  # noqa: ARG002
        """For a file, the request that the shell completes file names itself."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")] if self.name in {"FILE", "PATH"} else []


class Choice(click.Choice):  # type: ignore[type-arg]  # as above
    """One of a few words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The word, if it is one of them."""
        words = list(map(str, self.choices))
        if value not in words:
            message = f"{quoted(value)} is not one of {', '.join(words)}{did_you_mean(value, words)}"
            self.fail(message, param, ctx)
        return value


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("contains a character that cannot be printed")
    return text


def _identity(text: str) -> str:
    """The manager identity in Temporal's form."""
    from twgen.model.forms import IDENTITY
    from twgen.model.operator import manager_identity
    from twgen.model.shapes import fits

    if not fits(IDENTITY, _printable(text)):
        raise ValueError("is not a valid identity: one line without empty parts, such as payments/prod")
    return manager_identity(text)


def _time(text: str) -> datetime:
    from twgen.model.times import SUCH_AS, parse_time

    try:
        return parse_time(text)
    except ValueError as error:
        raise ValueError(f"is not {SUCH_AS}") from error


def _duration(text: str) -> timedelta:
    """The duration, which may also be `2d` or `10min`."""
    from twgen.model.times import go_duration, parse_duration

    try:
        return parse_duration(go_duration(text) or text)
    except ValueError as error:
        such_as = f"{text}s, {text}m or {text}h" if text.isdecimal() else "90s or 1h30m"
        raise ValueError(f"is not a duration such as {such_as}") from error


def _reading_time(text: str) -> float:
    """The seconds of a duration that is not zero."""
    if not (seconds := _duration(text).total_seconds()):
        raise ValueError("is zero, which leaves no time to read anything")
    return seconds


def _interval(text: str) -> timedelta:
    """A duration that a simulation can use as a step."""
    if (length := _duration(text)) < timedelta(seconds=1):
        raise ValueError("is too short: it must be at least 1s")
    return length


def _gate(text: str) -> timedelta | None:
    """How long the gate takes; None: it fails."""
    try:
        return None if text == "fails" else _duration(text)
    except ValueError as error:
        raise ValueError(f"{error}, or 'fails'") from error


def _number(text: str, most: float) -> float:
    """A number above 0."""
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text, re.ASCII):
        raise ValueError("is not a number")
    if not 0 < (number := float(text)) <= most:
        percent = f": {text}% is {number / 100:g}" if 1 == most < number <= 100 else ""
        raise ValueError(f"must be above 0 and at most {most:g}{percent}")
    return number


_MOST_BYTES = 10 * 2**30
_ADDRESS = r"[^\s=/]+:\d{1,5}"
"""A host and a port."""


def _parts(form: str, mistake: str) -> Callable[[str], tuple[str, ...]]:
    """The groups of a regular expression; a text that does not match has this mistake."""

    def parts_of(text: str) -> tuple[str, ...]:
        if not (match := re.fullmatch(form, text)):
            raise ValueError(mistake)
        return match.groups()

    return parts_of


def _file_of_secret(text: str) -> tuple[str, str]:
    """The name of a Secret, and the file with its content."""
    secret, _, file = text.partition("=")
    if not secret or not file:
        raise ValueError("is not SECRET=FILE such as temporal-ca=ca.crt")
    return _printable(secret), file


def _prometheus(text: str) -> object:
    """A Prometheus without credentials, and its name."""
    from twgen.records.operator_config import server_of

    name, _, url = text.partition("=")
    try:
        return server_of(name, url)
    except ValueError as error:
        raise ValueError(f"is not NAME=URL such as shared=http://127.0.0.1:9090: {error}") from error


def _json(text: str) -> bytes:
    """JSON, as it was written."""
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError('is not JSON such as {"now": true} or "a text"') from error
    return text.encode()


def _count(text: str) -> int:
    """A whole number from 1."""
    if not re.fullmatch(r"[1-9]\d{0,4}", text, re.ASCII):
        raise ValueError("is not a whole number from 1 to 99999")
    return int(text)


def _ordinal(text: str) -> int:
    """A whole number from 0."""
    return 0 if text == "0" else _count(text)


def _bytes(text: str) -> int:
    """A number of bytes in Kubernetes' notation."""
    from twgen.versioning.quantities import quantity_nanos

    try:
        number = quantity_nanos(text) // 10**9
    except ValueError as error:
        raise ValueError("is not a number of bytes such as 64Mi") from error
    if not 1 <= number <= _MOST_BYTES:
        raise ValueError("is not from 1 to 10Gi")
    return number


def _names(text: str) -> tuple[str, ...]:
    """Names between commas or on lines."""
    names = tuple(name.strip() for name in re.split("[,\n]", text))
    if not all(names):
        raise ValueError("is not NAME,NAME: one name is empty")
    return tuple(map(_printable, names))


def _kube_version(text: str) -> str:
    """A version of Kubernetes, by helm's rules."""
    if not re.fullmatch(r"v?\d+(\.\d+){0,2}([-+][0-9A-Za-z.+-]+)?", text, re.ASCII):
        raise ValueError("is not a version such as 1.36 or v1.36.1")
    return text


def release_name(text: str) -> str:
    """The name of a release, by helm's rules; raises ValueError."""
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9.]{0,51}[a-z0-9])?", text):
        raise ValueError("is not a valid release name: at most 53 lower-case letters, digits, - and .")
    return text


def _values(text: str) -> str:
    from twgen.errors import InvalidInput
    from twgen.yaml.reader import read_documents

    try:
        documents = read_documents(os.fsencode(text))
    except InvalidInput:  # helm reports the mistake
        return text
    if not all(isinstance(value, dict | None) for value in documents):
        raise ValueError("must be a YAML mapping such as 'replicas: 2'; for a file, use --value-files")
    return text


FILE = Form("FILE")
FOLDER = Form("FOLDER")
COUNT = Form("NUMBER", _count)
ORDINAL = Form("NUMBER", _ordinal)
BYTES = Form("BYTES", _bytes)
FILES = Form("FILE,FILE", _names)
NAMES = Form("NAME,NAME", _names)
KUBE_VERSION = Form("VERSION", _kube_version)
RELEASE = Form("NAME", release_name)
VALUES = Form("YAML", _values)
NAME = Form("NAME", _printable)
IDENTITY = Form("NAME", _identity)
READING_TIME = Form("DURATION", _reading_time)
DURATION = Form("DURATION", _duration)
INTERVAL = Form("DURATION", _interval)
STARTS = Form("NUMBER", partial(_number, most=100_000))
RATIO = Form("RATIO", partial(_number, most=1))
TIME = Form("TIME", _time)
ADDRESSES = Form(
    "ADDRESS=ADDRESS",
    _parts(
        f"({_ADDRESS})=({_ADDRESS})", "is not ADDRESS=ADDRESS such as temporal.prod.svc:7233=127.0.0.1:7233"
    ),
)
FILE_OF_SECRET = Form("SECRET=FILE", _file_of_secret)
OBJECT = Form(
    "NAMESPACE/NAME", _parts("([a-z0-9-]{1,63})/([a-z0-9][a-z0-9.-]{0,252})", "is not NAMESPACE/NAME")
)
GATE = Form("DURATION|fails", _gate)
JSON = Form("JSON", _json)
PROMETHEUS = Form("NAME=URL", _prometheus)
