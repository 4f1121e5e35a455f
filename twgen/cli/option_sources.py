"""What is wrong with options that come from an application or the environment, not from a command line."""

import os
from collections.abc import Iterator

from twgen.cli.options import OPTIONS
from twgen.cli.surroundings import surroundings
from twgen.errors import InvalidInput
from twgen.model.problem import did_you_mean


def refuse_settings_of_operator() -> None:
    """Raise InvalidInput for what the application sets amiss: the operator's, none of ours, or no text."""
    options = {option.name: option for option in OPTIONS.values()}
    own = sorted(option.parameter for option in options.values() if option.of_application)
    for name, setting in surroundings().settings_of_application.items():
        if name not in options:
            raise InvalidInput(
                f"{setting.source}: no such setting{did_you_mean(name, own) or ';'}"
                f" an application may set {', '.join(own)}"
            )
        if not options[name].of_application:
            raise InvalidInput(
                f"{name!r} is for the operator, and a repository may not set it; the operator can set"
                f" {options[name].variable} in the plugin's sidecar"
            )
        if setting.mistake:
            raise InvalidInput(setting.mistake)


def mistyped_variables() -> Iterator[str]:
    """A warning for each environment variable that is nearly, but not quite, one of an option.

    What is not even near one may be somebody else's: Kubernetes sets variables for a Service of any name.
    """
    names = ["OUTPUT", *(option.variable.removeprefix("TWGEN_") for option in OPTIONS.values())]
    for variable in sorted(os.environ):
        prefix, _, name = variable.partition("TWGEN_")
        similar = "" if prefix or not name or name in names else did_you_mean(name, names)
        if similar:
            yield f"{variable} sets no option{similar.replace('mean ', 'mean TWGEN_')}"
