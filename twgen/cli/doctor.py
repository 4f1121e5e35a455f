"""`twgen doctor`."""

from dataclasses import replace
from itertools import starmap
from typing import Any

import click

from twgen.cli.examination import Examination, Examined
from twgen.cli.inputs import load_specs
from twgen.cli.live import Connections, Servers
from twgen.cli.options import INPUT, READING, Grouped, options, output_option, paths_argument
from twgen.cli.output import wants_colour, wants_tree, width, write
from twgen.cli.settings import settings_of
from twgen.errors import InvalidInput, NegativeAnswer, StateUnavailable
from twgen.model.diagnosis import Diagnosis, NotChecked, Severity
from twgen.model.problem import counted
from twgen.planning.diagnosis.findings import findings
from twgen.reporting.diagnosis import DIAGNOSIS, diagnosis_lines, diagnosis_text
from twgen.reporting.json_text import json_text


@click.command(cls=Grouped)
@paths_argument
@output_option("text", "json")
@options("argocd_namespace", *READING, *INPUT, "identity", "namespace", "operator_config", "quiet", "color")
def command(output: str, argocd_namespace: str, color: str, **params: Any) -> None:
    """Find problems before they happen: rights, clocks, Argo CD's settings, Temporal, workers, rollouts.

    With PATHs, it checks the workers of these specs. Without PATHs, it checks the workers that have a
    rollout in the cluster. Changes nothing. Exits with 1 if there is a problem; advice is not a problem.

    \b
    twgen doctor
    twgen doctor workers/ --operator-config operator.yaml
    """
    settings = settings_of(params)
    if settings.surroundings.is_plugin:
        raise InvalidInput("the Argo CD plugin can only render: run `twgen doctor` elsewhere")
    specs = load_specs(replace(settings, quiet=True), needs_worker=True) if params["paths"] else None

    async def story(opened: Connections) -> Examined:
        return await Examination(opened, argocd_namespace).of(specs)

    with Servers(settings) as servers:
        examined = servers.run(specs.workers if specs else (), story)
    diagnosis = Diagnosis(
        examined.plan.now,
        findings(examined.installation, examined.plan, examined.world, examined.operator),
        tuple(starmap(NotChecked, examined.installation.not_checked.items())),
    )
    checked = counted(examined.workers, "worker")
    if output == "json":
        write(json_text(DIAGNOSIS.write(diagnosis)))
    elif wants_tree(color):
        write(diagnosis_text(diagnosis, checked, colour=wants_colour(color), width=width()))
    else:
        write("".join(f"{line}\n" for line in diagnosis_lines(diagnosis, checked)))
    installed = examined.installation.argocd or examined.installation.tick
    if not examined.workers and not diagnosis.findings and diagnosis.not_checked and not installed:
        raise StateUnavailable("nothing was checked: give PATHs, or access to a cluster")
    problems = sum(finding.severity is Severity.PROBLEM for finding in diagnosis.findings)
    if problems:
        raise NegativeAnswer(f"{counted(problems, 'problem')} found")
