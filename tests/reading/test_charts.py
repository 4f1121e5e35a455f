"""Mistakes in a chart's files that its output does not show."""

from pathlib import Path

import pytest

from twgen.reading.charts import unescaped_placeholders
from twgen.reading.templated import HELM, Input


def eaten(chart: Path, text: str, name: str = "worker.yaml") -> list[str]:
    (chart / "templates").mkdir(exist_ok=True)
    (chart / "templates" / name).write_text(text)
    return [problem.message for problem in unescaped_placeholders(Input(HELM), [str(chart)])]


@pytest.mark.parametrize(
    "action",
    [
        *(".BuildID", "$.BuildID", "- .BuildID -", "- $.BuildID | quote", "quote $.BuildID", "(.BuildID)"),
        *('printf "%s-%s" "a" .BuildID', "$id := .BuildID", "if .BuildID", "- with $.BuildID"),
    ],
)
@pytest.mark.parametrize("name", ["worker.yaml", "_x.tpl"])
def test_placeholder_that_helm_reads_itself_is_warned_of(tmp_path: Path, action: str, name: str) -> None:
    [warning] = eaten(tmp_path, f'{{{{- define "a" }}}}{{{{{action}}}}}{{{{ end }}}}', name)
    assert warning.endswith("with an empty string, before twgen sees it: write {{ `{{ .BuildID }}` }}")
    assert f"templates/{name}" in warning


@pytest.mark.parametrize(
    "text",
    [
        *("{{ `{{ $.BuildID }}` }}", '{{ "{{ .BuildID }}" }}', "{{/* uses .BuildID */}}", "# .BuildID"),
        *("{{- /* $.BuildID */ -}}", "{{ .Values.BuildID }}", "{{ $a.BuildID }}", "{{ (dict).BuildID }}"),
        *('{{ fail "set .BuildID" }}', "{{ .BuildIDs }}", "{{ .Values.a }} .BuildID {{ .Values.b }}"),
    ],
)
def test_text_that_only_looks_like_a_placeholder_is_not(tmp_path: Path, text: str) -> None:
    assert eaten(tmp_path, text) == []
