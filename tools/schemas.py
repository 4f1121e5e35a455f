"""Make the schemas of twgen's own documents from the classes that declare them."""

import json
from typing import Any, NamedTuple

from tools.descriptions import described, summary
from tools.home import SCHEMAS, home, identified
from tools.spec_schemas import HEAD, SPECS, spec_schema
from twgen.model.diagnosis import Diagnosis
from twgen.model.draining import DrainReport
from twgen.model.forgetting import ForgetReport
from twgen.model.operator import Operator
from twgen.model.plan import Plan
from twgen.model.shapes import Shape
from twgen.model.status import Status
from twgen.model.timeline import Timeline
from twgen.records.ledger import LEDGER, Ledger
from twgen.records.operator_config import OPERATOR_CONFIG
from twgen.records.rollout_status import STATUS
from twgen.records.snapshot import SNAPSHOT, Snapshot
from twgen.reporting.diagnosis import DIAGNOSIS
from twgen.reporting.draining import DRAIN_REPORT
from twgen.reporting.forgetting import FORGET_REPORT
from twgen.reporting.plan.document import PLAN
from twgen.reporting.problems import VALIDATION, Validation
from twgen.reporting.timeline.document import TIMELINE


class _Document(NamedTuple):
    """A kind of document: its class, and the shape that reads and writes it."""

    kind: type[Any]
    shape: Shape


DOCUMENTS = {
    "diagnosis": _Document(Diagnosis, DIAGNOSIS),
    "drainreport": _Document(DrainReport, DRAIN_REPORT),
    "forgetreport": _Document(ForgetReport, FORGET_REPORT),
    "ledger": _Document(Ledger, LEDGER),
    "operatorconfig": _Document(Operator, OPERATOR_CONFIG),
    "plan": _Document(Plan, PLAN),
    "snapshot": _Document(Snapshot, SNAPSHOT),
    "status": _Document(Status, STATUS),
    "timeline": _Document(Timeline, TIMELINE),
    "validation": _Document(Validation, VALIDATION),
}
"""The kinds of documents, by the names of their schemas."""


def schema_text(document: str) -> str:
    """The text of the file with a document's schema."""
    if document in SPECS:
        title, record = SPECS[document].title, spec_schema(SPECS[document])
    else:
        kind, shape = DOCUMENTS[document]
        title, record = summary(kind), described(shape.schema, kind)
        for name, description in HEAD.items():
            record["properties"][name] = {"description": description} | record["properties"][name]
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **record,
    }
    text = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
    return identified(text, f"{document}.json", home())


if __name__ == "__main__":
    for name in (*DOCUMENTS, *SPECS):
        (SCHEMAS / f"{name}.json").write_text(schema_text(name), encoding="utf-8")
