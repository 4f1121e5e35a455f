"""Container image references, by the grammar of github.com/distribution/reference."""

import re
from functools import cache

_LONGEST_PATH = 255
_DIGEST_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128}


def image_version(image: str) -> str:
    """Return the tag of an image reference, else its digest's hex digits, else its path without the registry.

    Text that is no image reference is returned as it is.
    """
    parts = _reference().fullmatch(image)
    if parts is None or len(parts["path"]) > _LONGEST_PATH:
        return image
    algorithm, _, encoded = (parts["digest"] or "").partition(":")
    if encoded and (len(encoded) != _DIGEST_LENGTHS.get(algorithm) or encoded != encoded.lower()):
        return image
    return parts["tag"] or encoded or parts["path"]


def image_tag(image: str) -> str:
    """Return what stands for the tag of an image, "" when nothing does; any text will do."""
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
