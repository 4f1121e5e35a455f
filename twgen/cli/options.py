"""The options of commands: their groups, their order in the help, and the settings that set them."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping

import click

from twgen.cli.environment import environment
from twgen.cli.option import Choice, Command, Form, Option
from twgen.cli.option_table import OPTIONS
from twgen.errors import InvalidInput
from twgen.model.problem import did_you_mean

INPUT = ("input", "release", "value_files", "values", "kube_version", "api_versions")
"""The options of every command that reads specs."""
READING = ("timeout", "via", "ca_file", "no_cluster", "kubeconfig", "context", "allow_unlisted_connections")
"""The options of every command that reads servers."""
MEASURING = (*READING, "prometheus")
"""The options of every command that reads the input of decisions about traffic."""

SHARED: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "Connection": ("How a command reaches Temporal and Kubernetes.", (*MEASURING, "identity")),
    "Input": ("How a command reads specs.", (*INPUT, "namespace", "operator_config")),
    "Output": ("How a command reports.", ("quiet", "strict", "color")),
}
"""The groups of options that many commands have, by the parameters of their functions."""


class Grouped(click.Command):
    """A command whose help shows its own options first, and one line for each shared one."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups of options that the command has."""
        params = {str(param.name): param for param in self.get_params(ctx) if isinstance(param, click.Option)}
        of_groups = {name for _, names in SHARED.values() for name in names}
        groups = {"Options": [name for name in params if name not in of_groups]} | {
            title: [name for name in names if name in params] for title, (_, names) in SHARED.items()
        }
        for title, names in groups.items():
            rows = []
            for name in names:
                option, param = OPTIONS.get(name), params[name]
                if record := param.get_help_record(ctx):
                    # a text that a command gives is about that command
                    if option and option.short and param.help == option.help:
                        record = (record[0], option.short)
                    rows.append(record)
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def options(*names: str, **texts: str) -> Callable[[Command], Command]:
    """Give a command these options, in this order; `texts` replace the help of some of them."""
    if of_none := texts.keys() - set(names):
        raise ValueError(f"no such option here: {', '.join(of_none)}")

    def decorate(command: Command) -> Command:
        for name in reversed(names):
            command = OPTIONS[name].decorator(texts.get(name, ""))(command)
        return command

    return decorate


def given_options(names: Iterable[str]) -> list[str]:
    """The options among these that were given on the command line, with their dashes."""
    context = click.get_current_context(silent=True)
    typed = click.core.ParameterSource.COMMANDLINE
    given = (name for name in names if context and context.get_parameter_source(name) is typed)
    return [f"--{OPTIONS[name].name}" for name in given]


def output_option(*formats: str) -> Callable[[Command], Command]:
    """Give a command `-o` with these formats, the first by default."""
    return Option("-o --output", "Print in this format.", Choice(formats), default=formats[0]).decorator()


paths_argument = click.argument("paths", nargs=-1, metavar="[PATH]...", type=Form("PATH"))
"""Files and folders; `.` by default, `-` for stdin."""


def refuse_settings_of_operator() -> None:
    """Raise InvalidInput if the application sets an operator's option, an unknown one, or not a text."""
    options = {option.name: option for option in OPTIONS.values()}
    parameters = sorted(option.parameter for option in options.values() if option.of_application)
    for name, setting in environment().settings_of_application.items():
        if name == setting.source:  # a variable that is no option's
            raise InvalidInput(setting.mistake)
        if name not in options:
            raise InvalidInput(
                f"{setting.source}: no such setting{did_you_mean(name, parameters) or ';'}"
                f" an application may set {', '.join(parameters)}"
            )
        if not options[name].of_application:
            raise InvalidInput(
                f"{name!r} is for the operator, and a repository may not set it; the operator can set"
                f" {options[name].variable} in the plugin's sidecar"
            )
        if setting.mistake:
            raise InvalidInput(setting.mistake)


def mistyped_variables() -> Iterator[str]:
    """A warning for each environment variable whose name is nearly the name of an option's variable.

    Other names may belong to other programs: Kubernetes sets variables for a Service of any name.
    """
    names = ["OUTPUT", *(option.variable.removeprefix("TWGEN_") for option in OPTIONS.values())]
    for variable in sorted(os.environ):
        prefix, _, name = variable.partition("TWGEN_")
        similar = "" if prefix or not name or name in names else did_you_mean(name, names)
        if similar:
            yield f"{variable} sets no option{similar.replace('mean ', 'mean TWGEN_')}"
