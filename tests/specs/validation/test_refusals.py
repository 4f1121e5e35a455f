"""What an API server would refuse is refused here; tests/servers asks a real one about the same corpus."""

from typing import Any

import pytest
from click.testing import CliRunner

from tests.broken_documents import places
from tests.refused import TOLD, Broken, bases, changed, corpus, documents, refusals, strictly, told, validated
from twgen.cli.main import twgen
from twgen.errors import InvalidDocuments, NegativeAnswer
from twgen.model.paths import join_path
from twgen.yaml.writer import write_documents

CORPUS = corpus()


@pytest.mark.parametrize("broken", CORPUS, ids=lambda broken: broken.sentence)
def test_broken_document_is_refused(broken: Broken) -> None:
    assert refusals(broken.object) != []


@pytest.mark.parametrize("name", bases())
def test_whole_document_is_not_refused(name: str) -> None:
    assert strictly(bases()[name]) == []


def test_finalizer_that_only_the_pods_are_refused_for_is_refused() -> None:
    """The server takes the Deployment, and then refuses every Pod of it: nothing would say so."""
    (refusal,) = strictly(changed(bases()["pods"], {"metadata.finalizers": ["keep"]}))
    assert "'keep' needs a domain as prefix" in refusal
    assert strictly(changed(bases()["pods"], {"metadata.finalizers": ["example.com/keep", "orphan"]})) == []


def test_no_place_of_a_broken_document_is_told_twice() -> None:
    """By parsers, the rules of an API server and schemas together, as `validate` tells it."""
    twice = []
    for broken in CORPUS:
        paths = validated(broken.object)
        twice += [(broken.sentence, path) for path in set(paths) if paths.count(path) > 1]
    assert twice == []


def test_mistake_beside_a_value_of_a_wrong_type_is_told_with_it() -> None:
    wrong = {
        "spec.containers[0].ports[0].containerPort": "8080",
        "spec.containers[0].imagePullPolicy": "Sometimes",
        "spec.containers[0].image": "example.com/Pay:v1",
        "spec.containers[0].env": [
            {"name": "PORT", "value": 7},
            7,
            {"name": "TEMPORAL_ADDRESS", "value": ""},
        ],
        "spec.initContainers": [7, {"name": "", "image": "migrate:v1"}],
    }
    below = "spec.template.spec"
    assert sorted(validated(changed(bases()["pods"], wrong))) == [
        f"{below}.containers[0].env[0].value",
        f"{below}.containers[0].env[1]",
        f"{below}.containers[0].env[2].name",
        f"{below}.containers[0].image",
        f"{below}.containers[0].imagePullPolicy",
        f"{below}.containers[0].ports[0].containerPort",
        f"{below}.initContainers[0]",
        f"{below}.initContainers[1].name",
    ]
    wrong = {"spec.minReplicas": "1", "spec.maxReplicas": -3}
    assert sorted(validated(changed(bases()["horizontalpodautoscaler"], wrong))) == [
        f"{below}.maxReplicas",
        f"{below}.minReplicas",
    ]


@pytest.mark.parametrize("name", bases())
def test_value_of_a_wrong_type_anywhere_is_told_there_and_of_nothing_else(name: str) -> None:
    base = bases()[name]
    for place in [join_path("", *steps) for steps in places(base) if steps[0] == "spec"]:
        told = validated(changed(base, {place: [[]]}))
        assert told in ([f"spec.template.{place}"], [f"spec.template.{place}[0]"])


def test_corpus_has_every_kind_and_no_sentence_twice() -> None:
    assert len(CORPUS) > 200
    assert len({broken.sentence for broken in CORPUS}) == len(CORPUS)
    kinds = {broken.object.get("kind", "Pod") for broken in CORPUS}
    assert {"Pod", "HorizontalPodAutoscaler", "PodDisruptionBudget", "ScaledObject"} < kinds


def test_what_is_said_of_the_corpus_is_current() -> None:
    assert told() == TOLD.read_text(encoding="utf-8")


@pytest.mark.parametrize("broken", CORPUS[::40], ids=lambda broken: broken.sentence)
def test_validate_and_strict_render_end_with_an_error(broken: Broken, tmp_path: Any) -> None:
    file, snapshot = tmp_path / "specs.yaml", tmp_path / "snapshot.yaml"
    file.write_text(write_documents(documents(broken.object)))
    snapshot.write_text(NEVER_DEPLOYED)
    options = ["--snapshot", str(snapshot), "--strict"]
    assert isinstance(CliRunner().invoke(twgen, ["validate", str(file)]).exception, NegativeAnswer)
    rendered = CliRunner().invoke(twgen, ["render", str(file), *options])
    assert isinstance(rendered.exception, InvalidDocuments)
    assert rendered.stdout == ""


def test_render_warns_of_what_an_api_server_would_refuse(tmp_path: Any) -> None:
    broken = changed(bases()["pods"], {"spec.containers[0].ports[0].containerPort": 0})
    (tmp_path / "specs.yaml").write_text(write_documents(documents(broken)))
    (tmp_path / "snapshot.yaml").write_text(NEVER_DEPLOYED)
    rendered = CliRunner().invoke(
        twgen, ["render", str(tmp_path / "specs.yaml"), "--snapshot", str(tmp_path / "snapshot.yaml")]
    )
    assert rendered.exit_code == 0
    assert "ports[0].containerPort: must be from 1 to 65535, not 0" in rendered.stderr


NEVER_DEPLOYED = """
apiVersion: twgen.io/v1alpha1
kind: Snapshot
takenAt: 2026-11-21T12:00:00Z
workers:
- {name: shop/pay, temporalNamespace: shop, temporal: null}
"""
