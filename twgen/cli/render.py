"""`twgen render` prints the manifests, and `twgen diff` compares them with the cluster."""

import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import click

from twgen.cli.inputs import (
    intent_warnings,
    load_specs,
    load_world,
    plan_warnings,
    planning_time,
    refuse_collisions,
    refuse_warnings,
    rollout_jobs,
    with_references,
)
from twgen.cli.option_table import OPTIONS
from twgen.cli.options import (
    CONNECTION,
    INPUT,
    NAMES,
    Grouped,
    given_options,
    options,
    output_option,
    paths_argument,
)
from twgen.cli.output import keep, write
from twgen.cli.settings import Settings, named_worker, settings_of, settings_outside_argocd
from twgen.cli.signals import hold_signals
from twgen.errors import InvalidInput, StateUnavailable
from twgen.model.paths import value_at
from twgen.model.plan import WorkerVersions
from twgen.planning.drivers import drivers_with_objects, warned_of_driver
from twgen.planning.plan import VersionsPlan, plan_versions, with_pod_warnings
from twgen.reading.charts import changing_pods
from twgen.reading.documents import located
from twgen.rendering.jobs import Manifest
from twgen.rendering.manifests import FORMATS, render_manifests
from twgen.reporting.problems import problem_lines
from twgen.specs.manifests import without_hooks_of_helm
from twgen.specs.namespaces import with_namespaces
from twgen.specs.parse import Specs


@click.command(cls=Grouped)
@paths_argument
@output_option("yaml", "json")
@options("snapshot", "now", "offline", *CONNECTION, *INPUT, *NAMES)
@options("no_hooks", "strict", "quiet")
def command(output: str, **params: Any) -> None:
    """Print the manifests of all versions that still have work.

    \b
    twgen render . | kubectl apply --server-side -f -
    twgen render . --offline | kubeconform -strict -ignore-missing-schemas -
    """
    settings = settings_of(params)
    if settings.environment.is_plugin:
        for name, objects in (("no_hooks", "rollouts"), ("offline", "older versions")):
            if params[name]:
                why = f"is only for interactive use: Argo CD would prune the omitted {objects}"
                raise InvalidInput(f"{OPTIONS[name].dashed} {why}")
    # refuse options that --offline would silently ignore
    if settings.offline:
        recorded_state = [f"--{name}" for name in ("snapshot", "now") if params[name]]
        if useless := [*recorded_state, *given_options(CONNECTION)]:
            raise InvalidInput(f"--offline reads no server and no snapshot: leave out {', '.join(useless)}")
    text = FORMATS[output](rendered(settings, with_rollouts=not params["no_hooks"]))
    if not sys.stdout.isatty():
        # kubectl applies even truncated output, so end only when the reader has read all or closed the pipe
        hold_signals()
    write(text)


def rendered(settings: Settings, *, with_rollouts: bool) -> list[Manifest]:
    """The manifests. Prints all warnings first, and raises the errors that make a render fail."""
    specs = load_specs(settings)
    caller = settings.rendering_caller
    plan, namespace = VersionsPlan((), ()), settings.namespace_rule.default
    jobs = rollout_jobs(settings, specs.workers) if with_rollouts else None
    # even without a worker, the Deployments of a removed worker may still exist in the namespace
    if specs.workers or namespace:
        world = load_world(settings, specs, for_routing=False)
        plan = plan_versions(specs.workers, world, planning_time(settings, world), caller)
        plan = plan._replace(workers=with_references(settings, specs, plan.workers))
        if jobs:
            warned = (warned_of_driver(worker, settings.operator) for worker in plan.workers)
            plan = plan._replace(workers=tuple(warned))
        warn_of_changing_pods(settings, specs, plan.workers)
        keep(world)
        drivers = drivers_with_objects(settings.operator) if jobs else ()
        refuse_collisions(settings, specs, plan.workers, drivers)
    if settings.environment.is_plugin:
        # Argo CD shows a plugin's stderr only if the plugin fails. Other warnings about the world are written
        # into the intents and must not stop a render: a leftover version must not block other versions, and
        # at the version limit, only further renders reduce the number of versions
        stopped = [item for item in plan.workers if item.not_deployed]
        refuse_warnings([f"{item.spec.worker_deployment}: {item.not_deployed}" for item in stopped])
    elif settings.strict:
        refuse_warnings(plan_warnings(map(with_pod_warnings, plan.workers), plan.warnings))
    if jobs:
        jobs = replace(jobs, warnings=intent_warnings(specs, plan.warnings))
    passthrough = specs.passthrough
    if not settings.environment.is_plugin:
        passthrough, doubts = without_hooks_of_helm(passthrough)
        if namespace := settings.namespace_rule.default:
            passthrough, unknown = with_namespaces(passthrough, namespace)
            doubts += unknown
        settings.warn(problem_lines(located(doubts, settings.sources)))
    manifests = render_manifests(plan.workers, passthrough, caller.of, jobs, settings.operator.links)
    keep(specs, plan, manifests)
    settings.warn(plan_warnings(plan.workers, plan.warnings))
    return manifests


def warn_of_changing_pods(settings: Settings, specs: Specs, workers: Iterable[WorkerVersions]) -> None:
    """Warn if a chart gives a new target different pods at each render.

    This renders the chart again, unless `load_specs` has already done so. A target that already
    exists needs no check, because its pods did not change between renders.
    """
    is_checked = settings.renders_again or named_worker(settings)
    targets = (
        item for worker in workers for item in worker.versions if item.build_id == worker.spec.build_id
    )
    if not is_checked and any(target.live is None for target in targets):
        doubts = changing_pods(settings.input, settings.paths, specs.workers)
        settings.warn(problem_lines(located(doubts, settings.sources)))


_SIGNALLED = 128


@click.command(cls=Grouped)
@paths_argument
@options("snapshot", "now", *CONNECTION, *INPUT, *NAMES)
@options("no_hooks", "field_manager", "strict", "quiet")
def diff(**params: Any) -> None:
    """Compare the rendered manifests with the cluster. Changes nothing.

    The command runs `kubectl diff --server-side`, which does not show objects that are no longer rendered.
    `twgen plan` lists these objects.

    \b
    twgen diff .
    twgen diff . --no-hooks

    Exits with kubectl's code: 0 if there is no difference, 1 if there is one, 2 or more after an error. If
    the render fails, kubectl does not run.
    """
    import subprocess

    from twgen.clients.programs import program_on_path

    settings = settings_outside_argocd(params)
    kubectl = program_on_path("kubectl")
    if not kubectl:
        raise StateUnavailable("kubectl is not on PATH: install it, because it compares the manifests")
    manifests = rendered(settings, with_rollouts=not params["no_hooks"])
    text = FORMATS["yaml"](manifests)
    # show a field that Argo CD or a controller has set as a difference, not as a conflict; a diff does not
    # change field ownership
    arguments = ["diff", "--server-side", "--force-conflicts", f"--field-manager={params['field_manager']}"]
    arguments += [f"--{name}={params[name]}" for name in ("kubeconfig", "context") if params[name]]
    # kubectl rejects objects whose namespace differs from --namespace
    if params["namespace"] and not all(value_at(item, "metadata", "namespace") for item in manifests):
        arguments.append(f"--namespace={params['namespace']}")
    try:
        ended = subprocess.run(  # noqa: S603 - by its full name
            [kubectl, *arguments, "--filename=-"], input=text, stderr=sys.stderr, check=False
        )
    except OSError as error:
        raise StateUnavailable(f"cannot run {kubectl}: {error.strerror}") from error
    code = ended.returncode
    raise click.exceptions.Exit(code if code >= 0 else _SIGNALLED - code)
