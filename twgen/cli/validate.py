"""`twgen validate`."""

import json
from typing import Any

import click

from twgen.cli.loading import namespace_rule
from twgen.cli.options import options, output_option, paths_argument
from twgen.cli.output import warn, write
from twgen.cli.settings import settings_of
from twgen.errors import NegativeAnswer
from twgen.reading.documents import read_paths
from twgen.reading.locations import located
from twgen.reading.schemas import schema_problems
from twgen.reporting.problems import problem_lines, problems_document
from twgen.specs.parse import parse_specs


@click.command()
@paths_argument
@output_option("text", "json")
@options("namespace", "operator_config", "strict", "quiet")
def command(output: str, **params: Any) -> None:
    """Check specs without reading any server; all problems of all files at once.

    \b
    twgen validate .
    """
    settings = settings_of(params)
    read = read_paths(settings.paths, settings.sources)
    specs = parse_specs(read.documents, namespace_rule(settings))
    problems = [*specs.problems, *specs.unknown_fields, *(specs.warnings if settings.strict else ())]
    problems += schema_problems(read.documents, problems)
    found = located(problems, settings.sources)
    warnings = [] if settings.strict else located(specs.warnings, settings.sources)
    if not settings.quiet:
        warn([*specs.deprecations, *problem_lines(warnings)])
    if output == "json":
        write(
            json.dumps(problems_document(read.unreadable, found, warnings), indent=2, ensure_ascii=False)
            + "\n"
        )
    else:
        write("".join(f"{line}\n" for line in [*read.unreadable, *problem_lines(found)]))
    if count := len(found) + len(read.unreadable):
        raise NegativeAnswer(f"{count} problem{'s' if count > 1 else ''} found")
