"""What `twgen doctor` prints."""

import json
from pathlib import Path

from jsonschema import Draft202012Validator

from tests.strategies import NOW
from twgen.model.diagnosis import Diagnosis, DoctorFinding, NotChecked, Severity
from twgen.reporting.diagnosis import DIAGNOSIS, diagnosis_lines, diagnosis_text

SCHEMA = Draft202012Validator(
    json.loads((Path(__file__).parents[2] / "schemas" / "diagnosis.json").read_text())
)
FOUND = (
    DoctorFinding("clocks", "they differ\x1b[2J", "pauses last longer", "let NTP set both"),
    DoctorFinding("Argo CD", "it does not heal", "`plan` waits", "set selfHeal", Severity.ADVICE),
)
NOT_CHECKED = NotChecked("Kubernetes", "no cluster is read")


def diagnosis(*findings: DoctorFinding, not_checked: tuple[NotChecked, ...] = ()) -> Diagnosis:
    return Diagnosis(NOW, findings, not_checked)


def test_finding_is_a_line_with_what_why_and_what_mends_it() -> None:
    assert diagnosis_lines(diagnosis(*FOUND, not_checked=(NOT_CHECKED,)), "2 workers") == [
        "✗ clocks: they differ\\x1b[2J. Pauses last longer. Fix: let NTP set both",
        "! Argo CD: it does not heal. `plan` waits. Fix: set selfHeal",
        "- not checked: Kubernetes: no cluster is read",
        "checked 2 workers: 1 problem, 1 piece of advice",
    ]


def test_same_finding_of_many_workers_is_one_line_and_counts_as_many() -> None:
    about = [f"shop/w{number}" for number in range(500)]
    findings = [
        DoctorFinding(worker, "no tick is there", "it waits", "install", Severity.ADVICE) for worker in about
    ]
    lines = diagnosis_lines(diagnosis(*findings, *FOUND), "500 workers")
    assert lines[0] == "! shop/w0, shop/w1, shop/w2 and 497 more: no tick is there. It waits. Fix: install"
    assert len(lines) == 4
    assert lines[-1] == "checked 500 workers: 1 problem, 501 pieces of advice"
    text = diagnosis_text(diagnosis(*findings), "500 workers", colour=False, width=100)
    assert text.count("no tick is there") == 1
    assert len(DIAGNOSIS.write(diagnosis(*findings))["findings"]) == 500


def test_question_is_followed_by_no_full_stop() -> None:
    asks = DoctorFinding("shop/orders", "is it off?", "it waits", "turn it on")
    [line, _] = diagnosis_lines(diagnosis(asks), "1 worker")
    assert line == "✗ shop/orders: is it off? It waits. Fix: turn it on"


def test_terminal_gets_the_problems_last_and_no_line_broken_inside_a_command() -> None:
    command = "`kubectl create role payments-list-pods -n shop --verb=list --resource=pods`"
    refused = DoctorFinding("account", "it is not allowed to list pods", "its Jobs fail", command)
    found = diagnosis(refused, *FOUND, not_checked=(NOT_CHECKED,))
    text = diagnosis_text(found, "2 workers", colour=False, width=40)
    assert text.splitlines() == [
        "- not checked: Kubernetes: no",
        "    cluster is read",
        "! Argo CD: it does not heal.",
        "    `plan` waits.",
        "    Fix: set selfHeal",
        "✗ account: it is not allowed to list",
        "    pods.",
        "    Its Jobs fail.",
        f"    Fix: {command}",
        "✗ clocks: they differ\\x1b[2J.",
        "    Pauses last longer.",
        "    Fix: let NTP set both",
        "checked 2 workers: 2 problems, 1 piece of advice",
    ]


def test_document_is_as_its_schema_says() -> None:
    document = DIAGNOSIS.write(diagnosis(*FOUND, not_checked=(NOT_CHECKED,)))
    SCHEMA.validate(document)
    assert not SCHEMA.is_valid({**document, "findings": [{"about": "a"}]})
