"""References of one variable of a container to another, as Kubernetes fills them in.

https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from twgen.versioning.injection import is_ever_injected

_REFERENCE = re.compile(r"\$\$|\$\(([^)]+)\)")
_OF_A_SERVICE = re.compile("_SERVICE_HOST$|_(SERVICE_)?PORT(_|$)")
"""How the variables end that a pod has of each Service of its namespace."""
Values = Mapping[str, str | None]
"""What variables say, by name; None: only the cluster knows."""


def known_value(variable: Mapping[str, Any], before: Values) -> str | None:
    """What the program gets in a variable; `before` are those that stand before it."""
    text = variable.get("value") or ""
    if variable.get("valueFrom") or not isinstance(text, str):
        return None
    if any(before.get(name) is None for name in references(text)):
        return None
    return _REFERENCE.sub(lambda found: (before[found[1]] or "") if found[1] else "$", text)


def references(text: str) -> list[str]:
    """The names that a text refers to."""
    return [found[1] for found in _REFERENCE.finditer(text) if found[1]]


def with_references(text: str, fill: Callable[[str], str | None]) -> str:
    """The text with what `fill` says in place of references, to be filled in no more; None: it stays."""

    def filled(found: re.Match[str]) -> str:
        said = fill(found[1]) if found[1] else None
        return found[0] if said is None else said.replace("$", "$$")

    return _REFERENCE.sub(filled, text)


def late_references(container: Mapping[str, Any], added: Collection[str]) -> Iterator[tuple[str, str]]:
    """What stays as it is written, since the variable that it refers to comes later: its path, and that name.

    `added` come after all others. Where variables come from elsewhere too, one of these may be meant.
    """
    variables = [variable or {} for variable in container.get("env") or ()]
    names = [variable.get("name") for variable in variables]
    for index, variable in enumerate(() if container.get("envFrom") else variables):
        for name in references(variable.get("value") or ""):
            if name not in names[: index + 1] and (name in added or name in names):
                yield f"env[{index}].value", name


def misspelt_references(container: Mapping[str, Any], added: Collection[str]) -> Iterator[tuple[str, str]]:
    """What stays as it is written, since no variable has the name that it refers to: its path, and that name.

    A shell has the same form for commands, so only Temporal's names count;
    `added` are the variables that the container gets besides its own.
    """
    names = {*added, *((variable or {}).get("name") for variable in container.get("env") or ())}
    for path, text in () if container.get("envFrom") else _texts(container):
        for name in references(text):
            is_misspelt = name.startswith("TEMPORAL_") and not _OF_A_SERVICE.search(name)
            if name not in names and (is_misspelt or is_ever_injected(name)):
                yield path, name


def _texts(container: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What Kubernetes fills variables into, and its path."""
    for index, variable in enumerate(container.get("env") or ()):
        yield f"env[{index}].value", (variable or {}).get("value") or ""
    for field in ("command", "args"):
        for index, text in enumerate(container.get(field) or ()):
            yield f"{field}[{index}]", text or ""
