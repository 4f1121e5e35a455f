"""One option: its names on the command line, in variables and in plugin parameters, and its type."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from twgen.cli.environment import environment
from twgen.errors import InvalidInput
from twgen.model.problem import did_you_mean, quoted
from twgen.model.values import dataclass

Command = TypeVar("Command", bound=Callable[..., Any])


class Form(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases of click
    """The type of an option. `meaning` converts the text, or raises ValueError with the problem."""

    def __init__(self, name: str, meaning: Callable[[str], object] = str) -> None:
        self.name = name
        self._meaning = meaning

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """Convert the text. An empty text is an error: a script may have used an unset variable."""
        if not value and isinstance(param, click.Option):
            self.fail("must not be empty", param, ctx)
        try:
            return self._meaning(value)
        except ValueError as error:
            self.fail(f"{quoted(value)} {error}", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:  # noqa: ARG002
        """Ask the shell to complete file names, if the value is a file."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")] if self.name in {"FILE", "PATH"} else []


class Choice(click.Choice):  # type: ignore[type-arg]  # as above
    """The type of an option that accepts only the given words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return an allowed word, or fail with a message that lists the allowed words."""
        words = list(map(str, self.choices))
        if value not in words:
            message = f"{quoted(value)} is not one of {', '.join(words)}{did_you_mean(value, words)}"
            self.fail(message, param, ctx)
        return value


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its flags, its help text, and the type of its value."""

    flags: str
    """The short and the long flag, such as `-q --quiet`, or a flag and its opposite (`--a/--b`)."""
    help: str
    type: Form | Choice | None = None
    """The type of the value, or None for a flag without a value."""
    default: str = ""
    """The default value as text, or empty if there is no default."""
    multiple: bool = False
    """Whether the option can be repeated."""
    of_application: bool = False
    """Whether an Argo CD application can set the option. Otherwise, only the operator can."""
    renamed: str = ""
    """The `key` of the option, or empty if it follows from the name."""

    @property
    def key(self) -> str:
        """The name of the parameter in a command's function, such as `value_files`."""
        return self.renamed or self.name.replace("-", "_")

    @property
    def name(self) -> str:
        """The name on the command line without dashes, such as `value-files`."""
        return _long_name(self.flags.split())

    @property
    def dashed(self) -> str:
        """The name on the command line with dashes, such as `--value-files`."""
        return f"--{self.name}"

    @property
    def parameter(self) -> str:
        """The name of the plugin parameter, such as `valueFiles`."""
        first_word, *words = self.name.split("-")
        return first_word + "".join(map(str.capitalize, words))

    @property
    def variable(self) -> str:
        """The name of the environment variable, such as `TWGEN_VALUE_FILES`."""
        return f"TWGEN_{self.name.replace('-', '_').upper()}"

    def decorator(self, text: str = "") -> Callable[[Command], Command]:
        """A decorator that adds the option to a command's function. `text` replaces the help."""
        how: dict[str, Any] = {"is_flag": True}
        if self.type:
            how = {"type": self.type, "multiple": self.multiple}
            # without a metavar, click would show `fails` in capitals
            how |= {"metavar": self.type.name} if isinstance(self.type, Form) else {}
            how |= {"default": self.default, "show_default": True} if self.default else {}
        names = (*self.flags.split(), self.key)
        return click.option(*names, cls=_Scoped, help=text or self.help, envvar=self.variable, **how)


class _Scoped(click.Option):
    """A click option. In Argo CD, the application's own setting overrides the operator's variable."""

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        setting = environment().settings_of_application.get(_long_name(self.opts))
        return (setting and setting.value) or super().resolve_envvar_value(ctx)

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Convert the value, or raise InvalidInput with its source, the value and the allowed values."""
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
