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
        *('index . "BuildID"', 'index $ "BuildID" | quote', "$v := . }}{{ $v.BuildID"),
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
        *(
            "# {{ .BuildID }}",
            "{{ range $a := .Values.a }}{{ $a.BuildID }}{{ end }}",
            '{{ index $a "BuildID" }}',
        ),
        '{{ include "pods" (dict "BuildID" "v1") }}{{ define "pods" }}{{ .BuildID }}{{ end }}',
        *('{{ fail "set .BuildID" }}', "{{ .BuildIDs }}", "{{ .Values.a }} .BuildID {{ .Values.b }}"),
    ],
)
def test_text_that_only_looks_like_a_placeholder_is_not(tmp_path: Path, text: str) -> None:
    assert eaten(tmp_path, text) == []


@pytest.mark.parametrize(
    ("values", "template", "is_eaten"),
    [
        ("id: '{{ .BuildID }}'", "id: {{ .Values.id }}", False),
        ("id: '{{ .BuildID }}'", "id: {{ tpl .Values.id . }}", True),
        ("versions:\n- BuildID: v1", "{{ range .Values.versions }}{{ .BuildID }}{{ end }}", False),
        ("versions:\n- id: v1", "{{ range .Values.versions }}{{ .BuildID }}{{ end }}", True),
    ],
)
def test_value_is_a_template_only_with_tpl_and_can_have_the_same_name(
    tmp_path: Path, values: str, template: str, *, is_eaten: bool
) -> None:
    (tmp_path / "values.yaml").write_text(values)
    assert bool(eaten(tmp_path, template)) is is_eaten


def test_notes_of_a_chart_are_no_manifest(tmp_path: Path) -> None:
    assert eaten(tmp_path, "version {{ .BuildID }}", "NOTES.txt") == []
