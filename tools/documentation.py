"""Regenerate the generated parts of the documentation (`make documentation`). Read the diff afterwards."""

import re
import shutil
import tempfile
from pathlib import Path

from tests.strategies import NOW
from tests.terminal import twgen_on_terminal, without_colours
from tools.fields import KINDS, field_lists
from tools.monitoring import dashboard_text, prometheus_rule_text
from tools.parts import with_part
from tools.pictures import EXAMPLE, ROOT, output
from tools.pictures import write as write_pictures
from tools.plugin import actions_values_text, chart_values_text, plugin_text
from tools.printed import DOCUMENTS_PART, documents_part
from tools.ramps import TITLE, ramps_text
from tools.reasons import reasons_page
from tools.reference import commands_page
from twgen.cli.doctor import WRITES
from twgen.model.diagnosis import (
    Account,
    ArgoApplication,
    ArgoInstallation,
    Diagnosis,
    Installation,
    Need,
    NotChecked,
    Right,
    Severity,
)
from twgen.model.operator import Operator
from twgen.model.plan import Plan
from twgen.model.world import World
from twgen.planning.diagnosis.findings import findings
from twgen.reporting.diagnosis import diagnosis_lines
from twgen.yaml.reader import read_documents

PLANS = {
    "… shop/payments  Waiting": ("plan", ".", "--snapshot", "before.yaml"),
    "→ shop/payments  Moving": (
        *("plan", ".", "--snapshot", "snapshot.yaml"),
        *("--now", "2026-11-21T05:35:00Z"),
    ),
}
"""The commands whose output the README shows, by the beginning of the output."""
SHORT = "  in short:"
"""The beginning of the last part of a simulation."""
ROLLBACKS = {"snapshot.yaml": "v2.0.1", "before.yaml": "v1.4.2"}
"""The image tags of the rollbacks in the example: during a ramp, and after the version became current."""


def main() -> None:
    """Run the commands and insert their output."""
    for beginning, command in PLANS.items():
        replace(ROOT / "README.md", beginning, on_terminal(*command))
    rendered = objects(output(EXAMPLE, "render", ".", "--snapshot", "before.yaml"))
    replace(ROOT / "docs" / "concepts.md", "Deployment ", rendered)
    page = ROOT / "docs" / "watch.md"
    moment = ("--now", "2026-11-21T05:28:00Z")
    shown = on_terminal("status", ".", "--snapshot", "snapshot.yaml", *moment)
    replace(page, "… shop/payments  Waiting  Temporal", shown)
    page = ROOT / "docs" / "rollout.md"
    replace(page, "✓ shop/payments  Settled", on_terminal("simulate", "."))
    picture = output(EXAMPLE, "simulate", ".", "--snapshot", "snapshot.yaml", "-o", "svg")
    (ROOT / "docs" / "simulated-rollout.svg").write_text(picture)
    (ROOT / "docs" / "reasons.md").write_text(reasons_page())
    (ROOT / "docs" / "commands.md").write_text(commands_page())
    replace_part(ROOT / "docs" / "json.md", DOCUMENTS_PART, documents_part())
    for schema, kind in KINDS.items():
        replace_part(ROOT / "docs" / kind.page, kind.name, field_lists(schema))
    replace(ROOT / "docs" / "troubleshooting.md", "✗ account", diagnosed())
    for shown in rollbacks():
        replace(ROOT / "docs" / "rollback.md", shown.partition(": ")[0], shown)
    page = ROOT / "docs" / "measured-ramps.md"
    replace(page, TITLE, ramps_text())
    replace(page, SHORT, foretold(page))
    (ROOT / "plugin.yaml").write_text(plugin_text())
    (ROOT / "deploy" / "values.yaml").write_text(chart_values_text())
    templating = ROOT / "deploy" / "templating"
    (templating / "values.yaml").write_text(chart_values_text(with_programs=True))
    (ROOT / "deploy" / "actions" / "values.yaml").write_text(actions_values_text())
    operator = ROOT / "deploy" / "tick" / "prometheus-operator"
    (operator / "prometheusrule.yaml").write_text(prometheus_rule_text())
    (ROOT / "deploy" / "grafana-dashboard.json").write_text(dashboard_text())
    write_pictures()


def foretold(page: Path) -> str:
    """The result of simulating the example with the policy on this page."""
    blocks = re.findall(r"^```yaml\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    policy = next(text for text in blocks if "\n  analysis:\n" in text)
    with tempfile.TemporaryDirectory() as folder:
        specs = shutil.copytree(EXAMPLE, Path(folder) / "specs")
        (specs / "policy.yaml").write_text(policy)
        shown = on_terminal("simulate", ".", "--starts-per-hour", "100", "--failing", "0.2", folder=specs)
    return shown[shown.index(SHORT) :]


def diagnosed() -> str:
    """The output of `twgen doctor`: a problem, a suggestion, and a check that could not run."""
    account = Account("system:serviceaccount:shop:payments", "the Jobs of shop/payments")
    application = ArgoApplication(
        "argocd/payments", "twgen", is_automated=True, prunes=True, heals=False, renders_by_path=False
    )
    installation = Installation(
        refusals=(Need(account, "shop", Right("list", "", "pods"), "its Jobs fail", Severity.PROBLEM),),
        argocd=ArgoInstallation("", None, applications=(application,)),
    )
    found = findings(installation, Plan(NOW, ()), World(NOW, {}), Operator())
    shown = tuple(each for each in found if each.about.endswith("/payments"))
    not_checked = (NotChecked("rights to write in Temporal", WRITES),)
    return "\n".join([*diagnosis_lines(Diagnosis(NOW, shown, not_checked), "3 workers"), ""])


def rollbacks() -> list[str]:
    """The plan of each rollback of the example."""
    plans = []
    for snapshot, tag in ROLLBACKS.items():
        with tempfile.TemporaryDirectory() as folder:
            specs = shutil.copytree(EXAMPLE, Path(folder) / "specs")
            worker = specs / "worker.yaml"
            worker.write_text(worker.read_text().replace(":v3.0.0", f":{tag}"))
            plans.append(on_terminal("plan", ".", "--snapshot", snapshot, folder=specs))
    return plans


def on_terminal(*command: str, folder: Path = EXAMPLE) -> str:
    """The text that twgen shows on a terminal as wide as a page (80 columns), without colours."""
    code, shown = twgen_on_terminal([*command, "--color", "never"], folder, 80)
    if code:
        raise RuntimeError(code, shown)
    return without_colours(shown).replace("\r", "")


def objects(manifests: str) -> str:
    """A line with the kind and name of each object."""
    found = [(item["kind"], item["metadata"]["name"]) for item in read_documents(manifests)]
    width = max(len(kind) for kind, _ in found)
    return "".join(f"{kind:{width}}  {name}\n" for kind, name in found)


def replace_part(page: Path, name: str, text: str) -> None:
    """Replace the generated part with this name."""
    page.write_text(with_part(page.read_text(), name, text))


def replace(page: Path, beginning: str, text: str) -> None:
    """Replace the text block that has this beginning."""
    block = re.compile(rf"^```text\n{re.escape(beginning)}.*?^```$", re.MULTILINE | re.DOTALL)
    page.write_text(block.sub(lambda _: f"```text\n{text}```", page.read_text()))


if __name__ == "__main__":
    main()
