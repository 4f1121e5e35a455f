"""Requests of people to a rollout in a cluster, and its answers."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, NamedTuple

from twgen.model.forms import BUILD_ID
from twgen.model.shapes import text


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


class PendingRequest(NamedTuple):
    """The request in a cluster, and the newest answer there."""

    request: Request | None
    """None: it cannot be read."""
    wrong: str
    """Why it cannot be read, or why nobody knows whether it was answered; empty: neither."""
    answer: Answer | None
    """To this request or an earlier one; None: none yet."""
    resource_version: str
    """The resource version of the object that holds both."""

    @property
    def is_answered(self) -> bool:
        """It has its answer, so nothing more is done."""
        answer = self.answer_to_it
        return answer is not None and answer.state is not AnswerState.TAKEN

    @property
    def answer_to_it(self) -> Answer | None:
        """The answer to this request; None: it is not taken yet."""
        is_to_it = self.answer and self.request and self.answer.request.id == self.request.id
        return self.answer if is_to_it else None
