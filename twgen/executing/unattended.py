"""Runs an unattended rollout in a cluster. The rollout reports problems, and waits until they are fixed.

The rollout also accepts people's requests, carries out each request once, and writes the result.
"""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import NamedTuple

from twgen.errors import OutOfTime, StateUnavailable, TwgenError
from twgen.executing.adjustments import Adjustments
from twgen.executing.cluster import EventType
from twgen.executing.journal import Journal, is_current
from twgen.executing.ports import IntentPlace, IntentServers
from twgen.executing.rollout import RolloutLoop
from twgen.model.plan import Plan, WorkerPlan
from twgen.model.policy import OwnerReferences
from twgen.model.reasons import RoutingReason
from twgen.model.rollout import Answer, AnswerState, PendingRequest, RolloutInCluster
from twgen.model.temporal import WorkerDeployment
from twgen.model.world import World
from twgen.planning.cluster_changes import AttachedInCluster
from twgen.planning.interventions import Intervention
from twgen.planning.requests import (
    after_interruption,
    decided,
    ended,
    is_in_effect,
    refused_after_abort,
    taken,
)
from twgen.planning.rollout import FAILED_LOOK
from twgen.planning.routing.target import Target
from twgen.planning.sentences import spoken
from twgen.planning.worker_status import AttachedRead, attached_to_read, make_status
from twgen.records.intent import Intent, UnusableIntent

_LAST_TRIES = 12
"""The maximum number of attempts to write the final status or answers."""


class _Limit(NamedTuple):
    """The time limit of a rollout."""

    ends: float | None
    """The end of the limit on the event loop's clock, or None if there is no limit."""
    text: str
    """The limit in words, such as `within 10 minutes`."""


async def carry_out(place: IntentPlace, intent_hash: str, within: float | None) -> WorkerPlan | None:
    """Carry out the intent with this hash, or with any hash if `intent_hash` is empty.

    `within` is the time limit in seconds, or None if there is no limit. Returns the last plan, or None if the
    intent no longer exists. Raises the same errors as `RolloutLoop.run`, but waits if a problem can be fixed.
    If the rollout fails, the reason is written to the cluster.
    """
    limit = _Limit(None, "")
    if within is not None:
        ends = asyncio.get_running_loop().time() + within
        limit = _Limit(ends, f"within {spoken(timedelta(seconds=within))}")
    journal = None
    plan: WorkerPlan | None = None
    try:
        while True:
            intent = await _intent(place, journal.intent.hash if journal else intent_hash, limit)
            if not intent or (journal and intent.uid == journal.intent.uid):
                return plan
            journal = Journal(place.writer(intent), intent, place.view.say)
            plan = await _roll_out(place, journal, limit)
            # if the intent was deleted and recreated, it might differ only in its UID
            if plan.routing.reason is not RoutingReason.SUPERSEDED:
                return plan
    except UnusableIntent as error:
        await _refuse(place, error)
        raise
    except Exception as error:
        # on SIGTERM, no status is written: readers of the status also check whether the Job has ended
        if journal and await is_current(place, journal.intent):
            is_bug = not isinstance(error, TwgenError)
            why = f"it ended because of a bug ({type(error).__name__})" if is_bug else str(error)
            await journal.leave(why, place.now())
        raise


async def _refuse(place: IntentPlace, error: UnusableIntent) -> None:
    """Report once that an intent cannot be carried out, and refuse the pending requests."""
    intent, status = error.intent, None
    writer, why = place.writer(intent), str(error)
    with suppress(TwgenError):
        status = await place.read_status(intent)
    is_said = status and (status.reason, status.message) == (RoutingReason.INVALID_INTENT, why)
    if not is_said:
        await Journal(writer, intent, place.view.say).refuse(why, place.now())
    said = ""
    for _ in range(_LAST_TRIES):
        try:
            status = await place.read_status(intent)
            answers = [
                (pending, Answer(request, AnswerState.REFUSED, why) if (request := pending.waiting) else None)
                for pending in (status.pending if status else ())
                if not pending.is_ignored
            ]
            if answers:
                await writer.answer(*answers)
        except TwgenError as failure:
            if str(failure) != said:
                said = str(failure)
                place.view.say(f"{place.name}: its requests could not be answered: {said}")
            await place.sleep(FAILED_LOOK)
        else:
            return


async def _intent(place: IntentPlace, intent_hash: str, limit: _Limit) -> Intent | None:
    """Read the intent, and retry until that succeeds. Returns None if the intent no longer exists."""
    failure = ""
    try:
        async with asyncio.timeout_at(limit.ends):
            while True:
                try:
                    return await place.read_intent(intent_hash)
                except (StateUnavailable, OutOfTime) as error:
                    if str(error) != failure:
                        failure = str(error)
                        place.view.say(f"{failure}; trying again")
                    await place.sleep(FAILED_LOOK)
    except TimeoutError:
        raise OutOfTime(f"{place.name} is not settled {limit.text}: {failure}") from None


class IntentRollout(RolloutLoop):
    """The rollout of an intent in a cluster. The rollout's progress is reported to the same cluster."""

    is_unattended = True
    servers: IntentServers

    def __init__(self, place: IntentPlace, journal: Journal) -> None:
        """Raises UnusableIntent."""
        intent, servers, say = journal.intent, place.servers(journal.intent), place.view.say
        super().__init__(servers, intent.caller, place.view)
        self.cause = {"intent": intent.hash, "application": intent.application}
        self._place, self._journal = place, journal
        self._attached: list[AttachedInCluster] | None = None
        """The attached objects at the last read, or None if they were not read."""
        self._adjustments = Adjustments(
            servers.cluster, self.attached, say, self.fail, has_hook=intent.has_hook
        )

    async def read(self) -> World:
        """Read the worker's state, including whether the rollout is allowed to continue."""
        with self._journal.asking(self._place.now()):
            world = await self.servers.read()
            # read last, because this state decides whether the next write is allowed
            state = await self.servers.state()
        return world.with_rollout(self.spec.key, state)

    async def read_routing(self) -> WorkerDeployment | None:
        """Read only the routing. Returns None if the rollout must not continue."""
        with self._journal.asking(self._place.now()):
            temporal, state = await self.servers.read_routing(), await self.servers.state()
        return None if state.is_stopped else temporal

    async def show(self, plan: Plan, world: World) -> None:
        """Show the state, and write the status to the cluster, including the state of attached objects."""
        self.view.show(plan, world, self.caller)
        self._attached = None
        may_list = self.spec.policy.owner_references is OwnerReferences.RENDER
        if may_list and attached_to_read(worker.versions for worker in plan.workers):
            with suppress(StateUnavailable, OutOfTime):
                self._attached = await self.servers.attached()
        read = {} if self._attached is None else {self.spec.namespace: AttachedRead(tuple(self._attached))}
        await self._journal.record(plan.workers[0], make_status(plan, world, self.caller, read))

    async def attached(self) -> list[AttachedInCluster]:
        """The attached objects at the last read. Objects that were not read then are read now."""
        return await self.servers.attached() if self._attached is None else self._attached

    async def fail(self, failure: str, reason: RoutingReason = RoutingReason.LOOK_FAILED) -> None:
        """Report a failure to the cluster."""
        await self._journal.fail(failure, reason, self._place)

    async def adjust(self, plan: WorkerPlan, state: RolloutInCluster) -> bool:
        """Make the planned changes in the cluster."""
        return await self._adjustments.make(plan, state)

    async def is_asked(self) -> bool:
        """Whether a request or a changed intent may be waiting.

        Returns False if the status cannot be read, because the next full read reports the failure. If another
        client has deleted or changed the status, this method writes the status again.
        """
        with suppress(TwgenError):
            reported = await self.servers.reported()
            if reported.entries is not None:
                await self._journal.restore(reported.entries, self._place)
            return reported.is_news
        return False

    async def answer(self, target: Target) -> bool:
        """Carry out the first request, based on the last read. Returns whether the state must be read again.

        Raises TwgenError if the outcome is unknown. The next read then shows the outcome.
        """
        state = target.world.rollout
        if state.is_superseded or state.older_pods:
            return False
        if not (requests := (await self.servers.reported()).requests):
            return False
        first, *others = requests
        if not (request := first.waiting):
            await self._remove(first, target)
            return bool(others)
        refused = refused_after_abort(request, others, target)
        decision = decided(request, first, target, self._journal.intent.requests)
        if isinstance(decision, Answer):
            await self._write_answers(target, (first, decision), *refused)
            return bool(others)
        answer = first.answer_to_it or taken(request, decision, target)
        if refused or not first.answer_to_it:
            version = await self._write_answers(target, (first, answer), *refused)
            first = first._replace(resource_version=version)
        await self._write_answers(target, (first, await self._carried_out(answer, decision, target)))
        return True

    async def _carried_out(self, answer: Answer, intervention: Intervention, target: Target) -> Answer:
        try:
            await self.intervene(target, intervention)
            also = await self.servers.replay_again() if intervention.replays else ""
        except OutOfTime:
            raise
        except TwgenError as error:
            if answer.request.verb.slows:
                raise  # this kind of request can safely be repeated, so it is retried until it succeeds
            # the request may have succeeded before the connection broke
            found = self.target_of(await self.read())
            if is_in_effect(answer.request, found):
                return ended(answer, AnswerState.DONE)
            return after_interruption(answer, found) or ended(answer, AnswerState.REFUSED, str(error))
        return ended(answer, AnswerState.DONE, "; ".join(filter(None, (answer.message, also))))

    async def _remove(self, pending: PendingRequest, target: Target) -> None:
        """Remove an invalid request, or a request that was already answered and has reappeared."""
        request, wrong = pending.request, pending.wrong
        if request and pending.answer and request != pending.answer.request:
            wrong = f"{request}: an earlier request, which was answered, had the same ID {request.id}"
        await self.servers.cluster.answer((pending, None))
        if wrong:
            await self._report(AnswerState.REFUSED, wrong, target)

    async def _write_answers(self, target: Target, *answers: tuple[PendingRequest, Answer]) -> str:
        """Write answers, and report final answers. Returns the new resource version of the status."""
        version = await self.servers.cluster.answer(*answers)
        for _, answer in answers:
            if answer.is_final:
                await self._report(answer.state, f"{answer.request}: {answer.message}", target)
        return version

    async def _report(self, state: AnswerState, message: str, target: Target) -> None:
        """Report an answer in the log and as an Event. If this fails, the request is still answered."""
        self.view.say(f"{target.spec.worker_deployment}: {state}: {message}")
        kind: EventType = "Normal" if state is AnswerState.DONE else "Warning"
        try:
            await self.servers.cluster.add_event(kind, f"Request{state.value}", message, target.now)
        except TwgenError as error:
            self.view.say(f"could not write an Event about it: {error}")


async def _roll_out(place: IntentPlace, journal: Journal, limit: _Limit) -> WorkerPlan:
    intent, rollout = journal.intent, IntentRollout(place, journal)
    with suppress(TwgenError):
        journal.continue_from(await place.read_status(intent))
    await journal.warn(intent.warnings, place.now())
    try:
        async with asyncio.timeout_at(limit.ends):
            plan = await rollout.run(once=False)
    except TimeoutError as error:
        # a settled rollout was only waiting until the change had reached every task queue, so it succeeded
        if not (settled := journal.settled):
            worker, last_state = rollout.spec.worker_deployment, journal.last_state(place.now())
            raise OutOfTime(f"{worker} is not settled {limit.text}: {last_state}") from error
        plan = settled
    # retried, because readers of the status would otherwise wait forever for the end of the rollout
    for _ in range(_LAST_TRIES):
        if not journal.unwritten:
            return plan
        await place.sleep(FAILED_LOOK)
        await journal.record(*journal.unwritten)
    if journal.unwritten:
        raise StateUnavailable(f"{plan.spec.worker_deployment}: its final status could not be written")
    return plan
