"""The rules that reports name: each has one ID, which people write into their settings, and help."""

import pkgutil
import re
from importlib import import_module
from pathlib import Path

import pytest

import twgen
from twgen.model.problem import INVALID, Document, Rule
from twgen.specs.parse import parse_specs
from twgen.specs.spec_document import NamespaceRule
from twgen.yaml.reader import read_documents
from twgen.yaml.source import YamlError

INVALID_DOCUMENTS = sorted((Path(__file__).parents[1] / "fixtures" / "invalid").glob("*/documents.yaml"))


@pytest.fixture(scope="module")
def rules() -> list[Rule]:
    """Each rule that a module of twgen declares, once."""
    modules = [module.name for module in pkgutil.walk_packages(twgen.__path__, "twgen.")]
    values = [
        value for name in modules if "__main__" not in name for value in vars(import_module(name)).values()
    ]
    return list({id(value): value for value in values if isinstance(value, Rule)}.values())


def test_each_rule_has_an_id_of_its_own_and_a_sentence_of_help(rules: list[Rule]) -> None:
    assert len({rule.id for rule in rules}) == len(rules) > 40
    assert [rule for rule in rules if not re.fullmatch("[a-z]+(-[a-z]+)*", rule.id)] == []
    assert [rule for rule in rules if not re.fullmatch(r"[A-Za-z].+\.", rule.help)] == []


def test_every_warning_and_unknown_field_has_a_rule_of_its_kind() -> None:
    found = set()
    for file in INVALID_DOCUMENTS:
        try:
            values = read_documents(file.read_bytes())
        except YamlError:
            continue
        documents = [Document(str(file), index, value) for index, value in enumerate(values)]
        specs = parse_specs(documents, NamespaceRule("shop"))
        found |= {
            (item.rule, item.message)
            for item in (*specs.warnings, *specs.unknown_fields, *specs.deprecations)
        }
    assert len({rule.id for rule, _ in found}) >= 5
    assert [message for rule, message in found if rule is INVALID] == []
