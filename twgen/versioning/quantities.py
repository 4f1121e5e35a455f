"""Kubernetes quantities (`500m`, `1.5Gi`, `2e3`), as Go formats them."""

import re
from functools import lru_cache

# the lookaheads leave only one way to match, because backtracking on a long text would take quadratic time
_QUANTITY = re.compile(r"([+-]?0*(?!0)([0-9]*)(?:\.([0-9]*))?)(?![0-9])([eEinumkKMGTP]*[+-]?[0-9]*)")
_SCIENTIFIC = re.compile(r"[eE][+-]?[0-9]+")
_DIGIT = re.compile(r"[0-9]")
_DECIMAL_SUFFIXES = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_DECIMAL_EXPONENTS = {suffix: exponent for exponent, suffix in _DECIMAL_SUFFIXES.items()}
_BINARY_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_BINARY_POWERS = {suffix: power for power, suffix in enumerate(_BINARY_SUFFIXES) if suffix}

_NANO = -9
_FAST_DIGITS = 18  # this many decimal digits always fit into an int64
_FAST_BINARY_DIGITS = 14  # three digits fewer for each power of 1024
_MAX_INT64 = 2**63 - 1
_BINARY_FROM = 1024
_LARGEST_EXPONENT = 60
_MOST_NANOS: int = 10**_LARGEST_EXPONENT
_PLAIN_FLOAT_FROM, _PLAIN_FLOAT_BELOW = 1e-6, 1e21


@lru_cache(maxsize=4096)
def canonical_quantity(text: str) -> str:
    """Return the text that Go's `resource.Quantity` marshals to after parsing `text`, or raise ValueError.

    The rules are from k8s.io/apimachinery/pkg/api/resource. A short number that looks canonical is not
    changed (`+5k`, `01`). Any other number is rounded away from zero to whole nanos, and gets the largest
    suffix that leaves no fraction.
    """
    number, whole, fraction, suffix = _parts(text)
    if (power := _BINARY_POWERS.get(suffix)) is not None:
        return _canonical_binary(text, number, whole or "0", fraction, power)
    return _canonical_decimal(
        text, number, (whole or "0") + fraction, _exponent(text, suffix) - len(fraction)
    )


def quantity_text(value: str | float) -> str:
    """Return the text that Go parses. A quantity that is a number becomes the number's JSON.

    As in Go, whole numbers outside int64 become floats, and floats of 1e21 or more, or below 1e-6, get an
    exponent.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, int) and -_MAX_INT64 - 1 <= value <= _MAX_INT64:
        return str(value)
    shortest = repr(float(value))
    if "e" not in shortest:
        return shortest.removesuffix(".0")
    if _PLAIN_FLOAT_FROM <= abs(value) < _PLAIN_FLOAT_BELOW:
        from decimal import Decimal

        return format(Decimal(shortest), "f")
    return shortest.replace("e-0", "e-")


@lru_cache(maxsize=4096)
def quantity_nanos(value: str | float) -> int:
    """Return a quantity in nanos (500000000 for `500m`), so that quantities can be compared.

    The result is at most 10**60. Raises ValueError if the text is not a quantity.
    """
    canonical = canonical_quantity(quantity_text(value))
    number, whole, fraction, suffix = _parts(canonical)
    power = _BINARY_POWERS.get(suffix, 0)
    exponent = 0 if power else min(_exponent(canonical, suffix), _LARGEST_EXPONENT)
    amount = int((whole + fraction) or "0") << 10 * power
    shift: int = 10 ** abs(exponent - len(fraction) - _NANO)
    amount = min(amount * shift if exponent - len(fraction) >= _NANO else amount // shift, _MOST_NANOS)
    return -amount if number.startswith("-") else amount


def _parts(text: str) -> tuple[str, str, str, str]:
    """The number, its digits before and after the point, and the suffix."""
    if not text or not (parts := _QUANTITY.fullmatch(text)):
        raise _not_a_quantity(text)
    return parts[1], parts[2], parts[3] or "", parts[4]


def _not_a_quantity(text: str) -> ValueError:
    return ValueError(f'"{text}" is not a quantity, such as 500m, 1.5 or 2Gi')


def _exponent(text: str, suffix: str) -> int:
    if suffix in _DECIMAL_EXPONENTS:
        return _DECIMAL_EXPONENTS[suffix]
    if not _SCIENTIFIC.fullmatch(suffix) or not -_MAX_INT64 - 1 <= int(suffix[1:]) <= _MAX_INT64:
        raise _not_a_quantity(text)
    return (int(suffix[1:]) + 2**31) % 2**32 - 2**31  # Go keeps the low 32 bits


def _canonical_decimal(text: str, number: str, digits: str, exponent: int) -> str:
    if len(digits) <= _FAST_DIGITS and exponent >= _NANO:
        if exponent % 3 == 0 and digits[0] != "0" and not digits.endswith("000"):
            return text
    elif not _DIGIT.search(number):
        raise _not_a_quantity(text)
    scientific = _SCIENTIFIC.search(text) is not None
    amount, exponent = _rounded(int(digits), exponent)
    return _sign(number, amount) + _decimal(amount, exponent, scientific=scientific)


def _canonical_binary(text: str, number: str, whole: str, fraction: str, power: int) -> str:
    if not fraction and len(whole) <= _FAST_BINARY_DIGITS - 3 * power:
        if int(whole) % 8:
            return text
    elif not _DIGIT.search(number):
        raise _not_a_quantity(text)
    amount, exponent = _rounded(int(whole + fraction) << 10 * power, -len(fraction))
    units, remainder = divmod(amount, 10**-exponent)
    if units > _MAX_INT64 or (units == _MAX_INT64 and remainder):
        units, remainder = _MAX_INT64, 0
    if remainder or units < _BINARY_FROM:
        return _sign(number, amount) + _decimal(amount, exponent, scientific=False)
    power = 0
    while units % _BINARY_FROM == 0:
        units //= _BINARY_FROM
        power += 1
    return f"{_sign(number, amount)}{units}{_BINARY_SUFFIXES[power]}"


def _sign(number: str, amount: int) -> str:
    return "-" if amount and number.startswith("-") else ""


def _rounded(amount: int, exponent: int) -> tuple[int, int]:
    if exponent >= _NANO:
        return amount, exponent
    places = _NANO - exponent
    if places > amount.bit_length():  # far below a nano, so 10**places may be too large to compute
        return min(amount, 1), _NANO
    return -(-amount // 10**places), _NANO


def _decimal(amount: int, exponent: int, *, scientific: bool) -> str:
    if not amount:
        return "0"
    digits = str(amount).rstrip("0")
    exponent += len(str(amount)) - len(digits)
    digits += "0" * (exponent % 3)
    exponent -= exponent % 3
    if scientific:
        return f"{digits}e{exponent}" if exponent else digits
    return digits + _DECIMAL_SUFFIXES.get(exponent, "")
