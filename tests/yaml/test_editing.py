"""A file that people own keeps their comments and their order."""

import pytest

from twgen.errors import InvalidInput
from twgen.yaml.editing import edited
from twgen.yaml.reader import read_documents

OWNED = """\
# of the payments team
kind: Worker # theirs
spec:
  steps:   # slowly
  - {share: 5, pause: 10m}   # first
  - {share: 50, pause: 1h}
  replicas: 3
  gone: true
apiVersion: v1
"""


def test_comments_and_order_stay_where_fields_stay() -> None:
    document = {
        "apiVersion": "v1",
        "kind": "Worker",
        "spec": {
            "replicas": 4,
            "steps": [{"share": 5, "pause": "10m"}, {"share": 60, "pause": "1h"}],
            "new": {"on": "yes", "time": "1:30"},
        },
    }
    text = edited(OWNED, document, {}, "a.yaml")
    assert read_documents(text) == [document]
    assert "# of the payments team\nkind: Worker # theirs\n" in text
    assert "steps:   # slowly\n" in text
    assert "- {share: 5, pause: 10m}   # first\n" in text
    assert "gone" not in text


def test_same_document_leaves_the_file_as_it_is() -> None:
    [document] = read_documents(OWNED)
    assert edited(OWNED, document, {}, "a.yaml") == OWNED


def test_new_file_has_comments_beside_fields() -> None:
    text = edited("", {"spec": {"hostPort": "a:1", "on": "off"}}, {("spec", "hostPort"): "fill in"}, "a.yaml")
    assert text == 'spec:\n  hostPort: a:1  # fill in\n  "on": "off"\n'


@pytest.mark.parametrize("text", ["- a\n", "just words\n", "a: [\n"])
def test_file_that_is_no_mapping_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"a\.yaml is no one document of YAML"):
        edited(text, {"a": 1}, {}, "a.yaml")
