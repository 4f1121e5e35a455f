"""What is told of all rollouts of a cluster, whatever was written into their ConfigMaps and Jobs."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from tests.planning.situations import NOW, SPEC
from tests.schemas.printed import reported
from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient
from twgen.errors import StateUnavailable
from twgen.model.plan import Phase
from twgen.model.status import RolloutStatus
from twgen.model.times import format_time
from twgen.reading import kubernetes
from twgen.reading.rollouts import RolloutsInCluster, rollouts_in_cluster, specs_of_intents
from twgen.records.intent import Intent, intent_of, write_intent
from twgen.records.rollout_status import write_rollout_status
from twgen.versioning.names import HOOK, INTENT_HASH, TAKEN_OVER


class Fleet:
    """A cluster with the status of one rollout, and Jobs."""

    def __init__(self, *jobs: Mapping[str, Any], intent: Intent | None = None, **told: Any) -> None:
        self.jobs = jobs
        self.intents: list[dict[str, Any]] = [in_cluster(intent)] if intent else []
        of_status = told.pop("intent_of_status", None)
        waits = {"phase": Phase.WAITING, "reason": "RampPaused", "message": "it stays at 25%"}
        told = {**waits, **told} if of_status is None else {**BEFORE, "intent": of_status}
        left = RolloutStatus(
            "shop/payments", target="v3", current="v1", percentage=25, since=NOW, report=REPORT, **told
        )
        metadata = {"name": "payments-rollout-status", "namespace": "shop"}
        self.status: dict[str, Any] = {"metadata": metadata, "data": write_rollout_status(left)}
        self.asked: list[str] = []

    async def ask(self, _: str, path: str, *__: object, **___: object) -> tuple[int, Mapping[str, Any]]:
        self.asked.append(path.rpartition("/")[2])
        if self.jobs == ("forbidden",) and path.endswith("jobs"):
            return 403, {"message": "jobs.batch is forbidden"}
        return 200, {"items": [*self.jobs] if path.endswith("jobs") else [*self.intents, self.status]}

    def read(self, namespace: str = "shop") -> RolloutsInCluster:
        return asyncio.run(rollouts_in_cluster(cast("KubernetesClient", self), namespace, Deadline(5)))


def in_cluster(intent: Intent) -> dict[str, Any]:
    manifest = write_intent(intent)
    if intent.taken_over:
        manifest["metadata"]["annotations"][TAKEN_OVER] = intent.taken_over
    metadata = {"uid": "1", "creationTimestamp": "2026-11-21T11:00:00Z", **manifest["metadata"]}
    return {**manifest, "metadata": metadata}


INTENT = intent_of(SPEC, "twgen/me")
REPORT = reported(worker="shop/payments")


def job_of(
    name: str, second: int, worker: str = "payments", *, ended: bool = True, intent: str = ""
) -> Mapping[str, Any]:
    created = {"name": name, "uid": name, "creationTimestamp": f"2026-11-21T12:00:{second:02}Z"}
    metadata = {**created, "namespace": "shop", "labels": {"twgen.io/rollout": worker}}
    metadata |= {"annotations": {INTENT_HASH: intent}} if intent else {}
    how = {"reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"}
    end = {"type": "Failed", "status": "True", "lastTransitionTime": "2026-11-21T13:00:00Z", **how}
    return {"metadata": metadata, "status": {"conditions": [end] if ended else []}}


def test_status_of_a_rollout_on_which_no_job_works_says_so() -> None:
    fleet = Fleet(job_of("first", 3), job_of("killed", 5), job_of("other", 9, "mail", ended=False))
    [status] = fleet.read().statuses
    message = (
        "its traffic is not moving: Job killed has ended as Failed (BackoffLimitExceeded Job has reached the"
        " specified backoff limit); before, it was Waiting: it stays at 25%"
    )
    assert (status.phase, status.reason, status.message) == (Phase.BLOCKED, "RolloutEnded", message)
    assert format_time(status.since) == "2026-11-21T13:00:00Z"
    worker = status.details
    assert worker
    assert (worker.phase, worker.reason, worker.because) == ("Blocked", "RolloutEnded", message)
    assert fleet.asked == ["jobs", "configmaps"], (
        "a Job may end between the two, and has left its status then"
    )
    [status] = Fleet().read().statuses
    assert status.message.startswith("its traffic is not moving: it has no Job; before")
    assert status.since == NOW


NO_JOB = (
    "it has no Job yet: sync its Application (a full sync of its Application), or apply the output of `twgen"
    " render`"
)
BEFORE = {"phase": Phase.SETTLED, "reason": "Settled", "message": "it is current and nothing ramps"}


def test_status_of_an_older_intent_is_not_shown_as_that_of_what_was_applied_since() -> None:
    works = job_of("works", 7, ended=False, intent=INTENT.hash)
    found = Fleet(job_of("before", 3, intent="older"), works, intent=INTENT, intent_of_status="older").read()
    assert [status.reason for status in found.statuses] == ["Settled"]
    [shown] = found.shown
    assert (shown.phase, shown.reason, shown.target) == (Phase.WAITING, "RolloutNotBegun", SPEC.build_id)
    assert shown.message == (
        f"the rollout of {SPEC.build_id} has not begun: Job works has not begun yet; `kubectl"
        " describe pods"
        " -n shop -l job-name=works` shows why; before, it was Settled: it is current and nothing ramps"
    )
    assert format_time(shown.since) == "2026-11-21T12:00:07Z"


@pytest.mark.parametrize(
    ("jobs", "phase", "says"),
    [
        ([], Phase.WAITING, f"has not begun: {NO_JOB}; before"),
        (["forbidden"], Phase.WAITING, "has not begun: its Job cannot be read; before"),
        (
            [job_of("x", 1, intent=INTENT.hash)],
            Phase.BLOCKED,
            "its traffic is not moving: Job x has ended as",
        ),
    ],
)
def test_intent_that_no_job_looks_at_is_told(jobs: list[Any], phase: Phase, says: str) -> None:
    [shown] = Fleet(*jobs, intent=INTENT, intent_of_status="older").read().shown
    assert shown.phase is phase
    assert says in shown.message


def test_intent_that_tick_has_not_begun_is_told_and_one_that_it_has_begun_needs_no_job() -> None:
    by_tick = replace(INTENT, is_for_tick=True)
    [shown] = Fleet(intent=by_tick, intent_of_status="older").read().shown
    assert "has not begun: `twgen tick` begins it within seconds if its OperatorConfig sets" in shown.message
    begun = Fleet(intent=by_tick, intent_of_status=by_tick.hash).read()
    assert begun.shown == begun.statuses
    assert begun.statuses[0].reason != "RolloutEnded"


HOOKED = replace(INTENT, has_hook=True)


def test_intent_of_a_hook_that_has_no_job_yet_says_what_it_waits_for() -> None:
    [shown] = Fleet(intent=HOOKED, intent_of_status="older").read().shown
    assert shown.reason == "RolloutNotBegun"
    assert (
        f"has not begun: it has no Job yet: a hook waits until the pods of {SPEC.build_id} are ready"
        " (`kubectl get pods -n shop`); if no Job appears, run a full sync of its Application"
    ) in shown.message


def test_intent_without_a_job_is_as_old_as_the_last_change_of_its_manager() -> None:
    fleet = Fleet(job_of("of-v2", 1, intent="older"), intent=HOOKED, intent_of_status="older")
    hash_field = {"f:metadata": {"f:annotations": {f"f:{INTENT_HASH}": {}}}}
    fleet.intents[0]["metadata"]["managedFields"] = [
        {"manager": "argocd-controller", "time": "2026-11-21T12:30:00Z", "fieldsV1": hash_field},
        {"manager": "kubectl", "time": "2026-11-21T12:45:00Z", "fieldsV1": {"f:data": {}}},
    ]
    found = fleet.read()
    [shown] = found.shown
    assert format_time(shown.since) == "2026-11-21T12:30:00Z"
    assert {worker: format_time(at) for worker, at in found.jobless.items()} == {
        "shop/payments": "2026-11-21T12:30:00Z"
    }


@pytest.mark.parametrize(
    ("intent", "job", "is_jobless"),
    [
        (INTENT, None, True),
        (replace(INTENT, is_for_tick=True), None, False),
        (HOOKED, "runs", False),
        (HOOKED, "ended", False),
        (HOOKED, "ended before", True),
        (HOOKED, "runs since before", False),
        (INTENT, "ended before", False),
        (HOOKED, "forbidden", False),
    ],
)
def test_intent_needs_a_job_unless_one_has_it_or_may_have_it(
    intent: Intent, job: str | None, *, is_jobless: bool
) -> None:
    """A hook that ended before its intent was made again runs again with a full sync only."""
    works = job_of("works", 7, ended=bool(job and "ended" in job), intent=INTENT.hash)
    jobs: Sequence[Any] = () if job is None else ("forbidden",) if job == "forbidden" else (works,)
    fleet = Fleet(*jobs, intent=intent, intent_of_status="older")
    if job and "before" in job:
        fleet.intents[0]["metadata"]["creationTimestamp"] = "2026-11-21T13:00:01Z"
    assert ("shop/payments" in fleet.read().jobless) is is_jobless


def test_rollout_that_tick_took_over_needs_no_job_until_its_hook_has_one() -> None:
    taken = replace(HOOKED, taken_over=HOOKED.hash)
    [shown] = Fleet(intent=taken, intent_of_status="older").read().shown
    assert "has not begun: `twgen tick` begins it within seconds" in shown.message
    begun = Fleet(intent=taken, intent_of_status=taken.hash).read()
    assert begun.statuses[0].reason != "RolloutEnded"
    [intent] = begun.intents
    assert intent.is_by_tick

    killed = job_of("killed", 5, intent=taken.hash)
    found = Fleet(killed, intent=taken, intent_of_status=taken.hash).read()
    [intent] = found.intents
    assert not intent.is_by_tick
    assert intent.taken_over, "what is left of it is still to be removed"
    stale = replace(HOOKED, taken_over="an older intent")
    [intent] = Fleet(intent=stale, intent_of_status="older").read().intents
    assert not intent.is_by_tick


def test_annotation_of_tick_counts_only_on_the_intent_of_a_hook() -> None:
    [intent] = Fleet(intent=replace(INTENT, taken_over=INTENT.hash)).read().intents
    assert not intent.is_by_tick


@pytest.mark.parametrize("of_status", [INTENT.hash, ""], ids=["the same intent", "nobody knows which"])
def test_status_of_the_intent_itself_is_shown_as_it_is(of_status: str) -> None:
    found = Fleet(intent=INTENT, intent_of_status=of_status).read()
    assert found.shown == found.statuses


def test_intent_without_a_status_is_shown() -> None:
    class First(Fleet):
        async def ask(self, _: str, path: str, *__: object, **___: object) -> tuple[int, Mapping[str, Any]]:
            return 200, {"items": [] if path.endswith("jobs") else self.intents}

    found = First(intent=INTENT).read()
    [shown] = found.shown
    message = f"the rollout of {SPEC.build_id} has not begun: {NO_JOB}"
    assert (found.statuses, shown.worker, shown.message) == ((), "shop/payments", message)
    assert format_time(shown.since) == "2026-11-21T11:00:00Z"


@pytest.mark.parametrize("told", [None, "", "yesterday", "0001-01-01T00:00:00Z"])
def test_job_of_which_nobody_wrote_when_it_ended_ends_no_look(told: str | None) -> None:
    killed = job_of("killed", 5)
    killed["status"]["conditions"][0]["lastTransitionTime"] = told
    found = Fleet(killed).read()
    [status], [ended] = found.statuses, found.ended.values()
    assert status.message.startswith("its traffic is not moving: Job killed has ended as Failed (Backoff")
    assert format_time(status.since) == format_time(ended.ended_at) == "2026-11-21T12:00:05Z"


@pytest.mark.parametrize(
    "told",
    [
        {"phase": Phase.SETTLED, "reason": "Settled"},
        {"phase": Phase.BLOCKED, "reason": "GateFailed"},
        {"phase": Phase.BLOCKED, "reason": "Aborted"},
        {"phase": Phase.BLOCKED, "reason": "InvalidIntent"},
        {"phase": Phase.BLOCKED, "reason": "RolloutEnded"},
    ],
)
def test_status_of_a_rollout_that_has_ended_as_it_should_stays(told: Mapping[str, Any]) -> None:
    [status] = Fleet(job_of("ended", 5), **told).read().statuses
    assert (status.phase, status.reason, status.message) == (*told.values(), "it stays at 25%")


def test_status_of_a_rollout_on_which_a_job_works_stays() -> None:
    [status] = Fleet(job_of("ended", 3), job_of("runs", 5, ended=False)).read().statuses
    assert status.reason == "RampPaused"


def test_status_is_told_as_it_is_where_nobody_may_see_jobs_and_that_is_told() -> None:
    found = Fleet("forbidden").read()  # type: ignore[arg-type]
    assert [status.reason for status in found.statuses] == ["RampPaused"]
    [told] = found.unusable
    assert told.startswith("it is unknown whether Jobs carry out these rollouts: ")
    assert told.endswith("/jobs cannot be read: jobs.batch is forbidden")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({}, "the answer of the API server is not a list of objects"),
        ({"items": {}}, "the answer of the API server is not a list of objects"),
        ({"items": [None]}, "configmaps: must be a mapping, not null"),
        ({"items": [{"metadata": {"name": "x"}}]}, "x is not in namespace shop"),
    ],
)
def test_answer_that_is_no_list_does_not_say_that_there_are_no_rollouts(
    answer: Mapping[str, Any], why: str
) -> None:
    class Another(Fleet):
        async def ask(self, _: str, path: str, *__: object, **___: object) -> tuple[int, Mapping[str, Any]]:
            return 200, answer if path.endswith("configmaps") else {"items": None}

    with pytest.raises(StateUnavailable, match=f"configmaps cannot be read: {why}$"):
        Another().read()


def test_list_that_never_ends_is_not_followed_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(Fleet):
        async def ask(self, *_: object, **__: object) -> tuple[int, Mapping[str, Any]]:
            return 200, {"items": [], "metadata": {"continue": "more"}}

    monkeypatch.setattr(kubernetes, "MOST_LISTED", 500)
    with pytest.raises(StateUnavailable, match="configmaps cannot be read: its list has more than 500 obj"):
        Endless().read()


class Pages(Fleet):
    """A cluster that answers with a page for each ConfigMap; somebody wrote huge ones in a namespace."""

    async def ask(self, _: str, path: str, *__: object, **asked: Any) -> tuple[int, Mapping[str, Any]]:
        if path.endswith("jobs"):
            return 200, {"items": []}
        at = int(asked["query"]["continue"] or 0)
        data = {"worker": "w", "identity": "me", "target": "v1", "specs.yaml": f"[{'{a},' * 200_000}]"}
        huge = {"metadata": {"name": f"x{at}", "namespace": "mail"}, "data": data}
        following = {"continue": str(at + 1)} if at < 4 else {}
        return 200, {"items": [huge if at < 4 else self.status], "metadata": following}


def test_namespace_whose_records_would_take_all_memory_hides_no_other_one() -> None:
    found = Pages().read("")
    assert [status.worker for status in found.statuses] == ["shop/payments"]
    [_, spent] = found.unusable
    assert spent == (
        "ConfigMap mail/x1, specs.yaml: line 1: more than 1000000 keys and list items in all: twgen"
        " does not read the other rollouts in this namespace"
    )


@pytest.mark.parametrize("is_hook", [True, False])
def test_job_that_ended_before_its_intent_was_made_again_counts_for_nothing(*, is_hook: bool) -> None:
    """The intent is deleted and applied again: its status went with it, and the Job of its name stays."""
    job = job_of("x", 1, intent=INTENT.hash)
    job["metadata"]["annotations"].update({HOOK: "PostSync"} if is_hook else {})
    fleet = Fleet(job, intent=INTENT, intent_of_status=INTENT.hash)
    found = fleet.read()
    assert found.ended[INTENT.namespace, INTENT.hash].is_older is False
    assert found.shown == found.statuses
    fleet.intents[0]["metadata"]["creationTimestamp"] = "2026-11-21T13:00:01Z"
    fleet.intents[0]["metadata"]["uid"] = "2"
    fleet.status["metadata"]["ownerReferences"] = [{"uid": "1"}]
    found = fleet.read()
    [shown] = found.shown
    why = (
        "it has no Job yet"
        if is_hook
        else (
            "Job x ran for an earlier rollout, which was deleted, and keeps Argo CD from creating a new"
            " Job; `twgen tick` deletes it, or run `kubectl delete job x -n shop`"
        )
    )
    assert shown.message.startswith(f"the rollout of {SPEC.build_id} has not begun: {why}")
    assert (shown.phase, format_time(shown.since)) == (Phase.WAITING, "2026-11-21T13:00:01Z")
    assert [ended.is_older for ended in found.ended.values()] == ([] if is_hook else [True])


def test_job_that_works_on_an_intent_that_was_made_again_is_its_own() -> None:
    fleet = Fleet(job_of("x", 1, intent=INTENT.hash, ended=False), intent=INTENT, intent_of_status="older")
    fleet.intents[0]["metadata"]["creationTimestamp"] = "2026-11-21T13:00:01Z"
    found = fleet.read()
    assert "Job x has not begun yet" in found.shown[0].message
    assert not found.ended


def test_bug_about_one_config_map_is_said_and_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("secret-token")

    monkeypatch.setattr("twgen.reading.rollouts.parse_intent", broken)
    found = Fleet(intent=INTENT).read()
    assert [status.worker for status in found.statuses] == ["shop/payments"]
    [line] = found.unusable
    assert line.startswith("ConfigMap shop/payments-rollout: a bug (KeyError at twgen/reading/rollouts.py:")
    assert "secret-token" not in line
    monkeypatch.setattr("twgen.reading.rollouts.specs_of", broken)
    specs, [line] = specs_of_intents([INTENT])
    assert (specs, line.partition(" (")[0]) == ([], "shop/payments: a bug")
