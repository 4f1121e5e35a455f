"""The page lists every metric and every alert, and the dashboard for Grafana shows all metrics."""

import inspect
import json
import re
from enum import EnumType
from types import NoneType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import dashboard, prometheus, stat, table, timeseries
from grafana_foundation_sdk.models.dashboard import Dashboard
from jsonschema import Draft202012Validator
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.cli.test_tick import served_metrics
from tests.docs.pages import ROOT
from tests.executing.calls import Recorded
from tests.schemas.printed import reported
from tests.strategies import NOW
from tools.monitoring import ALERTS, dashboard_text, prometheus_rule_text
from twgen.model.plan import Phase
from twgen.model.reasons import RoutingReason
from twgen.model.status import RolloutStatus
from twgen.reporting.status.metrics import openmetrics
from twgen.yaml.reader import read_documents

PAGE = (ROOT / "docs" / "watch.md").read_text()
DASHBOARD = ROOT / "deploy" / "grafana-dashboard.json"
PANELS = {"stat": stat.Options, "table": table.Options, "timeseries": timeseries.Options}
"""What the panels of each type that we use have as `options`."""
SCALARS: dict[Any, dict[str, Any]] = {
    object: {},
    NoneType: {"type": "null"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
}


def metrics() -> dict[str, set[str]]:
    """The labels of each metric that tick serves."""
    recorded = Recorded({"strategy": "AllAtOnce"}, current="")
    recorded.run()
    # it has settled, and only a ramp is measured
    judged = {"metric": "failures", "verdict": "Passes", "value": 0.01, "bound": 0.02, "because": ""}
    report = reported(analysis=[judged])
    ramps = RolloutStatus("shop/pay", Phase.WAITING, "RampPaused", "", "v2", "v1", 5, NOW, report)
    return {
        sample.name: sample.labels.keys() - {"namespace", "worker"}
        for text in (served_metrics(recorded), openmetrics([ramps], NOW, {}).decode())
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_page_tells_every_metric_with_its_labels() -> None:
    listed = re.findall(r"^- (`twgen_.*?`): ", PAGE, re.MULTILINE)
    told = {
        name: set(re.findall(r"\w+", labels))
        for names in listed
        for name, labels in re.findall(r"`(\w+)(?:\{(.*?)\})?`", names)
    }
    assert told == metrics()


def test_dashboard_shows_every_metric_and_no_other() -> None:
    text = DASHBOARD.read_text()
    assert text == dashboard_text()
    assert set(re.findall(r"twgen_\w+", text)) == metrics().keys()


def dashboard_schema() -> dict[str, Any]:
    """The JSON Schema of Grafana's dashboards, by its SDK's types, which are made from its own schema."""
    classes: dict[str, Any] = {}
    return {"$defs": classes} | _schema(Dashboard, classes)


def _schema(hint: Any, classes: dict[str, Any]) -> dict[str, Any]:
    inner = get_args(hint)
    match get_origin(hint):
        case origin if origin is Union:
            return {"anyOf": [_schema(each, classes) for each in inner]}
        case origin if origin is list:
            return {"type": "array", "items": _schema(inner[0], classes)}
        case origin if origin is dict:
            return {"type": "object", "additionalProperties": _schema(inner[1], classes)}
        case origin if origin is Literal:
            return {"enum": [*inner]}
    if isinstance(hint, EnumType) or hint in SCALARS:
        return SCALARS[hint] if hint in SCALARS else {"enum": [member.value for member in hint]}
    found = prometheus.Dataquery if hint is Dataquery else hint
    name = f"{found.__module__}.{found.__name__}"
    if name not in classes:
        classes[name] = {}  # it may have itself within it
        classes[name] = _object_schema(found, classes)
    return {"$ref": f"#/$defs/{name}"}


def _object_schema(hint: type, classes: dict[str, Any]) -> dict[str, Any]:
    """The keys are those that its `to_json` writes: some always, some only when they are set."""
    written = re.findall(r'"(\w+)"(\]?)(?:: | = )self\.(\w+)', inspect.getsource(vars(hint)["to_json"]))
    hints = get_type_hints(hint)
    keys = {key: _schema(hints[name], classes) for key, _, name in written}
    found = {
        "type": "object",
        "properties": keys,
        "required": [key for key, is_set_later, _ in written if not is_set_later],
        "additionalProperties": False,
    }
    if hint is not dashboard.Panel:
        return found
    keys["type"] = {"enum": [*PANELS]}
    options = [
        {"properties": {"type": {"const": name}, "options": _schema(each, classes)}}
        for name, each in PANELS.items()
    ]
    return found | {"anyOf": options}


def test_dashboard_has_only_what_the_schema_of_grafana_has() -> None:
    document = json.loads(DASHBOARD.read_text())
    Draft202012Validator(dashboard_schema()).validate(document)
    assert json.loads(json.dumps(Dashboard.from_json(document), cls=JSONEncoder)) == document
    panels = [panel for panel in document["panels"] if panel["type"] != "row"]
    assert all(panel["title"] and panel["targets"] for panel in panels)
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in document["panels"]]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"w": 6', '"w": "wide"'),
        ('"type": "stat"', '"type": 7'),
        ('"type": "stat"', '"type": "stats"'),
        ('"title": "Failing rollouts"', '"title": 5'),
        ('"title": "Temporal workers by twgen"', '"title": 5'),
        ('"schemaVersion": 42', '"schemaVersion": "x"'),
        ('"schemaVersion": 42,', ""),
        ('"expr":', '"exprr":'),
        ('"instant": true', '"instant": "true"'),
        ('"format": "table"', '"format": "tables"'),
        ('"refresh": 2', '"refresh": 7'),
        ('"mode": "absolute"', '"mode": "total"'),
        ('"color": "red"', '"color": 1'),
        ('"graphMode": "area"', '"graphMode": "none of them"'),
        ('"panels": [\n', '"panels": [null,\n'),
        ('"from": "now-6h"', '"form": "now-6h"'),
        ('"gridPos"', '"gridpos"'),
    ],
)
def test_dashboard_that_grafana_would_take_otherwise_is_noticed(old: str, new: str) -> None:
    text = DASHBOARD.read_text()
    assert old in text
    assert not Draft202012Validator(dashboard_schema()).is_valid(json.loads(text.replace(old, new, 1)))


def test_alerts_of_the_page_are_those_of_the_rules_and_ask_for_metrics_that_there_are() -> None:
    [rules] = read_documents(ALERTS.read_text())
    [group] = rules["groups"]
    told = re.findall(r"^- `(Twgen\w+)`: ", PAGE, re.MULTILINE)
    assert told == [rule["alert"] for rule in group["rules"]]
    expressions = " ".join(rule["expr"] for rule in group["rules"])
    assert set(re.findall(r"twgen_\w+", expressions)) <= metrics().keys()
    reasons = "|".join(re.findall(r'reason=~?"([^"]+)"', expressions))
    assert set(reasons.split("|")) <= set(RoutingReason)
    operator = ROOT / "deploy" / "tick" / "prometheus-operator" / "prometheusrule.yaml"
    assert operator.read_text() == prometheus_rule_text()
