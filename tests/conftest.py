"""What all tests have in common."""

import signal
from collections import Counter, deque

import pytest
from hypothesis import HealthCheck, settings

# what a shell starts in its background ignores Ctrl-C, and so would every program that is started here
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# how long an example takes says how busy the machine is, and nothing of the code
COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("twgen", COMMON, max_examples=30)
# the same examples each time: what fails is what a change has broken; the others look for new ones
settings.register_profile("thorough", COMMON, max_examples=100, derandomize=True)
# pytest tests/cli/test_broken_records.py --hypothesis-profile=attack
settings.register_profile("attack", COMMON, max_examples=20_000)
settings.load_profile("twgen")


_MANY_TESTS = 15


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Modules of few tests, which mostly wait, turn about with those of more; those of many are last.

    So processes that share a machine use it evenly, and none is left alone with a long story at the end.
    """
    tests = Counter(item.path for item in items)
    stories = deque(
        sorted((path for path in tests if tests[path] < _MANY_TESTS), key=lambda path: tests[path])
    )
    order = []
    while stories:
        order.append(stories.popleft())
        stories.reverse()
    place = {path: number for number, path in enumerate(order)}
    items.sort(key=lambda item: place.get(item.path, len(place) + tests[item.path]))
