"""A rollout that no person watches: it waits for others to fix problems, and reports to its cluster.

It answers requests: it takes one, carries it out once, and writes what came of it.
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
from twgen.executing.rollout import Rollout
from twgen.model.plan import Plan, WorkerPlan
from twgen.model.policy import OwnerReferences
from twgen.model.reasons import RoutingReason
from twgen.model.rollout import Answer, AnswerState, PendingRequest, RolloutInCluster
from twgen.model.temporal import WorkerDeployment
from twgen.model.world import World
from twgen.planning.cluster_changes import AttachedInCluster
from twgen.planning.interventions import Intervention
from twgen.planning.requests import after_interruption, behind, decided, ended, is_in_effect, taken
from twgen.planning.rollout import FAILED_LOOK
from twgen.planning.routing.target import Target
from twgen.planning.sentences import spoken
from twgen.planning.worker_status import AttachedRead, attached_to_read, make_status
from twgen.records.intent import Intent, UnusableIntent

_LAST_TRIES = 12
"""How often writing the end of a rollout is tried."""


class _Limit(NamedTuple):
    """When a rollout is given up, on the event loop's clock (None: never), and how that is said."""

    ends: float | None
    text: str


async def carry_out(place: IntentPlace, intent_hash: str, within: float | None) -> WorkerPlan | None:
    """Roll out the intent of that hash (empty: any), within this number of seconds (None: no limit).

    The last plan; None: the intent no longer exists. Raises as `Rollout.run` does, but waits for problems
    that others can fix, and writes the reason of its end into the cluster.
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
            # an intent that was deleted and made again may be the same in all but its UID
            if plan.routing.reason is not RoutingReason.SUPERSEDED:
                return plan
    except UnusableIntent as error:
        await _refuse(place, error)
        raise
    except Exception as error:
        # nothing is written after SIGTERM: a reader of a status also reads its Jobs
        if journal and await is_current(place, journal.intent):
            is_bug = not isinstance(error, TwgenError)
            why = f"a bug ended it ({type(error).__name__})" if is_bug else str(error)
            await journal.leave(why, place.now())
        raise


async def _refuse(place: IntentPlace, error: UnusableIntent) -> None:
    """Report once that an intent cannot be carried out, and refuse the requests that wait for it."""
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
    """The intent, as soon as it can be read; None: it no longer exists."""
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


class IntentRollout(Rollout):
    """The rollout of an intent, which reports to its cluster."""

    is_unattended = True
    servers: IntentServers

    def __init__(self, place: IntentPlace, journal: Journal) -> None:
        """Raises UnusableIntent."""
        intent, servers, say = journal.intent, place.servers(journal.intent), place.view.say
        super().__init__(servers, intent.caller, place.view)
        self.cause = {"intent": intent.hash, "application": intent.application}
        self._place, self._journal = place, journal
        self._attached: list[AttachedInCluster] | None = None
        """The attached objects at the last look; None: they were not read then."""
        self._adjustments = Adjustments(
            servers.cluster, self.attached, say, self.fail, has_hook=intent.has_hook
        )

    async def look(self) -> World:
        """All of its worker, and whether it may continue."""
        with self._journal.asking(self._place.now()):
            world = await self.servers.read()
            # read last, since it permits the next write
            state = await self.servers.state()
        return world.with_rollout(self.spec.key, state)

    async def glance(self) -> WorkerDeployment | None:
        """Its traffic; None: it may not continue."""
        with self._journal.asking(self._place.now()):
            temporal, state = await self.servers.glance(), await self.servers.state()
        return None if state.is_stopped else temporal

    async def show(self, plan: Plan, world: World) -> None:
        """Show it, and write it into the cluster together with the state of attached objects."""
        self.view.show(plan, world, self.caller)
        self._attached = None
        may_list = self.spec.policy.owner_references is OwnerReferences.RENDER
        if may_list and attached_to_read(worker.versions for worker in plan.workers):
            with suppress(StateUnavailable, OutOfTime):
                self._attached = await self.servers.attached()
        read = {} if self._attached is None else {self.spec.namespace: AttachedRead(tuple(self._attached))}
        await self._journal.record(plan.workers[0], make_status(plan, world, self.caller, read))

    async def attached(self) -> list[AttachedInCluster]:
        """The objects of the last look; raises if they were not read then and cannot be read now."""
        return await self.servers.attached() if self._attached is None else self._attached

    async def fail(self, failure: str, reason: RoutingReason = RoutingReason.LOOK_FAILED) -> None:
        """Write a failure into the cluster."""
        await self._journal.fail(failure, reason, self._place)

    async def adjust(self, plan: WorkerPlan, state: RolloutInCluster) -> bool:
        """Make the changes in the cluster."""
        return await self._adjustments.make(plan, state)

    async def is_asked(self) -> bool:
        """There is a request; if it cannot be read, the next look reports that.

        A status that somebody has deleted or changed is written again.
        """
        with suppress(TwgenError):
            reported = await self.servers.reported()
            if reported.entries is not None:
                await self._journal.restore(reported.entries, self._place)
            return reported.is_news
        return False

    async def answer(self, target: Target) -> bool:
        """Carry out the first request that there is, by what was just read of the target; True: look again.

        Raises TwgenError if it is not known what came of it: the next look tells.
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
        refused = behind(request, others, target)
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
                raise  # it may be repeated, so it is tried until it is done
            # a connection that breaks may have broken after the request
            found = self.target_of(await self.look())
            if is_in_effect(answer.request, found):
                return ended(answer, AnswerState.DONE)
            return after_interruption(answer, found) or ended(answer, AnswerState.REFUSED, str(error))
        return ended(answer, AnswerState.DONE, "; ".join(filter(None, (answer.message, also))))

    async def _remove(self, pending: PendingRequest, target: Target) -> None:
        """Remove what is no request, or was answered before and came back."""
        request, wrong = pending.request, pending.wrong
        if request and pending.answer and request != pending.answer.request:
            wrong = f"{request}: its ID {request.id} is that of an answered request"
        await self.servers.cluster.answer((pending, None))
        if wrong:
            await self._tell(AnswerState.REFUSED, wrong, target)

    async def _write_answers(self, target: Target, *answers: tuple[PendingRequest, Answer]) -> str:
        """Write answers, and tell of the final ones; the new version of the status."""
        version = await self.servers.cluster.answer(*answers)
        for _, answer in answers:
            if answer.is_final:
                await self._tell(answer.state, f"{answer.request}: {answer.message}", target)
        return version

    async def _tell(self, state: AnswerState, message: str, target: Target) -> None:
        """Say it in the log, and as an Event; the request is answered even if that fails."""
        self.view.say(f"{target.spec.worker_deployment}: {state}: {message}")
        kind: EventType = "Normal" if state is AnswerState.DONE else "Warning"
        try:
            await self.servers.cluster.add_event(kind, f"Request{state.value}", message, target.now)
        except TwgenError as error:
            self.view.say(f"no Event tells of it: {error}")


async def _roll_out(place: IntentPlace, journal: Journal, limit: _Limit) -> WorkerPlan:
    intent, rollout = journal.intent, IntentRollout(place, journal)
    with suppress(TwgenError):
        journal.continue_from(await place.read_status(intent))
    await journal.warn(intent.warnings, place.now())
    try:
        async with asyncio.timeout_at(limit.ends):
            plan = await rollout.run(once=False)
    except TimeoutError as error:
        # a settled rollout only waits until the change has reached every task queue
        if not (settled := journal.settled):
            worker, last_state = rollout.spec.worker_deployment, journal.last_state(place.now())
            raise OutOfTime(f"{worker} is not settled {limit.text}: {last_state}") from error
        plan = settled
    # a reader of the status would wait for ever for its end
    for _ in range(_LAST_TRIES):
        if not journal.unwritten:
            return plan
        await place.sleep(FAILED_LOOK)
        await journal.record(*journal.unwritten)
    if journal.unwritten:
        raise StateUnavailable(f"{plan.spec.worker_deployment}: its final status could not be written")
    return plan
