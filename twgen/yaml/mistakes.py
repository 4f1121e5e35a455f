"""What is wrong with a text that libyaml refuses, in words for people, at the place of the mistake."""

import re

from yaml import MarkedYAMLError, YAMLError
from yaml.reader import ReaderError

from twgen.yaml.source import ODD_BLANK, YamlError, line_after

_FLOW_OPEN = "the {} that opens here is not closed: write , between its items, and {} at its end"
_QUOTE_OPEN = "the quote that opens here is not closed"
_TAB = "a tab cannot indent: use spaces"
_TAG = "a text that begins with ! needs quotes"
_SENTENCES = {
    "mapping values are not allowed in this context": (
        "a colon makes this a key, but no key is allowed here: fix the indentation, or quote the text"
    ),
    "mapping keys are not allowed in this context": "a key is not allowed here: fix the indentation",
    "block sequence entries are not allowed in this context": (
        "a list cannot begin here: put its - below the key, on its own line"
    ),
    "found character that cannot start any token": "text cannot begin with this character: quote the text",
    "could not find expected ':'": "a key needs a colon and a space after it",
    "did not find expected key": "a key is missing here: fix the indentation, or quote the text",
    "did not find expected '-' indicator": "this line is in a list but has no -: fix the indentation",
    "did not find expected ',' or ']'": _FLOW_OPEN.format("[", "]"),
    "did not find expected ',' or '}'": _FLOW_OPEN.format("{", "}"),
    "did not find expected node content": "a value is missing here, or it needs quotes",
    "did not find expected <document start>": "a document ends before this: write --- between two documents",
    "did not find expected alphabetic or numeric character": "a text that begins with * or & needs quotes",
    "did not find expected comment or line break": "no text may follow | or > on the same line",
    "found unknown escape character": (
        "there is no such escape: write two backslashes for one, or use single quotes"
    ),
    "found invalid Unicode character escape code": "no character has this escape: write the character itself",
    "found undefined tag handle": _TAG,
    "did not find expected tag URI": _TAG,
    "did not find the expected '>'": _TAG,
    "found unexpected document indicator": _QUOTE_OPEN,
    "found unexpected end of stream": _QUOTE_OPEN,
    "found a tab character that violates indentation": _TAB,
    "found a tab character where an indentation space is expected": _TAB,
}
"""What libyaml says, in words for people; where something opened is the line for what was never closed."""
_AT_OPENING = {_QUOTE_OPEN, _FLOW_OPEN.format("[", "]"), _FLOW_OPEN.format("{", "}")}
_ODD_INDENTATION = re.compile(r"^ *[^\S\x00-\x7f]", re.MULTILINE)
_NO_SEPARATOR = re.compile(r"^(?:--|-{4,})[ \t]*$", re.MULTILINE)


def describe(error: YAMLError, text: str) -> YamlError:
    """Return our error for one of the parser's: what is wrong and the line, nothing of the content."""
    if isinstance(error, ReaderError):
        problem = f"U+{error.character:04X} is not allowed: write it as an escape in double quotes"
        return YamlError(problem, line_after(text.encode()[: error.position]))
    mark = (error.problem_mark or error.context_mark) if isinstance(error, MarkedYAMLError) else None
    if not isinstance(error, MarkedYAMLError) or mark is None:
        return YamlError("this is not YAML")
    at, opening = mark.index, (error.context_mark or mark).index
    begin = text.rfind("\n", 0, opening) + 1
    separator, odd_blank = _NO_SEPARATOR.search(text, begin, at), _ODD_INDENTATION.search(text, begin, at + 1)
    quote = text[at - 1 : at]
    problem = _SENTENCES.get(error.problem or "", "this is not YAML: fix the indentation, or quote the text")
    if text[at : at + 1] == "\t":
        problem = _TAB
    elif odd_blank:
        problem, at = ODD_BLANK, odd_blank.start()
    elif separator:
        problem, at = "write three dashes (---) between two documents", separator.start()
    elif quote in {"'", '"'} and error.problem == "did not find expected key":
        # it was taken for the end of what an earlier one opened
        begins = text.rfind(quote, 0, at - 1)
        goes_on = f"the text continues after its closing quote: double every {quote} inside"
        problem, at = (_QUOTE_OPEN, begins) if "\n" in text[begins:at] else (goes_on, at)
    elif error.context == "while parsing a flow node":
        problem = "a [ or { is not closed before this, or a value is missing"
    elif problem in _AT_OPENING:
        at = opening
    return YamlError(problem, text.count("\n", 0, at) + 1)
