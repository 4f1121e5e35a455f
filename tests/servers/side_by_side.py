"""Stories that are told side by side: each mostly waits."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from inspect import Parameter, Signature, signature
from typing import Any

import pytest

Told = Mapping[str, Future[None]]

STORIES_AT_ONCE = 10
"""Of one module; each mostly waits."""
APPLICATIONS_AT_ONCE = 6
"""As above, of stories of Argo CD, each step of which starts a render or two."""


def side_by_side(tell: Callable[..., None], *more: str) -> Callable[..., None]:
    """A test whose story begins when there is room beside the others of its module, and ends with it.

    `more` is parametrized too, and only what begins the story is told of it.
    """

    def test(told_stories: Told, request: pytest.FixtureRequest, **_: object) -> None:
        told_stories[request.node.name].result()

    _, *parameters = signature(tell).parameters.values()
    asked, requested, _ = signature(test).parameters.values()
    parameters += [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in more]
    vars(test).update(vars(tell), tell=tell, __signature__=Signature([asked, requested, *parameters]))
    test.__name__ = tell.__name__
    return test


def side_by_side_tests(request: pytest.FixtureRequest) -> Sequence[pytest.Function]:
    """Those of the module that are told so."""
    tests = [item for item in request.session.items if isinstance(item, pytest.Function)]
    return [test for test in tests if test.module is request.module and hasattr(test.function, "tell")]


def kind_of_story(test: pytest.Function) -> type:
    """What it is told of: the class of its first parameter."""
    first, *_ = signature(test.function.tell).parameters.values()
    kind: type = first.annotation
    return kind


@contextmanager
def told_side_by_side(
    request: pytest.FixtureRequest,
    begin: Callable[[pytest.Function, Callable[..., None]], None],
    at_once: int,
) -> Iterator[Told]:
    """The stories of the module's tests; each begins with its test, and with what tells it of a story."""
    tests = side_by_side_tests(request)
    with ThreadPoolExecutor(at_once) as pool:
        yield {test.name: pool.submit(begin, test, _story_of(test)) for test in tests}
        pool.shutdown(cancel_futures=True)


def _story_of(test: pytest.Function) -> Callable[..., None]:
    tell = test.function.tell
    known = signature(tell).parameters
    return partial(tell, **{name: value for name, value in given(test).items() if name in known})


def given(test: pytest.Function) -> Mapping[str, Any]:
    """What a test is parametrized with."""
    return test.callspec.params if hasattr(test, "callspec") else {}
