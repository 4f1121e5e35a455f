"""A diagnosis as text for people, and as a document for programs (`schemas/diagnosis.json`)."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from rich.text import Text

from twgen.model.diagnosis import Diagnosis, DoctorFinding, Severity
from twgen.model.problem import counted
from twgen.model.record_shapes import document_of, record_of
from twgen.planning.sentences import listed
from twgen.reporting.layout import wrapped, written
from twgen.reporting.printable import printable, printable_copy
from twgen.versioning.names import TWGEN_API

DIAGNOSIS = document_of(
    TWGEN_API,
    "Diagnosis",
    Diagnosis,
    shapes={
        DoctorFinding: record_of(
            DoctorFinding, "about", "severity", "says", "because", "remedy", is_printed=True
        )
    },
    is_printed=True,
)
_SIGNS = {Severity.PROBLEM: "✗", Severity.ADVICE: "!"}
_STYLES = {Severity.PROBLEM: "bold red", Severity.ADVICE: "yellow"}
_INDENT = "    "


def diagnosis_lines(diagnosis: Diagnosis, checked: str) -> list[str]:
    """A line for each finding, then a line for each check that could not run, then the totals."""
    lines = [
        printable(f"{_head(finding)} {_sentence(finding.because)} Fix: {finding.remedy}")
        for finding in _together(diagnosis.findings)
    ]
    lines += [printable(f"- not checked: {subject}: {why}") for subject, why in diagnosis.not_checked]
    return [*lines, _totals(diagnosis.findings, checked)]


def diagnosis_text(diagnosis: Diagnosis, checked: str, *, colour: bool, width: int) -> str:
    """The diagnosis for a terminal. Each finding has several lines, and problems come last."""
    lines = [
        line
        for subject, why in diagnosis.not_checked
        for line in wrapped(Text(printable(f"- not checked: {subject}: {why}"), "dim"), width, "", _INDENT)
    ]
    found = map(printable_copy, _together(diagnosis.findings))
    for finding in sorted(found, key=lambda finding: finding.severity is Severity.PROBLEM):
        head = Text(_head(finding))
        head.stylize(_STYLES[finding.severity], 0, 1)
        head.stylize("bold", 2, 2 + len(finding.about))
        lines += wrapped(head, width, "", _INDENT)
        lines += wrapped(Text(_sentence(finding.because)), width, _INDENT)
        # not wrapped, so that a command can be copied as one line
        lines.append(Text.assemble(_INDENT, ("Fix: ", "bold"), finding.remedy))
    return written([*lines, Text(_totals(diagnosis.findings, checked), "bold")], colour=colour)


def _together(findings: Sequence[DoctorFinding]) -> list[DoctorFinding]:
    """Merge equal findings about several workers into one finding that names the first workers."""
    alike: defaultdict[DoctorFinding, list[str]] = defaultdict(list)
    for finding in findings:
        alike[replace(finding, about="")].append(finding.about)
    return [replace(finding, about=listed(names, 3)) for finding, names in alike.items()]


def _head(finding: DoctorFinding) -> str:
    end = "" if finding.says.endswith("?") else "."
    return f"{_SIGNS[finding.severity]} {finding.about}: {finding.says}{end}"


def _sentence(text: str) -> str:
    return f"{text}." if text.startswith("`") else f"{text[0].upper()}{text[1:]}."


def _totals(findings: Sequence[DoctorFinding], checked: str) -> str:
    problems = sum(finding.severity is Severity.PROBLEM for finding in findings)
    return (
        f"checked {checked}: {counted(problems, 'problem')},"
        f" {counted(len(findings) - problems, 'piece')} of advice"
    )
