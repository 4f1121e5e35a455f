"""The state of a rollout in a cluster: its Jobs, the requests of people, and the answers."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, NamedTuple

from twgen.model.forms import BUILD_ID
from twgen.model.shapes import text
from twgen.model.values import dataclass


class Driver(StrEnum):
    """The program that runs a rollout in the cluster.

    | driver | begins it | begins it again | answers requests | writes the status |
    | --- | --- | --- | --- | --- |
    | Job | a sync | `tick` deletes the Job | the Job | the Job |
    | Hook | a sync | only a sync | the Job; then `tick` refuses them | the Job; then `tick` |
    | Tick | `tick` | `tick` | `tick` | `tick` |
    | None | a person or CI | only they | `tick` refuses them | `tick` |
    """

    AUTO = "Auto"
    HOOK = "Hook"
    JOB = "Job"
    TICK = "Tick"
    NONE = "None"

    @property
    def has_job(self) -> bool:
        """A Job in the worker's namespace runs the rollout."""
        return self not in {Driver.TICK, Driver.NONE}


class JobReference(NamedTuple):
    """Identifies a Job, even if a later Job has the same name."""

    name: str
    uid: str


class EndedJob(NamedTuple):
    """The end of a rollout. If its tracked Job is deleted, Argo CD creates it again."""

    job: JobReference | None
    """None: `tick` ran the rollout."""
    ended_at: datetime
    is_older: bool = False
    """The Job is older than its intent, so the intent that it ran for was deleted."""


class LastSync(NamedTuple):
    """The last operation of an Argo CD application."""

    is_running: bool
    leaves_out_hooks: bool
    """It succeeded, but applied only some resources, such as changes that self-heal found."""


class RolloutMetadata(NamedTuple):
    """A rollout that `twgen tick` runs. Only the metadata of its ConfigMaps was read."""

    namespace: str
    name: str
    """The name of the ConfigMap with the intent."""
    intent_hash: str
    uid: str
    """The UID of that ConfigMap."""
    request: str = ""
    """The text of the waiting request; empty if there is none."""
    status_version: str = ""
    """The resource version of the ConfigMap with its status. Empty: there is none, or it is unknown."""

    @property
    def place(self) -> tuple[str, str]:
        """The namespace and the name of the intent."""
        return self.namespace, self.name

    def is_of(self, other: "RolloutMetadata") -> bool:
        """Both belong to the same intent."""
        return (self.intent_hash, self.uid) == (other.intent_hash, other.uid)


@dataclass(frozen=True, slots=True)
class RolloutInCluster:
    """The state in a cluster that matters to a running rollout."""

    is_superseded: bool = False
    """Its intent has changed or is gone, so another rollout must continue."""
    is_paused: bool = False
    """Its intent has the annotation `twgen.io/paused`."""
    older_jobs: tuple[JobReference, ...] = ()
    """The Jobs of earlier rollouts of the worker, also those that have ended."""
    older_pods: tuple[str, ...] = ()
    """The Pods of earlier rollouts of the worker that have not ended."""

    @property
    def is_stopped(self) -> bool:
        """The rollout may change nothing now."""
        return self.is_superseded or self.is_paused or bool(self.older_pods)


_MOST_EARLIER = 30
"""How many answered requests are remembered: more than a person makes before the oldest expires."""


class Verb(StrEnum):
    """The command that a request asks for."""

    PAUSE = "Pause"
    RESUME = "Resume"
    ABORT = "Abort"
    PROMOTE = "Promote"
    RETRY = "Retry"

    @property
    def needs_permission(self) -> bool:
        """Only an operator can permit it, because it can give a version more traffic at once."""
        return self in {Verb.PROMOTE, Verb.RETRY}

    @property
    def slows(self) -> bool:
        """It makes the rollout slower, or takes traffic back."""
        return self in {Verb.PAUSE, Verb.ABORT}

    @property
    def counts_for(self) -> timedelta:
        """From this age on, it is refused. A request that slows a rollout may wait long for its Job."""
        return timedelta(days=1) if self.slows else timedelta(minutes=30)


class Request(NamedTuple):
    """A request of a person to a rollout."""

    id: Annotated[str, text(r"^[-._a-zA-Z0-9]{1,64}$(?!\n)", "an ID of letters, digits, - _ and .")]
    """An ID that is different for each request."""
    verb: Verb
    target: Annotated[str, BUILD_ID]
    """The build ID that it is for."""
    at: datetime
    """When it was made, by the clock of the person who made it."""
    by: Annotated[str, text(r"^[ -~]{0,200}$(?!\n)", "a name of at most 200 printable ASCII characters")] = ""
    """The author, if known."""
    full: bool = False
    """For Promote: send all traffic, not only the next share."""
    reason: str = ""
    """The reason in the status that the person saw. Empty: unknown."""

    @property
    def asks_for(self) -> tuple[object, ...]:
        """Two requests with an equal value count as one."""
        return self.verb, self.target, self.full

    def __str__(self) -> str:
        """Its name in sentences."""
        what = f"{self.verb} {'with all traffic ' if self.full else ''}of {self.target}"
        return f"{what}, requested by {self.by}" if self.by else what


class AnswerState(StrEnum):
    """The state of a request."""

    TAKEN = "Taken"
    """Its command is running."""
    DONE = "Done"
    REFUSED = "Refused"


class Answer(NamedTuple):
    """The answer of a rollout to a request."""

    request: Request
    state: AnswerState
    message: str
    """The result, or the reason for the refusal."""
    conflict_token: str = ""
    """The worker's conflict token when the request was taken. It permits one change of traffic."""
    percentage: float | None = None
    """The target's share after the change of traffic. None: there is no change."""
    stops: tuple[str, ...] = ()
    """The marks that stopped the target when the request was taken, by key, author and time."""
    earlier: tuple[str, ...] = ()
    """The IDs of requests that were answered before, newest first, to recognize one that comes back."""

    @property
    def is_final(self) -> bool:
        """The answer is final."""
        return self.state is not AnswerState.TAKEN

    def after(self, before: "Answer | None") -> "Answer":
        """The same answer, with the IDs from the answer before it."""
        known = (before.request.id, *before.earlier) if before else ()
        others = [each for each in known if each != self.request.id]
        return self._replace(earlier=tuple(others[:_MOST_EARLIER]))


class PendingRequest(NamedTuple):
    """A request in a cluster, and the newest answer to a request in the same annotation."""

    annotation: str
    """The annotation that it was read from."""
    request: Request | None
    """The request. None: it cannot be read, or is ignored."""
    wrong: str
    """Why it cannot be read, is ignored, or may have been answered already. Empty: no problem."""
    answer: Answer | None
    """The answer to this request or an earlier one. None: there is none yet."""
    resource_version: str
    """The resource version of the object with request and answer."""
    is_ignored: bool = False
    """A manifest contains the request, so no person made it. It is not changed."""

    @property
    def waiting(self) -> Request | None:
        """The request to answer. None: there is none, or it is already answered."""
        answer = self.answer
        if not self.request or not answer:
            return self.request
        if self.request.id == answer.request.id:
            return None if answer.is_final else self.request
        return None if self.request.id in answer.earlier else self.request

    @property
    def answer_to_it(self) -> Answer | None:
        """The answer to this request. None: it is not taken yet, or its answer has been replaced."""
        is_to_it = self.answer and self.request and self.answer.request.id == self.request.id
        return self.answer if is_to_it else None
