"""One document of each kind, with every field that can be mistyped."""

from dataclasses import replace
from pathlib import Path

from tests.records.ledgers import entry, ledger, spec
from twgen.yaml.reader import read_documents

NOW = "2026-11-21T12:00:00Z"
_FILE = Path(__file__).with_name("documents.yaml")
CONNECTION, WORKER, WORKER_OF_TODAY, ATTACHED, POLICY, SNAPSHOT, OPERATOR, STATUS = read_documents(
    _FILE.read_text()
)
_STRATEGY = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "5%"}}
_PACE = {"minReadySeconds": 5, "progressDeadlineSeconds": 600, "revisionHistoryLimit": 3}
LEDGER = ledger(entry(replace(spec(), pace=_PACE | {"strategy": _STRATEGY})))
