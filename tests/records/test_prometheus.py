"""A Prometheus in the operator's file, and what the intent of a rollout has of it."""

import json
import re
from typing import Any

import pytest

from tests.records.test_operator_config import SCHEMA, WHOLE, whole
from twgen.model.operator import Application, PrometheusServer
from twgen.model.problem import quoted
from twgen.records.operator_config import parse_operator
from twgen.records.prometheus import parse_servers, server_of_intent, write_servers


def problems(**changes: Any) -> list[str]:
    _, findings = parse_operator({**WHOLE, **changes})
    return [f"{finding.path}: {finding.message}" for finding in findings]


def test_prometheus_is_used_by_projects_that_are_granted_it() -> None:
    operator = whole()
    shared, _ = operator.prometheus
    assert operator.prometheus_of(Application("any", "payments")) == (shared,)
    assert operator.prometheus_of(Application("any", "team-a")) == (shared,)
    assert operator.prometheus_of(Application("payments", "shop")) == ()


def a_prometheus(**fields: Any) -> dict[str, Any]:
    return {"prometheus": [{"name": "a", "url": "http://a:9090", **fields}]}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        *(
            ({"url": url}, f"prometheus[0].url: {quoted(url)} is not an address such as https")
            for url in (
                "ftp://a",
                "a:9090",
                "http://user:pass@a",
                "http://a?tenant=b",
                "http://a/b#c",
                "http://a\nb",
                "http://a b",
                "http://",
                "HTTP://a",
            )
        ),
        ({"url": None}, "prometheus[0].url: is required"),
        ({"name": "A"}, "prometheus[0].name: 'A' is not a name such as shared"),
        ({"name": "../a"}, "prometheus[0].name: '../a' is not a name such as shared"),
        ({"name": "a" * 64}, "prometheus[0].name: "),
        ({"bearerTokenFile": "token"}, "prometheus[0].bearerTokenFile: 'token' is not an absolute path"),
        ({"caFile": "../ca.crt"}, "prometheus[0].caFile: '../ca.crt' is not an absolute path"),
        ({"passwordFile": "p", "username": "u"}, "prometheus[0].passwordFile: 'p' is not an absolute path"),
        ({"username": "u"}, "prometheus[0]: needs both username and passwordFile, or neither"),
        ({"passwordFile": "/p"}, "prometheus[0]: needs both username and passwordFile, or neither"),
        (
            {"bearerTokenFile": "/t", "username": "u", "passwordFile": "/p"},
            "prometheus[0]: has bearerTokenFile and username: set only one of them",
        ),
        ({"username": "a:b", "passwordFile": "/p"}, "prometheus[0].username: 'a:b' is not a user name"),
        *(
            ({"headers": {name: "a"}}, f"prometheus[0].headers.{name}: {name!r} is not an allowed header")
            for name in ("Authorization", "AUTHORIZATION", "cookie", "Proxy-Authorization")
        ),
        ({"headers": {"X-A": "a\r\nB: c"}}, "prometheus[0].headers.X-A: 'a\\r\\nB: c' is not a header value"),
        ({"headers": {"X-A: b": "a"}}, "prometheus[0].headers"),
        ({"headers": {"X-A": 1}}, "prometheus[0].headers.X-A: must be a string"),
        ({"headers": ["X-A"]}, "prometheus[0].headers: must be a mapping, not a list"),
        ({"secretName": "A"}, "prometheus[0].secretName: 'A' is not the name of a Secret"),
        ({"token": "secret"}, "prometheus[0].token: no such field"),
    ],
)
def test_prometheus_that_could_not_be_asked_safely_is_refused(fields: dict[str, Any], problem: str) -> None:
    changes = a_prometheus(**fields)
    assert any(found.startswith(problem) for found in problems(**changes)), problems(**changes)
    assert not SCHEMA.is_valid({**WHOLE, **changes})


def test_name_of_a_prometheus_is_given_once() -> None:
    [one] = a_prometheus()["prometheus"]
    assert problems(prometheus=[one, one]) == ["prometheus[1]: Prometheus a appears twice, first at [0]"]


def test_intent_has_no_project_and_no_file_of_where_it_was_rendered() -> None:
    shared, own = whole().prometheus
    lines = write_servers(map(server_of_intent, (shared, own)))
    assert [json.loads(line) for line in lines] == [
        {"name": "shared", "url": shared.url, "headers": shared.headers, "secretName": "prometheus"},
        {"name": "own", "url": "http://own:9090"},
    ]
    told = {"headers": shared.headers, "secret_name": "prometheus"}
    assert parse_servers(lines) == (
        PrometheusServer("shared", shared.url, **told),
        PrometheusServer("own", own.url),
    )


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "must be a mapping, not a list"),
        ('{"name": "a"}', "url: is required"),
        ('{"name": "../a", "url": "http://a"}', "name: '../a' is not a name such as"),
        ('{"name": "a", "url": "file:///etc/passwd"}', "url: 'file:///etc/passwd' is not an address"),
        (
            '{"name": "a", "url": "http://a", "bearerTokenFile": "/etc/token"}',
            "bearerTokenFile: no such field",
        ),
        ('{"name": "a", "url": "http://a", "headers": {"Authorization": "b"}}', "headers.Authorization: "),
    ],
)
def test_server_of_an_intent_is_checked_as_the_operators_is(line: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        parse_servers([line])


def test_intent_with_servers_without_end_is_refused() -> None:
    line = '{"name": "a", "url": "http://a"}'
    assert len(parse_servers([line] * 20)) == 20
    with pytest.raises(ValueError, match=r"^has more than 20 lines$"):
        parse_servers([line] * 21)
