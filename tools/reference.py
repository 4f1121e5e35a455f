"""The pages of all commands, options and exit codes, and of all fields, from the tables of the program."""

import inspect
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from twgen import errors
from twgen.cli.main import twgen
from twgen.cli.options import OPTIONS, Option

_SCHEMAS = Path(__file__).parents[1] / "schemas"
_WRITTEN_BY_PEOPLE = {
    "workerdeployment": "WorkerDeployment",
    "connection": "Connection, ClusterConnection",
    "workerresourcetemplate": "WorkerResourceTemplate",
    "rolloutpolicy": "RolloutPolicy",
    "operatorconfig": "OperatorConfig",
}
_WRITTEN_BY_TWGEN = {
    "plan": "plan -o json",
    "status": "status -o json",
    "timeline": "simulate -o json",
    "validation": "validate -o json",
    "drainreport": "drain -o json",
    "diagnosis": "doctor -o json",
    "snapshot": "snapshot",
    "ledger": "lock",
}
_OPTIONS_HEAD = """\
# Commands, options and exit codes

This page is written by `make documentation` from the program itself.

Every option is also an environment variable: `--snapshot` is `TWGEN_SNAPSHOT`. The command line goes before
it. What an option does not take is refused with the place that it was set in, and a variable whose name is
nearly that of an option is warned of.
"""
_LIMITS = """\
## Limits

A run reads at most 30,000 documents, 48 MiB and 1,000,000 keys and list items, 16 MiB of them in one file,
and prints at most 96 MiB of YAML; aliases may add 8 MiB, and nothing nests deeper than 100 levels. A snapshot
may have 52 MiB, enough for 20,000 versions; so may an answer of Argo CD or Kubernetes, and a list in all.
Within that, twgen needs less than 512 MiB of memory; past it, it says which limit was reached and ends.

A folder is read with all below it, hidden files left out. A link out of the folder, a link to nothing, a pipe
or a socket in it is an error; a pipe that you name yourself (`twgen validate <(cue export)`) is read.
"""
_FIELDS_HEAD = """\
# Fields

Every field of what you write, and of what twgen prints for programs. This page is written by
`make documentation` from the JSON Schemas, with which editors complete and check specs. A field marked * must
be there.
"""
_ALSO = {
    1: (
        "Also differences (`diff`), a ledger that is not current (`lock --check`), a `rollout` that is"
        " Blocked, refused `promote`."
    ),
    2: "Also an output that cannot be written, such as on a full disk.",
}
_NOT_ERRORS = {
    0: "Done.",
    errors.TwgenError.exit_code: "A bug, with a report to send: it says where, never what was read.",
    130: "Interrupted.",
    141: "Nobody reads the output any more.",
    143: "Terminated.",
}


def options_page() -> str:
    """Commands, options and exit codes as Markdown."""
    commands = list(_commands(twgen, "twgen"))
    codes = {
        error.exit_code: " ".join(inspect.cleandoc(error.__doc__ or "").split())
        for error in vars(errors).values()
        if inspect.isclass(error) and issubclass(error, errors.TwgenError) and "exit_code" in vars(error)
    } | _NOT_ERRORS
    means = "".join(
        f"- {code}: {' '.join(filter(None, (codes[code], _ALSO.get(code))))}\n" for code in sorted(codes)
    )
    return "\n".join(
        [
            _OPTIONS_HEAD,
            f"## Exit codes\n\n{means}",
            "## Commands\n",
            *(_command(name, command) for name, command in commands),
            "## Options\n",
            *(_option(option) for option in OPTIONS.values()),
            '- <a id="output"></a>`-o, --output`: Print in this format; each command says which it has.',
            '- <a id="help"></a>`-h, --help`: Tell of a command and its options.\n',
            _LIMITS,
        ]
    )


def _commands(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for each in group.list_commands(context):
        match group.get_command(context, each):
            case click.Group() as below:
                yield from _commands(below, f"{name} {each}")
            case click.Command() as command:
                yield f"{name} {each}", command


def _command(name: str, command: click.Command) -> str:
    text, _, examples = inspect.cleandoc(command.help or "").partition("\b\n")
    usage = " ".join((name, *command.collect_usage_pieces(click.Context(command))))
    flags = sorted(max(each.opts, key=len) for each in command.params if isinstance(each, click.Option))
    links = ", ".join(f"[`{flag}`](#{flag.strip('-')})" for flag in flags)
    taken = f"Takes {links}.\n" if flags else ""
    shown = f"```text\n{usage}\n{inspect.cleandoc(examples)}".rstrip() + "\n```\n"
    return f"### {name}\n\n{' '.join(text.split())}\n\n{shown}\n{taken}"


def _option(option: Option) -> str:
    kind = getattr(option.type, "name", "")
    values = getattr(option.type, "choices", ())
    flags = ", ".join(option.flags) + (f" {'|'.join(values) or kind}" if option.type else "")
    default = option.click.get("default")
    assumed = f" By default `{default}`." if default and option.click.get("show_default") else ""
    also = " An Application may set it." if option.of_application else ""
    return f'- <a id="{option.name}"></a>`{flags}`: {option.help}{assumed}{also}'


def fields_page() -> str:
    """All fields of all documents as Markdown."""
    parts = [_FIELDS_HEAD]
    for title, names in (("What you write", _WRITTEN_BY_PEOPLE), ("What twgen prints", _WRITTEN_BY_TWGEN)):
        parts.append(f"## {title}\n")
        for file, name in names.items():
            schema = json.loads((_SCHEMAS / f"{file}.json").read_text())
            rows = "".join(_fields(schema, schema, ""))
            parts.append(f"### {name}\n\n{schema['title']} ([schema](../schemas/{file}.json)).\n\n{rows}")
    return "\n".join(parts)


def _fields(schema: Mapping[str, Any], document: Mapping[str, Any], path: str) -> Iterator[str]:
    for name, found in schema.get("properties", {}).items():
        field, place = _resolved(found, document), f"{path}.{name}".strip(".")
        must = "*" if name in schema.get("required", ()) else ""
        text = " ".join(str(field.get("description", "")).split())
        assumed = f" Default `{json.dumps(field['default'])}`." if "default" in field else ""
        yield f"- `{place}`{must} {_kind(field)}{': ' if text else ''}{text}{assumed}\n"
        if not _is_of_elsewhere(found):
            yield from _below(field, document, place)


def _below(field: Mapping[str, Any], document: Mapping[str, Any], place: str) -> Iterator[str]:
    yield from _fields(field, document, place)
    items = field.get("items")
    if isinstance(items, dict) and not _is_of_elsewhere(items):
        yield from _fields(_resolved(items, document), document, f"{place}[]")
    values = field.get("additionalProperties")
    if isinstance(values, dict) and not _is_of_elsewhere(values):
        yield from _fields(_resolved(values, document), document, f"{place}.NAME")


def _resolved(field: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The field itself, where it only refers to another place of its own document."""
    reference = str(field.get("$ref", ""))
    if not reference.startswith("#"):
        return field
    found: Any = document
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return {**found, **field}


def _is_of_elsewhere(field: Mapping[str, Any]) -> bool:
    """It is a pod template, a Deployment or the like, or has been told already."""
    return "$ref" in field and not str(field["$ref"]).startswith("#/$defs")


def _kind(field: Mapping[str, Any]) -> str:
    if "enum" in field or "const" in field:
        values = field["enum"] if "enum" in field else [field["const"]]
        return (
            "("
            + ", ".join(f"`{value if isinstance(value, str) else json.dumps(value)}`" for value in values)
            + ")"
        )
    kinds = field.get("type", [])
    return f"({' or '.join([kinds] if isinstance(kinds, str) else kinds)})" if kinds else ""
