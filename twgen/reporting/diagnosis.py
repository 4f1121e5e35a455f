"""A diagnosis as text for people, and as a document for programs (`schemas/diagnosis.json`)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from twgen.model.diagnosis import Finding, Severity
from twgen.model.times import format_time
from twgen.planning.sentences import counted
from twgen.reporting.printable import printable
from twgen.versioning.names import TWGEN_API

_SIGNS = {Severity.PROBLEM: "✗", Severity.ADVICE: "!"}


def diagnosis_lines(findings: Sequence[Finding], not_checked: Mapping[str, str], checked: str) -> list[str]:
    """A line for each finding and for each check that was not possible, then the totals."""
    lines = [printable(_line(one)) for one in findings]
    lines += [printable(f"- not checked: {what}: {why}") for what, why in not_checked.items()]
    problems = sum(one.severity is Severity.PROBLEM for one in findings)
    found = f"{counted(problems, 'problem')}, {counted(len(findings) - problems, 'piece')} of advice"
    return [*lines, f"checked {checked}: {found}"]


def _line(one: Finding) -> str:
    says = one.says if one.says.endswith("?") else f"{one.says}."
    return f"{_SIGNS[one.severity]} {one.about}: {says} {_sentence(one.because)}. Fix: {one.remedy}"


def _sentence(text: str) -> str:
    return text if text.startswith("`") else f"{text[0].upper()}{text[1:]}"


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
                "about": one.about,
                "severity": one.severity.value,
                "says": one.says,
                "because": one.because,
                "remedy": one.remedy,
            }
            for one in findings
        ],
        "notChecked": [{"what": what, "because": why} for what, why in not_checked.items()],
    }
