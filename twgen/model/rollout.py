"""The state of a rollout in a cluster: its Jobs, people's requests, and the answers."""

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
    | Job | a sync | `tick`, which deletes the Job | the Job answers | the Job |
    | Hook | a sync | only a sync | the Job answers; after it, `tick` refuses | the Job; after it, `tick` |
    | Tick | `tick` | `tick` | `tick` answers | `tick` |
    | None | a person or CI | a person or CI | `tick` refuses | `tick` |
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
    """The end of a rollout. If its Job is deleted and Argo CD tracks it, Argo CD recreates it."""

    job: JobReference | None
    """The Job that ran the rollout, or None if `tick` ran it."""
    ended_at: datetime
    is_older: bool = False
    """Whether the Job is older than the intent. If so, the intent that it ran for was deleted."""


class LastSync(NamedTuple):
    """The last operation of an Argo CD application."""

    is_running: bool
    leaves_out_hooks: bool
    """Whether it succeeded but applied only some resources, such as the ones that self-heal corrects."""


class RolloutMetadata(NamedTuple):
    """A rollout that `twgen tick` runs, as the metadata of its two ConfigMaps describes it."""

    namespace: str
    name: str
    """The name of the ConfigMap with the intent."""
    intent_hash: str
    uid: str
    """The UID of that ConfigMap."""
    request: str = ""
    """The text of the waiting request. Empty if there is none."""
    status_version: str = ""
    """The resource version of the status ConfigMap. Empty if there is none, or if it is unknown."""

    @property
    def place(self) -> tuple[str, str]:
        """The namespace and the name of the intent."""
        return self.namespace, self.name

    def is_of(self, other: "RolloutMetadata") -> bool:
        """Whether both belong to the same intent."""
        return (self.intent_hash, self.uid) == (other.intent_hash, other.uid)


@dataclass(frozen=True, slots=True)
class RolloutInCluster:
    """The state of a cluster that decides whether a rollout may continue."""

    is_superseded: bool = False
    """Whether its intent has changed or is gone, so that another rollout continues."""
    is_paused: bool = False
    """Whether its intent has the annotation `twgen.io/paused`."""
    older_jobs: tuple[JobReference, ...] = ()
    """The Jobs of the worker's earlier rollouts, even if they have ended."""
    older_pods: tuple[str, ...] = ()
    """The Pods of the worker's earlier rollouts that have not ended."""

    @property
    def is_stopped(self) -> bool:
        """Whether the rollout must not change anything now."""
        return self.is_superseded or self.is_paused or bool(self.older_pods)


_MOST_EARLIER = 30
"""How many answered requests are remembered. A person sends fewer before the oldest one expires."""


class Verb(StrEnum):
    """The command that a request asks for."""

    PAUSE = "Pause"
    RESUME = "Resume"
    ABORT = "Abort"
    PROMOTE = "Promote"
    RETRY = "Retry"

    @property
    def needs_permission(self) -> bool:
        """Whether an operator must permit it, because it can give a version more traffic at once."""
        return self in {Verb.PROMOTE, Verb.RETRY}

    @property
    def slows(self) -> bool:
        """Whether it makes the rollout slower, or takes traffic back."""
        return self in {Verb.PAUSE, Verb.ABORT}

    @property
    def counts_for(self) -> timedelta:
        """The age from which it is refused. A request that slows a rollout may wait longer for its Job."""
        return timedelta(days=1) if self.slows else timedelta(minutes=30)


class Request(NamedTuple):
    """A person's request to a rollout."""

    id: Annotated[str, text(r"^[-._a-zA-Z0-9]{1,64}$(?!\n)", "an ID of letters, digits, - _ and .")]
    """An ID that is different for each request."""
    verb: Verb
    target: Annotated[str, BUILD_ID]
    """The build ID of the target that it is about."""
    at: datetime
    """When the person sent it, by the person's clock."""
    by: Annotated[str, text(r"^[ -~]{0,200}$(?!\n)", "a name of at most 200 printable ASCII characters")] = ""
    """The name of the person. Empty if unknown."""
    full: bool = False
    """For Promote: whether to send all traffic, not only the next share."""
    reason: str = ""
    """The reason in the status that the person had read. Empty if unknown."""

    @property
    def asks_for(self) -> tuple[object, ...]:
        """The content of the request. Two requests with the same content count as one."""
        return self.verb, self.target, self.full

    def __str__(self) -> str:
        """The request in a sentence."""
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
    """The worker's conflict token when the request was taken, which permits only one routing change."""
    percentage: float | None = None
    """The target's share after the routing change. None if there is no change."""
    stops: tuple[str, ...] = ()
    """The key, author and time of each metadata entry that stopped the target when the request was taken."""
    earlier: tuple[str, ...] = ()
    """The IDs of requests that were answered before, newest first. They reveal a request that reappears."""

    @property
    def is_final(self) -> bool:
        """Whether the answer is final."""
        return self.state is not AnswerState.TAKEN

    def after(self, before: "Answer | None") -> "Answer":
        """This answer, with the IDs of earlier requests from the answer before it."""
        known = (before.request.id, *before.earlier) if before else ()
        others = [each for each in known if each != self.request.id]
        return self._replace(earlier=tuple(others[:_MOST_EARLIER]))


class PendingRequest(NamedTuple):
    """A request in a cluster, and the newest answer to a request in the same annotation."""

    annotation: str
    """The annotation that it was read from."""
    request: Request | None
    """The request. None if it cannot be read or is ignored."""
    wrong: str
    """Why it cannot be read, is ignored, or may already have been answered. Empty if it has no problem."""
    answer: Answer | None
    """The answer to this request or an earlier one. None if there is none yet."""
    resource_version: str
    """The resource version of the ConfigMap that contains the request and the answer."""
    is_ignored: bool = False
    """Whether a manifest contains the request. It is then left alone, because no person sent it."""

    @property
    def waiting(self) -> Request | None:
        """The request to answer. None if there is none, or if it is already answered."""
        answer = self.answer
        if not self.request or not answer:
            return self.request
        if self.request.id == answer.request.id:
            return None if answer.is_final else self.request
        return None if self.request.id in answer.earlier else self.request

    @property
    def answer_to_it(self) -> Answer | None:
        """The answer to this request. None if it is not taken yet, or if its answer has been replaced."""
        is_to_it = self.answer and self.request and self.answer.request.id == self.request.id
        return self.answer if is_to_it else None
