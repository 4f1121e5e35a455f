"""Reading the operator's configuration from its file."""

from twgen.errors import InvalidDocuments
from twgen.model.operator import Operator
from twgen.reading.documents import Sources
from twgen.specs.operator import parse_operator
from twgen.yaml.errors import YamlError
from twgen.yaml.reader import read_documents


def read_operator_file(path: str, sources: Sources) -> Operator:
    """The operator's configuration; raises InvalidDocuments with all that is wrong with it."""
    try:
        found = [document for document in read_documents(sources.text(path)) if document is not None]
    except YamlError as error:
        raise InvalidDocuments([f"{path}: {error}"]) from error
    if len(found) != 1:
        raise InvalidDocuments([f"{path}: holds {len(found)} documents; it must hold one"])
    operator, findings = parse_operator(found[0])
    if findings:
        raise InvalidDocuments(
            [f"{path}: {finding.path or 'the document'}: {finding.message}" for finding in findings]
        )
    return operator
