"""A plan as Markdown, for a comment on a pull request."""

from collections.abc import Iterator

from twgen.model.plan import Plan, WorkerPlan
from twgen.reporting.words import change_words, replicas_words

_ESCAPED = str.maketrans({character: f"\\{character}" for character in "\\`*_|<>[]"})


def plan_markdown(plan: Plan) -> str:
    """The plan, a section a worker: what happens next and why, then a table of its versions."""
    sections = ["\n".join(_worker(worker)) for worker in plan.workers]
    sections += [f"> **Warning:** {_text(warning)}" for warning in plan.warnings]
    return "\n\n".join(sections) + "\n"


def _worker(worker: WorkerPlan) -> Iterator[str]:
    spec, routing = worker.versions.spec, worker.routing
    yield f"### {_text(spec.worker_deployment)}: {routing.phase}"
    yield ""
    yield f"Target `{spec.build_id}`. **Next:** {_text(change_words(routing))}: {_text(routing.because)}."
    for gate in worker.gates:
        yield ""
        yield f"Gate: starts {_text(gate.workflow_type)} on task queue {_text(gate.task_queue)}."
    yield ""
    yield "| version | status | action | replicas | because |"
    yield "| --- | --- | --- | ---: | --- |"
    for version in worker.versions.versions:
        cells = (f"`{version.build_id}`", version.status, version.action, replicas_words(version))
        yield f"| {' | '.join(cells)} | {_text(version.because)} |"
    for warning in worker.versions.warnings:
        yield ""
        yield f"> **Warning:** {_text(warning)}"


def _text(text: str) -> str:
    return text.translate(_ESCAPED)
