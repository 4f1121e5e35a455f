"""Answers the requests to a rollout: takes one, carries it out once, and writes what came of it."""

from collections.abc import Awaitable, Callable, Collection
from http import HTTPStatus

from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import Forbidden, KubernetesClient, MergePatch, config_map_path
from twgen.errors import NegativeAnswer, OutOfTime, OwnedBySomebodyElse, StateUnavailable, TwgenError
from twgen.executing.cluster import ClusterWriter, EventType
from twgen.executing.rollout import Glance, intervene
from twgen.executing.temporal import TemporalWriter
from twgen.model.requests import Answer, AnswerState, PendingRequest, Request, Verb
from twgen.model.values import dataclass
from twgen.planning.interventions import Intervention
from twgen.planning.requests import after_interruption, ended, is_in_effect, requested, taken
from twgen.planning.routing.target import Target
from twgen.records.requests import write_request
from twgen.versioning.names import REQUEST, rollout_status_name

_SENDER = "twgen-person"
"""The field manager of what people request."""


@dataclass(frozen=True, slots=True)
class Requests:
    """The requests to one rollout, with the functions that read and write."""

    permitted: Collection[Verb]
    """The verbs that the operator permits beside those that are always taken."""
    pending: Callable[[], Awaitable[PendingRequest | None]]
    """Reads the request; None: there is none. Raises StateUnavailable or OutOfTime."""
    cluster: ClusterWriter
    temporal: Callable[[str], TemporalWriter]
    """Makes changes as a manager identity."""
    look: Callable[[], Awaitable[Target]]
    glance: Glance
    replay_again: Callable[[], Awaitable[str]]
    """Starts the replay again; what was done or is left to do."""
    say: Callable[[str], None]

    async def answer(self, target: Target) -> bool:
        """Carry out the request that there is, by what was just read of the target; True: look again.

        Raises TwgenError if it is not known what came of it: the next look tells.
        """
        state = target.world.rollout
        pending = None if state.is_superseded or state.older_pods else await self.pending()
        if not pending:
            return False
        if pending.is_answered or not pending.request:
            # it was answered, but the annotation came back, or it is no request
            wrong = pending.wrong
            if pending.request and pending.answer and pending.request != pending.answer.request:
                wrong = f"{pending.request}: its ID {pending.request.id} is that of an answered request"
            if wrong:
                await self._tell(AnswerState.REFUSED, wrong, target)
            await self.cluster.answer(None, over=pending.resource_version)
            return False
        answer, version = pending.answer_to_it, pending.resource_version
        if pending.wrong:
            refusal = f"{pending.wrong}: see how it stands, and request it again"
            await self._end(Answer(pending.request, AnswerState.REFUSED, refusal), version, target)
            return False
        if answer and (end := after_interruption(answer, target)):
            await self._end(end, version, target)
            return False
        try:
            intervention = requested(pending.request, target, self.permitted)
        except (NegativeAnswer, OwnedBySomebodyElse) as error:
            if answer and is_in_effect(pending.request, target):
                end = ended(answer, AnswerState.DONE)
            else:
                end = Answer(pending.request, AnswerState.REFUSED, str(error))
            await self._end(end, version, target)
            return False
        if not answer:
            answer = taken(pending.request, intervention, target)
            version = await self.cluster.answer(answer, over=version)
        await self._end(await self._carried_out(answer, intervention, target), version, target)
        return True

    async def _carried_out(self, answer: Answer, intervention: Intervention, target: Target) -> Answer:
        looks = iter([target])

        async def look() -> Target:
            # it was decided by the first one
            return next(looks, None) or await self.look()

        try:
            await intervene(look, lambda _: intervention, self.temporal, self.glance, self.say)
            also = await self.replay_again() if intervention.replays else ""
        except OutOfTime:
            raise
        except TwgenError as error:
            if answer.request.verb.slows:
                raise  # it may be repeated, so it is tried until it is done
            # a connection that breaks may have broken after the request
            found = await self.look()
            if is_in_effect(answer.request, found):
                return ended(answer, AnswerState.DONE)
            return after_interruption(answer, found) or ended(answer, AnswerState.REFUSED, str(error))
        return ended(answer, AnswerState.DONE, "; ".join(filter(None, (answer.message, also))))

    async def _end(self, answer: Answer, version: str, target: Target) -> None:
        await self.cluster.answer(answer, over=version)
        await self._tell(answer.state, f"{answer.request}: {answer.message}", target)

    async def _tell(self, state: AnswerState, message: str, target: Target) -> None:
        """Say it in the log, and as an Event; the request is answered even if that fails."""
        self.say(f"{target.spec.worker_deployment}: {state}: {message}")
        kind: EventType = "Normal" if state is AnswerState.DONE else "Warning"
        try:
            await self.cluster.add_event(kind, f"Request{state.value}", message, target.now)
        except TwgenError as error:
            self.say(f"no Event tells of it: {error}")


async def send(
    client: KubernetesClient, namespace: str, worker: str, request: Request, deadline: Deadline
) -> None:
    """Write a request, in place of one that is not answered yet; raises StateUnavailable or OutOfTime."""
    path = config_map_path(namespace, rollout_status_name(worker))
    body = MergePatch(metadata={"annotations": {REQUEST: write_request(request)}})
    status, answer = await client.ask("PATCH", path, deadline, query={"fieldManager": _SENDER}, body=body)
    if status == HTTPStatus.FORBIDDEN:
        raise Forbidden(
            f"you are not allowed to request this of {namespace}/{worker}: that needs the verb patch on"
            f" ConfigMap {rollout_status_name(worker)} ({answer.get('message')})"
        )
    if status != HTTPStatus.OK:
        raise StateUnavailable(f"PATCH {path}: the API server rejected it: {answer.get('message') or status}")
