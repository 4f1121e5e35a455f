"""The alerts of `deploy/tick`, as Prometheus evaluates them over what twgen prints, minute by minute."""

import json
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from testing.install import installed
from testing.recipes import PROMTOOL
from tests.schemas.printed import reported
from tools.monitoring import ALERTS
from twgen.model.plan import Phase
from twgen.model.reasons import RoutingReason as Reason
from twgen.model.status import RolloutStatus
from twgen.planning.drivers import ALL, Shard
from twgen.reporting.status.metrics import openmetrics
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server
START = datetime(2026, 11, 21, tzinfo=UTC)
MINUTES = 81
Moment = dict[str, Any]


def status(
    phase: Phase = Phase.SETTLED,
    reason: Reason = Reason.SETTLED,
    *,
    unserved: str = "",
    registered: int = 3,
    verdict: str = "",
) -> Moment:
    count = {"deployed": 1, "maxVersions": 5, "registered": registered, "mostRegistered": 100}
    measured = {"metric": "failures", "verdict": verdict, "value": 0.1, "bound": 0.02, "because": ""}
    judged = [measured] if verdict else []
    report = reported([], unserved=unserved, versionCount=count, analysis=judged)
    return {"phase": phase, "reason": reason, "report": report}


def told(minute: int, moment: Moment, counts: Mapping[str, int], shard: Shard) -> str:
    """What tick serves at that minute."""
    facts = {"message": "", "target": "v2", "current": "v1", "percentage": 0, "since": START, **moment}
    statuses = [RolloutStatus(worker="shop/payments", **facts)]
    return openmetrics(statuses, START + timedelta(minutes=minute), counts, 1, shard).decode()


def looks(minute: int) -> dict[str, int]:
    return {"looks": minute, "errors": 0, "refreshes": 0}


Story = Callable[[int], tuple[Moment, Mapping[str, int], *tuple[Shard, ...]] | None]
"""What is so at a minute, and which ticks look if there are several; None: nothing is served."""
TROUBLE: dict[str, tuple[Story, int]] = {
    "TwgenTrafficUnserved": (
        lambda minute: (status(unserved="" if minute < 10 else "v2"), looks(minute)),
        12,
    ),
    "TwgenRolloutBlocked": (
        lambda minute: (
            status(Phase.BLOCKED, Reason.GATE_FAILED) if minute >= 10 else status(),
            looks(minute),
        ),
        20,
    ),
    "TwgenRolloutStuck": (
        lambda minute: (
            status(Phase.WAITING, Reason.NOT_SERVING) if minute >= 10 else status(),
            looks(minute),
        ),
        40,
    ),
    "TwgenHookSkipped": (
        lambda minute: (
            status(Phase.BLOCKED, Reason.HOOK_SKIPPED) if minute >= 10 else status(),
            looks(minute),
        ),
        13,
    ),
    "TwgenRolloutPaused": (
        lambda minute: (
            status(Phase.WAITING, Reason.PAUSED) | {"since": START - timedelta(hours=23, minutes=50)},
            looks(minute),
        ),
        16,
    ),
    "TwgenRampTakenBack": (
        lambda minute: (
            status(Phase.BLOCKED, Reason.ABORTED)
            if minute >= 10
            else status(Phase.WAITING, Reason.RAMP_PAUSED, verdict="Passes" if minute < 9 else "Fails"),
            looks(minute),
        ),
        15,
    ),
    "TwgenAnalysisFailing": (
        lambda minute: (
            status(Phase.WAITING, Reason.PAUSED, verdict="Fails")
            if minute >= 10
            else status(Phase.WAITING, Reason.RAMP_PAUSED, verdict="Passes"),
            looks(minute),
        ),
        20,
    ),
    "TwgenAnalysisUndecided": (
        lambda minute: (
            status(
                Phase.WAITING,
                Reason.ANALYSIS_UNDECIDED if minute >= 10 else Reason.RAMP_PAUSED,
                verdict="Undecided",
            ),
            looks(minute),
        ),
        70,
    ),
    "TwgenRolloutFailing": (
        lambda minute: (
            status(Phase.WAITING, Reason.RAMP_PAUSED)
            | {"failing": "Temporal is away" if minute >= 10 else ""},
            looks(minute),
        ),
        25,
    ),
    "TwgenVersionCapNear": (
        lambda minute: (status(registered=89 if minute < 10 else 90), looks(minute)),
        25,
    ),
    "TwgenTickStopped": (lambda minute: (status(), looks(min(minute, 10))), 30),
    "TwgenTickFailing": (
        lambda minute: (status(), looks(minute) | {"errors": max(0, minute - 9)}),
        40,
    ),
}
"""For each alert what leads to it from the tenth minute on, and the minute from which on it fires."""


def tried_again(minute: int) -> tuple[Moment, Mapping[str, int]]:
    """A hook that is run again and again from the tenth minute on, in vain."""
    ended = status(Phase.BLOCKED, Reason.ROLLOUT_ENDED)
    waits = status(Phase.WAITING, Reason.NOT_SERVING if minute % 2 else Reason.WAITING_FOR_REGISTRATION)
    return (status() if minute < 10 else ended if minute % 7 > 4 else waits), looks(minute)


QUIET: dict[str, Story] = {
    "settled": lambda minute: (status(), looks(minute)),
    "a step that pauses for long": lambda minute: (
        status(Phase.WAITING, Reason.RAMP_PAUSED),
        looks(minute),
    ),
    "one that waits for a person's promotion": lambda minute: (
        status(Phase.WAITING, Reason.MANUAL),
        looks(minute),
    ),
    "pods that take eight minutes": lambda minute: (
        status(Phase.WAITING, Reason.NOT_SERVING) if 10 <= minute < 18 else status(),
        looks(minute),
    ),
    "a pause of an hour": lambda minute: (status(Phase.WAITING, Reason.PAUSED), looks(minute)),
    "an analysis that waits half an hour for workflows": lambda minute: (
        status(
            Phase.WAITING,
            Reason.ANALYSIS_UNDECIDED if 10 <= minute < 40 else Reason.RAMP_PAUSED,
            verdict="Undecided" if 10 <= minute < 40 else "Passes",
        ),
        looks(minute),
    ),
    "one failure": lambda minute: (status(), looks(minute) | {"errors": int(minute > 9)}),
    "a restart": lambda minute: (status(), looks(minute if minute < 10 else minute - 10)),
    "ticks that share the workers": lambda minute: (
        status(),
        looks(minute),
        Shard(0, 2),
        Shard(1, 2),
    ),
    "a restart that takes two minutes": lambda minute: (
        None if 10 <= minute < 12 else (status(), looks(minute))
    ),
}


def samples_of(text: str) -> Iterator[Sample]:
    for family in text_string_to_metric_families(text):
        yield from family.samples


def firing(folder: Path, story: Story, minutes: Mapping[int, set[str]]) -> subprocess.CompletedProcess[str]:
    """What promtool says of the alerts expected at these minutes."""
    series: defaultdict[str, list[str]] = defaultdict(lambda: ["_"] * MINUTES)
    for minute in range(MINUTES):
        if served := story(minute):
            moment, counts, *looking = served
            for shard in looking or [ALL]:
                for sample in samples_of(told(minute, moment, counts, shard)):
                    every_label = {**sample.labels, "pod": f"twgen-tick-{shard.number}"}.items()
                    labels = ",".join(f'{name}="{text}"' for name, text in every_label)
                    series[f"{sample.name}{{{labels}}}"][minute] = f"{sample.value:g}"
    [rules] = read_documents(ALERTS.read_text())
    names = [rule["alert"] for rule in rules["groups"][0]["rules"]]
    inputs = [{"series": name, "values": " ".join(values)} for name, values in series.items()]
    expected = [
        {
            "expr": f'count(ALERTS{{alertname="{name}", alertstate="firing"}}) or vector(0)',
            "eval_time": f"{minute}m",
            "exp_samples": [{"labels": "{}", "value": int(name in fired)}],
        }
        for minute, fired in minutes.items()
        for name in names
    ]
    test = {"interval": "1m", "input_series": inputs, "promql_expr_test": expected}
    file = folder / "test.yaml"
    file.write_text(
        write_documents([{"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": [test]}])
    )
    command = [installed(PROMTOOL), "test", "rules", file]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_rules_are_right_for_prometheus() -> None:
    checked = subprocess.run(
        [installed(PROMTOOL), "check", "rules", ALERTS], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_queries_of_the_dashboard_are_right_for_prometheus(tmp_path: Path) -> None:
    panels = json.loads((ALERTS.parents[1] / "grafana-dashboard.json").read_text())["panels"]
    queries = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    assert len(queries) > 8
    rules = [
        {"record": f"query:{number}", "expr": query.replace("$__rate_interval", "5m")}
        for number, query in enumerate(queries)
    ]
    file = tmp_path / "queries.yaml"
    file.write_text(write_documents([{"groups": [{"name": "dashboard", "rules": rules}]}]))
    checked = subprocess.run(
        [installed(PROMTOOL), "check", "rules", file], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_alert_has_its_trouble() -> None:
    [rules] = read_documents(ALERTS.read_text())
    assert [rule["alert"] for rule in rules["groups"][0]["rules"]] == [*TROUBLE]


@pytest.mark.parametrize("alert", TROUBLE)
def test_alert_fires_in_its_trouble_alone_and_not_before_its_time(alert: str, tmp_path: Path) -> None:
    story, since = TROUBLE[alert]
    ended = firing(tmp_path, story, {5: set(), since - 1: set(), since: {alert}, since + 10: {alert}})
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_metrics_that_are_gone_are_an_alert(tmp_path: Path) -> None:
    ended = firing(
        tmp_path,
        lambda minute: (status(), looks(minute)) if minute < 10 else None,
        {9: set(), 40: {"TwgenTickStopped"}},
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("missing", [0, 1])
def test_one_of_several_ticks_that_is_missing_is_an_alert(missing: int, tmp_path: Path) -> None:
    both = [Shard(0, 2), Shard(1, 2)]
    left = [shard for shard in both if shard.number != missing]
    ended = firing(
        tmp_path,
        lambda minute: (status(), looks(minute), *(both if minute < 10 else left)),
        {9: set(), 20: {"TwgenTickStopped"}, 40: {"TwgenTickStopped"}},
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_tick_of_all_workers_beside_those_that_share_them_is_an_alert(tmp_path: Path) -> None:
    both, alone = [Shard(0, 2), Shard(1, 2)], Shard(2, 1)
    ended = firing(
        tmp_path,
        lambda minute: (status(), looks(minute), *both, *([] if minute < 10 else [alone])),
        {9: set(), 20: {"TwgenTickStopped"}},
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("story", QUIET)
def test_nothing_fires_without_trouble(story: str, tmp_path: Path) -> None:
    ended = firing(tmp_path, QUIET[story], {minute: set() for minute in range(5, MINUTES, 5)})
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_retries_of_a_hook_do_not_start_the_alert_over(tmp_path: Path) -> None:
    ended = firing(tmp_path, tried_again, {39: set(), **{at: {"TwgenRolloutStuck"} for at in range(40, 61)}})
    assert ended.returncode == 0, ended.stdout + ended.stderr
