"""Decides which requests a rollout accepts, and how it answers the refused requests."""

from collections.abc import Collection, Sequence
from datetime import datetime

from twgen.errors import NegativeAnswer, OwnedBySomebodyElse
from twgen.model.plan import Phase
from twgen.model.reasons import RoutingReason
from twgen.model.rollout import Answer, AnswerState, Driver, PendingRequest, Request, Verb
from twgen.model.status import RolloutStatus
from twgen.planning import interventions
from twgen.planning.interventions import Intervention, refused
from twgen.planning.rollout import needs_a_rollout
from twgen.planning.routing.gates import failed_gate, hopeless_gates, may_replay_again
from twgen.planning.routing.target import Target
from twgen.planning.sentences import plain_percentage, rounded_percentage, spoken
from twgen.planning.version_status import ALL_TRAFFIC, shares
from twgen.planning.worker_status import FAILED_TESTS
from twgen.versioning.names import MarkKey

_WITHOUT_OPTIONS = {
    Verb.PAUSE: interventions.pause,
    Verb.RESUME: interventions.resume,
    Verb.ABORT: interventions.abort,
    Verb.RETRY: interventions.retry,
}
"""The commands that have no options, by the verb of the request."""
_ENDED = {RoutingReason.ABORTED, RoutingReason.ROLLOUT_ENDED, RoutingReason.INVALID_INTENT}


def decided(
    request: Request, pending: PendingRequest, target: Target, permitted: Collection[Verb]
) -> Intervention | Answer:
    """The changes that a pending request makes, or its final answer if it makes no changes."""
    answer = pending.answer_to_it
    # a request that slows a rollout does no harm if it is carried out twice
    if pending.wrong and not request.verb.slows:
        refusal = f"{pending.wrong}: check the status of the rollout, then make the request again"
        return Answer(request, AnswerState.REFUSED, refusal)
    if answer and (end := after_interruption(answer, target)):
        return end
    try:
        return requested(request, target, permitted)
    except (NegativeAnswer, OwnedBySomebodyElse) as error:
        if answer and is_in_effect(request, target):
            return ended(answer, AnswerState.DONE)
        return Answer(request, AnswerState.REFUSED, str(error))


def refused_after_abort(
    request: Request, others: Sequence[PendingRequest], target: Target
) -> list[tuple[PendingRequest, Answer]]:
    """The refusals of all other pending requests, if this request is an abort of the target.

    The order of the requests is unknown, so no other request is allowed to undo the abort.
    """
    if (request.verb, request.target) != (Verb.ABORT, target.build_id):
        return []
    why = "an abort was requested too, and comes first: check the status, then make this request again"
    waiting = ((other, other.waiting) for other in others)
    return [(other, Answer(asked, AnswerState.REFUSED, why)) for other, asked in waiting if asked]


def requested(request: Request, target: Target, permitted: Collection[Verb]) -> Intervention:
    """The changes that a request makes, according to the rules for the command with the same name.

    Raises NegativeAnswer or OwnedBySomebodyElse if the request is refused. The message says why.
    """
    if why := _no_longer_counts(request, target.build_id, target.now):
        raise refused(target, why)
    if target.world.rollout.is_paused:
        raise refused(target, "its intent has the annotation twgen.io/paused: remove it first")
    if request.verb.needs_permission and request.verb not in permitted:
        raise refused(target, not_permitted(request.verb))
    if request.verb is Verb.PROMOTE:
        return interventions.promote(target, full=request.full, skip_gate=False)
    knew_of_abort = request.reason in {"", RoutingReason.ABORTED}
    if request.verb is Verb.RETRY and target.is_aborted and not knew_of_abort:
        why = "its status did not show the abort yet: check the status, then make this request again"
        raise refused(target, why)
    return _WITHOUT_OPTIONS[request.verb](target)


def _no_longer_counts(request: Request, target: str, now: datetime) -> str:
    """Why a request has the wrong target or has expired, or empty if the request still counts.

    A request with a time far in the future is also refused, since it would expire too late.
    """
    if request.target != target:
        return f"the request is for {request.target}, which is no longer the target"
    age = now - request.at
    if age >= request.verb.counts_for:
        return f"the request is {spoken(age, 1)} old, so it has expired: make a new request"
    if -age >= request.verb.counts_for:
        return (
            f"the request is dated {spoken(-age, 1)} in the future: correct the clock, and make a new request"
        )
    return ""


def not_permitted(verb: Verb) -> str:
    """The reason for refusing a request that the operator does not permit."""
    return f"`rollout.requests` of the OperatorConfig does not permit {verb} by request"


def taken(request: Request, intervention: Intervention, target: Target) -> Answer:
    """The answer to write before a request is carried out, so that another process can check the outcome."""
    change = intervention.change
    gets_all = change is not None and (change.percentage is None or target.is_current)
    share = ALL_TRAFFIC if gets_all else change.percentage if change else None
    token, stops = target.temporal.conflict_token, _stops(target)
    return Answer(request, AnswerState.TAKEN, intervention.will, token, share, stops)


def after_interruption(answer: Answer, target: Target) -> Answer | None:
    """The final answer to a request that was interrupted, or None if it can be carried out again.

    The conflict token changes with the traffic, so that no step is taken twice. A Resume or Retry must not
    undo a later pause or abort. Times are not compared, because the clocks of two people may differ.
    """
    continues = answer.request.verb in {Verb.RESUME, Verb.RETRY} and answer.request.target == target.build_id
    if continues and not set(_stops(target)) <= set(answer.stops):
        return ended(answer, AnswerState.REFUSED, f"{answer.message}: it has been stopped again since then")
    if answer.request.verb is Verb.PROMOTE and answer.request.target != target.build_id:
        why = f"it is unknown whether this request was carried out before {target.build_id} became the target"
        return ended(answer, AnswerState.REFUSED, f"{answer.message}: {why}")
    if answer.request.verb is not Verb.PROMOTE or target.temporal.conflict_token == answer.conflict_token:
        return None
    share = rounded_percentage(shares(target.temporal.routing).get(target.build_id, 0))
    if answer.percentage is not None and rounded_percentage(answer.percentage) == share:
        return ended(answer, AnswerState.DONE)
    why = f"the traffic changed in the meantime; the target's share is {plain_percentage(share)}% now"
    return ended(answer, AnswerState.REFUSED, f"{answer.message}: {why}")


def _stops(target: Target) -> tuple[str, ...]:
    marks = (target.marks[key] for key in (MarkKey.PAUSED, MarkKey.ABORTED) if key in target.marks)
    return tuple(f"{mark.key} {mark.by} {mark.at}" for mark in marks)


def is_in_effect(request: Request, target: Target) -> bool:
    """Whether a request has nothing left to change, for any reason. Always false for a promotion."""
    if request.target != target.build_id or not target.is_registered:
        return False
    match request.verb:
        case Verb.PAUSE:
            return target.is_paused
        case Verb.RESUME:
            return not target.is_paused
        case Verb.ABORT:
            return target.is_aborted and not target.ramp
        case Verb.RETRY:
            has_failed = failed_gate(target) or hopeless_gates(target) or may_replay_again(target)
            return not (target.is_aborted or has_failed)
        case Verb.PROMOTE:
            return False


def ended(answer: Answer, state: AnswerState, message: str = "") -> Answer:
    """The final answer to a request. By default, the answer keeps the earlier message."""
    return Answer(answer.request, state, message or answer.message)


def refused_at_once(status: RolloutStatus, request: Request) -> str:
    """Why the rollout's status already rules out a new request, or empty if a Job may accept the request."""
    if request.target != status.target:
        return f"its target is {status.target} now"
    if why := _refused_by_state(status, request.verb):
        return why
    waiting = [] if request.verb is Verb.ABORT else _waiting(status, request.at)
    return f"{waiting[0]} waits for its answer, and until then only an abort is accepted" if waiting else ""


def same_that_waits(status: RolloutStatus, request: Request) -> Request | None:
    """A pending request for the same change, or None if there is no such request."""
    return next((each for each in _waiting(status, request.at) if each.asks_for == request.asks_for), None)


def _waiting(status: RolloutStatus, now: datetime) -> list[Request]:
    """The pending requests that have not expired and refer to the present target."""
    requests = filter(None, (pending.waiting for pending in status.pending))
    return [each for each in requests if not _no_longer_counts(each, status.target, now)]


def has_ended(status: RolloutStatus) -> bool:
    """Whether the rollout's Job has ended, so that another program must restart it for a request."""
    is_left = status.reason == RoutingReason.ROLLOUT_ENDED
    return is_left or not needs_a_rollout(status.phase, status.reason)


def _refused_by_state(status: RolloutStatus, verb: Verb) -> str:
    if verb.needs_permission and verb not in status.permits:
        return not_permitted(verb)
    if status.phase is Phase.SETTLED:
        settled = f"the rollout of {status.target} is settled"
        if verb is Verb.ABORT:
            return f"{settled}: to go back, commit the spec of an older version"
        return f"{settled}, so it has nothing to {verb.lower()}"
    if verb is Verb.ABORT and status.reason == RoutingReason.ABORTED and not _may_be_retried(status):
        return f"{status.target} is already aborted"
    if verb is Verb.PAUSE and not needs_a_rollout(status.phase, status.reason):
        return f"its traffic is not moving: {status.message}"
    return ""


def _may_be_retried(status: RolloutStatus) -> bool:
    """Whether a Retry is pending, or was done so recently that the status does not show the Retry yet."""
    newest = status.answers[0] if status.answers else None
    is_done = newest is not None and newest.request.verb is Verb.RETRY and newest.state is AnswerState.DONE
    return is_done or any(pending.waiting for pending in status.pending)


def offered(status: RolloutStatus) -> tuple[Verb, ...]:
    """The requests that make sense now. The dashboard and Argo CD show these requests as buttons."""
    if not status.resource_version or status.phase is Phase.SETTLED:
        return ()
    # only an abort may be requested while another request is pending
    if any(not pending.is_ignored for pending in status.pending):
        return (Verb.ABORT,)
    is_over = status.reason in _ENDED
    moves = not is_over and status.reason not in FAILED_TESTS
    makes_sense = {
        Verb.PAUSE: moves and status.reason != RoutingReason.PAUSED,
        Verb.RESUME: status.reason == RoutingReason.PAUSED,
        Verb.ABORT: not is_over,
        Verb.PROMOTE: moves and Verb.PROMOTE in status.permits,
        Verb.RETRY: not moves and Verb.RETRY in status.permits,
    }
    return tuple(verb for verb in Verb if makes_sense[verb])


def advised(status: RolloutStatus) -> Verb | None:
    """The request that makes a rollout continue.

    None if the rollout needs no person, or if it does not accept the request.
    """
    continues = {Verb.RESUME, Verb.RETRY}
    if status.reason in {RoutingReason.UNTIL_PROMOTED, RoutingReason.MANUAL}:
        continues.add(Verb.PROMOTE)
    return next((verb for verb in offered(status) if verb in continues), None)


def refused_without_job(request: Request, status: RolloutStatus, now: datetime, driver: Driver) -> str:
    """Why no Job will accept a request while no Job is running.

    Empty if a restarted Job would accept the request.
    """
    if driver is Driver.NONE:
        command = f"twgen {request.verb.lower()} PATH"
        return f"its policy has driver None, so no Job carries out requests: run `{command}`"
    if why := _no_longer_counts(request, status.target, now) or _refused_by_state(status, request.verb):
        return why
    if status.reason == RoutingReason.INVALID_INTENT:
        return f"its Job cannot carry out its intent: {status.message}"
    is_hook = driver is Driver.HOOK
    return "its hook has ended, and only a sync restarts it: sync, then make the request" if is_hook else ""
