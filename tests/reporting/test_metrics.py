"""What OpenMetrics hold of rollouts."""

from typing import Any

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.schemas.printed import reported
from tests.strategies import NOW
from twgen.model.plan import Phase
from twgen.model.status import RolloutStatus
from twgen.reporting.status.metrics import openmetrics


def samples(reason: str = "Settled", **worker: Any) -> dict[str, dict[str, float]]:
    """The values of each metric, by the label that tells them apart."""
    report = reported(**{"analysis": [], "versionCount": None, **worker})
    status = RolloutStatus("shop/pay", Phase.SETTLED, reason, "", "v1", "v1", 100, NOW, report)
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(openmetrics([status], NOW, {}).decode()):
        for sample in family.samples:
            label = " ".join(
                text for name, text in sample.labels.items() if name not in {"namespace", "worker"}
            )
            found.setdefault(sample.name, {})[label] = sample.value
    return found


def test_caps_are_left_out_where_versions_were_not_counted() -> None:
    count = {"deployed": 3, "maxVersions": 10, "registered": 4, "mostRegistered": 100}
    found = samples(versionCount=count)
    assert found["twgen_version_count"] == {"maxVersions": 3, "temporal": 4}
    assert found["twgen_version_cap"] == {"maxVersions": 10, "temporal": 100}
    assert "twgen_version_count" not in samples()


def test_labels_hold_no_character_that_moves_a_cursor() -> None:
    judged = {"metric": 'a"b\\c\nd\x1b', "verdict": "Fails", "value": 1, "bound": 1, "because": ""}
    found = samples("\x1b[31mFine", analysis=[judged])
    assert found["twgen_rollout_reason"] == {"\\x1b[31mFine": 1}
    assert set(found["twgen_rollout_analysis_value"]) == {'a"b\\c\\nd\\x1b'}


def test_every_metric_of_an_analysis_has_value_bound_and_verdict() -> None:
    fails = {"metric": "failures", "verdict": "Fails", "value": 0.22, "bound": 0.02, "because": ""}
    waits = {"metric": "backlog", "verdict": "Undecided", "value": None, "bound": 120, "because": ""}
    found = samples(analysis=[fails, waits])
    assert found["twgen_rollout_analysis_value"] == {"failures": 0.22}
    assert found["twgen_rollout_analysis_bound"] == {"failures": 0.02, "backlog": 120}
    ones = {label for label, value in found["twgen_rollout_analysis_verdict"].items() if value}
    assert ones == {"failures Fails", "backlog Undecided"}
    assert len(found["twgen_rollout_analysis_verdict"]) == 6


def test_what_is_not_measured_has_no_line() -> None:
    assert not [name for name in samples() if "analysis" in name]
