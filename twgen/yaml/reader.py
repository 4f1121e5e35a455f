"""The one reader: JSON and YAML as programs write it have paths of their own, all else needs libyaml."""

import re
from typing import Any

from twgen.yaml.block_text import read_block
from twgen.yaml.json_text import read_json
from twgen.yaml.limits import Budget
from twgen.yaml.source import YamlError, decode

_DASHES = re.compile(r"-[ \t]+-[ \t]+(?:-[ \t]+){9998}")


def read_documents(text: bytes | str, budget: Budget | None = None) -> list[Any]:
    """Return the value of each YAML or JSON document (None for an empty one); raises YamlError.

    The rules are those of sigs.k8s.io/yaml with strict keys; what `<<` brought may be overridden below it.
    What an alias stands for is shared, not copied. Texts of one run share a budget.
    """
    budget = budget or Budget()
    limits = budget.limits
    budget.bytes += len(text)
    if budget.bytes > limits.bytes:
        raise YamlError(budget.spent(f"{limits.bytes} bytes"))
    if len(text) > limits.text_bytes:
        raise YamlError(f"more than {limits.text_bytes} bytes: split the file")
    content = decode(text)
    if (found := read_json(content, budget)) is not None:
        return [found]
    # whatever reads such a line takes it in whole, in 50 bytes for each byte, before it tells of its levels
    if dashes := _DASHES.search(content):
        line = content.count("\n", 0, dashes.start()) + 1
        raise YamlError(f"nested deeper than {limits.depth} levels", line)
    if (documents := read_block(content, budget)) is not None:
        return documents
    from twgen.yaml.events import read_all

    return read_all(content, budget)
