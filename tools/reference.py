"""Make the page of all commands, options and exit codes from the tables of the program."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from textwrap import fill

import click

from twgen import errors
from twgen.cli.main import twgen
from twgen.cli.option_table import OPTIONS
from twgen.cli.options import GROUPS, shared_options

_HEAD = """\
# Commands

`make documentation` generates this page from the program. `twgen COMMAND --help --all` shows the
same text at a terminal.

`PATH` is a file or a folder with specs. The default is the current folder; `-` is standard input.

You can also set every option with an environment variable: `--snapshot` with `TWGEN_SNAPSHOT`. The command
line overrides the variable. If a value is invalid, the error names its source. A misspelled variable
triggers a warning.
"""
_HELP = "help"
_WIDTH = 118
_LIMITS = """\
## Limits

If a run exceeds one of these limits, it ends with an error that names the limit:

| limit | value |
| --- | --- |
| documents | 30,000 |
| size of all files | 48 MiB, of one file 16 MiB |
| keys and list items | 1,000,000 |
| YAML text added by aliases | 8 MiB |
| depth of nesting | 100 levels |
| printed YAML | 96 MiB |
| a snapshot, a response of Argo CD or Kubernetes, or a whole list | 52 MiB, enough for 20,000 versions |

Within these limits, twgen needs less than 512 MiB of memory.

If PATH is a folder, twgen reads all files below it except hidden ones. A link that leads out of the folder, a
broken link, a pipe or a socket in the folder is an error. You can pass a pipe as a PATH:
`twgen validate <(cue export)`.
"""
_ALSO = {
    1: (
        "Also: `diff` found differences, `lock --check` found an outdated ledger, a `rollout` is Blocked, or"
        " `promote` was refused."
    ),
    2: "Also: the output could not be written, for example because the disk is full.",
}
_NOT_ERRORS = {
    0: "Done.",
    errors.TwgenError.exit_code: "A bug. twgen writes a report to send. It contains no data that was read.",
    129: "The terminal was closed (SIGHUP).",
    130: "Interrupted.",
    131: "Ended by SIGQUIT.",
    141: "The reader of the output closed the pipe.",
    143: "Terminated.",
    152: "The limit of CPU time was reached (SIGXCPU).",
}


def commands_page() -> str:
    """Commands, options and exit codes as Markdown."""
    return "\n".join(
        [
            _HEAD,
            f"## Exit codes\n\n| code | meaning |\n| --- | --- |\n{''.join(_exit_codes())}",
            *(_command(name, command) for name, command in _commands(twgen, "twgen")),
            _shared_options(),
            _LIMITS,
        ]
    )


def _exit_codes() -> Iterator[str]:
    codes = {
        error.exit_code: " ".join(inspect.cleandoc(error.__doc__ or "").split())
        for error in vars(errors).values()
        if inspect.isclass(error) and issubclass(error, errors.TwgenError) and "exit_code" in vars(error)
    } | _NOT_ERRORS
    for code in sorted(codes):
        yield f"| {code} | {codes[code]} |\n"
        if code in _ALSO:
            yield f"| | {_ALSO[code]} |\n"


def _commands(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for each in group.list_commands(context):
        match group.get_command(context, each):
            case click.Group() as below:
                yield from _commands(below, f"{name} {each}")
            case click.Command() as command:
                yield f"{name} {each}", command


def _command(name: str, command: click.Command) -> str:
    texts, _, below = inspect.cleandoc(command.help or "").partition("\b\n")
    examples, _, notes = below.strip().partition("\n\n")
    first, *others = examples.splitlines() or [name]
    is_command = first.startswith("twgen ")
    what_for, *more = _paragraphs(texts)
    parts = [
        f"## {name}\n\n{what_for}\n",
        f"```\n{first}\n```\n" if is_command else f"```text\n{examples}\n```\n",
        *(f"{text}\n" for text in (*more, *_paragraphs(notes))),
    ]
    if others and is_command:
        listed = "\n".join(others)
        parts.append(f"More examples:\n\n```text\n{listed}\n```\n")
    return "\n".join([*parts, *_options_of(command)])


def _paragraphs(text: str) -> list[str]:
    paragraphs = (" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
    return [fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False) for text in paragraphs if text]


def _options_of(command: click.Command) -> Iterator[str]:
    """The table of the command's own options, and its groups of shared options."""
    shared = shared_options(command)
    grouped = {name for names in shared.values() for name in names}
    own = [
        each
        for each in command.params
        if isinstance(each, click.Option) and each.name != _HELP and each.name not in grouped
    ]
    if own:
        yield _table(own)
    if shared:
        links = (
            f"[{title.lower()}](#{title.lower()}){_exceptions(GROUPS[title][1], taken)}"
            for title, taken in shared.items()
        )
        yield f"{'Also' if own else 'Options'}: {', '.join(links)}.\n"


def _exceptions(names: Sequence[str], taken: Sequence[str]) -> str:
    left_out = [name for name in names if name not in taken]
    if not left_out:
        return ""
    is_short = len(left_out) <= len(taken)
    word, listed = ("without", left_out) if is_short else ("only", taken)
    return f" ({word} {', '.join(f'`{OPTIONS[name].dashed}`' for name in listed)})"


def _shared_options() -> str:
    of_application = ", ".join(f"`--{one.name}`" for one in OPTIONS.values() if one.of_application)
    parts = [
        "## Shared options\n",
        "The sections of the commands refer to these groups. Every command also accepts `-h, --help`.\n",
        f"In Argo CD, an Application may set only\n{of_application}. The operator sets all others.\n",
    ]
    shown: Mapping[str, click.Option] = {
        str(option.name): option
        for _, command in _commands(twgen, "twgen")
        for option in command.params
        if isinstance(option, click.Option) and option.help == OPTIONS.get(str(option.name), option).help
    }
    for title, (text, names) in GROUPS.items():
        parts += [f"### {title}\n\n{text}\n", _table([shown[name] for name in names])]
    return "\n".join(parts)


def _table(options: Sequence[click.Option]) -> str:
    cells = ([f"`{_flags(option)}`", _meaning(option)] for option in options)
    rows = "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in cells)
    return f"| option | meaning |\n| --- | --- |\n{rows}"


def _flags(option: click.Option) -> str:
    names = ", ".join(sorted(option.opts, key=len))
    if option.is_flag:
        return "/".join((names, *option.secondary_opts))
    values = "|".join(getattr(option.type, "choices", ()))
    return f"{names} {option.metavar or values or option.type.name}"


def _meaning(option: click.Option) -> str:
    default = option.default if option.show_default else None
    return f"{option.help}{f' Default: `{default}`.' if default else ''}"
