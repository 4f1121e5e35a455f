"""A diagnosis as text for people, and as a document for programs (`schemas/diagnosis.json`)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from twgen.model.diagnosis import Finding, Severity
from twgen.model.problem import counted
from twgen.model.times import format_time
from twgen.reporting.printable import printable
from twgen.versioning.names import TWGEN_API

_SIGNS = {Severity.PROBLEM: "✗", Severity.ADVICE: "!"}


def diagnosis_lines(findings: Sequence[Finding], not_checked: Mapping[str, str], checked: str) -> list[str]:
    """A line for each finding and for each check that was not possible, then the totals."""
    lines = [printable(_line(finding)) for finding in findings]
    lines += [printable(f"- not checked: {subject}: {why}") for subject, why in not_checked.items()]
    problems = sum(finding.severity is Severity.PROBLEM for finding in findings)
    totals = f"{counted(problems, 'problem')}, {counted(len(findings) - problems, 'piece')} of advice"
    return [*lines, f"checked {checked}: {totals}"]


def _line(finding: Finding) -> str:
    because, end = finding.because, "" if finding.says.endswith("?") else "."
    if not because.startswith("`"):
        because = f"{because[0].upper()}{because[1:]}"
    about = f"{_SIGNS[finding.severity]} {finding.about}"
    return f"{about}: {finding.says}{end} {because}. Fix: {finding.remedy}"


def diagnosis_document(
    findings: Sequence[Finding], not_checked: Mapping[str, str], now: datetime
) -> dict[str, Any]:
    """The Diagnosis document."""
    return {
        "apiVersion": TWGEN_API,
        "kind": "Diagnosis",
        "now": format_time(now),
        "findings": [
            {
                "about": finding.about,
                "severity": finding.severity.value,
                "says": finding.says,
                "because": finding.because,
                "remedy": finding.remedy,
            }
            for finding in findings
        ],
        "notChecked": [{"what": subject, "because": why} for subject, why in not_checked.items()],
    }
