"""Limits and defaults are stated once, in the parser: the schemas say the same."""

import json
from collections.abc import Iterator
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from tests.strategies import a_spec
from twgen.model.policy import MOST_VERSIONS
from twgen.model.spec import Encoding
from twgen.specs import limits
from twgen.specs.durations import parse_duration
from twgen.specs.policies import default_policy
from twgen.versioning.build_ids import LONGEST_BUILD_ID

SCHEMAS = Path(__file__).parents[2] / "schemas"
LABELS = {"maxLength": limits.LONGEST_LABEL, "pattern": limits.LABEL}
NAMES = {"maxLength": limits.LONGEST_NAME, "pattern": limits.NAME}
KEYS = {"maxLength": limits.LONGEST_NAME, "pattern": limits.DATA_KEY}
LINES = {"maxLength": limits.LONGEST_TEXT, "pattern": limits.LINE}
GATE = "spec.rollout.gate.inputFrom"


def field(schema: str, path: str) -> dict[str, Any]:
    """The schema of a field; `[]` are the items of a list."""
    found: dict[str, Any] = json.loads((SCHEMAS / f"{schema}.json").read_text())
    for name in path.replace("[]", ".[]").split("."):
        found = found["items"] if name == "[]" else found["properties"][name]
    return found


def may_be_empty(rules: dict[str, Any]) -> dict[str, Any]:
    return {**rules, "pattern": f"^$(?!\\n)|{rules['pattern']}"}


@pytest.mark.parametrize(
    ("schema", "path", "rules"),
    [
        ("workerdeployment", "metadata.name", LABELS),
        ("connection", "metadata.name", NAMES),
        ("rolloutpolicy", "metadata.name", NAMES),
        ("workerresourcetemplate", "metadata.name", NAMES),
        *(
            (name, "metadata.namespace", may_be_empty(LABELS))
            for name in ("workerdeployment", "connection", "rolloutpolicy", "workerresourcetemplate")
        ),
        ("workerdeployment", "spec.workerOptions.connectionRef.name", NAMES),
        ("workerdeployment", "spec.workerOptions.connection", may_be_empty(NAMES)),
        ("workerdeployment", "spec.workerOptions.temporalNamespace", LINES),
        ("workerdeployment", "spec.workerOptions.taskQueue", may_be_empty(LINES)),
        *(
            ("workerdeployment", f"spec.workerOptions.{name}", {"maxLength": LONGEST_BUILD_ID})
            for name in ("unsafeCustomBuildID", "customBuildID", "buildID")
        ),
        ("workerdeployment", "spec.rollout.steps", {"maxItems": limits.MOST_STEPS}),
        (
            "workerdeployment",
            "spec.rollout.steps[].rampPercentage",
            dict(zip(("minimum", "maximum"), limits.RAMP_PERCENTAGES, strict=True)),
        ),
        ("workerdeployment", "spec.rollout.gate.workflowType", LINES),
        (
            "workerdeployment",
            "spec.rollout.gate.messageType",
            may_be_empty({"maxLength": limits.LONGEST_TEXT, "pattern": limits.MESSAGE_TYPE}),
        ),
        ("workerdeployment", "spec.rollout.gate.encoding", {"enum": [*Encoding, None]}),
        *(("workerdeployment", f"{GATE}.{name}.name", NAMES) for name in ("configMapKeyRef", "secretKeyRef")),
        *(("workerdeployment", f"{GATE}.{name}.key", KEYS) for name in ("configMapKeyRef", "secretKeyRef")),
        ("connection", "spec.hostPort", {"maxLength": limits.LONGEST_TEXT, "pattern": limits.HOST_PORT}),
        ("connection", "spec.mutualTLSSecretRef.name", NAMES),
        ("connection", "spec.apiKeySecretRef.name", NAMES),
        ("connection", "spec.apiKeySecretRef.key", KEYS),
        ("connection", "spec.tls.caCertSecretRef.name", NAMES),
        ("connection", "spec.tls.serverName", {"pattern": f"^$(?!\\n)|{limits.SERVER_NAME}"}),
        ("rolloutpolicy", "spec.workerRef.name", NAMES),
        ("rolloutpolicy", "spec.identity", may_be_empty(LINES | {"pattern": limits.IDENTITY})),
        ("rolloutpolicy", "spec.adoptFrom[]", LINES),
        ("rolloutpolicy", "spec.serviceAccountName", may_be_empty(NAMES)),
        ("rolloutpolicy", "spec.controlPlaneSecretRef.name", may_be_empty(NAMES)),
        ("rolloutpolicy", "spec.replay.maxBytes", {"pattern": limits.BYTES}),
        ("rolloutpolicy", "spec.maxVersions", {"minimum": 1, "maximum": MOST_VERSIONS}),
        ("workerresourcetemplate", "spec.workerDeploymentRef.name", NAMES),
    ],
)  # fmt: skip
def test_schema_has_the_limits_of_the_parser(schema: str, path: str, rules: dict[str, Any]) -> None:
    found = field(schema, path)
    assert {name: found.get(name) for name in rules} == rules


def test_schema_of_a_policy_has_the_defaults_of_the_parser() -> None:
    policy = default_policy()
    defaults = dict(said_defaults(field("rolloutpolicy", "spec")))
    assert len(defaults) == 10
    assert {name: parsed_default(value) for name, value in defaults.items()} == {
        name: written_default(getattr(policy, snake_case(name))) for name in defaults
    }


def test_schema_of_a_worker_has_the_defaults_of_the_parser() -> None:
    spec = a_spec()
    deadline = "progressDeadlineSeconds"
    assert spec.pace == {deadline: field("workerdeployment", f"spec.{deadline}")["default"]}
    assert field("workerdeployment", "spec.minReadySeconds")["default"] == 0
    for name, delay in (
        ("scaledownDelay", spec.sunset.scaledown_delay),
        ("deleteDelay", spec.sunset.delete_delay),
    ):
        assert parse_duration(field("workerdeployment", f"spec.sunset.{name}")["default"]) == delay


def said_defaults(schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, item in schema["properties"].items():
        if "default" in item:
            yield name, item["default"]


def snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def parsed_default(value: Any) -> Any:
    return parse_duration(value) if isinstance(value, str) and value[:1].isdigit() else value


def written_default(value: Any) -> Any:
    if isinstance(value, tuple):
        return [written_default(item) for item in value]
    return value.value if isinstance(value, Enum) else value if isinstance(value, int | timedelta) else None
