"""Resolve references between the variables of a container, as Kubernetes does.

https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from twgen.versioning.injection import is_ever_injected

_REFERENCE = re.compile(r"\$\$|\$\(([^)]+)\)")
_OF_A_SERVICE = re.compile("_SERVICE_HOST$|_(SERVICE_)?PORT(_|$)")
"""The suffixes of the variables that a pod gets for each Service of its namespace."""
Values = Mapping[str, str | None]
"""The values of variables by name; None: only the cluster knows it."""


def known_value(variable: Mapping[str, Any], before: Values) -> str | None:
    """The value of a variable for the program; `before` are the variables above it."""
    text = variable.get("value") or ""
    if variable.get("valueFrom") or not isinstance(text, str):
        return None
    if any(before.get(name) is None for name in references(text)):
        return None
    return _REFERENCE.sub(lambda reference: (before[reference[1]] or "") if reference[1] else "$", text)


def references(text: str) -> list[str]:
    """The names of the variables that a text refers to."""
    return [reference[1] for reference in _REFERENCE.finditer(text) if reference[1]]


def with_references(text: str, fill: Callable[[str], str | None]) -> str:
    """The text with each reference replaced by its value from `fill`; None: the reference stays."""

    def filled(match: re.Match[str]) -> str:
        value = fill(match[1]) if match[1] else None
        return match[0] if value is None else value.replace("$", "$$")

    return _REFERENCE.sub(filled, text)


def unfilled_references(
    container: Mapping[str, Any], added: Collection[str]
) -> Iterator[tuple[str, str, bool]]:
    """Each reference that is not replaced: its path, its name, and whether a later variable has that name.

    `added` are the variables that twgen adds after the container's own. If no variable has the name, only
    names of Temporal are reported: a shell uses the same form for commands. With `envFrom`, none is.
    """
    variables = [variable or {} for variable in container.get("env") or ()]
    names = [variable.get("name") for variable in variables]
    texts = [(f"env[{index}].value", item.get("value") or "") for index, item in enumerate(variables)]
    for index, (path, text) in enumerate(() if container.get("envFrom") else texts):
        for name in references(text):
            if name not in names[: index + 1] and (name in added or name in names):
                yield path, name, True
    for field in ("command", "args"):
        texts += [(f"{field}[{index}]", text or "") for index, text in enumerate(container.get(field) or ())]
    for path, text in () if container.get("envFrom") else texts:
        for name in references(text):
            is_misspelt = name.startswith("TEMPORAL_") and not _OF_A_SERVICE.search(name)
            if name not in names and name not in added and (is_misspelt or is_ever_injected(name)):
                yield path, name, False
