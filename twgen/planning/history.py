"""Where the manifest of a version comes from."""

from twgen.model.policy import HistorySource
from twgen.model.spec import WorkerSpec
from twgen.model.world import LiveDeployment, RecordedDeployment, World


def recorded_version(
    spec: WorkerSpec, build_id: str, world: World, live: LiveDeployment | None
) -> RecordedDeployment | None:
    """The manifest that is known of a version, from the first source of the policy that has it."""
    ledger = world.ledger.get((spec.worker_deployment, build_id))
    running = live.recorded if live else None
    # a ledger that was locked anew under the same build ID would restart the pods that run
    if ledger and running and _marks(ledger) != _marks(running):
        return running
    sources = {HistorySource.LEDGER: ledger, HistorySource.CLUSTER: running}
    # what runs says what a kept version is, even where the policy would not bring one back from it
    order = (*spec.policy.history, HistorySource.CLUSTER)
    return next((recorded for source in order if (recorded := sources.get(source))), None)


def build_id_taken(spec: WorkerSpec, recorded: RecordedDeployment | None) -> str:
    """Why the spec must not be recorded under its build ID; empty: it may be.

    A build ID of our own making has 10,000 hash values: two templates can share one.
    """
    if spec.has_custom_build_id or not recorded or recorded.template_hash in {"", spec.template.hash}:
        return ""
    return (
        f"{spec.worker_deployment}: {spec.build_id} is recorded with another pod template, and pods of that"
        " one may run: change the image tag, or set spec.workerOptions.unsafeCustomBuildID"
    )


def _marks(recorded: RecordedDeployment) -> tuple[str, ...]:
    return (
        recorded.template_hash,
        recorded.connection_hash,
        recorded.address,
        recorded.temporal_namespace,
        recorded.worker_deployment,
    )
