from datetime import timedelta

from twgen.model.policy import (
    ConnectionChanges,
    Driver,
    EnvironmentNames,
    HistorySource,
    MissingTemplate,
    NoPollers,
    OnDelete,
    OwnerReferences,
    Policy,
    WhenNoPollers,
)
from twgen.model.spec import Connection, Gate, PodTemplate, Rollout, Strategy, Sunset, WorkerSpec

POLICY = Policy(
    worker="",
    identity="",
    adopt_from=(),
    driver=Driver.AUTO,
    hold_for=timedelta(minutes=5),
    service_account_name="",
    control_plane_secret="",
    rollback_window=timedelta(hours=1),
    connection_changes=ConnectionChanges.TARGET,
    environment=EnvironmentNames.CURRENT,
    owner_references=OwnerReferences.RENDER,
    history=(HistorySource.LEDGER,),
    missing_template=MissingTemplate.WARN,
    on_delete=OnDelete.CONFIRM,
    max_versions=75,
    unserved=NoPollers(timedelta(minutes=5), WhenNoPollers.ABORT),
)


def worker_spec(
    name: str,
    build_id: str,
    connection: Connection,
    *,
    temporal_namespace: str = "default",
    gate: Gate | None = None,
) -> WorkerSpec:
    return WorkerSpec(
        namespace="default",
        name=name,
        temporal_namespace=temporal_namespace,
        connection=connection,
        replicas=1,
        pace={"progressDeadlineSeconds": 600},
        rollout=Rollout(Strategy.ALL_AT_ONCE, gate=gate),
        sunset=Sunset(timedelta(hours=1), timedelta(hours=24)),
        template=PodTemplate({}, ""),
        build_id=build_id,
        has_custom_build_id=True,
        policy=POLICY,
    )
