"""The values of scalars according to sigs.k8s.io/yaml, the parser of API servers and kubectl."""

import math
import re
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

from twgen.yaml.source import replace_surrogates

_T = TypeVar("_T")
Scalar = str | int | float | bool | None

_TAG = "tag:yaml.org,2002:"
_BINARY = _TAG + "binary"
_TIMESTAMP = _TAG + "timestamp"
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ].*)?")
_TAGGED: dict[str, type] = {
    _TAG + "bool": bool,
    _TAG + "int": int,
    _TAG + "float": float,
    _TAG + "null": type(None),
}
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_NOT_FINITE = {
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_NUMBER_START = frozenset("0123456789+-.")
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]{0,19}))")
_BASES = (16, 2, 8, 10)
# if Go's number parser rejects the text, Go's YAML package strips "0b", and then accepts a sign
_SIGNED_BINARY = re.compile(r"0b([-+])([01]+)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_FRACTION = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?")
_SMALLEST = -(2**63)
_LARGEST_SIGNED = 2**63 - 1
_LARGEST = 2**64 - 1
_LONGEST_INTEGER = 20  # both limits have this many characters
_FIRST_EXPONENT = 1e21  # from this value on, Go's encoding/json writes floats with an exponent
_KEY_EXPONENTS = range(-4, 6)  # Go's format 'g' writes floats in this range without an exponent
_SINGLE_DIGITS = 9  # enough decimal digits to distinguish any two 32-bit floats
NO_TEXT = "a key must be text, not a mapping or a list"
_MOST_REMEMBERED = 20_000  # more texts than manifests have, but still a limit for hostile input
_LONGEST_REMEMBERED = 200  # characters


class NotAScalar(ValueError):
    """A scalar that Kubernetes rejects. The message includes the remedy."""


def remembered(function: Callable[[str], _T]) -> Callable[[str], _T]:
    """Cache the results for short texts. Documents repeat them, and sharing the objects saves memory."""
    cached = lru_cache(_MOST_REMEMBERED)(function)
    return lambda text: cached(text) if len(text) <= _LONGEST_REMEMBERED else function(text)


@remembered
def resolve_plain(text: str) -> Scalar:
    """Return the value of an unquoted, untagged scalar; raises NotAScalar for infinities and NaN."""
    value = _resolve(text)
    return json_number(value) if isinstance(value, float) else value


def resolve_tagged(tag: str, text: str) -> Scalar:
    """Return the value of a scalar with an explicit tag; raises NotAScalar if the tag does not fit."""
    if tag == _BINARY:
        import base64  # imported here because binary values are rare

        try:
            content = base64.b64decode(text.replace("\n", ""), validate=True)
        except ValueError:
            raise NotAScalar("!!binary needs base64") from None
        return replace_surrogates(content.decode(errors="surrogateescape"))
    expected = _TAGGED.get(tag)
    value = _resolve(text) if expected else text
    is_right = expected is None or type(value) is expected or (expected is float and type(value) is int)
    if not is_right or (tag == _TIMESTAMP and not _DATE.fullmatch(text)):
        raise NotAScalar(f"this is not of type {tag.removeprefix(_TAG)}: drop the tag or quote the value")
    return json_number(value) if isinstance(value, float) else value


@remembered
def resolve_key(text: str) -> str:
    """Return the string for an unquoted key (`y` becomes "true", `0x10` becomes "16"). Raises NotAScalar."""
    return key_text(_resolve(text))


def key_text(value: Any) -> str:
    """Return the string for a key. Raises NotAScalar if sigs.k8s.io/yaml rejects the key."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float_key(value)
    if value is None:
        raise NotAScalar("null cannot be a key: quote it")
    if isinstance(value, dict | list):
        raise NotAScalar(NO_TEXT)
    if value > _LARGEST_SIGNED:
        raise NotAScalar(f"a number above {_LARGEST_SIGNED} cannot be a key: quote it")
    return str(value)


def json_number(value: float) -> int | float:
    """Return the number that Go's encoding/json writes (1 for 1.0); raises NotAScalar unless it is finite."""
    if not math.isfinite(value):
        raise NotAScalar("infinity and NaN are not JSON numbers: quote the value")
    if not value.is_integer() or abs(value) >= _FIRST_EXPONENT:
        return value
    digits, _, exponent = repr(value).partition("e")
    whole, _, fraction = digits.partition(".")
    # the shortest digits, padded with zeros, even if the exact integer differs
    return int(whole + fraction) * 10 ** (int(exponent) - len(fraction)) if exponent else int(whole)


def json_integer(digits: str) -> int | float:
    """Return a decimal integer, or a float beyond 64 bits, as in Go. Raises NotAScalar for infinity."""
    if len(digits) <= _LONGEST_INTEGER and _SMALLEST <= (value := int(digits)) <= _LARGEST:
        return value
    return json_number(float(digits))


def _resolve(text: str) -> Scalar:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_START:
        return text
    if text in _NOT_FINITE:
        return _NOT_FINITE[text]
    # if the text starts with a point, Go uses its float parser, which allows fewer underscores
    digits = text if text[0] == "." else text.replace("_", "")
    integer = _integer(digits)
    pattern = _FRACTION if text[0] == "." else _FLOAT
    if integer is not None:
        return integer
    return value if pattern.fullmatch(digits) and math.isfinite(value := float(digits)) else text


def _integer(digits: str) -> int | None:
    if matched := _SIGNED_BINARY.fullmatch(digits):
        value = int(matched[1] + matched[2], 2)
    elif (matched := _INTEGER.fullmatch(digits)) and matched.lastindex:
        value = int(matched[1] + matched[matched.lastindex], _BASES[matched.lastindex - 2])
    else:
        return None
    # beyond int64, Go tries its unsigned parser, which rejects signs
    return value if _SMALLEST <= value <= (_LARGEST_SIGNED if matched[1] else _LARGEST) else None


def _float_key(value: float) -> str:
    """Write a key like Go's FormatFloat(value, 'g', -1, 32): sigs.k8s.io/yaml rounds keys to 32 bits."""
    if math.isnan(value):
        return ".nan"
    try:
        single = struct.pack("f", value)
    except OverflowError:
        single = struct.pack("f", math.copysign(math.inf, value))
    (rounded,) = struct.unpack("f", single)
    if math.isinf(rounded):
        return ".inf" if rounded > 0 else "-.inf"
    tries = (f"{rounded:.{digits}e}" for digits in range(_SINGLE_DIGITS))
    shortest = next(text for text in tries if struct.pack("f", float(text)) == single)
    mantissa, _, exponent = shortest.partition("e")
    if int(exponent) not in _KEY_EXPONENTS:
        return shortest
    return f"{float(shortest):.{max(0, len(mantissa.partition('.')[2]) - int(exponent))}f}"
