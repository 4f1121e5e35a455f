"""Build IDs, as the Temporal Worker Controller makes them."""

import re

from twgen.versioning.images import image_version
from twgen.versioning.names import truncated

LONGEST_BUILD_ID = 63
_NOT_A_LABEL = re.compile(r"[^a-zA-Z0-9._-]+")
_SAFE_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # k8s.io/apimachinery/pkg/util/rand: no vowels, so no words
_SAFE_DIGITS = {ord(digit): _SAFE_ALPHABET[ord(digit) % len(_SAFE_ALPHABET)] for digit in "0123456789"}
_HASH_VALUES = 10_000
_FNV_OFFSET = 0x811C9DC5
_FNV_PRIME = 0x01000193
_LOW_32_BITS = 0xFFFFFFFF


def build_id(template_json: str, image: str, custom: str) -> str:
    """Return the build ID of a stored pod template.

    `template_json` is Go's JSON of the template, `image` that of its first container ("" for none), `custom`
    the build ID that the spec asks for ("" for none; one of which cleaning leaves nothing counts as none).
    """
    if cleaned := cleaned_build_id(custom):
        return cleaned[:LONGEST_BUILD_ID]
    template_hash = _fnv32(template_json.encode()) % _HASH_VALUES
    if not image:
        return f"{template_hash:010}".translate(_SAFE_DIGITS)
    suffix = f"-{template_hash:04}".translate(_SAFE_DIGITS)
    return cleaned_build_id(truncated(image_version(image), LONGEST_BUILD_ID - len(suffix)) + suffix)


def cleaned_build_id(text: str) -> str:
    """Return text with what a label value cannot hold replaced by `-`, and no separators at its ends."""
    return _NOT_A_LABEL.sub("-", text).strip("-._")


def _fnv32(data: bytes) -> int:
    """Return the 32-bit FNV-1a hash; four bytes at a time, as this loop is most of what a build ID costs."""
    value, prime = _FNV_OFFSET, _FNV_PRIME
    left_over = len(data) % 4
    fours = iter(data[: len(data) - left_over])
    for a, b, c, d in zip(fours, fours, fours, fours, strict=True):
        value = ((((value ^ a) * prime ^ b) * prime ^ c) * prime ^ d) * prime & _LOW_32_BITS
    for a in data[len(data) - left_over :]:
        value = (value ^ a) * prime & _LOW_32_BITS
    return value
