"""Adds options to commands, groups them in the help, and checks where their values come from."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import click

from twgen.cli.environment import environment
from twgen.cli.option import Choice, Command, Form, Option
from twgen.cli.option_table import OPTIONS
from twgen.errors import InvalidInput
from twgen.model.problem import did_you_mean

CONNECTION = (
    *("kubeconfig", "context", "no_cluster", "via", "ca_file", "timeout"),
    *("allow_unlisted_connections", "only_listed_connections"),
)
"""The options of every command that reads servers."""
MEASURING = (*CONNECTION, "prometheus")
"""The options of every command that reads all inputs of routing decisions, including metrics."""
OF_HELM = ("release", "value_files", "values", "kube_version", "api_versions")
INPUT = ("input", *OF_HELM, "operator_config")
"""The options of every command that reads specs."""
NAMES = ("namespace", "identity")
"""The options of every command that needs a worker's namespace and manager identity."""

GROUPS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "Connection": ("Options for connecting to Temporal, Kubernetes and Prometheus.", MEASURING),
    "Input": ("Options for reading specs.", INPUT),
    "Namespace": ("The workers' namespace and manager identity.", NAMES),
    "Output": ("Output options.", ("quiet", "strict", "verbose", "color")),
}
"""The options that many commands share, by the title of their group."""
_ALL = "--all"
_NAMED = 3
"""The short help names this many options of each group."""


class Grouped(click.Command):
    """A command whose help lists its own options, and has one line for each group of shared options.

    `--help --all` lists all options.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Find `--all` before click parses the arguments, because click stops at `--help`."""
        if _ALL in args and any(name in args for name in self.get_help_option_names(ctx)):
            ctx.meta[_ALL] = True
            args = [argument for argument in args if argument != _ALL]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options, then the groups of shared options."""
        params = {str(param.name): param for param in self.get_params(ctx) if isinstance(param, click.Option)}
        shared = shared_options(self)
        grouped = {name for names in shared.values() for name in names}
        sections: dict[str, Sequence[str]] = {"Options": [name for name in params if name not in grouped]}
        sections |= shared if _ALL in ctx.meta else {}
        for title, names in sections.items():
            with formatter.section(title):
                formatter.write_dl([row for name in names if (row := params[name].get_help_record(ctx))])
        if shared and _ALL not in ctx.meta:
            with formatter.section(f"Shared options, listed by `{ctx.command_path} --help {_ALL}`"):
                formatter.write_dl([(title, _folded(names)) for title, names in shared.items()])


def shared_options(command: click.Command) -> Mapping[str, Sequence[str]]:
    """A command's shared options by group, except options whose help text the command replaces."""
    helps = {str(param.name): param.help for param in command.params if isinstance(param, click.Option)}
    shared = {
        title: [name for name in names if name in helps and helps[name] == OPTIONS[name].help]
        for title, (_, names) in GROUPS.items()
    }
    return {title: names for title, names in shared.items() if names}


def _folded(names: Sequence[str]) -> str:
    first = ", ".join(OPTIONS[name].dashed for name in names[:_NAMED])
    return first if len(names) <= _NAMED else f"{first} and {len(names) - _NAMED} more"


def options(*names: str, **texts: str) -> Callable[[Command], Command]:
    """Add these options to a command, in this order. `texts` replaces the help text of some options."""
    if of_none := texts.keys() - set(names):
        raise ValueError(f"no such option here: {', '.join(of_none)}")

    def decorate(command: Command) -> Command:
        for name in reversed(names):
            command = OPTIONS[name].decorator(texts.get(name, ""))(command)
        return command

    return decorate


def given_options(names: Iterable[str]) -> list[str]:
    """The options among `names` that are set on the command line, with their dashes."""
    context = click.get_current_context(silent=True)
    typed = click.core.ParameterSource.COMMANDLINE
    given = (name for name in names if context and context.get_parameter_source(name) is typed)
    return [OPTIONS[name].dashed for name in given]


def output_option(*formats: str) -> Callable[[Command], Command]:
    """Add `-o` to a command, with these formats. The first format is the default."""
    return Option("-o --output", "Print in this format.", Choice(formats), default=formats[0]).decorator()


_PATHS = "A file or folder of specs or manifests, or - for stdin. The default is the current folder."
PATHS_OR_NAME = f"{_PATHS} worker/NAME selects a rollout in the cluster instead, without its specs."


def paths(form: Form, text: str) -> Callable[[Command], Command]:
    """Add the argument that names the command's input."""
    return click.argument("paths", nargs=-1, metavar="[PATH]...", type=form, help=text)


paths_argument = paths(Form("PATH"), _PATHS)


def refuse_settings_of_operator() -> None:
    """Raise InvalidInput if an application's setting is unknown, malformed, or only for the operator."""
    options = {option.name: option for option in OPTIONS.values()}
    parameters = sorted(option.parameter for option in options.values() if option.of_application)
    for name, setting in environment().settings_of_application.items():
        if name == setting.source:  # the variable does not set an option
            raise InvalidInput(setting.mistake)
        if name not in options:
            raise InvalidInput(
                f"{setting.source}: no such setting{did_you_mean(name, parameters) or ';'}"
                f" an application may set {', '.join(parameters)}"
            )
        if not options[name].of_application:
            raise InvalidInput(
                f"{name!r} is for the operator, not for a repository; the operator can set"
                f" {options[name].variable} in the plugin's sidecar"
            )
        if setting.mistake:
            raise InvalidInput(setting.mistake)


def mistyped_variables() -> Iterator[str]:
    """A warning for each environment variable that looks like a misspelled option.

    Other variables may belong to other programs. For example, Kubernetes sets variables for every Service.
    """
    names = ["OUTPUT", *(option.variable.removeprefix("TWGEN_") for option in OPTIONS.values())]
    for variable in sorted(os.environ):
        prefix, _, name = variable.partition("TWGEN_")
        similar = "" if prefix or not name or name in names else did_you_mean(name, names)
        if similar:
            yield f"{variable} sets no option{similar.replace('mean ', 'mean TWGEN_')}"
