"""`twgen validate`."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import click

from twgen.cli.inputs import all_problems, ledgers_without_spec, no_worker, parse
from twgen.cli.options import INPUT, options, output_option, paths_argument
from twgen.cli.output import say, warn, write
from twgen.cli.settings import settings_of
from twgen.errors import InvalidInput, NegativeAnswer
from twgen.planning.sentences import counted
from twgen.reading.documents import Documents
from twgen.reading.input import DIRECTORY, Input, NotRendered, read_input
from twgen.reading.places import located
from twgen.reporting.problems import (
    Located,
    Validation,
    problem_lines,
    validation_json,
    validation_junit,
    validation_sarif,
    validation_text,
)
from twgen.specs import kinds

_NOUNS = {
    kinds.WORKER: "worker",
    kinds.CONNECTION: "connection",
    kinds.CLUSTER_CONNECTION: "connection",
    kinds.ATTACHED: "attached template",
    kinds.POLICY: "policy",
    kinds.LEDGER: "ledger",
    kinds.SNAPSHOT: "snapshot",
}
"""What a summary calls documents, in this order."""
_OTHER = "other document"
_REPORTS = {
    "text": validation_text,
    "json": validation_json,
    "junit": validation_junit,
    "sarif": validation_sarif,
}


@click.command()
@paths_argument
@output_option(*_REPORTS)
@options(*INPUT, "namespace", "operator_config", "strict", "quiet")
def command(output: str, **params: Any) -> None:
    """Check specs without reading any server; all problems of all files at once.

    An invalid spec is the answer that is asked for, so it exits with 1; every other command exits with 2.

    \b
    twgen validate .
    """
    settings = settings_of(params)
    failed = ""
    try:
        read = read_input(settings.input, settings.paths, settings.sources, ledgers=False)
    except NotRendered as error:
        failed = str(error)
        read = Documents((), (failed,))
    except InvalidInput as error:
        # an empty file is no report: whoever reads it would look for what is wrong with its writer
        if output != "text":
            write(_REPORTS[output](Validation((), (str(error),), (), (), ())))
        raise
    specs = parse(settings, read)
    problems = all_problems(read, specs) + (specs.warnings if settings.strict else ())
    found = located(problems, settings.sources)
    doubts = (*(() if settings.strict else specs.warnings), *ledgers_without_spec(settings, specs))
    warnings = located(doubts, settings.sources)
    deprecations = located(specs.deprecations, settings.sources)
    is_missed = not (specs.workers or found or read.unreadable)
    if not settings.quiet:
        warn(problem_lines([*deprecations, *warnings]))
        if is_missed and not settings.strict:
            warn([no_worker(settings)])
    files = tuple(dict.fromkeys(document.source for document in read.documents))
    validation = Validation(files, read.unreadable, found, warnings, deprecations)
    if output in {"junit", "sarif"} and settings.input.kind != DIRECTORY:
        validation = _in_files(validation, settings.input, settings.paths[0], failed)
    write(_REPORTS[output](validation))
    if count := len(found) + len(read.unreadable):
        raise NegativeAnswer(f"{counted(count, 'problem')} found")
    if is_missed and settings.strict:
        raise NegativeAnswer(no_worker(settings))
    if not settings.quiet:
        told = f", {counted(len(warnings), 'warning')}" if warnings else ""
        say(f"{_checked(read)}; no problems{told}")


def _in_files(found: Validation, given: Input, folder: str, failed: str) -> Validation:
    """The same, with what is rendered at the files that it comes from, which these reports are to show."""
    from twgen.reading.templated import in_file

    def in_files(items: Iterable[Located]) -> list[Located]:
        return [
            (item._replace(document=replace(item.document, source=file_of(item.document.source))), None)
            if is_rendered(item.document.source)
            else (item, line)
            for item, line in items
        ]

    def is_rendered(source: str) -> bool:
        return source.startswith(kinds.RENDERED_BY) or source == failed

    def file_of(source: str) -> str:
        return in_file(given, folder, source)[0] if is_rendered(source) else source

    def told(line: str) -> str:
        return "{}:{}: {}".format(*in_file(given, folder, line)) if is_rendered(line) else line

    return Validation(
        tuple(dict.fromkeys(map(file_of, found.files))),
        [told(line) for line in found.unreadable],
        in_files(found.problems),
        in_files(found.warnings),
        in_files(found.deprecations),
    )


def _checked(read: Documents) -> str:
    """What was read: `checked 3 files: 2 workers, 1 connection, 4 other documents`."""
    files = {document.source for document in read.documents}
    found = (kinds.kind_of(document.value) for document in read.documents)
    counts = Counter(_NOUNS.get(kind.name, _OTHER) if kind else _OTHER for kind in found)
    nouns = [noun for noun in dict.fromkeys((*_NOUNS.values(), _OTHER)) if counts[noun]]
    return (
        f"checked {counted(len(files), 'file')}: {', '.join(counted(counts[noun], noun) for noun in nouns)}"
    )
