"""Read the annotation `twgen.io/when`: which versions get a copy of an attached template."""

from twgen.model.paths import join_path, value_at
from twgen.model.problem import Finding, did_you_mean, quoted
from twgen.model.spec import AttachedWhile
from twgen.specs.spec_document import SpecDocument
from twgen.versioning.names import WHEN

_PATH = join_path("metadata.annotations", WHEN)
_MOST_WORDS = 100
_IN_ROUTING = {AttachedWhile.CURRENT, AttachedWhile.RAMPING}


def parse_when(spec: SpecDocument) -> frozenset[AttachedWhile]:
    """The words in the annotation of a template; empty: every version gets a copy."""
    written = value_at(spec.document.value, "metadata", "annotations", WHEN)
    # a wrong type is reported together with all annotations
    if not isinstance(written, str):
        return frozenset()
    words = set()
    for item in dict.fromkeys(written.split(",", _MOST_WORDS)):
        word = item.strip()
        try:
            words.add(AttachedWhile(word))
        except ValueError:
            every = ", ".join(AttachedWhile)
            wrong = f"{quoted(word)} is not one of {every}{did_you_mean(word, AttachedWhile)}"
            if not word:
                fault = "has a comma too many" if written.strip() else "is empty"
                wrong = f"{fault}: write one or more of {every}, or remove it"
            spec.findings.add_problems([Finding(_PATH, wrong)])
    return frozenset(words)


def may_meet(first: frozenset[AttachedWhile], other: frozenset[AttachedWhile]) -> bool:
    """A version may get copies of both: they share a word, one is for all, or the target has traffic."""
    if not first or not other or first & other:
        return True
    return any(
        AttachedWhile.TARGET in a and not b.isdisjoint(_IN_ROUTING)
        for a, b in ((first, other), (other, first))
    )
