"""What Argo CD tells its config-management plugins, and which of it a repository may decide."""

import json
import os
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from twgen.errors import InvalidInput
from twgen.model.operator import Application

_PARAMETERS = "ARGOCD_APP_PARAMETERS"
_VARIABLE = "ARGOCD_ENV_TWGEN_"


def in_plugin() -> bool:
    """Argo CD runs this process, as a config-management plugin, within its own limit of 60 s."""
    return "ARGOCD_APP_NAME" in os.environ


def application() -> Application:
    """The application that Argo CD renders."""
    return Application(os.environ["ARGOCD_APP_NAME"], os.environ.get("ARGOCD_APP_PROJECT_NAME", ""))


@cache
def application_settings() -> Mapping[str, str]:
    """The options that the application sets, by name (`no-hooks`), as text: parameters go before variables.

    A repository can set both through `.argocd-source.yaml`, so only what is harmless may come from here.
    """
    return {**dict(_variables()), **dict(_parameters())} if in_plugin() else {}


def _variables() -> Iterator[tuple[str, str]]:
    for name, value in os.environ.items():
        if name.startswith(_VARIABLE):
            yield name.removeprefix(_VARIABLE).lower().replace("_", "-"), value


def _parameters() -> Iterator[tuple[str, str]]:
    for parameter in _decoded(os.environ.get(_PARAMETERS) or "null"):
        match parameter:
            case {"name": str(name), "string": str(value)}:
                yield name, value
            case {"name": name}:
                raise InvalidInput(f"plugin parameter {name!r} must be a string")
            case _:
                raise InvalidInput(f"{_PARAMETERS} holds a parameter without a name")


def _decoded(text: str) -> list[Any]:
    try:
        parameters = json.loads(text) or []
    except ValueError as error:
        raise InvalidInput(f"{_PARAMETERS} is not JSON") from error
    if not isinstance(parameters, list):
        raise InvalidInput(f"{_PARAMETERS} is not a list")
    return parameters
