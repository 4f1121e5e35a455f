"""Answers the requests to a rollout: takes one, carries it out once, and writes what came of it."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from http import HTTPStatus

from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import Forbidden, KubernetesClient, MergePatch, config_map_path, error_of
from twgen.errors import OutOfTime, TwgenError
from twgen.executing.cluster import ClusterWriter, EventType
from twgen.executing.rollout import Glance, intervene
from twgen.executing.temporal import TemporalWriter
from twgen.model.requests import Answer, AnswerState, PendingRequest, Request, Verb
from twgen.model.status import RolloutStatus
from twgen.model.values import dataclass
from twgen.planning.interventions import Intervention
from twgen.planning.requests import after_interruption, behind, decided, ended, is_in_effect, taken
from twgen.planning.routing.target import Target
from twgen.records.requests import annotation_of, write_request
from twgen.versioning.names import rollout_status_name

_SENDER = "twgen-person"
"""The field manager of what people request."""


@dataclass(frozen=True, slots=True)
class Requests:
    """The requests to one rollout, with the functions that read and write."""

    permitted: Collection[Verb]
    """The verbs that the operator permits beside those that are always taken."""
    pending: Callable[[], Awaitable[Sequence[PendingRequest]]]
    """Reads the requests, in the order in which they are answered. Raises StateUnavailable or OutOfTime."""
    cluster: ClusterWriter
    temporal: Callable[[str], TemporalWriter]
    """Makes changes as a manager identity."""
    look: Callable[[], Awaitable[Target]]
    glance: Glance
    replay_again: Callable[[], Awaitable[str]]
    """Starts the replay again; what was done or is left to do."""
    say: Callable[[str], None]

    async def answer(self, target: Target) -> bool:
        """Carry out the first request that there is, by what was just read of the target; True: look again.

        Raises TwgenError if it is not known what came of it: the next look tells.
        """
        state = target.world.rollout
        requests = () if state.is_superseded or state.older_pods else await self.pending()
        if not requests:
            return False
        first, *others = requests
        if not (request := first.waiting):
            await self._remove(first, target)
            return bool(others)
        refused = behind(request, others, target)
        decision = decided(request, first, target, self.permitted)
        if isinstance(decision, Answer):
            await self._write(target, (first, decision), *refused)
            return bool(others)
        answer = first.answer_to_it or taken(request, decision, target)
        if refused or not first.answer_to_it:
            version = await self._write(target, (first, answer), *refused)
            first = first._replace(resource_version=version)
        await self._write(target, (first, await self._carried_out(answer, decision, target)))
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

    async def _remove(self, pending: PendingRequest, target: Target) -> None:
        """Remove what is no request, or was answered before and came back."""
        request, wrong = pending.request, pending.wrong
        if request and pending.answer and request != pending.answer.request:
            wrong = f"{request}: its ID {request.id} is that of an answered request"
        await self.cluster.answer((pending, None))
        if wrong:
            await self._tell(AnswerState.REFUSED, wrong, target)

    async def _write(self, target: Target, *answers: tuple[PendingRequest, Answer]) -> str:
        """Write answers, and tell of the final ones; the new version of the status."""
        version = await self.cluster.answer(*answers)
        for _, answer in answers:
            if answer.is_final:
                await self._tell(answer.state, f"{answer.request}: {answer.message}", target)
        return version

    async def _tell(self, state: AnswerState, message: str, target: Target) -> None:
        """Say it in the log, and as an Event; the request is answered even if that fails."""
        self.say(f"{target.spec.worker_deployment}: {state}: {message}")
        kind: EventType = "Normal" if state is AnswerState.DONE else "Warning"
        try:
            await self.cluster.add_event(kind, f"Request{state.value}", message, target.now)
        except TwgenError as error:
            self.say(f"no Event tells of it: {error}")


async def send(
    client: KubernetesClient, judged_by: RolloutStatus, request: Request, deadline: Deadline
) -> None:
    """Write a request that was judged by this status; raises StateUnavailable or OutOfTime.

    Raises Conflict if the status has changed since. An abort is written anyway: no other request is replaced.
    """
    namespace, _, worker = judged_by.worker.partition("/")
    path = config_map_path(namespace, rollout_status_name(worker))
    over = {} if request.verb is Verb.ABORT else {"resourceVersion": judged_by.resource_version}
    annotations = {annotation_of(request.verb): write_request(request)}
    body = MergePatch(metadata={"annotations": annotations, **over})
    status, answer = await client.ask("PATCH", path, deadline, query={"fieldManager": _SENDER}, body=body)
    if status == HTTPStatus.FORBIDDEN:
        raise Forbidden(
            f"you are not allowed to request this of {namespace}/{worker}: that needs the verb patch on"
            f" ConfigMap {rollout_status_name(worker)} ({answer.get('message')})"
        )
    if status != HTTPStatus.OK:
        why = answer.get("message") or status
        raise error_of(status)(f"PATCH {path}: the API server rejected it: {why}")
