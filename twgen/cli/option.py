"""One option: its names, in variables and plugin parameters too, and the form of its value."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from twgen.cli.environment import environment
from twgen.errors import InvalidInput
from twgen.model.problem import did_you_mean, quoted
from twgen.model.values import dataclass

Command = TypeVar("Command", bound=Callable[..., Any])


class Form(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases of click
    """A text of a certain form; `meaning` returns its value, or raises ValueError with the mistake."""

    def __init__(self, name: str, meaning: Callable[[str], object] = str) -> None:
        self.name = name
        self._meaning = meaning

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """The value of the text. An empty text, such as an unset variable of a script, is an error."""
        if not value and isinstance(param, click.Option):
            self.fail("must not be empty", param, ctx)
        try:
            return self._meaning(value)
        except ValueError as error:
            self.fail(f"{quoted(value)} {error}", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:  # noqa: ARG002
        """For a file, the request to the shell to complete file names."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")] if self.name in {"FILE", "PATH"} else []


class Choice(click.Choice):  # type: ignore[type-arg]  # as above
    """One of a few words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The word, if it is one of them."""
        words = list(map(str, self.choices))
        if value not in words:
            message = f"{quoted(value)} is not one of {', '.join(words)}{did_you_mean(value, words)}"
            self.fail(message, param, ctx)
        return value


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its flags, its help text, and how its value is read."""

    flags: str
    """As `-q --quiet`, or with the flag for the opposite: `--once/--until-settled`."""
    help: str
    type: Form | Choice | None = None
    """None: a flag."""
    default: str = ""
    """The default text; empty: none."""
    multiple: bool = False
    """It can be repeated."""
    of_application: bool = False
    """In Argo CD, the application may set it too; only the operator may set the others."""
    renamed: str = ""
    """Its key, if that is not its name; empty: it is."""

    @property
    def key(self) -> str:
        """The parameter of the functions of commands: `value_files`."""
        return self.renamed or self.name.replace("-", "_")

    @property
    def name(self) -> str:
        """Its name on the command line: `value-files`."""
        return _long_name(self.flags.split())

    @property
    def dashed(self) -> str:
        """Its name with the dashes: `--value-files`."""
        return f"--{self.name}"

    @property
    def parameter(self) -> str:
        """Its name as a plugin parameter: `valueFiles`."""
        first_word, *words = self.name.split("-")
        return first_word + "".join(map(str.capitalize, words))

    @property
    def variable(self) -> str:
        """The environment variable that sets it: `TWGEN_<OPTION>`."""
        return f"TWGEN_{self.name.replace('-', '_').upper()}"

    def decorator(self, text: str = "") -> Callable[[Command], Command]:
        """Adds the option to a command, as a parameter of its function; `text` replaces the help."""
        how: dict[str, Any] = {"is_flag": True}
        if self.type:
            how = {"type": self.type, "multiple": self.multiple}
            # unchanged: click would write FAILS
            how |= {"metavar": self.type.name} if isinstance(self.type, Form) else {}
            how |= {"default": self.default, "show_default": True} if self.default else {}
        names = (*self.flags.split(), self.key)
        return click.option(*names, cls=_Scoped, help=text or self.help, envvar=self.variable, **how)


class _Scoped(click.Option):
    """In Argo CD, the application's own setting overrides the operator's variable."""

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        setting = environment().settings_of_application.get(_long_name(self.opts))
        return (setting and setting.value) or super().resolve_envvar_value(ctx)

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """The value; raises InvalidInput with the place, the value and the allowed values."""
        try:
            return super().process_value(ctx, value)
        except click.BadParameter as error:
            mistake = f"{quoted(str(value))} is neither true nor false" if self.is_flag else error.message
            name = _long_name(self.opts)
            place = f"--{name}"
            if ctx.get_parameter_source(self.name or "") is click.core.ParameterSource.ENVIRONMENT:
                setting = environment().settings_of_application.get(name)
                place = f"{setting.source if setting else self.envvar}:"
            raise InvalidInput(f"{place} {mistake}") from error


def _long_name(flags: Sequence[str]) -> str:
    return max(flags, key=len).partition("/")[0].strip("-")
