"""The page of `make demo-live`, of stories that are made up here."""

import json
import re
from typing import Any
from urllib.request import urlopen

import pytest

from testing.demo_page import Story, served


@pytest.fixture
def story(capsys: pytest.CaptureFixture[str]) -> Story:
    """v2 ramps, v3 failed before it got a workflow, and v4 is not committed yet."""
    story = Story()
    story.say("commit v2: a good version", "commit")
    capsys.readouterr()
    story.committed |= {"v1", "v2", "v3"}
    story.current, story.shares = "v1", {"v1": 75, "v2": 25}
    story.began_on = {"order-1": "v1", "order-2": "v1", "order-3": "v2"}
    story.open = frozenset(story.began_on)
    story.failures["v3"] = "its gate failed"
    return story


def shown(page: str) -> dict[str, Any]:
    [state] = re.findall(r'id="state">(.*?)</script>', page)
    found: dict[str, Any] = json.loads(state)
    return found


def test_bars_show_the_shares_and_the_open_orders_of_each_version(story: Story) -> None:
    state = story.state()
    assert state["shares"] == {"v1": 75, "v2": 25, "v3": 0, "v4": 0}
    assert state["open"] == {"v1": 2, "v2": 1, "v3": 0, "v4": 0}


def test_version_that_got_no_workflow_is_not_called_drained(story: Story) -> None:
    versions = story.state()["versions"]
    assert versions["v3"] == "its gate failed: it got no workflow"
    assert versions["v4"] == "", "it is not committed yet"


def test_version_says_that_it_ramps_drains_and_is_drained(story: Story) -> None:
    assert story.state()["versions"]["v2"] == "ramping: 25%, 1 open"
    story.current, story.shares = "v2", {"v2": 100}
    assert story.state()["versions"]["v2"] == "current: 100%, 1 open"
    assert story.state()["versions"]["v1"] == "draining: 2 open"
    story.open = frozenset({"order-3"})
    assert story.state()["versions"]["v1"] == "drained: its last order has ended"


def test_page_that_is_kept_has_the_log_and_the_last_numbers(story: Story) -> None:
    story.started = story.completed = 212
    story.lost = 0
    story.end()
    state = shown(story.page())
    assert (state["isOver"], state["started"], state["completed"], state["lost"]) == (True, 212, 212, 0)
    assert [line["text"] for line in state["log"]] == ["commit v2: a good version"]


def test_text_cannot_end_the_script_that_holds_it(story: Story) -> None:
    story.say("</script><b>")
    assert [line["text"] for line in shown(story.page())["log"]][-1] == "</script><b>"


def test_page_is_served_with_its_state(story: Story) -> None:
    with served(story) as url:
        with urlopen(url) as answer:  # noqa: S310 - of this machine
            assert answer.read().decode().startswith("<!doctype html>")
        with urlopen(f"{url}state") as answer:  # noqa: S310
            assert json.loads(answer.read())["shares"]["v2"] == 25
