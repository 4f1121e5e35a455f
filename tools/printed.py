"""The documents that twgen prints: an example of each, and the fields that most programs read."""

import json
import shutil
from datetime import timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from testing.forking import forker
from testing.processes import ENVIRONMENT
from tests.reporting.test_draining import held, report
from tests.strategies import NOW
from tools.home import ROOT, SCHEMAS
from tools.reasons import first_sentences
from twgen.model.diagnosis import Diagnosis, Installation
from twgen.model.forgetting import ForgetReport
from twgen.model.operator import Operator, RolloutPod
from twgen.model.plan import Plan
from twgen.model.world import World
from twgen.planning.diagnosis.findings import findings
from twgen.reporting.diagnosis import DIAGNOSIS
from twgen.reporting.draining import DRAIN_REPORT
from twgen.reporting.forgetting import FORGET_REPORT
from twgen.yaml.reader import read_documents

EXAMPLE = ROOT / "examples" / "three-versions"
_MOVING = ("--snapshot", "snapshot.yaml", "--now", "2026-11-21T05:35:00Z")
_WIDTH = 96
"""The longest line of an example. Longer values are wrapped."""


class Printed(NamedTuple):
    """A section of the page."""

    title: str
    command: str
    about: str
    schema: str
    shown: str
    """The fields of the example, selected as in GraphQL. For a list with fields, its first item is shown."""
    fields: str
    """The fields that most programs read."""
    task: str
    jq: str
    """The command for the task."""


DOCUMENTS = (
    Printed(
        "Plan",
        "twgen plan . -o json",
        "The next change to the traffic and to each version.",
        "plan",
        "kind workers { worker targetBuildID phase routing { action buildID percentage reason because }"
        " versions { buildID status action reason because } warnings }",
        "workers[].phase workers[].routing.action workers[].routing.reason workers[].routing.dueAt"
        " workers[].versions[].action workers[].warnings",
        "To list the versions whose Deployments will be scaled down or removed",
        "twgen plan . -o json | jq -r '.workers[].versions[]"
        ' | select(.action == "ScaleDown" or .action == "Drop") | .buildID\'',
    ),
    Printed(
        "Status",
        "twgen status . -o json",
        "The state of each worker and its versions. `twgen rollout . -o json` prints it after each change.",
        "status",
        "kind workers { worker targetBuildID phase reason next versions { buildID status percentage"
        " openWorkflows pods } }",
        "workers[].phase workers[].reason workers[].because workers[].waitsUntil"
        " workers[].versions[].status workers[].versions[].percentage workers[].versions[].openWorkflows"
        " workers[].unserved",
        "To list the draining versions",
        "twgen status . -o json | jq -r '.workers[].versions[] | select(.status == \"Draining\") | .buildID'",
    ),
    Printed(
        "Timeline",
        "twgen simulate . -o json",
        "A simulated rollout. All times are in seconds after the beginning of the rollout.",
        "timeline",
        "kind workers { worker outcome ends events { at event buildID says } }",
        "workers[].outcome workers[].ends workers[].mostReplicas workers[].events[].says"
        " workers[].events[].percentage",
        "To see how many hours a rollout takes",
        "twgen simulate . -o json | jq '.workers[] | {worker, hours: (.ends / 3600)}'",
    ),
    Printed(
        "Validation",
        "twgen validate . -o json",
        "The problems in all files.",
        "validation",
        "kind problems warnings",
        "problems[].file problems[].line problems[].path problems[].message deprecations",
        "To print the problems in a format that editors and CI understand",
        "twgen validate . -o json | jq -r '.problems[] | \"\\(.file):\\(.line): \\(.message)\"'",
    ),
    Printed(
        "DrainReport",
        "twgen drain . -o json",
        "The workflows that keep old versions running.",
        "drainreport",
        "kind workers { worker versions { buildID status workflows groups failing replicas"
        " drainedWithinSeconds } }",
        "workers[].versions[].workflows workers[].versions[].groups workers[].versions[].oldestSeconds"
        " workers[].versions[].replicas workers[].versions[].drainedWithinSeconds unread",
        "To count the workflows that keep each version running",
        "twgen drain . -o json | jq -r '.workers[].versions[] | \"\\(.buildID) \\(.workflows)\"'",
    ),
    Printed(
        "ForgetReport",
        "twgen forget . -y -o json",
        "The records of old versions that `twgen forget` deleted in Temporal.",
        "forgetreport",
        "kind worker deleted refused",
        "deleted refused",
        "To print the records that Temporal did not delete",
        "twgen forget . -y -o json | jq -r '.refused[]'",
    ),
    Printed(
        "Diagnosis",
        "twgen doctor -o json",
        "The findings of `twgen doctor`.",
        "diagnosis",
        "kind findings",
        "findings[].severity findings[].about findings[].says findings[].remedy notChecked",
        "To print the fix of each problem",
        "twgen doctor -o json | jq -r '.findings[]"
        ' | select(.severity == "Problem") | "\\(.about): \\(.remedy)"\'',
    ),
    Printed(
        "Snapshot",
        "twgen snapshot . -o json",
        "The state of Temporal and Kubernetes, for the `--snapshot` option. Without `-o json`, it is YAML.",
        "snapshot",
        "kind takenAt workers { name temporal { serverVersion routing { current ramping { buildID"
        " percentage } } versions { buildID status createdAt } } }",
        "workers[].name workers[].temporal.routing.current workers[].temporal.routing.ramping"
        " workers[].temporal.versions[].status workers[].temporal.versions[].openWorkflows"
        " workers[].deployments",
        "To print the current version of each worker",
        "twgen snapshot . -o json | jq -r '.workers[] | \"\\(.name) \\(.temporal.routing.current.buildID)\"'",
    ),
    Printed(
        "Ledger",
        "cat twgen.lock/shop.payments.yaml",
        "The versions that `twgen lock` recorded. The file is a YAML list with one version on each line.",
        "ledger",
        "kind versions { worker buildID recordedAt deployment { metadata { name namespace } } }",
        "versions[].worker versions[].buildID versions[].recordedAt versions[].deployment",
        "To list the recorded versions",
        "sed -n 's/^- //p' twgen.lock/*.yaml | jq -r .buildID",
    ),
)


DOCUMENTS_PART = "documents"
"""The name of the generated part in the page."""


def documents_part() -> str:
    """The generated part of the page as Markdown."""
    made = json_documents()
    return "\n".join(["", *(_section(document, made[document.title]) for document in DOCUMENTS), ""])


@cache
def json_documents() -> dict[str, Any]:
    """A document of each kind, made by twgen."""
    recorded = read_documents((EXAMPLE / "snapshot.yaml").read_text())
    ledger = read_documents((EXAMPLE / "twgen.lock" / "shop.payments.yaml").read_text())
    # these documents need servers, so the files of the example cannot produce them
    diagnosed = findings(
        Installation(clock_ahead=timedelta(seconds=45)),
        Plan(NOW, ()),
        World(NOW, {}),
        Operator(rollout=RolloutPod(image="registry.example.com/tools/twgen:latest")),
    )
    return {
        "Plan": _printed("plan", *_MOVING),
        "Status": _printed("status", *_MOVING),
        "Timeline": _printed("simulate"),
        "Validation": _of_misspelt_specs(),
        "DrainReport": DRAIN_REPORT.write(report(held())),
        "ForgetReport": FORGET_REPORT.write(
            ForgetReport("shop/payments", ("v1", "v2"), ("v3: it has pollers",))
        ),
        "Diagnosis": DIAGNOSIS.write(Diagnosis(NOW, diagnosed, ())),
        "Snapshot": recorded[0],
        "Ledger": ledger[0],
    }


def _printed(command: str, *options: str, folder: Path = EXAMPLE) -> Any:
    arguments = [command, ".", *options, "-q", "-o", "json"]
    return json.loads(forker().run(arguments, folder, ENVIRONMENT).stdout)


def _of_misspelt_specs() -> Any:
    with TemporaryDirectory() as folder:
        specs = Path(shutil.copytree(EXAMPLE, Path(folder) / "specs"))
        worker = specs / "worker.yaml"
        worker.write_text(worker.read_text().replace("strategy: Progressive", "strategy: Progresive"))
        return _printed("validate", folder=specs)


def _section(document: Printed, made: Any) -> str:
    example = _compact(_excerpt(made, _selected(document.shown)), "")
    schema = json.loads((SCHEMAS / f"{document.schema}.json").read_text())
    rows = "".join(
        f"| `{path}` | {first_sentences(_description(schema, path))} |\n" for path in document.fields.split()
    )
    return (
        f"## {document.title}\n\n{document.about}\n\n```\n{document.command}\n```\n\n"
        f"```json\n{example}\n```\n\n"
        f"| field | meaning |\n| --- | --- |\n{rows}\n{document.task}:\n\n```\n{document.jq}\n```\n\n"
        f"The [{document.title} schema](../schemas/{document.schema}.json) describes all fields.\n"
    )


def _selected(fields: str) -> dict[str, Any]:
    """The tree of `kind workers { worker phase }`, with an ellipsis for each whole value."""
    selected: dict[str, Any] = {}
    above, name = [], ""
    for word in fields.split():
        if word == "{":
            above.append(selected)
            selected[name] = selected = {}
        elif word == "}":
            selected = above.pop()
        else:
            name, selected[word] = word, ...
    return selected


def _excerpt(value: Any, shown: Any) -> Any:
    """The fields to show. A list whose items are shortened is reduced to its first item."""
    if shown is ...:
        return value
    if isinstance(value, list):
        return [_excerpt(item, shown) for item in value[:1]]
    return {name: _excerpt(value[name], below) for name, below in shown.items() if name in value}


def _compact(value: Any, indent: str) -> str:
    """JSON in which each value is on one line if it fits."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent + line) <= _WIDTH or not isinstance(value, dict | list):
        return line
    below = f"{indent}  "
    if isinstance(value, list):
        items = [f"{below}{_compact(item, below)}" for item in value]
        return "[\n" + ",\n".join(items) + f"\n{indent}]"
    items = [f"{below}{json.dumps(name)}: {_compact(item, below)}" for name, item in value.items()]
    return "{\n" + ",\n".join(items) + f"\n{indent}}}"


def _description(schema: Any, path: str) -> str:
    for name in path.replace("[]", ".[]").split("."):
        schema = schema["items"] if name == "[]" else schema["properties"][name]
    return str(schema["description"])
