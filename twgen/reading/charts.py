"""Warns about mistakes in a Helm chart's files that the rendered output does not reveal."""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from twgen.errors import InvalidInput
from twgen.model.paths import differing_paths, value_at
from twgen.model.problem import NOT_RENDERED, Document, Problem, Rule
from twgen.model.spec import WorkerSpec
from twgen.reading.documents import Documents, Sources
from twgen.reading.templated import HELM, OPTIONAL, Input, read_input
from twgen.specs.kinds import CHART_FILE
from twgen.versioning.names import FIELD_PLACEHOLDERS

_TIME = r"\{\{[^}]{0,500}\b(now|ago)\b"
_RANDOM = r"\b(rand[A-Z][A-Za-z]+|uuidv4|gen[A-Z][A-Za-z]+|shuffle|bcrypt|htpasswd|encryptAES)\b"
_NAMES = "|".join(FIELD_PLACEHOLDERS)
_OURS = (
    r"\{\{(?!-?\s*/\*)(?:\"[^\"{}]*\"|[^\"`{}])*?"
    rf"(?:(?<![\w.)\]])(?P<data>\$\w*)?\.(?P<name>{_NAMES})\b"
    rf"|\bindex\s+(?P<indexed>\.|\$\w*)\s+\"(?P<key>{_NAMES})\")"
)
"""Matches an action that reads a placeholder's name from `.`, `$` or another variable."""
_OF_CHART = rf"\b(?:dict|set)\b[^}}]*\"({_NAMES})\"|^[\s-]*[\"']?({_NAMES})[\"']?\s*:(?!\S)"
"""Matches an action that gives data this name, or a value with this name: then the chart itself fills it."""
_NOTES = "NOTES.txt"
"""The template whose output is no manifest."""
_TEMPLATES = "templates"
_CHANGING = Rule("changing-template", "Each render produces a different pod template, so a new version.")
_MOST_BYTES = 2**20
"""The number of bytes that are searched in each file. A longer file contains data, not templates."""


def unescaped_placeholders(settings: Input, paths: Sequence[str]) -> Iterator[Problem]:
    """Warn about each twgen placeholder that helm replaces with an empty string.

    Raises InvalidInput if a file cannot be read.
    """
    if settings.kind != HELM or len(paths) != 1:
        return
    chart = Path(paths[0])
    of_chart = Document(str(chart / CHART_FILE), 0, None)
    texts = [(file, text) for file, text in _texts(settings, chart) if file.name != _NOTES]
    at = len(chart.parts)
    uses_values = any(re.search(r"\{\{[^}]*\btpl\b", text) for _, text in texts)
    own = {
        name
        for _, text in texts
        for match in re.finditer(_OF_CHART, text, re.MULTILINE)
        for name in match.groups()
    }
    for file, text in texts:
        # helm evaluates a template among the values only if the chart passes it to tpl
        is_template = uses_values or _TEMPLATES in file.parts[at:]
        found = re.finditer(_OURS, text) if is_template else ()
        names = dict.fromkeys(match["name"] or match["key"] for match in found if _is_for_helm(text, match))
        for name in (name for name in names if name not in own):
            escaped = f"{{{{ `{{{{ .{name} }}}}` }}}}"
            why = f"helm replaces {{{{ .{name} }}}} in {file} with an empty string, before twgen sees it"
            yield Problem(of_chart, "", NOT_RENDERED(f"{why}: write {escaped}"))


def changing_pods(settings: Input, paths: Sequence[str], workers: Iterable[WorkerSpec]) -> Iterator[Problem]:
    """Warn about each value in a worker's pods that differs between two renders of its chart.

    The chart is rendered a second time only if it uses random functions or the time. Raises InvalidInput if
    the second render fails.
    """
    if settings.kind != HELM or len(paths) != 1:
        return
    texts = [text for _, text in _texts(settings, Path(paths[0]))]
    uses_time = any(re.search(_TIME, text) for text in texts)
    if uses_time or any(re.search(_RANDOM, text) for text in texts):
        if uses_time:
            time.sleep(1.0)  # so that even a time in whole seconds differs
        yield from _differences(workers, read_input(settings, paths, Sources(), ledgers=False))


def _is_for_helm(text: str, match: re.Match[str]) -> bool:
    """Whether a manifest contains the placeholder's value.

    It is neither text inside another template action nor part of a YAML comment. A variable counts if it
    has the template's own data, as in `$root := .`.
    """
    variable = (match["data"] or match["indexed"] or "").lstrip(".")
    if variable.strip("$") and not re.search(rf"{re.escape(variable)}\s*:?=\s*[.$](?![\w.])", text):
        return False
    line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
    is_action = text.rfind("{{", 0, match.start()) <= text.rfind("}}", 0, match.start())
    return is_action and not line.lstrip().startswith("#")


def _differences(workers: Iterable[WorkerSpec], rendered: Documents) -> Iterator[Problem]:
    again = {_name(item): item for item in rendered.documents}
    for document in (worker.document for worker in workers):
        other = again.get(_name(document))
        if not other:
            continue
        for place in ("spec.template", "spec.deployment.template"):
            pods, other_pods = (value_at(item.value, *place.split(".")) for item in (document, other))
            for path in differing_paths(pods, other_pods, place):
                why = "differs in each render of the chart, so that each render creates a new version"
                yield Problem.at(document, path, _CHANGING(f"{why}: do not use random values or the time"))


def _texts(settings: Input, chart: Path) -> Iterator[tuple[Path, str]]:
    """The values and templates of the chart and its subcharts.

    An archive is not read, but treated as if it used random functions.
    """
    yield Path("values"), settings.values
    files = chain.from_iterable((chart / name).rglob("*") for name in (_TEMPLATES, "charts"))
    for file in (
        *files,
        chart / "values.yaml",
        *(chart / name.removeprefix(OPTIONAL) for name in settings.value_files),
    ):
        if file.suffix == ".tgz":
            yield file, "uuidv4"
        elif file.is_file():
            try:
                with file.open(encoding="utf-8", errors="replace") as opened:
                    yield file, opened.read(_MOST_BYTES)
            except OSError as error:
                raise InvalidInput(f"cannot read {file}: {error.strerror}") from error


def _name(document: Document) -> tuple[str, ...]:
    names = (value_at(document.value, "metadata", field) for field in ("namespace", "name"))
    return document.source, *map(str, names)
