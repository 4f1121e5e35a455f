"""Requests to a rollout in a cluster: each is taken soon, by the rules of its command, and once."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.executing.api_server import EVENTS, INTENT, STATUS
from tests.executing.in_cluster import Cluster
from tests.planning.times import HOUR, MINUTE, SECOND
from twgen.errors import StateUnavailable
from twgen.executing.cluster import ClusterWriter
from twgen.model.rollout import Answer, AnswerState, Request, Verb
from twgen.model.times import format_time
from twgen.planning.requests import not_permitted
from twgen.records.rollout_status import ANSWER_ENTRIES, annotation_of, write_answer, write_request
from twgen.versioning.names import REQUEST, MarkKey

RAMPING = 30 * SECOND
"""After so long the target has its first share."""


def story(
    tell: Callable[[Cluster], Any],
    *,
    first: str = "gated",
    troubles: tuple[str, ...] = (),
    beside: tuple[str, ...] = (),
) -> Cluster:
    """A cluster in which a rollout has begun to ramp, after what is told."""
    cluster = Cluster()

    async def life() -> None:
        await cluster.sync(first)
        await cluster.sleep(RAMPING)
        cluster.troubles += troubles
        cluster.beside += beside
        try:
            await tell(cluster)
        finally:
            cluster.end_job(cluster.job_name)

    cluster.run(life())
    return cluster


def share(cluster: Cluster) -> float:
    ramping = cluster.model.routing.ramping
    return ramping.percentage if ramping else 0


def answer(cluster: Cluster) -> tuple[str, str]:
    found = cluster.api.answers[-1]
    assert "conflictToken" not in found
    return found["state"], found["message"]


def annotations(cluster: Cluster) -> dict[str, str]:
    return dict(cluster.api.objects[STATUS]["metadata"]["annotations"])


def answered(cluster: Cluster, answer: Answer) -> None:
    """Let the status have this answer, as another process wrote it."""
    found = cluster.api.objects[STATUS]
    entry = {ANSWER_ENTRIES[annotation_of(answer.request.verb)]: write_answer(answer)}
    cluster.api.put(STATUS, {**found, "data": {**found["data"], **entry}})


async def ask(cluster: Cluster, verb: Verb, wait: timedelta = timedelta(), **changes: Any) -> None:
    request = Request("r1", verb, "v3", cluster.model.now, "ana")._replace(**changes)
    cluster.requested += 1
    cluster.api.annotate(STATUS, **{annotation_of(verb): write_request(request)})
    if wait:
        await cluster.sleep(wait)


def asking(verb: Verb, wait: timedelta, **changes: Any) -> Callable[[Cluster], Any]:
    """A story in which a person requests something once."""
    return lambda cluster: ask(cluster, verb, wait, **changes)


def test_request_is_taken_within_five_seconds_although_a_step_pauses() -> None:
    async def told(cluster: Cluster) -> None:
        await ask(cluster, Verb.ABORT, wait=5 * SECOND)
        assert share(cluster) == 0
        await cluster.sleep(HOUR)

    cluster = story(told)
    assert answer(cluster) == (
        "Done",
        "stop sending 5% of new workflows to v3, until `twgen retry` or a new build ID",
    )
    assert share(cluster) == 0
    assert not annotations(cluster)
    [event] = [event for event in cluster.api.listed(EVENTS) if event["reason"] == "RequestDone"]
    assert event["message"].startswith("Abort of v3, requested by ana: stop sending 5%")


def test_paused_rollout_stays_until_it_is_resumed() -> None:
    async def told(cluster: Cluster) -> None:
        await ask(cluster, Verb.PAUSE, wait=HOUR)
        assert (share(cluster), answer(cluster)[0]) == (5, "Done")
        await ask(cluster, Verb.RESUME, id="r2", wait=5 * SECOND)
        assert answer(cluster)[0] == "Done"
        await cluster.sleep(HOUR)

    current = story(told).model.routing.current
    assert current
    assert current.build_id == "v3"


def test_pause_of_a_version_does_not_stop_the_way_back_from_it() -> None:
    async def told(cluster: Cluster) -> None:
        await ask(cluster, Verb.PAUSE, wait=MINUTE)
        await cluster.sync("back")
        await cluster.sleep(MINUTE)

    assert share(story(told)) == 0


@pytest.mark.parametrize(
    ("verb", "changes", "sentence"),
    [
        (Verb.RESUME, {}, "shop/payments, target v3: it is not paused"),
        (Verb.RETRY, {}, "shop/payments, target v3: it is not aborted, and no gate failed"),
        (Verb.ABORT, {"target": "v2"}, "the request is for v2, which is no longer the target"),
        (
            Verb.ABORT,
            {"at": timedelta(days=2)},
            "the request is 48h old, so it has expired: make a new request",
        ),
        (Verb.PROMOTE, {"at": timedelta(hours=1)}, "the request is 1h old, so it has expired"),
    ],
)
def test_request_that_changes_nothing_is_refused_with_the_sentence_of_its_command(
    verb: Verb, changes: dict[str, Any], sentence: str
) -> None:
    async def told(cluster: Cluster) -> None:
        if age := changes.pop("at", None):
            changes["at"] = cluster.model.now - age
        await ask(cluster, verb, **changes, wait=5 * SECOND)

    cluster = story(told)
    state, message = answer(cluster)
    assert (state, share(cluster)) == ("Refused", 5)
    assert sentence in message
    [event] = [event for event in cluster.api.listed(EVENTS) if event["reason"] == "RequestRefused"]
    assert (event["type"], message in event["message"]) == ("Warning", True)


def test_request_to_a_frozen_rollout_names_what_freezes_it() -> None:
    async def told(cluster: Cluster) -> None:
        cluster.api.annotate(INTENT, **{MarkKey.PAUSED: "true"})
        await ask(cluster, Verb.ABORT, wait=40 * SECOND)

    cluster = story(told)
    assert (answer(cluster)[0], share(cluster)) == ("Refused", 5)
    assert "its intent has the annotation twgen.io/paused: remove it first" in answer(cluster)[1]


@pytest.mark.parametrize("permitted", [True, False])
def test_promotion_needs_the_operators_permission(
    monkeypatch: pytest.MonkeyPatch, *, permitted: bool
) -> None:
    if not permitted:
        monkeypatch.setattr("tests.executing.in_cluster.PERMITTED", ())

    cluster = story(asking(Verb.PROMOTE, wait=5 * SECOND))
    assert share(cluster) == (25 if permitted else 5)
    assert answer(cluster) == (
        ("Done", "send 25% of the new workflows to v3")
        if permitted
        else (
            "Refused",
            f"shop/payments, target v3: {not_permitted(Verb.PROMOTE)}",
        )
    )


def test_all_of_the_traffic_can_be_requested_at_once() -> None:
    current = story(asking(Verb.PROMOTE, full=True, wait=5 * SECOND)).model.routing.current
    assert current
    assert current.build_id == "v3"


FAILURES = ("killed", "lost answer", "lost request", "refused")


@pytest.mark.parametrize(
    ("where", "trouble"),
    [(where, trouble) for where in ("troubles", "beside") for trouble in FAILURES]
    + [("troubles", "late"), ("troubles", "broken")],
)
@pytest.mark.parametrize("call", range(14))
def test_whatever_call_fails_while_a_promotion_is_carried_out_it_is_made_at_most_once(
    call: int, where: str, trouble: str
) -> None:
    async def told(cluster: Cluster) -> None:
        await ask(cluster, Verb.PROMOTE, wait=MINUTE)
        assert share(cluster) in {5, 25}
        assert (share(cluster) == 25) == (answer(cluster)[0] == "Done"), answer(cluster)

    calls = (*[""] * call, trouble)
    cluster = story(told, **{where: calls})
    assert cluster.promotions <= 1
    assert cluster.ends() == {"r1": 1}


@pytest.mark.parametrize("trouble", ["paused", "newer"])
@pytest.mark.parametrize("call", range(3))
def test_request_gives_no_traffic_once_its_intent_was_frozen_or_replaced(call: int, trouble: str) -> None:
    """However long the API server takes to write that the request is taken."""

    cluster = story(asking(Verb.PROMOTE, wait=MINUTE), beside=(*[""] * call, trouble))
    assert not cluster.beside
    assert "SetRamp v3 25" not in cluster.done


def test_answered_request_that_comes_back_is_not_carried_out_again() -> None:
    async def told(cluster: Cluster) -> None:
        for _ in range(3):
            await ask(cluster, Verb.PROMOTE, at=cluster.model.now, wait=20 * SECOND)
        assert share(cluster) == 25

    assert story(told).promotions == 1


@pytest.mark.parametrize("text", ["{", "[]", '{"id": "r1"}', '{"id": 1}', "9" * 9000, '"Abort"'])
def test_annotation_that_is_no_request_is_reported_and_removed(text: str) -> None:
    async def told(cluster: Cluster) -> None:
        cluster.api.annotate(STATUS, **{REQUEST: text})
        await cluster.sleep(10 * SECOND)

    cluster = story(told)
    assert not annotations(cluster)
    [event] = [event for event in cluster.api.listed(EVENTS) if event["reason"] == "RequestRefused"]
    assert event["message"].startswith("its annotation twgen.io/request cannot be read: ")
    assert share(cluster) == 5


@pytest.mark.parametrize("entry", ["{", "9" * 9000, '{"state": "Done"}', '{"newer": 1}'])
def test_answer_that_cannot_be_read_stops_neither_the_rollout_nor_the_next_request(entry: str) -> None:
    async def told(cluster: Cluster) -> None:
        found = cluster.api.objects[STATUS]
        cluster.api.put(STATUS, {**found, "data": {**found["data"], "request.json": entry}})
        await ask(cluster, Verb.PROMOTE, wait=10 * SECOND)
        state, message = answer(cluster)
        assert (state, share(cluster)) == ("Refused", 5)
        assert "it may already have been carried out" in message
        await ask(cluster, Verb.PROMOTE, id="r2", wait=10 * SECOND)

    cluster = story(told)
    assert (share(cluster), answer(cluster)[0]) == (25, "Done")


@pytest.mark.parametrize(
    ("verb", "mark"), [(Verb.PROMOTE, None), (Verb.ABORT, MarkKey.ABORTED), (Verb.PAUSE, MarkKey.PAUSED)]
)
def test_request_that_was_only_taken_is_not_called_done_when_it_can_no_longer_be(
    verb: Verb, mark: MarkKey | None
) -> None:
    async def told(cluster: Cluster) -> None:
        taken = Answer(Request("r1", verb, "v3", cluster.model.now), AnswerState.TAKEN, "do it", "1")
        token = f"{cluster.token}" if verb is Verb.PROMOTE else ""
        cluster.api.annotate(INTENT, **{MarkKey.PAUSED: "true"})
        answered(cluster, taken._replace(conflict_token=token))
        await ask(cluster, verb, wait=40 * SECOND)

    cluster = story(told)
    assert share(cluster) == 5
    assert mark not in cluster.marks
    state, message = answer(cluster)
    assert (state, "remove it first" in message) == ("Refused", True)


def test_requests_that_are_refused_do_not_hold_up_a_revert() -> None:
    async def told(cluster: Cluster) -> None:
        await cluster.sync("back")
        for number in range(120):
            await ask(cluster, Verb.RESUME, id=f"r{number}", wait=0.5 * SECOND)
        assert share(cluster) == 0

    story(told)


@pytest.mark.parametrize("verb", list(Verb))
def test_request_from_a_clock_far_ahead_does_not_count_longer(verb: Verb) -> None:
    async def told(cluster: Cluster) -> None:
        await ask(cluster, verb, at=cluster.model.now + timedelta(days=30), wait=5 * SECOND)

    cluster = story(told)
    assert (answer(cluster)[0], share(cluster)) == ("Refused", 5)
    assert "the request is dated 719h in the future" in answer(cluster)[1]


@pytest.mark.parametrize("key", [MarkKey.PAUSED, MarkKey.ABORTED])
def test_request_that_was_interrupted_does_not_undo_what_a_person_did_after_it(key: MarkKey) -> None:
    verb = Verb.RESUME if key is MarkKey.PAUSED else Verb.RETRY

    async def told(cluster: Cluster) -> None:
        request = Request("r1", verb, "v3", cluster.model.now, "ana")
        await cluster.sleep(MINUTE)
        cluster.marks[key] = {"by": "ben", "at": format_time(cluster.model.now)}
        answered(cluster, Answer(request, AnswerState.TAKEN, "let the rollout of v3 continue"))
        await ask(cluster, verb, at=request.at, wait=10 * SECOND)
        assert cluster.marks[key]

    cluster = story(told)
    state, message = answer(cluster)
    assert (state, "it has been stopped again since then" in message) == ("Refused", True)


def test_two_pods_of_one_job_answer_what_was_done() -> None:
    for delay in range(5):

        async def told(cluster: Cluster, delay: int = delay) -> None:
            cluster.start_pod()
            await cluster.sleep((10 + delay) * SECOND)
            await ask(cluster, Verb.PROMOTE, wait=20 * SECOND)

        cluster = story(told)
        assert (share(cluster), cluster.promotions, answer(cluster)[0]) == (25, 1, "Done"), answer(cluster)


@pytest.mark.parametrize("call", range(2, 7))
def test_promotion_stops_if_its_intent_is_frozen_while_it_becomes_the_manager(call: int) -> None:
    async def told(cluster: Cluster) -> None:
        cluster.change(lambda: setattr(cluster.model, "manager", ""), "somebody/else")
        cluster.troubles += [*[""] * call, "slow"]
        await ask(cluster, Verb.PROMOTE, wait=6 * SECOND)
        cluster.api.annotate(INTENT, **{MarkKey.PAUSED: "true"})
        await cluster.sleep(MINUTE)

    cluster = story(told)
    assert (share(cluster), answer(cluster)[0]) == (5, "Refused")


def test_promotion_of_an_earlier_target_is_not_called_done_because_of_the_share_of_another() -> None:
    async def told(cluster: Cluster) -> None:
        request = Request("r1", Verb.PROMOTE, "v3", cluster.model.now, "ana")
        taken = Answer(request, AnswerState.TAKEN, "send 25% of the new workflows to v3", "0", 25)
        await cluster.sync("newer")
        await cluster.sleep(MINUTE)
        assert share(cluster) == 25, "of v4"
        answered(cluster, taken)
        await ask(cluster, Verb.PROMOTE, at=request.at, wait=10 * SECOND)

    state, message = answer(story(told))
    assert state == "Refused"
    assert "it is unknown whether this request was carried out before v4 became the target" in message


def test_request_with_the_id_of_an_answered_one_is_told_to_be_no_other() -> None:
    async def told(cluster: Cluster) -> None:
        await ask(cluster, Verb.PAUSE, wait=10 * SECOND)
        await ask(cluster, Verb.RESUME, wait=10 * SECOND)

    cluster = story(told)
    assert cluster.marks[MarkKey.PAUSED]
    [event] = [event for event in cluster.api.listed(EVENTS) if event["reason"] == "RequestRefused"]
    assert (
        event["message"]
        == "Resume of v3, requested by ana: an earlier request, which was answered, had the same ID r1"
    )


def test_end_of_the_ramp_of_another_version_is_not_called_done_while_it_ramps() -> None:
    async def told(cluster: Cluster) -> None:
        cluster.change(lambda: cluster.model.set_current("v3"), "somebody/else")
        cluster.change(lambda: cluster.model.set_ramp("v1", 10), "somebody/else")
        request = Request("r1", Verb.PROMOTE, "v3", cluster.model.now, "ana")
        taken = Answer(request, AnswerState.TAKEN, "end the ramp to v1", "0", 100)
        answered(cluster, taken)
        await ask(cluster, Verb.PROMOTE, wait=5 * SECOND)

    state, _ = answer(story(told))
    assert state == "Refused"


def test_request_that_cannot_be_answered_does_not_hold_up_a_revert(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: Any, **__: Any) -> str:
        raise StateUnavailable("the object has been modified")

    async def told(cluster: Cluster) -> None:
        monkeypatch.setattr(ClusterWriter, "answer", refused)
        await cluster.sync("back")
        await ask(cluster, Verb.PAUSE, wait=MINUTE)
        assert share(cluster) == 0

    story(told)


@pytest.mark.parametrize("verb", list(Verb))
def test_request_that_a_manifest_has_is_ignored_and_left_alone(verb: Verb) -> None:
    fields = {"f:metadata": {"f:annotations": {f"f:{annotation_of(verb)}": {}}}}
    applied = {"manager": "flux", "operation": "Apply", "fieldsV1": fields}

    async def told(cluster: Cluster) -> None:
        await ask(cluster, verb)
        found = cluster.api.objects[STATUS]
        metadata = {**found["metadata"], "managedFields": [applied]}
        cluster.api.put(STATUS, {**found, "metadata": metadata})
        await cluster.sleep(20 * SECOND)

    cluster = story(told)
    assert (share(cluster), cluster.api.answers) == (5, [])
    assert list(annotations(cluster)) == [annotation_of(verb)]


def test_request_that_a_backup_brings_back_after_another_answer_is_not_carried_out_again() -> None:
    async def told(cluster: Cluster) -> None:
        at = cluster.model.now
        for number, verb in enumerate((Verb.PAUSE, Verb.RESUME, Verb.PROMOTE)):
            await ask(cluster, verb, id=f"r{number}", wait=10 * SECOND)
        assert share(cluster) == 25
        for number, verb in enumerate((Verb.PAUSE, Verb.RESUME, Verb.PROMOTE)):
            await ask(cluster, verb, id=f"r{number}", at=at, wait=10 * SECOND)
            assert not annotations(cluster)
        assert not cluster.marks[MarkKey.PAUSED]

    cluster = story(told)
    assert (share(cluster), cluster.promotions) == (25, 1)
    assert cluster.ends() == {"r0": 1, "r1": 1, "r2": 1}


def test_request_of_yesterday_says_nothing_about_the_target_of_today() -> None:
    async def told(cluster: Cluster) -> None:
        await ask(cluster, Verb.ABORT, target="v2", at=cluster.model.now - timedelta(days=1), wait=HOUR)

    cluster = story(told)
    assert answer(cluster)[0] == "Refused"
    assert replace(cluster.plans[-1].routing).phase == "Settled"
