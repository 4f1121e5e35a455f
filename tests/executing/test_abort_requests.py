"""An abort that is requested in a cluster is carried out, whatever else people request at the same time."""

from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.executing.api_server import EVENTS, STATUS
from tests.executing.in_cluster import Cluster
from tests.executing.test_requests import FAILURES, annotations, answered, ask, share, story
from tests.executing.trouble import TROUBLES
from tests.planning.times import HOUR, MINUTE, SECOND
from twgen.cli.by_name import Named, refused_or_sent
from twgen.clients.deadline import Deadline
from twgen.model.rollout import Answer, AnswerState, Request, Verb
from twgen.model.status import RolloutStatus
from twgen.records.rollout_status import parse_rollout_status
from twgen.versioning.names import MarkKey


@pytest.mark.parametrize("verb", sorted(set(Verb) - {Verb.ABORT}))
@pytest.mark.parametrize("is_first", [True, False])
def test_abort_is_carried_out_and_the_request_that_waits_with_it_is_refused(
    verb: Verb, *, is_first: bool
) -> None:
    async def told(cluster: Cluster) -> None:
        for each in (Verb.ABORT, verb) if is_first else (verb, Verb.ABORT):
            await ask(cluster, each, id=each.lower())
        await cluster.sleep(5 * SECOND)
        assert share(cluster) == 0
        await cluster.sleep(HOUR)

    cluster = story(told)
    assert (share(cluster), cluster.promotions) == (0, 0)
    assert cluster.marks[MarkKey.ABORTED]
    ends = {each["request"]["verb"]: each for each in cluster.api.answers if each["state"] != "Taken"}
    assert {name: each["state"] for name, each in ends.items()} == {"Abort": "Done", verb: "Refused"}
    assert "an abort was requested too, and comes first" in ends[verb]["message"]
    assert cluster.ends() == {"abort": 1, verb.lower(): 1}
    assert not annotations(cluster)


@pytest.mark.parametrize("verb", [Verb.PROMOTE, Verb.PAUSE])
@pytest.mark.parametrize("seconds", range(1, 8))
@pytest.mark.parametrize("call", range(8))
def test_abort_is_not_lost_however_late_it_comes_while_another_request_is_carried_out(
    call: int, seconds: int, verb: Verb
) -> None:
    async def told(cluster: Cluster) -> None:
        await ask(cluster, verb, wait=seconds * SECOND)
        await ask(cluster, Verb.ABORT, id="r2", wait=20 * SECOND)
        assert share(cluster) == 0
        await cluster.sleep(HOUR)

    cluster = story(told, beside=(*[""] * call, "slow"))
    assert "LookFailed" not in {event["reason"] for event in cluster.api.listed(EVENTS)}, "it is no failure"
    assert share(cluster) == 0
    assert cluster.marks[MarkKey.ABORTED]
    assert cluster.ends() == {"r1": 1, "r2": 1}


@pytest.mark.parametrize(
    ("where", "trouble"), [(one, two) for one in ("troubles", "beside") for two in FAILURES]
)
@pytest.mark.parametrize("call", range(14))
def test_whatever_call_fails_a_retry_that_waits_with_an_abort_does_not_undo_it(
    call: int, where: str, trouble: str
) -> None:
    async def told(cluster: Cluster) -> None:
        await ask(cluster, Verb.RETRY)
        await ask(cluster, Verb.ABORT, id="r2", wait=HOUR)

    calls = (*[""] * call, trouble)
    cluster = story(told, **{where: calls})
    assert share(cluster) == 0
    assert cluster.marks[MarkKey.ABORTED]
    assert cluster.ends() == {"r1": 1, "r2": 1}


def test_abort_of_an_aborted_version_keeps_it_aborted_although_a_retry_waits_too() -> None:
    async def told(cluster: Cluster) -> None:
        await ask(cluster, Verb.ABORT, wait=10 * SECOND)
        await ask(cluster, Verb.RETRY, id="r2")
        await ask(cluster, Verb.ABORT, id="r3")
        cluster.start_pod()
        await cluster.sleep(MINUTE)

    cluster = story(told)
    assert cluster.marks[MarkKey.ABORTED]
    assert (share(cluster), cluster.ends()) == (0, {"r1": 1, "r2": 1, "r3": 1})


def test_request_that_comes_while_an_abort_is_interrupted_is_refused_with_it() -> None:
    async def told(cluster: Cluster) -> None:
        abort = Request("r2", Verb.ABORT, "v3", cluster.model.now, "ana")
        answered(cluster, Answer(abort, AnswerState.TAKEN, "stop sending 5%", f"{cluster.token}", 0))
        await ask(cluster, Verb.RETRY)
        await ask(cluster, Verb.ABORT, id="r2", wait=MINUTE)

    cluster = story(told)
    assert (share(cluster), cluster.ends()) == (0, {"r1": 1, "r2": 1})
    assert cluster.marks[MarkKey.ABORTED]


class Press(NamedTuple):
    """A person presses a button, by what they saw some presses ago."""

    verb: Verb
    pause: int
    """Seconds since the press before."""
    seen_before: int
    """How many presses ago they saw the status."""
    where: str
    """In Argo CD, whose Lua reads the status itself; or on the page, or by a command."""


ARGO_CD, PAGE = "Argo CD", "page"
presses = st.builds(
    Press, st.sampled_from(Verb), st.integers(0, 6), st.integers(0, 2), st.sampled_from((ARGO_CD, PAGE))
)
troubles = st.lists(st.sampled_from((*TROUBLES, "killed")), max_size=12)


class People:
    """What people press, and whether that is an abort that nobody has undone knowingly."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._seen: list[RolloutStatus] = []
        self._promotions = 0
        self.has_aborted = False

    async def press(self, press: Press, number: int) -> None:
        cluster, verb = self._cluster, press.verb
        if press.pause:
            await cluster.sleep(press.pause * SECOND)
        if all(pod.done() for pod in cluster.running.values()):
            cluster.start_pod()  # as tick does for a request
        self._seen.append(now := parse_rollout_status(cluster.api.objects[STATUS]))
        seen = now if press.where == ARGO_CD else self._seen[max(0, len(self._seen) - 1 - press.seen_before)]
        self._promotions += verb is Verb.PROMOTE
        if verb is Verb.PROMOTE and self._promotions > 2:
            return  # with a third one it might be current, and nothing is left to abort
        request = Request(f"r{number}", verb, "v3", cluster.model.now, "ana", reason=str(seen.reason))
        if press.where == ARGO_CD:
            if annotations(cluster) and verb is not Verb.ABORT:
                return  # its script raises an error
            await ask(cluster, verb, id=request.id, reason=request.reason)
        else:
            cluster.requested += 1
            opened: Any = SimpleNamespace(cluster_for=lambda _: cluster.api, deadline=lambda: Deadline(9.0))
            if await refused_or_sent(opened, Named("shop", "payments"), request, seen):
                return
        if verb is Verb.ABORT:
            self.has_aborted = True
        elif verb is Verb.RETRY and seen.reason == "Aborted":
            self.has_aborted = False


@example([Press(Verb.ABORT, 0, 0, ARGO_CD), Press(Verb.PROMOTE, 0, 0, ARGO_CD)], ([], []))
@example([Press(Verb.PROMOTE, 0, 0, PAGE), Press(Verb.ABORT, 1, 0, ARGO_CD)], (["slow"], ["", "", "slow"]))
@example([Press(Verb.ABORT, 0, 0, ARGO_CD), Press(Verb.RETRY, 5, 1, PAGE)], ([], []))
@given(st.lists(presses, min_size=1, max_size=8), st.tuples(troubles, troubles))
def test_no_sequence_of_buttons_page_and_commands_loses_an_abort(
    pressed: list[Press], trouble: tuple[list[str], list[str]]
) -> None:
    async def told(cluster: Cluster) -> None:
        people = People(cluster)
        for number, press in enumerate(pressed):
            await people.press(press, number)
        cluster.troubles.clear()
        cluster.beside.clear()
        await cluster.sleep(2 * MINUTE)
        if people.has_aborted:
            assert cluster.marks.get(MarkKey.ABORTED), cluster.api.answers
            assert share(cluster) == 0
        assert all(number == 1 for number in cluster.ends().values()), "each is answered once"

    story(told, troubles=tuple(trouble[0]), beside=tuple(trouble[1]))
