"""The expected errors. Each exit code has its own exception class."""

from collections.abc import Iterable


class TwgenError(Exception):
    """An expected failure. The message is one line, and the class determines the exit code."""

    exit_code = 70


class NegativeAnswer(TwgenError):
    """The command found problems or pending changes, or a gate failed."""

    exit_code = 1


class InvalidInput(TwgenError):
    """The command line, or a document named on it, is invalid."""

    exit_code = 2


class InvalidDocuments(InvalidInput):
    """Documents are invalid. Each problem is one line: `file:line: path: message`."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class StateUnavailable(TwgenError):
    """Temporal, Kubernetes, Git or a snapshot could not be read completely."""

    exit_code = 3


class OutOfTime(TwgenError):
    """The deadline passed before the work was done."""

    exit_code = 4


class OwnedBySomebodyElse(TwgenError):
    """Another manager owns the Worker Deployment, or changed it at the same time."""

    exit_code = 5


def first_failure(failure: BaseException) -> BaseException:
    """The first failure in an exception group. An exception that is not a group is returned unchanged."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure
