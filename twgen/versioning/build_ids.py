"""Compute build IDs exactly as the Temporal Worker Controller does, and the hashes recorded on versions."""

import re
from functools import cache, lru_cache
from hashlib import sha256

from twgen.model.forms import LONGEST_BUILD_ID
from twgen.model.spec import Connection
from twgen.versioning.names import truncated

_DIGEST_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128}


def image_version(image: str) -> str:
    """Return an image reference's tag, else its digest in hex, else its path without the registry.

    Text that is not an image reference is returned unchanged.
    """
    parts = _reference().fullmatch(image)
    if parts is None or len(parts["path"]) > 255:
        return image
    algorithm, _, encoded = (parts["digest"] or "").partition(":")
    if encoded and (len(encoded) != _DIGEST_LENGTHS.get(algorithm) or encoded != encoded.lower()):
        return image
    return parts["tag"] or encoded or parts["path"]


def is_image(text: str) -> bool:
    """Whether a node would accept the text as an image reference."""
    return _reference().fullmatch(text) is not None


def image_tag(image: str) -> str:
    """Return the tag of an image reference, which may be invalid; "" if there is no tag."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2]


@cache
def _reference() -> re.Pattern[str]:
    label = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
    host = rf"(?:{label}(?:\.{label})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
    component = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
    digest = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
    return re.compile(
        rf"(?:{host}/)?(?P<path>{component}(?:/{component})*)(?::(?P<tag>\w[\w.-]{{0,127}}))?(?:@(?P<digest>{digest}))?",
        re.ASCII,
    )


_NOT_A_LABEL = re.compile(r"[^a-zA-Z0-9._-]+")
_SAFE_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # k8s.io/apimachinery/pkg/util/rand leaves out vowels
_SAFE_DIGITS = {ord(digit): _SAFE_ALPHABET[ord(digit) % len(_SAFE_ALPHABET)] for digit in "0123456789"}
_HASH_VALUES = 10_000
_FNV_OFFSET = 0x811C9DC5
_FNV_PRIME = 0x01000193
_LOW_32_BITS = 0xFFFFFFFF


def build_id(template_json: str, image: str, custom: str) -> str:
    """Return the build ID of a stored pod template.

    `template_json` is Go's JSON of the template, `image` the image of its first container ("" for none), and
    `custom` the build ID in the spec ("" for none). `custom` is ignored if no valid characters are left after
    cleaning.
    """
    if cleaned := cleaned_build_id(custom):
        return cleaned[:LONGEST_BUILD_ID]
    template_hash = _fnv32(template_json.encode()) % _HASH_VALUES
    if not image:
        return f"{template_hash:010}".translate(_SAFE_DIGITS)
    suffix = f"-{template_hash:04}".translate(_SAFE_DIGITS)
    return cleaned_build_id(truncated(image_version(image), LONGEST_BUILD_ID - len(suffix)) + suffix)


def cleaned_build_id(text: str) -> str:
    """Replace characters that are invalid in a label value with `-`, and strip separators from both ends."""
    return _NOT_A_LABEL.sub("-", text).strip("-._")


def may_be_ours(text: str) -> bool:
    """Whether twgen could have made the build ID, which must be a valid label value on version objects."""
    return len(text) <= LONGEST_BUILD_ID and cleaned_build_id(text) == text


def _fnv32(data: bytes) -> int:
    """Return the 32-bit FNV-1a hash. The loop handles four bytes at a time for speed."""
    value, prime = _FNV_OFFSET, _FNV_PRIME
    left_over = len(data) % 4
    fours = iter(data[: len(data) - left_over])
    for a, b, c, d in zip(fours, fours, fours, fours, strict=True):
        value = ((((value ^ a) * prime ^ b) * prime ^ c) * prime ^ d) * prime & _LOW_32_BITS
    for a in data[len(data) - left_over :]:
        value = (value ^ a) * prime & _LOW_32_BITS
    return value


def pod_template_hash(template_json: str) -> str:
    """Return the hash of a stored pod template, given its JSON from Go's encoder."""
    return sha256(template_json.encode()).hexdigest()


@lru_cache
def connection_hash(connection: Connection) -> str:
    """Return the hash of a connection: its address, TLS server name and Secrets; "" without an address."""
    if not connection.host_port:
        return ""
    secrets = f"{connection.ca_secret}{connection.secret_name}"
    return sha256(f"{connection.host_port}{connection.tls_server_name}{secrets}".encode()).hexdigest()
