"""`twgen validate`."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import click

from twgen.cli.inputs import all_problems, ledgers_without_spec, no_worker, parse
from twgen.cli.options import INPUT, Grouped, options, output_option, paths_argument
from twgen.cli.output import say, write
from twgen.cli.settings import Settings, settings_of
from twgen.cli.version import source_address
from twgen.errors import InvalidInput, NegativeAnswer
from twgen.model.problem import Problem, counted
from twgen.planning.drivers import DRIVER, left_out
from twgen.reading.documents import Documents, located
from twgen.reading.templated import DIRECTORY, Input, NotRendered, read_input
from twgen.reporting.json_text import json_text
from twgen.reporting.problems import (
    VALIDATION,
    Located,
    Validation,
    problem_lines,
    validation_junit,
    validation_sarif,
    validation_text,
)
from twgen.specs import kinds
from twgen.specs.attached import cluster_scoped_templates, defined_cluster_scoped
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
"""The noun for each kind in the summary. The summary uses the order of this table."""
_OTHER, _MANIFEST = "other document", "rendered manifest"
_REPORTS: dict[str, Callable[[Validation], str]] = {
    "text": validation_text,
    "json": lambda validation: json_text(VALIDATION.write(validation)),
    "junit": validation_junit,
    "sarif": lambda validation: validation_sarif(validation, source_address()),
}


@click.command(cls=Grouped)
@paths_argument
@output_option(*_REPORTS)
@options(*INPUT, "namespace", "strict", "quiet")
def command(output: str, **params: Any) -> None:
    """Check specs and manifests, or the output of a render, and report all problems. Reads no server.

    If a spec is invalid, this command exits with 1, but every other command exits with 2.

    \b
    twgen validate .
    twgen render . --offline | twgen validate -
    """
    settings = settings_of(params)
    failed = ""
    try:
        documents = read_input(settings.input, settings.paths, settings.sources, ledgers=False)
    except NotRendered as error:
        failed = str(error)
        documents = Documents((), (failed,))
    except InvalidInput as error:
        # write a valid report, because the reader of an empty file would suspect a bug in twgen
        if output != "text":
            write(_REPORTS[output](Validation((), (str(error),), (), (), ())))
        raise
    specs = parse(settings, documents, renders_again=True)
    validation = _validation(settings, documents, specs)
    count = len(validation.problems) + len(validation.refused) + len(validation.unreadable)
    is_missed = not (specs.workers or specs.manifests or count)
    settings.warn(problem_lines([*validation.deprecations, *validation.warnings]))
    if is_missed and not settings.strict:
        settings.warn([no_worker(settings, specs)])
    _report(validation, settings, output, failed)
    without_schema = _without_schema(specs)
    if count:
        raise NegativeAnswer(f"{counted(count, 'problem')} found{without_schema}")
    if is_missed and settings.strict:
        raise NegativeAnswer(no_worker(settings, specs))
    if not settings.quiet:
        number = len(validation.warnings) + len(validation.deprecations)
        warnings = f", {counted(number, 'warning')}" if number else ""
        say(f"{_summary(documents, specs)}{without_schema}; no problems{warnings}")


def _report(validation: Validation, settings: Settings, output: str, failed: str) -> None:
    """Write the report. If the report is for programs, also print the problems to stderr."""
    report = validation
    if output in {"junit", "sarif"} and settings.input.kind != DIRECTORY:
        report = _in_files(validation, settings.input, settings.paths[0], failed)
    write(_REPORTS[output](report))
    if output != "text":
        # in CI, the report is usually a file, and people read the job's log first
        for line in validation_text(validation).splitlines():
            say(line)


def _validation(settings: Settings, documents: Documents, specs: Specs) -> Validation:
    """The problems in the specs, with their line numbers."""
    sources = settings.sources
    warnings = [*specs.warnings, *_drivers_left_out(settings, specs)]
    refused, doubted = (warnings, []) if settings.strict else ([], warnings)
    return Validation(
        files=tuple(dict.fromkeys(document.source for document in documents.documents)),
        unreadable=documents.unreadable,
        problems=located(all_problems(documents, specs, _problems_of_manifests(documents, specs)), sources),
        warnings=located([*doubted, *ledgers_without_spec(settings, specs)], sources),
        deprecations=located(specs.deprecations, sources),
        refused=located(refused, sources),
    )


def _problems_of_manifests(documents: Documents, specs: Specs) -> Iterator[Problem]:
    """The problems that an API server would report in manifests and in attached templates."""
    from twgen.specs.manifest_schemas import has_schema, schema_problems
    from twgen.specs.manifests import manifest_problems

    yield from cluster_scoped_templates(specs.workers, defined_cluster_scoped(specs.passthrough))
    # skip kustomize patches and chart templates, which lack fields: twgen already refuses their folders
    refused = {
        PurePath(document.source).parent for document in documents.documents if kinds.render_first(document)
    }
    whole = [item for item in specs.passthrough if refused.isdisjoint(PurePath(item.source).parents)]
    by_schema = list(schema_problems([*specs.manifests, *whole]))
    yield from by_schema
    found = {(id(problem.document), problem.path) for problem in by_schema}
    for problem in manifest_problems(specs.manifests, has_schema):
        if (id(problem.document), problem.path) not in found:
            yield problem


def _without_schema(specs: Specs) -> str:
    """A note such as ` (2 documents without a schema)`. Fields of these documents were not checked."""
    from twgen.specs.manifest_schemas import has_schema

    count = sum(not has_schema(item.value) for item in (*specs.manifests, *specs.passthrough))
    return f" ({counted(count, 'document')} without a schema)" if count else ""


def _drivers_left_out(settings: Settings, specs: Specs) -> Iterator[Problem]:
    """A warning for each policy whose driver cannot work, according to the operator's file (if any)."""
    operator = settings.operator
    of_policy = {id(spec.policy.document): spec for spec in specs.workers if operator.file}
    for spec in of_policy.values():
        if why := left_out(spec, operator):
            # without a policy, the driver is the operator's choice
            has_policy = spec.policy.document.value is not None
            document, path = (spec.policy.document, "spec.driver") if has_policy else (spec.document, "spec")
            yield Problem.at(document, path, DRIVER(why))


def _in_files(validation: Validation, input_settings: Input, folder: str, failed: str) -> Validation:
    """The same problems, but a problem in a rendered document names the file that it was rendered from."""
    from twgen.reading.templated import in_file

    def place_of(source: str) -> tuple[str, int, str] | None:
        is_rendered = source.startswith(kinds.RENDERED_BY) or source == failed
        return in_file(input_settings, folder, source) if is_rendered else None

    def in_files(items: Iterable[Located]) -> Iterator[Located]:
        for item in items:
            if place := place_of(item.file):
                document = replace(item.problem.document, source=place[0])
                item = Located(item.problem._replace(document=document), None)  # noqa: PLW2901 - at its place
            yield item

    files = (place[0] if (place := place_of(file)) else file for file in validation.files)
    lines = ((line, place_of(line)) for line in validation.unreadable)
    located_items = (validation.problems, validation.warnings, validation.deprecations, validation.refused)
    return Validation(
        tuple(dict.fromkeys(files)),
        tuple("{}:{}: {}".format(*place) if place else line for line, place in lines),
        *(tuple(in_files(items)) for items in located_items),
    )


def _summary(documents: Documents, specs: Specs) -> str:
    """A sentence such as `checked 3 files: 2 workers, 1 connection, 4 other documents`."""
    files = {document.source for document in documents.documents}
    kinds_found = (kinds.kind_of(document.value) for document in documents.documents)
    counts = Counter(_NOUNS.get(kind.name, _OTHER) if kind else _OTHER for kind in kinds_found)
    counts[_MANIFEST], counts[_OTHER] = len(specs.manifests), counts[_OTHER] - len(specs.manifests)
    nouns = [noun for noun in dict.fromkeys((*_NOUNS.values(), _MANIFEST, _OTHER)) if counts[noun]]
    found = ", ".join(counted(counts[noun], noun) for noun in nouns)
    return f"checked {counted(len(files), 'file')}: {found}"
