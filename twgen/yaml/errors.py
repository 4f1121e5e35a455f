"""The one error of the YAML reader."""

from typing import Any

from twgen.errors import InvalidInput


class YamlError(InvalidInput):
    """Text that is not acceptable YAML or JSON: a one-line `message`, and the `line` from 1, where known."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message if line is None else f"line {line}: {message}")
        self.message = message
        self.line = line


def error_at(event: Any, message: str) -> YamlError:
    """Return an error with the line where one of the parser's events starts."""
    return YamlError(message, event.start_mark.line + 1)
