"""The page is one document that needs nothing else, begins with what needs a person, and is safe to open."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

import pytest

from tests.schemas.documents import STATUS
from tests.schemas.printed import reported
from tests.strategies import NOW
from twgen.model.operator import Links
from twgen.model.plan import Phase
from twgen.model.rollout import Verb
from twgen.model.status import RolloutStatus
from twgen.records.operator_config import parse_operator
from twgen.records.rollout_status import parse_rollout_status, write_rollout_status
from twgen.reporting.page.pages import fleet_page, fleet_part
from twgen.reporting.printable import printable

HOUR = timedelta(hours=1)
SETTLED = RolloutStatus(
    "shop/a", Phase.SETTLED, "Settled", "it is current", "v2", "v2", 100, NOW - HOUR, None
)
BLOCKED = replace(SETTLED, worker="shop/b", phase=Phase.BLOCKED, reason="GateFailed", message="it failed")
OLDER = replace(BLOCKED, worker="shop/c", since=NOW - 2 * HOUR)
FAILING = replace(SETTLED, worker="shop/d", failing="Temporal cannot be reached")


class Read(HTMLParser):
    """What a page consists of, and what it would load that is not in it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loads: list[str] = []
        self.attributes: set[str] = set()
        self.words = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.update(name for name, _ in attrs)
        for name, value in attrs:
            if name in {"src", "href", "srcset", "data"} and not (value or "").startswith("data:"):
                self.loads.append(f"{tag} {value}")

    def handle_data(self, data: str) -> None:
        self.words += data


def order(page: str) -> list[str]:
    return re.findall('<details class="worker[^"]*" id="([^"]*)"', page)


def test_what_needs_a_person_comes_first_and_of_equals_the_oldest() -> None:
    page = fleet_page([SETTLED, BLOCKED, OLDER, FAILING], NOW)
    assert order(page) == ["shop/d", "shop/c", "shop/b", "shop/a"]
    assert "✗ Temporal cannot be reached" in page


def test_page_has_the_title_that_names_its_cluster() -> None:
    page = fleet_page([SETTLED], NOW, title="Temporal workers of <prod>")
    assert page.count("Temporal workers of &lt;prod&gt;") == 2
    assert "<h1>Temporal workers</h1>" in fleet_page([SETTLED], NOW)


def with_steps(*steps: tuple[float, str, str, bool]) -> RolloutStatus:
    names = ("percentage", "place", "gate", "untilPromoted")
    written = [dict(zip(names, step, strict=True)) for step in steps]
    return replace(BLOCKED, report=reported(steps=written))


RAMPS = with_steps(
    (5, "Done", "Smoke", True),
    (12.5, "Present", "Smoke", False),
    (75, "Ahead", "Smoke", False),
    (90, "Ahead", "", True),
)


def test_steps_are_a_line_with_the_present_one_in_bold() -> None:
    [line] = re.findall('<span class="steps".*', fleet_part([RAMPS], NOW))
    assert "<b>12.5</b>" in line
    assert Read(line).words == "5 > 12.5 > 75 gate > 90 person"
    assert 'role="img" aria-label="step 2 of 4: 12.5%"' in line
    assert line.count("<b>") == 1


def test_pause_is_a_word_at_the_present_step() -> None:
    assert 'aria-label="step 2 of 4: 12.5%, paused"' in fleet_part([replace(RAMPS, reason="Paused")], NOW)


def test_share_below_the_first_step_has_no_present_one() -> None:
    page = fleet_part([with_steps((5, "Ahead", "", False))], NOW)
    assert 'aria-label="before step 1 of 1"' in page
    assert "<b>" not in page


def test_worker_without_steps_shows_no_line() -> None:
    assert 'class="steps"' not in fleet_part([SETTLED, with_steps()], NOW)


def looks(*statuses: RolloutStatus) -> list[str]:
    return re.findall('<details class="worker *([^"]*)" id', fleet_part(statuses, NOW))


@pytest.mark.parametrize(
    "status",
    [
        BLOCKED,
        FAILING,
        replace(BLOCKED, phase=Phase.MOVING, reason="AnalysisFailed"),
        replace(BLOCKED, phase=Phase.MOVING, reason="Unserved"),
        replace(BLOCKED, phase=Phase.WAITING, reason="StepGateFailed"),
    ],
)
def test_target_that_fails_is_red(status: RolloutStatus) -> None:
    assert looks(status) == ["failing"]


def test_settled_row_is_quiet_and_one_that_moves_is_neither() -> None:
    assert looks(SETTLED) == ["quiet"]
    assert looks(replace(SETTLED, phase=Phase.MOVING, reason="NextStep")) == [""]


PODS = {"available": 1, "wanted": 3, "terminating": False, "paused": False, "stalled": "", "problem": ""}
STALLED = {**PODS, "stalled": "ProgressDeadlineExceeded"}


def with_version(**changes: Any) -> RolloutStatus:
    return replace(SETTLED, report=reported([{"pods": PODS, "attached": [], **changes}]))


def test_pods_that_crash_are_red_if_new_workflows_go_there() -> None:
    assert looks(with_version()) == ["quiet"]
    crashes = with_version(pods={**PODS, "problem": "crashes"})
    assert looks(crashes) == ["failing"]
    assert "✗ a: its newest Pod crashes" in fleet_part([crashes], NOW)
    assert looks(with_version(pods=STALLED, isTarget=False)) == ["failing"]
    assert looks(with_version(pods=STALLED, isTarget=False, percentage=None)) == ["quiet"]
    assert order(fleet_part([SETTLED, replace(crashes, worker="shop/z")], NOW)) == ["shop/z", "shop/a"]


def test_command_that_continues_a_rollout_names_the_worker_and_can_be_copied() -> None:
    stopped = replace(BLOCKED, permits=(Verb.RETRY,), resource_version="7")
    page = fleet_part([stopped], NOW)
    assert "<code>twgen retry worker/b -n shop</code> <button" in page
    assert 'aria-label="copy the command"' in page
    odd = replace(stopped, worker="shop/a; b")
    assert "worker/&#39;a; b&#39;" in fleet_part([odd], NOW)
    assert "<code>" not in fleet_part([replace(stopped, permits=()), SETTLED], NOW)


def test_each_column_has_a_meaning_that_the_keyboard_reaches() -> None:
    page = fleet_page([SETTLED], NOW)
    head = re.findall('<span title="([^"]+)">([^<]+)</span>', page)
    [legend] = re.findall('<details class="legend"><summary>.*?</details>', page, re.DOTALL)
    assert re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", legend) == [(name, means) for means, name in head]
    assert len(head) == 6
    assert page.index(legend) < page.index('<div id="fleet">'), "a refresh does not close it"


def test_row_has_a_handle_in_what_opens_it() -> None:
    [summary] = re.findall("<summary>.*?</summary>", fleet_part([SETTLED], NOW), re.DOTALL)
    assert '<span class="chevron" aria-hidden="true"></span>' in summary


def test_settled_workers_of_a_large_fleet_are_behind_one_line() -> None:
    settled = [replace(SETTLED, worker=f"shop/worker-{number}") for number in range(250)]
    moves = replace(SETTLED, worker="shop/moves", phase=Phase.MOVING, reason="NextStep")
    crashes = replace(with_version(pods=STALLED), worker="shop/crashes")
    part = fleet_part([*settled, moves, crashes, OLDER], NOW)
    shown, line, folded = part.partition('<details class="fold"><summary>250 settled workers</summary>')
    assert line
    assert order(shown) == ["shop/crashes", "shop/c", "shop/moves"]
    assert len(order(folded)) == 250
    assert "fold" not in fleet_part([*settled[:150], moves], NOW), "a page that can be read needs no fold"


ELSEWHERE = Links("https://temporal.example.com/ui/", "https://argocd.example.com")


def addresses(status: RolloutStatus, links: Links = ELSEWHERE) -> list[str]:
    return re.findall(
        '<a href="([^"]*)" target="_blank" rel="noopener noreferrer">', fleet_part([status], NOW, links=links)
    )


def test_row_leads_to_its_worker_in_temporal_and_its_application_in_argo_cd() -> None:
    moved = {"identity": "twgen/prod/pay", "intent": "", "application": "pay", "at": ""}

    def row(application: str, namespace: str = "prod/1") -> RolloutStatus:
        by = {**moved, "application": application}
        report = reported([{"movedBy": by}], worker="shop/pay", temporalNamespace=namespace)
        return replace(SETTLED, worker="shop/pay", report=report)

    temporal = "https://temporal.example.com/ui/namespaces/prod%2F1/worker-deployments/shop%2Fpay"
    argocd = "https://argocd.example.com/applications"
    assert addresses(row("pay")) == [temporal, f"{argocd}/pay"]
    assert addresses(row("team-a_pay")) == [temporal, f"{argocd}/team-a/pay"]
    assert addresses(row('"><script>')) == [temporal, f"{argocd}/%22%3E%3Cscript%3E"]
    assert addresses(row("", "")) == []
    assert addresses(row("pay"), Links()) == []
    assert addresses(SETTLED) == []


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "data:text/html,a", "//a.example", "https://a.example/?b"]
)
def test_operator_can_name_only_pages_of_the_web(url: str) -> None:
    document = {
        "apiVersion": "twgen.io/v1alpha1",
        "kind": "OperatorConfig",
        "links": {"temporal": url, "argocd": url},
    }
    _, findings = parse_operator(document)
    assert len(findings) == 2


def test_page_loads_nothing_and_has_no_code_of_its_data() -> None:
    page = fleet_page([SETTLED], NOW)
    read = Read(page)
    assert read.loads == []
    assert not {name for name in read.attributes if name.startswith("on") or name == "style"}
    assert len(page.encode()) < 300_000


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", '"><img src=x>', "{{ 7 * 7 }}", "a\u202eb"])
def test_text_of_others_stays_text(text: str) -> None:
    def told(text: str) -> Read:
        return Read(fleet_page([replace(BLOCKED, worker=text, message=text, target=text, failing=text)], NOW))

    assert told(text).tags == told("plain").tags
    assert told(text).words.count(printable(text)) >= 4


def test_thousand_workers_are_rendered_and_all_there() -> None:
    statuses = [replace(SETTLED, worker=f"shop/worker-{number}") for number in range(1000)]
    assert len(order(fleet_part(statuses, NOW))) == 1000


def broken() -> Iterator[Any]:
    """Status documents of a worker that lack a field, or have another type there."""
    worker = {**STATUS["workers"][0], "worker": "shop/b"}
    for wrong in ("absent", None, "text", 7, [], {"a": 1}, [None]):
        for name in worker:
            rest = {key: value for key, value in worker.items() if key != name}
            yield rest if wrong == "absent" else {**rest, name: wrong}
        [version] = worker["versions"]
        for name in version:
            rest = {key: value for key, value in version.items() if key != name}
            yield {**worker, "versions": [rest if wrong == "absent" else {**rest, name: wrong}]}


def test_status_that_somebody_wrote_otherwise_hides_no_other_worker() -> None:
    for document in broken():
        entries = write_rollout_status(BLOCKED)
        entries["status.json"] = json.dumps({**STATUS, "workers": [document]})
        metadata = {"namespace": "shop", "name": "b-rollout-status"}
        other = parse_rollout_status({"metadata": metadata, "data": entries})
        page = fleet_page([SETTLED, other], NOW)
        assert order(page).count("shop/a") == order(page).count("shop/b") == 1, document


def test_cluster_without_rollouts_says_so() -> None:
    assert "No rollout has written a status here" in fleet_page([], NOW)


def test_row_of_the_only_worker_is_open() -> None:
    assert " open>" in fleet_part([SETTLED], NOW)
    assert " open>" not in fleet_part([SETTLED, BLOCKED], NOW)


def test_objects_that_were_not_read_are_counted_and_not_repeated() -> None:
    def attached(*states: str) -> str:
        objects = [
            {"kind": "Budget", "name": f"b{n}", "state": s, "message": ""} for n, s in enumerate(states)
        ]
        return fleet_part([with_version(attached=objects)], NOW)

    assert "<td>2 objects: not read</td>" in attached("NotRead", "NotRead")
    assert "<td>2 objects: not read, Budget b1: Ready</td>" in attached("NotRead", "Ready", "NotRead")
    assert "<td>Budget b0: NotRead</td>" in attached("NotRead")
