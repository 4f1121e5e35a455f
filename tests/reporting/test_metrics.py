"""What OpenMetrics hold of rollouts whose status another release, or a hand, has written."""

from typing import Any

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.strategies import NOW
from twgen.model.plan import Phase
from twgen.model.status import RolloutStatus
from twgen.reporting.status.metrics import openmetrics


def samples(reason: str = "Settled", **worker: Any) -> dict[str, dict[str, float]]:
    """The values of each metric, by the label that tells them apart."""
    document = {"workers": [worker]}
    status = RolloutStatus("shop/pay", Phase.SETTLED, reason, "", "v1", "v1", 100, NOW, document)
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(openmetrics([status], NOW, {}).decode()):
        for sample in family.samples:
            label = " ".join(
                text for name, text in sample.labels.items() if name not in {"namespace", "worker"}
            )
            found.setdefault(sample.name, {})[label] = sample.value
    return found


def test_cap_that_is_not_told_whole_is_left_out() -> None:
    found = samples(versionCount={"deployed": 3, "maxVersions": 10, "registered": 4})
    assert (found["twgen_version_count"], found["twgen_version_cap"]) == (
        {"maxVersions": 3},
        {"maxVersions": 10},
    )
    assert "twgen_version_count" not in samples()


def test_labels_hold_no_character_that_moves_a_cursor() -> None:
    found = samples("\x1b[31mFine", versions=[{"status": "Current\x1b[A"}])
    assert found["twgen_rollout_reason"] == {"\\x1b[31mFine": 1}
    assert found["twgen_versions"] == {"Current\\x1b[A": 1}


def test_every_metric_of_an_analysis_has_value_bound_and_verdict() -> None:
    fails = {"metric": "failures", "verdict": "Fails", "value": 0.22, "bound": 0.02}
    waits = {"metric": "backlog", "verdict": "Undecided", "value": None, "bound": 120}
    found = samples(analysis=[fails, waits])
    assert found["twgen_rollout_analysis_value"] == {"failures": 0.22}
    assert found["twgen_rollout_analysis_bound"] == {"failures": 0.02, "backlog": 120}
    ones = {label for label, value in found["twgen_rollout_analysis_verdict"].items() if value}
    assert ones == {"failures Fails", "backlog Undecided"}
    assert len(found["twgen_rollout_analysis_verdict"]) == 6


def test_what_is_not_measured_has_no_line() -> None:
    status = RolloutStatus("shop/pay", Phase.SETTLED, "Settled", "", "v1", "v1", 100, NOW, {"workers": [{}]})
    assert b"analysis" not in openmetrics([status], NOW, {})


def test_metric_that_a_hand_has_written_ends_nothing() -> None:
    found = samples(
        analysis=[{"metric": 'a"b\\c\nd\x1b', "verdict": "Perhaps", "value": "NaN", "bound": True}]
    )
    told = found["twgen_rollout_analysis_verdict"]
    assert {label.rpartition(" ")[0] for label in told} == {'a"b\\c\\nd\\x1b'}
    assert set(told.values()) == {0}
    assert "twgen_rollout_analysis_value" not in found
