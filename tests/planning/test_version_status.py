"""What a version's status is, and whether work may be left on it."""

import pytest
from hypothesis import given

from tests.planning.situations import drained, temporal, version
from tests.planning.times import HOUR, ago
from tests.strategies import may_have_work as promised
from tests.strategies import worlds
from twgen.model.temporal import Drainage, Version
from twgen.model.temporal import VersionStatus as S
from twgen.model.world import World
from twgen.planning.version_status import may_have_work, status_of


def works(told: Version | None) -> bool:
    known = temporal(*([told] if told else []))
    return may_have_work(status_of("v1", told, known), told)


@given(worlds())
def test_version_has_no_work_only_if_drained_or_never_active_and_without_open_workflow(found: World) -> None:
    (worker,) = found.workers.values()
    for told in worker.temporal.versions if worker.temporal else ():
        status = status_of(told.build_id, told, worker.temporal)
        assert may_have_work(status, told) or not promised(told.build_id, found)


@pytest.mark.parametrize("open_workflows", [0, None])
def test_only_a_version_that_temporal_calls_idle_is_without_work(open_workflows: int | None) -> None:
    told = {status: works(version("v1", status, open_workflows=open_workflows)) for status in S}
    told.pop(S.NOT_REGISTERED)  # no answer of a server
    assert [status for status, may in told.items() if not may] == [S.INACTIVE, S.DRAINED]
    assert not works(None)


def test_version_that_looks_idle_has_the_work_that_was_counted_on_it() -> None:
    assert works(version("v1", open_workflows=2))
    assert works(drained(HOUR, open_workflows=2))
    assert not works(drained(HOUR, open_workflows=0))


def test_version_that_was_ever_active_is_never_called_inactive() -> None:
    for fact in ("first_activated_at", "last_current_at", "last_deactivated_at"):
        assert works(version("v1", S.INACTIVE, **{fact: ago(HOUR)})), fact
    assert works(version("v1", S.INACTIVE, drainage=Drainage(S.DRAINED)))
