"""The page for authors of workers shows the examples and what is injected."""

import re
from itertools import product

import pytest

from tests.docs.pages import ROOT
from twgen.model.policy import EnvironmentNames
from twgen.model.reasons import RoutingReason, VersionReason
from twgen.model.spec import Connection, SecretKey
from twgen.versioning.injection import Identity, injection

PAGE = (ROOT / "docs" / "workers.md").read_text()
CONNECTIONS = {
    "always": Connection("temporal", "HOST_PORT"),
    "tls.serverName": Connection("temporal", "HOST_PORT", tls_server_name="SERVER"),
    "mutualTLSSecretRef": Connection("temporal", "HOST_PORT", mutual_tls_secret="temporal-client"),  # noqa: S106
    "tls.caCertSecretRef": Connection("temporal", "HOST_PORT", ca_secret="temporal-ca"),  # noqa: S106
    "apiKeySecretRef": Connection(
        "temporal", "HOST_PORT", api_key_secret=SecretKey("temporal-client", "key")
    ),
}
VARIABLES = {
    name: set(when.removeprefix("with ").partition(",")[0].split(" or "))
    for when, names in re.findall(r"^# (.*)\n((?:TEMPORAL_\w+=.*\n)+)", PAGE, re.MULTILINE)
    for name in re.findall(r"^(\w+)=", names, re.MULTILINE)
}
"""The variables of the page, and what of a spec or a Connection each is there with."""
[NAMES] = re.findall(r"^Current +HostPort .*\n((?:.+\n)+)```$", PAGE, re.MULTILINE)
CALLED = {line.split()[0]: [name.strip("()") for name in line.split()] for line in NAMES.splitlines()}
"""What older generations call a variable, by its name of today."""


def injected(connection: Connection, names: EnvironmentNames) -> set[str]:
    wanted = injection(connection, Identity("default", "shop/payments", "v1"), names)
    return {variable["name"] for variable in wanted.variables}


@pytest.mark.parametrize(
    ("language", "file"), [("python", "worker-python/worker.py"), ("go", "worker-go/main.go")]
)
def test_page_shows_the_worker_of_the_example(language: str, file: str) -> None:
    [shown] = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert shown == (ROOT / "examples" / file).read_text()


@pytest.mark.parametrize(("names", "when"), list(product(EnvironmentNames, CONNECTIONS)))
def test_page_lists_every_injected_variable_and_when_it_is_there(names: EnvironmentNames, when: str) -> None:
    generation = list(EnvironmentNames).index(names)
    there = [name for name, needs in VARIABLES.items() if {"always", when} & needs]
    listed = {CALLED[name][generation] if name in CALLED else name for name in there} - {"none"}
    assert listed == injected(CONNECTIONS[when], names)


def test_page_names_reasons_that_exist() -> None:
    named = {word for word in re.findall(r"`([A-Z][a-z]+[A-Z]\w+)`", PAGE) if word not in {*EnvironmentNames}}
    reasons = {word for word in named if not word.startswith(("Use", "Register"))}
    assert reasons
    assert reasons <= {*RoutingReason, *VersionReason}
