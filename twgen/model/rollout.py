"""The state of a rollout that a cluster carries out: its Jobs, the requests of people, and the answers."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, NamedTuple

from twgen.model.forms import BUILD_ID
from twgen.model.shapes import text
from twgen.model.values import dataclass


class Driver(StrEnum):
    """The program that carries out a rollout in the cluster.

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
        """A Job in the namespace of the worker runs it."""
        return self not in {Driver.TICK, Driver.NONE}


class JobReference(NamedTuple):
    """Identifies a Job, also if another one later gets the same name."""

    name: str
    uid: str


class EndedJob(NamedTuple):
    """The end of a rollout. If its tracked Job is deleted, Argo CD creates it again."""

    job: JobReference | None
    """None: `tick` carried it out."""
    ended_at: datetime
    is_older: bool = False
    """It is older than its intent: the intent that it ran for was deleted."""


class LastSync(NamedTuple):
    """The last operation of an Argo CD application."""

    is_running: bool
    leaves_out_hooks: bool
    """It succeeded, and applied only some resources, such as those that self-heal found."""


class RolloutMetadata(NamedTuple):
    """A rollout that `twgen tick` carries out, by the metadata of its ConfigMaps only."""

    namespace: str
    name: str
    """The name of the ConfigMap with the intent."""
    intent_hash: str
    uid: str
    """The UID of that ConfigMap."""
    request: str = ""
    """The request that waits for it, as it is written; empty: none."""
    status_version: str = ""
    """The resource version of the ConfigMap with its status; empty: there is none, or it is unknown."""

    @property
    def place(self) -> tuple[str, str]:
        """The namespace and the name of the intent."""
        return self.namespace, self.name

    def is_of(self, other: "RolloutMetadata") -> bool:
        """Both are about the same intent."""
        return (self.intent_hash, self.uid) == (other.intent_hash, other.uid)


@dataclass(frozen=True, slots=True)
class RolloutInCluster:
    """The state of a rollout in a cluster that matters while it runs."""

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
        """It may change nothing now."""
        return self.is_superseded or self.is_paused or bool(self.older_pods)


_MOST_EARLIER = 30
"""Answered requests that are remembered: a person makes fewer in the time for which one counts."""


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
        """From this age it is refused. A request that slows a rollout may wait long for its Job."""
        return timedelta(days=1) if self.slows else timedelta(minutes=30)


class Request(NamedTuple):
    """A request of a person to a rollout."""

    id: Annotated[str, text(r"^[-._a-zA-Z0-9]{1,64}$(?!\n)", "an ID of letters, digits, - _ and .")]
    """Different for each request."""
    verb: Verb
    target: Annotated[str, BUILD_ID]
    """The build ID that it is for."""
    at: datetime
    """When it was made, by the clock of the person who made it."""
    by: Annotated[str, text(r"^[ -~]{0,200}$(?!\n)", "a name of at most 200 printable ASCII characters")] = ""
    """Who made it, as far as that is known."""
    full: bool = False
    """Of Promote: all of the traffic, not only the next step."""
    reason: str = ""
    """The reason in the status that the person saw; empty: not known."""

    @property
    def asks_for(self) -> tuple[object, ...]:
        """Two requests with the same are as good as one."""
        return self.verb, self.target, self.full

    def __str__(self) -> str:
        """Its name in sentences."""
        what = f"{self.verb} {'with all traffic ' if self.full else ''}of {self.target}"
        return f"{what}, requested by {self.by}" if self.by else what


class AnswerState(StrEnum):
    """The state of a request."""

    TAKEN = "Taken"
    """It is being carried out."""
    DONE = "Done"
    REFUSED = "Refused"


class Answer(NamedTuple):
    """The answer of a rollout to a request."""

    request: Request
    state: AnswerState
    message: str
    """What was done, or why the request was refused."""
    conflict_token: str = ""
    """The worker's conflict token when the request was taken. It permits one change of traffic."""
    percentage: float | None = None
    """The share that the target gets by the change of traffic; None: it makes none."""
    stops: tuple[str, ...] = ()
    """The marks that stopped the target when the request was taken, by key, author and time."""
    earlier: tuple[str, ...] = ()
    """The IDs of the requests that were answered before, newest first: one that comes back is not new."""

    @property
    def is_final(self) -> bool:
        """Nothing more is done about the request."""
        return self.state is not AnswerState.TAKEN

    def after(self, before: "Answer | None") -> "Answer":
        """The same answer, with the IDs that the one before it knew."""
        known = (before.request.id, *before.earlier) if before else ()
        others = [each for each in known if each != self.request.id]
        return self._replace(earlier=tuple(others[:_MOST_EARLIER]))


class PendingRequest(NamedTuple):
    """A request in a cluster, and the newest answer to one in the same annotation."""

    annotation: str
    """The annotation that it was read from."""
    request: Request | None
    """None: it cannot be read, or is ignored."""
    wrong: str
    """Why it cannot be read or is ignored, or why nobody knows whether it was answered; empty: none of it."""
    answer: Answer | None
    """To this request or an earlier one; None: none yet."""
    resource_version: str
    """The resource version of the object that holds both."""
    is_ignored: bool = False
    """No person made it: a manifest has it. It is left as it is."""

    @property
    def waiting(self) -> Request | None:
        """The request; None: there is nothing to answer, or it has its answer already."""
        answer = self.answer
        if not self.request or not answer:
            return self.request
        if self.request.id == answer.request.id:
            return None if answer.is_final else self.request
        return None if self.request.id in answer.earlier else self.request

    @property
    def answer_to_it(self) -> Answer | None:
        """The answer to this request; None: it is not taken yet, or was answered before the newest answer."""
        is_to_it = self.answer and self.request and self.answer.request.id == self.request.id
        return self.answer if is_to_it else None
