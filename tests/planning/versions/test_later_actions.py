"""What time alone will bring to a version."""

from datetime import timedelta
from typing import Any

import pytest

from tests.planning.situations import NOW, SPEC, drained, live, routing, situation, temporal, version
from tests.planning.times import HOUR, MINUTE
from twgen.model.plan import VersionAction
from twgen.model.temporal import Version
from twgen.model.temporal import VersionStatus as S
from twgen.planning.plan import worker_world
from twgen.planning.versions.plan import LaterAction, later_actions

AT_ZERO, DROP = live("v1", 0, protected=False), VersionAction.DROP
HELD = drained(20 * MINUTE, open_workflows=2)


@pytest.mark.parametrize(
    ("known", "deployment", "expected"),
    [
        pytest.param(drained(MINUTE), live("v1"), (VersionAction.SCALE_DOWN, 59 * MINUTE), id="drained"),
        pytest.param(drained(3 * HOUR), AT_ZERO, (DROP, 22 * HOUR), id="at zero after both delays"),
        pytest.param(version("v1"), AT_ZERO, (DROP, 24 * HOUR), id="never active, after both delays"),
        pytest.param(
            *(None, live("v1", age=MINUTE), (VersionAction.SCALE_DOWN, 9 * MINUTE)), id="after ten minutes"
        ),
        pytest.param(HELD, live("v1"), None, id="open workflows hold it"),
        pytest.param(drained(3 * HOUR), live("v1"), None, id="its pods have not gone yet"),
        pytest.param(drained(3 * HOUR), live("v1", 0), None, id="its protection has not gone yet"),
        pytest.param(version("v1", S.DRAINING), live("v1"), None, id="draining"),
        pytest.param(drained(MINUTE, SPEC.build_id), live(SPEC.build_id), None, id="the target"),
    ],
)
def test_action_is_foretold_that_time_alone_brings(
    known: Version | None, deployment: dict[str, Any], expected: tuple[VersionAction, timedelta] | None
) -> None:
    says = temporal(*([known] if known else []), version("v2", S.CURRENT), traffic=routing("v2"))
    found = situation(says, [deployment, live("v2")])
    later = later_actions(SPEC, worker_world(SPEC, found), NOW)
    told = later.get(known.build_id if known else "v1")
    assert told == (LaterAction(expected[0], NOW + expected[1]) if expected else None)
