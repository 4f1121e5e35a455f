"""`twgen validate`."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import click

from twgen.cli.inputs import all_problems, ledgers_without_spec, no_worker, parse
from twgen.cli.options import INPUT, options, output_option, paths_argument
from twgen.cli.output import say, warn, write
from twgen.cli.settings import Settings, settings_of
from twgen.errors import InvalidInput, NegativeAnswer
from twgen.model.problem import Problem, counted
from twgen.planning.drivers import LEFT_OUT, lacking_image
from twgen.reading.documents import Documents, located
from twgen.reading.input import DIRECTORY, Input, NotRendered, read_input
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
from twgen.specs.parse import Specs

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
_OTHER, _MANIFEST = "other document", "rendered manifest"
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
    """Check specs, or the output of a render, without reading a server. Reports all problems of all files.

    Exits with 1 if a spec is invalid; every other command exits with 2.

    \b
    twgen validate .
    twgen render . --offline | twgen validate -
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
    found = _validation(settings, read, specs)
    count = len(found.problems) + len(found.refused) + len(found.unreadable)
    is_missed = not (specs.workers or specs.manifests or count)
    if not settings.quiet:
        warn(problem_lines([*found.deprecations, *found.warnings]))
        if is_missed and not settings.strict:
            warn([no_worker(settings, specs)])
    _report(found, settings, output, failed)
    if count:
        raise NegativeAnswer(f"{counted(count, 'problem')} found")
    if is_missed and settings.strict:
        raise NegativeAnswer(no_worker(settings, specs))
    if not settings.quiet:
        doubts = len(found.warnings) + len(found.deprecations)
        told = f", {counted(doubts, 'warning')}" if doubts else ""
        say(f"{_checked(read, specs)}; no problems{told}")


def _report(found: Validation, settings: Settings, output: str, failed: str) -> None:
    """Write the report; where it is for programs, the lines of problems are on stderr too."""
    report = found
    if output in {"junit", "sarif"} and settings.input.kind != DIRECTORY:
        report = _in_files(found, settings.input, settings.paths[0], failed)
    write(_REPORTS[output](report))
    if output != "text":
        # a job's report is in a file that nobody opens before its log
        for line in validation_text(found).splitlines():
            say(line)


def _validation(settings: Settings, read: Documents, specs: Specs) -> Validation:
    """What is wrong with the specs that were read, each at its line."""
    sources = settings.sources
    doubts = [*specs.warnings, *_drivers_without_image(settings, specs)]
    return Validation(
        files=tuple(dict.fromkeys(document.source for document in read.documents)),
        unreadable=read.unreadable,
        problems=located(all_problems(read, specs), sources),
        warnings=located(
            [*([] if settings.strict else doubts), *ledgers_without_spec(settings, specs)], sources
        ),
        deprecations=located(specs.deprecations, sources),
        refused=located(doubts, sources) if settings.strict else [],
    )


def _drivers_without_image(settings: Settings, specs: Specs) -> Iterator[Problem]:
    """A warning for each policy whose Job has no image, if the operator's file was given."""
    operator = settings.operator
    lacking = lacking_image(specs.workers, operator.rollout.image) if operator.file else []
    for document in {id(spec.policy.document): spec.policy.document for spec in lacking}.values():
        yield Problem.at(document, "spec.driver", LEFT_OUT)


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
        in_files(found.refused),
    )


def _checked(read: Documents, specs: Specs) -> str:
    """What was read: `checked 3 files: 2 workers, 1 connection, 4 other documents`."""
    files = {document.source for document in read.documents}
    found = (kinds.kind_of(document.value) for document in read.documents)
    counts = Counter(_NOUNS.get(kind.name, _OTHER) if kind else _OTHER for kind in found)
    counts[_MANIFEST], counts[_OTHER] = len(specs.manifests), counts[_OTHER] - len(specs.manifests)
    nouns = [noun for noun in dict.fromkeys((*_NOUNS.values(), _MANIFEST, _OTHER)) if counts[noun]]
    return (
        f"checked {counted(len(files), 'file')}: {', '.join(counted(counts[noun], noun) for noun in nouns)}"
    )
