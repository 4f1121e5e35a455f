"""A rollout's state in a cluster: its Jobs, and people's requests with their answers."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, NamedTuple

from twgen.model.forms import BUILD_ID
from twgen.model.shapes import text
from twgen.model.values import dataclass


class Driver(StrEnum):
    """The program that runs a rollout in the cluster.

    | driver | started by | restarted by | requests | status written by |
    | --- | --- | --- | --- | --- |
    | Job | a sync | `tick`, which deletes the Job | answered by the Job | the Job |
    | Hook | a sync | only a sync | answered by the Job, then refused by `tick` | the Job, then `tick` |
    | Tick | `tick` | `tick` | answered by `tick` | `tick` |
    | None | a person or CI | a person or CI | refused by `tick` | `tick` |
    """

    AUTO = "Auto"
    HOOK = "Hook"
    JOB = "Job"
    TICK = "Tick"
    NONE = "None"

    @property
    def has_job(self) -> bool:
        """Whether a Job in the worker's namespace runs the rollout."""
        return self not in {Driver.TICK, Driver.NONE}


class JobReference(NamedTuple):
    """Identifies a Job, even if a later Job has the same name."""

    name: str
    uid: str


class EndedJob(NamedTuple):
    """The end of a rollout. If Argo CD tracks the rollout's Job, it recreates the Job after a deletion."""

    job: JobReference | None
    """The Job that ran the rollout, or None if `tick` ran it."""
    ended_at: datetime
    is_older: bool = False
    """Whether the Job is older than the intent. If so, the Job ran for an intent that has been deleted."""


class LastSync(NamedTuple):
    """The last operation of an Argo CD application."""

    is_running: bool
    leaves_out_hooks: bool
    """Whether the operation succeeded but applied only some resources, as self-heal does."""


class RolloutMetadata(NamedTuple):
    """A rollout run by `twgen tick`, as described by the metadata of its two ConfigMaps."""

    namespace: str
    name: str
    """The name of the ConfigMap with the intent."""
    intent_hash: str
    uid: str
    """The UID of the intent's ConfigMap."""
    request: str = ""
    """The text of the pending request. Empty if no request is pending."""
    status_version: str = ""
    """The resource version of the status ConfigMap. Empty if the ConfigMap does not exist or is unknown."""

    @property
    def place(self) -> tuple[str, str]:
        """The namespace and the name of the intent."""
        return self.namespace, self.name

    def is_of(self, other: "RolloutMetadata") -> bool:
        """Whether both rollouts belong to the same intent."""
        return (self.intent_hash, self.uid) == (other.intent_hash, other.uid)


@dataclass(frozen=True, slots=True)
class RolloutInCluster:
    """The state of a cluster that decides whether a rollout may continue."""

    is_superseded: bool = False
    """Whether the rollout's intent has been changed or deleted, so that this rollout must stop."""
    is_paused: bool = False
    """Whether the rollout's intent has the `twgen.io/paused` annotation."""
    older_jobs: tuple[JobReference, ...] = ()
    """The Jobs of the worker's earlier rollouts, including Jobs that have ended."""
    older_pods: tuple[str, ...] = ()
    """The Pods of the worker's earlier rollouts that have not terminated."""

    @property
    def is_stopped(self) -> bool:
        """Whether the rollout is not allowed to change anything now."""
        return self.is_superseded or self.is_paused or bool(self.older_pods)


_MOST_EARLIER = 30
"""How many answered requests are remembered: more than a person sends before the oldest one expires."""


class Verb(StrEnum):
    """The command that a request asks for."""

    PAUSE = "Pause"
    RESUME = "Resume"
    ABORT = "Abort"
    PROMOTE = "Promote"
    RETRY = "Retry"

    @property
    def needs_permission(self) -> bool:
        """Whether the operator must permit the command, because it can give a version more traffic."""
        return self in {Verb.PROMOTE, Verb.RETRY}

    @property
    def slows(self) -> bool:
        """Whether the command slows down the rollout or takes traffic back."""
        return self in {Verb.PAUSE, Verb.ABORT}

    @property
    def counts_for(self) -> timedelta:
        """The age at which a request for the command expires.

        A request that slows down a rollout can wait longer for the rollout's Job.
        """
        return timedelta(days=1) if self.slows else timedelta(minutes=30)


class Request(NamedTuple):
    """A person's request to a rollout."""

    id: Annotated[str, text(r"^[-._a-zA-Z0-9]{1,64}$(?!\n)", "an ID of letters, digits, - _ and .")]
    """The request's unique ID."""
    verb: Verb
    target: Annotated[str, BUILD_ID]
    """The build ID of the target that the request refers to."""
    at: datetime
    """When the person sent the request, according to the person's clock."""
    by: Annotated[str, text(r"^[ -~]{0,200}$(?!\n)", "a name of at most 200 printable ASCII characters")] = ""
    """The name of the person. Empty if unknown."""
    full: bool = False
    """For Promote, whether to send all traffic instead of only the next share."""
    reason: str = ""
    """The reason shown in the status that the person saw before sending the request. Empty if unknown."""

    @property
    def asks_for(self) -> tuple[object, ...]:
        """The content of the request. Two requests with equal content count as one request."""
        return self.verb, self.target, self.full

    def __str__(self) -> str:
        """The request in words, such as `Promote of v2, requested by ann`."""
        what = f"{self.verb} {'with all traffic ' if self.full else ''}of {self.target}"
        return f"{what}, requested by {self.by}" if self.by else what


class AnswerState(StrEnum):
    """The state of a request."""

    TAKEN = "Taken"
    """Its command is running."""
    DONE = "Done"
    REFUSED = "Refused"


class Answer(NamedTuple):
    """A rollout's answer to a request."""

    request: Request
    state: AnswerState
    message: str
    """The result, or the reason for the refusal."""
    conflict_token: str = ""
    """The worker's conflict token at the time when the request was taken. It permits only one routing change.
    """
    percentage: float | None = None
    """The target's share after the routing change. None if the routing does not change."""
    stops: tuple[str, ...] = ()
    """The key, author and time of each metadata entry that stopped the target's rollout when the request was
    taken."""
    earlier: tuple[str, ...] = ()
    """The IDs of earlier answered requests, newest first. A request with one of these IDs is not answered
    again."""

    @property
    def is_final(self) -> bool:
        """Whether the request has been carried out or refused."""
        return self.state is not AnswerState.TAKEN

    def after(self, before: "Answer | None") -> "Answer":
        """This answer, extended with the request IDs from the previous answer."""
        known = (before.request.id, *before.earlier) if before else ()
        others = [each for each in known if each != self.request.id]
        return self._replace(earlier=tuple(others[:_MOST_EARLIER]))


class PendingRequest(NamedTuple):
    """A request in a cluster, and the newest answer to a request from the same annotation."""

    annotation: str
    """The annotation that contained the request."""
    request: Request | None
    """The request. None if it cannot be read or is ignored."""
    wrong: str
    """Why the request cannot be read, is ignored, or might already have been answered. Empty if it has no
    problem."""
    answer: Answer | None
    """The newest answer, either to this request or to an earlier request. None if there is no answer yet."""
    resource_version: str
    """The resource version of the ConfigMap that contains the request and the answer."""
    is_ignored: bool = False
    """Whether the request comes from a manifest. Such a request is ignored, because no person sent it."""

    @property
    def waiting(self) -> Request | None:
        """The request to answer.

        None if no request is pending, or if the request has already been answered.
        """
        answer = self.answer
        if not self.request or not answer:
            return self.request
        if self.request.id == answer.request.id:
            return None if answer.is_final else self.request
        return None if self.request.id in answer.earlier else self.request

    @property
    def answer_to_it(self) -> Answer | None:
        """The answer to this request.

        None if the request has not been taken yet, or if a later answer has replaced its answer.
        """
        is_to_it = self.answer and self.request and self.answer.request.id == self.request.id
        return self.answer if is_to_it else None
