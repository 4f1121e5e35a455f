"""How a Prometheus stands in the operator's file and, with less, in the intent of a rollout."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from twgen.model.operator import PrometheusServer
from twgen.model.paths import Path
from twgen.model.record_shapes import Field, record
from twgen.model.shapes import TEXT, Findings, Shape, described, listing, refuse, text, unchanged

_NAME = text(
    r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$(?!\n)", "a name such as shared: lower-case letters, digits and -"
)
"""By which a metric chooses one."""
URL = text(
    r"^https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?)(:[0-9]{1,5})?"
    r"(/[-A-Za-z0-9._~%!$&'()*+,;=:@/]*)?$(?!\n)",
    "an address such as https://prometheus.example.com/base: without a user, ? or #",
)
"""Of a server that people and programs open."""
"""Credentials stand in files, and the query is twgen's."""
MOST_SERVERS = 20
"""Of an intent, whose metrics are ten: who looks at those of all namespaces must not run out of memory."""
_FILE = text(r"^(?![^/])", "an absolute path, such as /etc/twgen/prometheus/token", least=1)
_USERNAME = text(r"^[ -9;-~]+$(?!\n)", "a user name: printable ASCII without a colon")
_SECRET = text(r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$(?!\n)", "the name of a Secret")


def _whatever_case(word: str) -> str:
    return "".join(f"[{letter.upper()}{letter.lower()}]" if letter.isalpha() else letter for letter in word)


_OF_CREDENTIALS = "|".join(map(_whatever_case, ("authorization", "proxy-authorization", "cookie")))
_HEADER = text(
    rf"^(?!({_OF_CREDENTIALS})$)[-A-Za-z0-9_.]+$(?!\n)",
    "an allowed header: letters, digits and - _ . only, and none that carries credentials",
)
_HEADER_VALUE = text(r"^[!-~]([ -~]*[!-~])?$(?!\n)", "a header value: one line of printable ASCII")


def _read_headers(value: Any, path: Path, findings: Findings) -> Any:
    if not isinstance(value, dict):
        refuse(findings, path, f"must be a mapping, not {described(value)}")
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
_OF_INTENT = (
    Field("name", _NAME, required=True),
    Field("url", URL, required=True),
    Field("headers", _HEADERS, absent=PrometheusServer("", "").headers),
    Field("secretName", _SECRET, absent=""),
)
_INTENT_SERVER = record(PrometheusServer, *_OF_INTENT)
_FIELDS = record(
    PrometheusServer,
    *_OF_INTENT,
    Field("projects", listing(TEXT)),
    Field("bearerTokenFile", _FILE, absent=""),
    Field("username", _USERNAME, absent=""),
    Field("passwordFile", _FILE, absent=""),
    Field("caFile", _FILE, absent=""),
)


def _read_server(value: Any, path: Path, findings: Findings) -> Any:
    before = len(findings)
    read = _FIELDS.read(value, path, findings)
    if len(findings) > before:
        return None
    if read.bearer_token_file and (read.username or read.password_file):
        refuse(findings, path, "has bearerTokenFile and username: set only one of them")
    elif bool(read.username) is not bool(read.password_file):
        refuse(findings, path, "needs both username and passwordFile, or neither")
    return read


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
PROMETHEUS = Shape(_read_server, unchanged, _FIELDS.schema | {"oneOf": [_NO_USER, _USER]})
"""One of the operator's file."""


def server_of_intent(server: PrometheusServer) -> PrometheusServer:
    """What an intent has of it: no project, and no file of where it was rendered."""
    return PrometheusServer(server.name, server.url, headers=server.headers, secret_name=server.secret_name)


def server_of(name: str, url: str) -> PrometheusServer:
    """The one that needs no more than these; raises ValueError with what is wrong."""
    findings: Findings = []
    server: PrometheusServer = _INTENT_SERVER.read({"name": name, "url": url}, None, findings)
    if findings:
        raise ValueError(findings[0].message)
    return server


def write_servers(servers: Iterable[PrometheusServer]) -> list[str]:
    """Those of an intent, each in a line of JSON."""
    return [json.dumps(_INTENT_SERVER.write(server), sort_keys=True) for server in servers]


def parse_servers(lines: Sequence[str]) -> tuple[PrometheusServer, ...]:
    """Those that the lines of an intent hold; raises ValueError with what is wrong."""
    if len(lines) > MOST_SERVERS:
        raise ValueError(f"has more than {MOST_SERVERS} lines")
    findings: Findings = []
    try:
        found = tuple(_INTENT_SERVER.read(json.loads(line), None, findings) for line in lines)
    except (ValueError, RecursionError) as error:
        raise ValueError("is not JSON") from error
    if findings:
        raise ValueError(f"{findings[0].path}: {findings[0].message}")
    return found
