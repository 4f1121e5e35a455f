"""What the page of tick tells of metrics and alerts is what there is, and the dashboard shows it all."""

import json
import re
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.cli.test_tick import served_metrics
from tests.executing.calls import Recorded
from tools.monitoring import ALERTS, dashboard_text, prometheus_rule_text
from twgen.model.reasons import RoutingReason
from twgen.yaml.reader import read_documents

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tick.md").read_text()
DASHBOARD = ROOT / "deploy" / "grafana-dashboard.json"


def metrics() -> dict[str, set[str]]:
    """The labels of each metric that tick serves."""
    recorded = Recorded({"strategy": "AllAtOnce"}, current="")
    recorded.run()
    return {
        sample.name: sample.labels.keys() - {"namespace", "worker"}
        for family in text_string_to_metric_families(served_metrics(recorded))
        for sample in family.samples
    }


def test_page_tells_every_metric_with_its_labels() -> None:
    rows = re.findall(r"^\| (`twgen_.*`) \|(.*)\| .* \|$", PAGE, re.MULTILINE)
    told = {
        name: set(re.findall(r"`(\w+)`", labels))
        for names, labels in rows
        for name in re.findall(r"`(\w+)`", names)
    }
    assert told == metrics()


def test_dashboard_shows_every_metric_and_no_other() -> None:
    text = DASHBOARD.read_text()
    assert text == dashboard_text()
    assert set(re.findall(r"twgen_\w+", text)) == metrics().keys()


def test_dashboard_has_only_what_the_schema_of_grafana_has() -> None:
    document = json.loads(DASHBOARD.read_text())
    read = Dashboard.from_json(document)
    assert json.loads(json.dumps(read, cls=JSONEncoder)) == document
    panels = [panel for panel in document["panels"] if panel["type"] != "row"]
    assert all(panel["title"] and panel["targets"] for panel in panels)
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in document["panels"]]
    assert len(set(places)) == len(places)


def test_alerts_of_the_page_are_those_of_the_rules_and_ask_for_metrics_that_there_are() -> None:
    [rules] = read_documents(ALERTS.read_text())
    [group] = rules["groups"]
    told = re.findall(r"^\| `(Twgen\w+)` \|", PAGE, re.MULTILINE)
    assert told == [rule["alert"] for rule in group["rules"]]
    expressions = " ".join(rule["expr"] for rule in group["rules"])
    assert set(re.findall(r"twgen_\w+", expressions)) <= metrics().keys()
    [reasons] = re.findall(r'reason=~"([^"]+)"', expressions)
    assert set(reasons.split("|")) <= set(RoutingReason)
    operator = ROOT / "deploy" / "tick" / "prometheus-operator" / "prometheusrule.yaml"
    assert operator.read_text() == prometheus_rule_text()
