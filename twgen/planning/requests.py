"""Which requests a rollout takes, and what it answers to the others."""

from collections.abc import Collection
from datetime import datetime

from twgen.model.marks import MarkKey
from twgen.model.plan import Phase
from twgen.model.reasons.routing import RoutingReason
from twgen.model.requests import Answer, AnswerState, Request, Verb
from twgen.model.status import RolloutStatus
from twgen.planning import interventions
from twgen.planning.interventions import Intervention, refused
from twgen.planning.rollout import needs_a_rollout
from twgen.planning.routing.gates import gate_failures, hopeless_gates
from twgen.planning.routing.replay import may_replay_again
from twgen.planning.routing.target import Target
from twgen.planning.sentences import plain_percentage, rounded_percentage, spoken
from twgen.planning.worker_status import FAILED_TESTS

_ENDED = {RoutingReason.ABORTED, RoutingReason.ROLLOUT_ENDED, RoutingReason.INVALID_INTENT}
_ALL = 100
"""Percent."""


def requested(request: Request, target: Target, permitted: Collection[Verb]) -> Intervention:
    """What a request changes, by the rules of the command of its name.

    Raises NegativeAnswer or OwnedBySomebodyElse with the sentence that answers it.
    """
    if why := _no_longer_counts(request, target.build_id, target.now):
        raise refused(target, why)
    if target.world.rollout.is_paused:
        raise refused(target, "its intent has the annotation twgen.io/paused: remove that first")
    if request.verb.needs_permission and request.verb not in permitted:
        raise refused(target, not_permitted(request.verb))
    match request.verb:
        case Verb.PAUSE:
            return interventions.pause(target)
        case Verb.RESUME:
            return interventions.resume(target)
        case Verb.ABORT:
            return interventions.abort(target)
        case Verb.RETRY:
            return interventions.retry(target)
        case Verb.PROMOTE:
            return interventions.promote(target, full=request.full, skip_gate=False)


def _no_longer_counts(request: Request, target: str, now: datetime) -> str:
    """Why a request is refused by its target or its age; empty: it counts.

    A request from a clock far ahead would count for longer.
    """
    if request.target != target:
        return f"the request is for {request.target}, which is no longer the target"
    age = now - request.at
    if age >= request.verb.counts_for:
        return f"the request is {spoken(age, 1)} old, so it no longer counts: make another one"
    if -age >= request.verb.counts_for:
        return (
            f"the request is dated {spoken(-age, 1)} in the future: correct the clock, and make another one"
        )
    return ""


def not_permitted(verb: Verb) -> str:
    """Why a request of this verb is refused where the operator does not permit it."""
    return f"the operator does not permit {verb} by request: `rollout.requests` of the OperatorConfig"


def taken(request: Request, intervention: Intervention, target: Target) -> Answer:
    """The answer before a request is carried out: with it another process knows whether that was done."""
    change = intervention.change
    gets_all = change is not None and (change.percentage is None or target.is_current)
    share = _ALL if gets_all else change.percentage if change else None
    token = target.temporal.conflict_token
    return Answer(request, AnswerState.TAKEN, intervention.will, token, share)


def after_interruption(answer: Answer, target: Target) -> Answer | None:
    """The end of a request that was taken, and then interrupted; None: it may be carried out again.

    The conflict token changes with the traffic, so that no step is taken twice. What continues a rollout does
    not undo what stopped it later.
    """
    stops = [target.marks[key] for key in (MarkKey.PAUSED, MarkKey.ABORTED) if key in target.marks]
    continues = answer.request.verb in {Verb.RESUME, Verb.RETRY} and answer.request.target == target.build_id
    if continues and any(mark.at and mark.at > answer.request.at for mark in stops):
        return ended(answer, AnswerState.REFUSED, f"{answer.message}: somebody stopped it again since then")
    if answer.request.verb is Verb.PROMOTE and answer.request.target != target.build_id:
        why = f"it is unknown whether that was done before {target.build_id} became the target"
        return ended(answer, AnswerState.REFUSED, f"{answer.message}: {why}")
    if answer.request.verb is not Verb.PROMOTE or target.temporal.conflict_token == answer.conflict_token:
        return None
    share = target.live_percentage
    if target.is_current:
        ramping = target.other_ramp.percentage if target.other_ramp else 0
        share = _ALL - ramping
    if answer.percentage is not None and rounded_percentage(answer.percentage) == share:
        return ended(answer, AnswerState.DONE)
    why = f"the traffic was changed while this was carried out; its share is {plain_percentage(share)}% now"
    return ended(answer, AnswerState.REFUSED, f"{answer.message}: {why}")


def is_in_effect(request: Request, target: Target) -> bool:
    """A request other than a promotion has nothing left to change: it was done, by whomever."""
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
            has_failed = gate_failures(target) or hopeless_gates(target) or may_replay_again(target)
            return not (target.is_aborted or has_failed)
        case Verb.PROMOTE:
            return False


def ended(answer: Answer, state: AnswerState, message: str = "") -> Answer:
    """The last answer to a request; without a message that of before."""
    return Answer(answer.request, state, message or answer.message)


def refused_at_once(status: RolloutStatus, verb: Verb) -> str:
    """Why a request is refused by the status of the rollout alone; empty: a Job may take it."""
    if verb.needs_permission and verb not in status.permits:
        return not_permitted(verb)
    if status.phase is Phase.SETTLED:
        settled = f"the rollout of {status.target} is settled"
        if verb is Verb.ABORT:
            return f"{settled}: to go back, commit the spec of an older version"
        return f"{settled}, so there is nothing to {verb.lower()}"
    if verb is Verb.ABORT and status.reason == RoutingReason.ABORTED:
        return f"{status.target} is already aborted"
    if verb is Verb.PAUSE and not needs_a_rollout(status.phase, status.reason):
        return f"nothing moves its traffic: {status.message}"
    return _behind_an_abort(status, verb)


def offered(status: RolloutStatus) -> tuple[Verb, ...]:
    """The requests that make sense now, as the buttons of the page and of Argo CD offer them."""
    if not status.resource_version or status.phase is Phase.SETTLED:
        return ()
    has_failed, has_ended = status.reason in FAILED_TESTS, status.reason in _ENDED
    moves = not (has_failed or has_ended)
    makes_sense = {
        Verb.PAUSE: moves and status.reason != RoutingReason.PAUSED,
        Verb.RESUME: status.reason == RoutingReason.PAUSED,
        Verb.ABORT: not has_ended,
        Verb.PROMOTE: moves and Verb.PROMOTE in status.permits,
        Verb.RETRY: not moves and Verb.RETRY in status.permits,
    }
    # only an abort takes the place of a request that waits
    verbs = {Verb.ABORT} if status.pending else {*Verb}
    return tuple(verb for verb in Verb if verb in verbs and makes_sense[verb])


def advised(status: RolloutStatus) -> Verb | None:
    """The request with which a person continues a rollout; None: it needs no person, or may not take it."""
    continues = {Verb.RESUME, Verb.RETRY}
    if status.reason in {RoutingReason.UNTIL_PROMOTED, RoutingReason.MANUAL}:
        continues.add(Verb.PROMOTE)
    return next((verb for verb in offered(status) if verb in continues), None)


def _behind_an_abort(status: RolloutStatus, verb: Verb) -> str:
    """Why a request may not take the place of one that waits; empty: it may, or none waits."""
    waiting = status.pending.request if status.pending and not status.pending.is_answered else None
    if verb is Verb.ABORT or not waiting or (waiting.verb, waiting.target) != (Verb.ABORT, status.target):
        return ""
    return f"{waiting} waits, and only another Abort can take its place"


def refused_without_job(
    request: Request, status: RolloutStatus, now: datetime, *, by_hand: bool, is_hook: bool
) -> str:
    """Why no Job will ever take a request, now that none runs; empty: one would, if it ran again.

    `by_hand`: the policy has driver None. `is_hook`: the Job is the hook of a sync.
    """
    if by_hand:
        command = f"twgen {request.verb.lower()} PATH"
        return f"its policy has driver None, so no Job takes requests: run `{command}`"
    if why := _no_longer_counts(request, status.target, now) or refused_at_once(status, request.verb):
        return why
    if status.reason == RoutingReason.INVALID_INTENT:
        return f"its Job cannot carry out its intent: {status.message}"
    return "its hook has ended, and only a sync starts it again: sync, then request it" if is_hook else ""
