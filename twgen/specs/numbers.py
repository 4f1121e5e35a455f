"""Reading the numbers of a spec that need not be whole."""

from twgen.model.problem import wrong_type
from twgen.specs.fields import Fields


def read_number(fields: Fields, name: str, *, required: bool = False) -> int | float | None:
    """A field as it is written; None: it is absent or no number, and what is wrong with that is noted."""
    value = fields.raw(name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if value is not None or required:
        fields.problem(name, "is required" if value is None else wrong_type("a number", value))
    return None
