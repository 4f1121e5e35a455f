"""Files of Helm and kustomize, which are to be rendered before twgen reads them."""

import re
from typing import TYPE_CHECKING

from twgen.model.problem import Document
from twgen.specs.kinds import is_marked

if TYPE_CHECKING:
    from pathlib import PurePath  # most runs have no such file, and do without

_HELM_TEMPLATE = r"\{\{-?\s*(?!\.(?:DeploymentName|BuildID|TemporalNamespace)\b)[\w.$/(]"
_KUSTOMIZE = "kustomize.config.k8s.io"


def render_first(document: Document) -> str:
    """What to run before twgen, for a Kustomization or a chart of Helm; empty: the document is neither."""
    value = document.value
    is_for_kustomize = is_marked(value) and value["apiVersion"].partition("/")[0] == _KUSTOMIZE
    if not isinstance(value, dict) or (is_marked(value) and not is_for_kustomize):
        return ""
    from pathlib import PurePath

    file = PurePath(document.source)
    folder = _quoted(file.parent)
    if is_for_kustomize or file.stem == "kustomization":
        return f"is for kustomize: run `kustomize build {folder} | twgen render -`"
    return f"is a chart of Helm: run `helm template {folder} | twgen render -`" if is_chart(document) else ""


def is_chart(document: Document) -> bool:
    """The document describes a chart of Helm, whose other files stand beside it."""
    return document.source.rpartition("/")[2] == "Chart.yaml" and "kind" not in document.value


def template_of_helm(source: str, text: bytes) -> str:
    """What to run before twgen, when text that is no YAML is a template of Helm; empty: it is none."""
    if b"{{" not in text or not re.search(_HELM_TEMPLATE, text.decode(errors="replace")):
        return ""
    from pathlib import PurePath

    folder = PurePath(source).parent
    chart = folder.parent if folder.name == "templates" else folder
    return f"is a template of Helm: run `helm template {_quoted(chart)} | twgen render -`"


def _quoted(folder: "PurePath") -> str:
    from shlex import quote

    return quote(str(folder))
