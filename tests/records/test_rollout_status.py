"""How a rollout goes, as its cluster keeps it."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import NOW
from twgen.errors import InvalidInput
from twgen.model.plan import Phase
from twgen.model.status import RolloutStatus
from twgen.records.rollout_status import parse_rollout_status, write_rollout_status
from twgen.yaml.limits import Budget, Limits

texts = st.text(st.characters(exclude_categories=("Cs",)))
statuses = st.builds(
    RolloutStatus,
    worker=st.just("shop/pay"),
    phase=st.sampled_from(Phase),
    reason=texts,
    message=texts,
    target=texts,
    current=texts,
    percentage=st.integers(0, 1000).map(lambda tenths: tenths / 10),
    since=st.integers(0, 10**6).map(lambda seconds: NOW - timedelta(seconds=seconds)),
    document=st.dictionaries(texts, texts) | st.just({"workers": [{"versions": [{"status": "Current"}]}]}),
    intent=texts,
)


def config_map(data: Any) -> dict[str, Any]:
    return {"metadata": {"name": "pay-rollout-status", "namespace": "shop"}, "data": data}


@given(statuses)
def test_status_is_read_back_as_it_was_written(status: RolloutStatus) -> None:
    assert parse_rollout_status(config_map(write_rollout_status(status))) == status


@given(statuses)
def test_only_an_intent_that_is_settled_is_told_as_settled(status: RolloutStatus) -> None:
    settled = write_rollout_status(status)["settled"]
    assert settled == (status.intent if status.phase is Phase.SETTLED else "")


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("phase", "Fine"),
        ("since", "yesterday"),
        ("percentage", "half"),
        ("percentage", "nan"),
        ("percentage", "-5"),
        ("status.json", "{"),
        ("status.json", "[]"),
        ("status.json", '{"workers": 5}'),
        ("status.json", '{"workers": [null]}'),
        ("status.json", '{"workers": [{"versions": {"status": "Current"}}]}'),
        ("status.json", '{"workers": [{"versions": ["Current"]}]}'),
        ("status.json", '{"workers": [{"versions": [{"status": NaN}]}]}'),
        ("status.json", '{"workers": [{"versionCount": "abc"}]}'),
        ("status.json", '{"workers": [{"versionCount": [1]}]}'),
        ("status.json", '{"workers": [{"versionCount": {"deployed": "x"}}]}'),
        ("status.json", '{"workers": [{"versionCount": {"deployed": true}}]}'),
        ("status.json", '{"workers": [{"versionCount": {"deployed": 1%s}}]}' % ("0" * 400)),
        ("status.json", '{"workers": [{"versionCount": {"deployed": -1}}]}'),
        ("status.json", '{"workers": [{"analysis": {"metric": "failures"}}]}'),
        ("status.json", '{"workers": [{"analysis": ["failures"]}]}'),
        ("status.json", "[" * 100_000),
        ("worker", "mail/pay"),
        ("worker", "shop/mail"),
        ("worker", "pay"),
        ("worker", "shop/pay;"),
        ("worker", None),
    ],
)
def test_status_that_somebody_broke_is_named(key: str, text: str | None) -> None:
    whole = write_rollout_status(
        RolloutStatus("shop/pay", Phase.SETTLED, "Settled", "", "v1", "v1", 100, NOW, {})
    )
    broken = {**whole, key: text} if text is not None else {k: v for k, v in whole.items() if k != key}
    with pytest.raises(InvalidInput, match="ConfigMap shop/pay-rollout-status does not hold the status"):
        parse_rollout_status(config_map(broken))


def test_status_for_which_no_memory_is_left_is_not_to_be_deleted() -> None:
    status = RolloutStatus("shop/pay", Phase.SETTLED, "Settled", "", "v1", "v1", 100, NOW, {"a": 1, "b": 2})
    manifest = config_map(write_rollout_status(status))
    with pytest.raises(
        InvalidInput, match=r"pay-rollout-status: .*more than 1 keys and list items in all: wait"
    ):
        parse_rollout_status(manifest, Budget(Limits(nodes=1, remedy="wait")))
