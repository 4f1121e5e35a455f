"""Write the alerts of `twgen tick` for the Prometheus operator, and its dashboard (`make documentation`)."""

import json
from pathlib import Path

from grafana_foundation_sdk.builders.dashboard import (
    Dashboard,
    DatasourceVariable,
    QueryVariable,
    Row,
    ThresholdsConfig,
)
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.stat import Panel as Stat
from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.builders.timeseries import Panel as TimeSeries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import DataSourceRef
from grafana_foundation_sdk.models.dashboard import (
    DataTransformerConfig,
    Threshold,
    ThresholdsMode,
    VariableRefresh,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

ALERTS = Path(__file__).parents[1] / "deploy" / "tick" / "alerts.yaml"
_PROMETHEUS = DataSourceRef(type_val="prometheus", uid="${datasource}")
_CHOSEN = '{namespace=~"$namespace", worker=~"$worker"}'


def prometheus_rule_text() -> str:
    """The rule file as an object of the Prometheus operator."""
    [rules] = read_documents(ALERTS.read_text())
    metadata = {"name": "twgen-tick"}
    rule = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": metadata}
    return "# Written by `make documentation` from ../alerts.yaml.\n" + write_documents(
        [rule | {"spec": rules}]
    )


def dashboard_text() -> str:
    """The dashboard for import into Grafana, built from the types of Grafana's own schema."""
    built = (
        Dashboard("Temporal workers by twgen")
        .uid("twgen")
        .tags(["temporal", "twgen"])
        .refresh("1m")
        .time("now-6h", "now")
        .with_variable(DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
        .with_variable(_chooser("namespace", "twgen_rollout_percentage"))
        .with_variable(_chooser("worker", 'twgen_rollout_percentage{namespace=~"$namespace"}'))
        .with_row(Row("Now"))
        .with_panel(_number("Workers without pollers", f"sum(twgen_rollout_unserved{_CHOSEN})", red=1))
        .with_panel(_number("Failing rollouts", f"sum(twgen_rollout_failing{_CHOSEN})", red=1))
        .with_panel(
            _number("Rollouts by phase", f"sum by (phase) (twgen_rollout_phase{_CHOSEN})", "{{phase}}")
        )
        .with_panel(_table())
        .with_row(Row("Rollouts"))
        .with_panel(_lines("Target's share of traffic", f"twgen_rollout_percentage{_CHOSEN}", unit="percent"))
        .with_panel(_lines("Time in this phase", f"twgen_rollout_unchanged_seconds{_CHOSEN}", unit="s"))
        .with_panel(
            _lines("Versions", f"sum by (status) (twgen_versions{_CHOSEN})", "{{status}}", unit="short")
        )
        .with_panel(
            _lines(
                "Versions, as a share of the limit",
                f"twgen_version_count{_CHOSEN} / twgen_version_cap{_CHOSEN}",
                "{{namespace}}/{{worker}} {{cap}}",
                unit="percentunit",
            )
        )
        .with_row(Row("Analysis of ramps"))
        .with_panel(
            _lines(
                "Measured values and their bounds",
                f"twgen_rollout_analysis_value{_CHOSEN}",
                "{{namespace}}/{{worker}} {{metric}}",
            ).with_target(
                _query(
                    f"twgen_rollout_analysis_bound{_CHOSEN}",
                    "{{namespace}}/{{worker}} {{metric}}: bound",
                    "B",
                )
            )
        )
        .with_panel(
            _lines(
                "Verdicts of the metrics",
                f"sum by (verdict) (twgen_rollout_analysis_verdict{_CHOSEN})",
                "{{verdict}}",
            )
        )
        .with_row(Row("tick"))
    )
    for name, title in (("looks", "Checks"), ("errors", "Errors"), ("refreshes", "Refreshes")):
        increase = f"increase(twgen_tick_{name}_total[$__rate_interval])"
        built.with_panel(_lines(title, increase, title.lower(), span=6))
    built.with_panel(_lines("Duration of a check", "twgen_tick_look_seconds", "check", unit="s", span=6))
    built.with_panel(_number("Running ticks", "count by (shard) (twgen_tick_shards)", "shard {{shard}}"))
    return json.dumps(built.build(), cls=JSONEncoder, indent=2) + "\n"


def _chooser(name: str, series: str) -> QueryVariable:
    variable = QueryVariable(name).label(name.capitalize()).datasource(_PROMETHEUS)
    variable = variable.query(f"label_values({series}, {name})").refresh(
        VariableRefresh.ON_TIME_RANGE_CHANGED
    )
    return variable.multi(multi=True).include_all(include_all=True).all_value(".+")


def _query(expression: str, legend: str = "", name: str = "A") -> Dataquery:
    query = Dataquery().datasource(_PROMETHEUS).expr(expression).ref_id(name)
    return query.legend_format(legend) if legend else query


def _number(title: str, expression: str, legend: str = "", *, red: float = 0) -> Stat:
    panel = Stat().title(title).datasource(_PROMETHEUS).unit("short").height(6).span(6)
    if red:
        steps = [Threshold(value=None, color="green"), Threshold(value=red, color="red")]
        panel = panel.thresholds(ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))
    return panel.with_target(_query(expression, legend).instant())


def _table() -> Table:
    hidden = dict.fromkeys(
        ("Time", "Value", "__name__", "container", "endpoint", "instance", "job", "pod"), True
    )
    query = _query(f"twgen_rollout_reason{_CHOSEN} == 1").instant().format(PromQueryFormat.TABLE)
    panel = Table().title("Reasons").datasource(_PROMETHEUS).height(6).span(12).with_target(query)
    organize = DataTransformerConfig(id_val="organize", options={"excludeByName": hidden})
    return panel.with_transformation(organize)


def _lines(
    title: str,
    expression: str,
    legend: str = "{{namespace}}/{{worker}}",
    *,
    unit: str = "short",
    span: int = 12,
) -> TimeSeries:
    panel = TimeSeries().title(title).datasource(_PROMETHEUS).unit(unit).min(0).height(8).span(span)
    return panel.with_target(_query(expression, legend))
