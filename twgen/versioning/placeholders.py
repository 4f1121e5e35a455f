"""The three names that an attached resource may ask for in any of its strings; nothing is ever executed."""

import re
from collections.abc import Mapping

_PLACEHOLDER = re.compile(r"\{\{\s*\.(DeploymentName|BuildID|TemporalNamespace)\s*\}\}")


def unknown_placeholder(text: str) -> bool:
    """The text has braces that are none of the three placeholders."""
    return "{{" in text and "{{" in _PLACEHOLDER.sub("", text)


def filled(text: str, names: Mapping[str, str]) -> str:
    """The text with DeploymentName, BuildID and TemporalNamespace put in."""
    return _PLACEHOLDER.sub(lambda found: names[found[1]], text) if "{{" in text else text
