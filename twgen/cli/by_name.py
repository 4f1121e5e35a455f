"""Runs commands on `worker/NAME`: sends requests to a rollout in the cluster.

These commands read neither spec files nor Temporal.
"""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import uuid4

from twgen.cli.live import Connections, Servers
from twgen.cli.output import confirm, say, write
from twgen.cli.settings import KIND, Named, Settings, clock, named_worker, settings_of
from twgen.clients.kubernetes import Conflict
from twgen.errors import InvalidInput, NegativeAnswer, OutOfTime
from twgen.executing.cluster import restart_job, send
from twgen.model.rollout import Answer, AnswerState, Request, Verb
from twgen.model.status import RolloutStatus
from twgen.planning.requests import has_ended, refused_at_once, same_that_waits
from twgen.planning.sentences import spoken
from twgen.reading.rollouts import read_intent, read_rollout_status, specs_of
from twgen.records.rollout_status import annotation_of
from twgen.reporting.json_text import json_text
from twgen.reporting.printable import printable
from twgen.specs.parse import Specs
from twgen.versioning.names import rollout_name, rollout_selector

_BETWEEN_LOOKS = 1.0
_TAKEN_WITHIN = timedelta(seconds=60)
"""The time limit for a response to a request. A Job checks for requests every few seconds."""


def specs_of_named(settings: Settings, named: Named) -> Specs:
    """The specs in the intent of this worker's rollout."""

    async def read(opened: Connections) -> Specs:
        client, name = opened.cluster_for(f"{KIND}{named.worker}"), rollout_name(named.worker)
        intent = await read_intent(client, named.namespace, name, "", opened.deadline())
        if not intent:
            raise _no_rollout(named)
        return specs_of(intent)

    with Servers(settings) as servers:
        return servers.run((), read)


def request(
    params: Mapping[str, Any], verb: Verb | None, *, full: bool = False, skip_gate: bool = False
) -> bool:
    """Send a request to the rollout of `worker/NAME`, and print the answer.

    Returns False if PATHs are given.
    """
    settings = settings_of(params)
    named = named_worker(settings)
    if not named:
        return False
    if not verb or skip_gate:
        what = "--skip-gate" if skip_gate else "this command"
        raise InvalidInput(f"{what} is not possible with worker/NAME: give PATHs")
    with Servers(settings) as servers:
        answer = servers.run((), lambda opened: _requested(opened, named, verb, params, full=full))
    if answer and params["output"] == "json":
        write(json_text(answer_document(named, answer)))
    elif answer and answer.state is AnswerState.DONE:
        write(printable(f"{named.namespace}/{named.worker}: Done: {answer.message}") + "\n")
    if answer and answer.state is AnswerState.REFUSED:
        raise NegativeAnswer(printable(answer.message))
    return True


def request_by(settings: Settings, verb: Verb, status: RolloutStatus, *, full: bool = False) -> Request:
    """A new request from the caller, for the target and the reason in this status."""
    identity = settings.planning_caller.identity.removeprefix("twgen/")
    return Request(uuid4().hex[:16], verb, status.target, clock(), identity, full, str(status.reason))


async def refused_or_sent(opened: Connections, named: Named, request: Request, status: RolloutStatus) -> str:
    """Send a request, or return the reason if the status does not allow it. Retry if the status changes."""
    client, deadline = opened.cluster_for(f"{KIND}{named.worker}"), opened.deadline()
    while not (why := refused_at_once(status, request)):
        try:
            await send(client, status, request, deadline)
        except Conflict:
            status = await _status(opened, named)
        else:
            return ""
    return why


async def _requested(
    opened: Connections, named: Named, verb: Verb, params: Mapping[str, Any], *, full: bool
) -> Answer | None:
    """Send the request and return the answer, or None for a dry run."""
    status = await _status(opened, named)
    request = request_by(opened.settings, verb, status, full=full)
    same = same_that_waits(status, request)
    if not same and (why := refused_at_once(status, request)):
        return _refused(request, status, why)
    share = "" if status.percentage is None else f" at {status.percentage:g}%"
    change = f"request {verb} of {status.target}, now {status.phase}{share}"
    if params["dry_run"]:
        say(f"{status.worker}: would {change}")
        return None
    if same:
        say(f"{status.worker}: {same} is already waiting")
    else:
        if full:
            confirm(f"{status.worker}: {change}, with all traffic at once", yes=params["yes"], always=False)
        if why := await refused_or_sent(opened, named, request, status):
            return _refused(request, status, why)
        say(f"{status.worker}: requested {verb} of {status.target}")
    restarted = ""
    if has_ended(status):
        client, selector = opened.cluster_for(f"{KIND}{named.worker}"), rollout_selector(named.worker)
        restarted = await restart_job(client, named.namespace, selector, opened.deadline())
    answered_before = {answer.request.id for answer in status.answers}
    return await _answer(opened, named, same or request, answered_before, restarted)


def _refused(request: Request, status: RolloutStatus, why: str) -> Answer:
    return Answer(request, AnswerState.REFUSED, f"{status.worker}: {why}")


def answer_document(named: Named, answer: Answer) -> dict[str, Any]:
    """The answer as JSON."""
    return {
        "worker": "/".join(named),
        "verb": answer.request.verb.value,
        "targetBuildID": answer.request.target,
        "id": answer.request.id,
        "state": answer.state.value,
        "message": answer.message,
    }


async def _status(opened: Connections, named: Named) -> RolloutStatus:
    client = opened.cluster_for(f"{KIND}{named.worker}")
    status = await read_rollout_status(client, *named, opened.deadline())
    if not status:
        raise _no_rollout(named)
    return status


def _no_rollout(named: Named) -> NegativeAnswer:
    return NegativeAnswer(
        f"{'/'.join(named)} has no rollout in this cluster, or none that has begun:"
        f" `twgen status --from-cluster -n {named.namespace}` lists the rollouts"
    )


async def _answer(
    opened: Connections, named: Named, sent: Request, answered_before: set[str], restarted: str
) -> Answer:
    """Wait for the final answer. Raises OutOfTime if neither a Job nor tick answers in time.

    If twgen restarted the rollout's Job, `restarted` is a sentence about that. Otherwise, it is empty.
    """
    wanted, own, asked_at = sent, annotation_of(sent.verb), clock()
    while True:
        await asyncio.sleep(_BETWEEN_LOOKS)
        status = await _status(opened, named)
        pending = [each.request for each in status.pending if each.request]
        # an identical request from another user may have replaced this one
        wanted = next((each for each in pending if each.asks_for == wanted.asks_for), wanted)
        answer = next((each for each in status.answers if each.request.id == wanted.id), None)
        if answer and answer.is_final:
            return answer
        known = {wanted.id, sent.id, *answered_before}
        others = [
            each
            for each in (*pending, *(answer.request for answer in status.answers))
            if annotation_of(each.verb) == own and each.id not in known
        ]
        if others:
            raise NegativeAnswer(
                f"{status.worker}: another request replaced this one, so its outcome is unknown: {others[0]};"
                f" `twgen status worker/{named.worker} -n {named.namespace}` shows the state"
            )
        if wanted not in pending and not answer:
            raise NegativeAnswer(f"{status.worker}: the request was withdrawn")
        if clock() - asked_at > _TAKEN_WITHIN:
            look = f"kubectl get jobs,pods -n {named.namespace} -l {rollout_selector(named.worker)}"
            raise OutOfTime(
                f"{status.worker}: no answer within {spoken(_TAKEN_WITHIN)} ({status.message})."
                " The request stays until its rollout or `twgen tick` answers it."
                f" {restarted or f'`{look}` shows whether it runs'}"
            )
