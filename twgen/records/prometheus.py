"""Read and write a Prometheus server: in the OperatorConfig, and with fewer fields in an intent."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from twgen.model.operator import PrometheusServer
from twgen.model.paths import Path
from twgen.model.problem import noun, wrong_type
from twgen.model.record_shapes import record_of
from twgen.model.shapes import Findings, Shape, text

MOST_SERVERS = 20
"""The most servers of an intent, which has ten metrics at most: readers of all intents need memory."""


def _of_any_case(word: str) -> str:
    return "".join(f"[{letter.upper()}{letter.lower()}]" if letter.isalpha() else letter for letter in word)


_OF_CREDENTIALS = "|".join(map(_of_any_case, ("authorization", "proxy-authorization", "cookie")))
_HEADER = text(
    rf"^(?!({_OF_CREDENTIALS})$)[-A-Za-z0-9_.]+$(?!\n)",
    "an allowed header: letters, digits and - _ . only, and none that carries credentials",
)
_HEADER_VALUE = text(r"^[!-~]([ -~]*[!-~])?$(?!\n)", "a header value: one line of printable ASCII")


def _read_headers(value: Any, path: Path, findings: Findings) -> Any:
    if not isinstance(value, dict):
        findings.problem(path, wrong_type(noun(dict), value))
        return {}
    for name, item in value.items():
        _HEADER.read(name, (path, name), findings)
        _HEADER_VALUE.read(item, (path, name), findings)
    return value


_HEADERS = Shape(
    _read_headers,
    dict,
    {
        "type": "object",
        "propertyNames": {"pattern": _HEADER.schema["pattern"]},
        "additionalProperties": _HEADER_VALUE.schema,
    },
)
_FIELDS = {"headers": _HEADERS}
_OF_INTENT = record_of(PrometheusServer, "name", "url", "headers", "secret_name", fields=_FIELDS)
_NULL = {"type": "null"}
_NO_USER = {"properties": {"username": _NULL, "passwordFile": _NULL}}
_USER = {
    "required": ["username", "passwordFile"],
    "properties": {
        "bearerTokenFile": _NULL,
        "username": {"type": "string"},
        "passwordFile": {"type": "string"},
    },
}
_OF_OPERATOR = record_of(PrometheusServer, fields=_FIELDS)
PROMETHEUS = _OF_OPERATOR._replace(schema=_OF_OPERATOR.schema | {"oneOf": [_NO_USER, _USER]})
"""A server in the OperatorConfig."""


def server_of_intent(server: PrometheusServer) -> PrometheusServer:
    """The server as an intent holds it: without its projects and without local files."""
    return PrometheusServer(server.name, server.url, headers=server.headers, secret_name=server.secret_name)


def server_of(name: str, url: str) -> PrometheusServer:
    """The server with these settings only. Raises ValueError with the problem."""
    findings = Findings()
    server: PrometheusServer = _OF_INTENT.read({"name": name, "url": url}, None, findings)
    if findings.problems:
        raise ValueError(findings.problems[0].message)
    return server


def write_servers(servers: Iterable[PrometheusServer]) -> list[str]:
    """The servers of an intent, each in a line of JSON."""
    return [json.dumps(_OF_INTENT.write(server), sort_keys=True) for server in servers]


def parse_servers(lines: Sequence[str]) -> tuple[PrometheusServer, ...]:
    """The servers in the lines of an intent. Raises ValueError with the problem."""
    if len(lines) > MOST_SERVERS:
        raise ValueError(f"has more than {MOST_SERVERS} lines")
    findings = Findings()
    try:
        servers = tuple(_OF_INTENT.read(json.loads(line), None, findings) for line in lines)
    except (ValueError, RecursionError) as error:
        raise ValueError("is not JSON") from error
    if findings.problems:
        first = findings.problems[0]
        raise ValueError(f"{first.path}: {first.message}")
    return servers
