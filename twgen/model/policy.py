"""A RolloutPolicy, which contains the settings that the controller's kinds do not have."""

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

from twgen.model.analysis import Analysis
from twgen.model.draining import DrainingEntry
from twgen.model.forms import BUILD_ID, IDENTITY, LINE, MOST_STEPS, NAME, RAMP_PERCENTAGES, WORDS
from twgen.model.problem import Document
from twgen.model.record_shapes import Each, Example, FieldName, FieldRule, Hint, Name
from twgen.model.rollout import Driver
from twgen.model.shapes import POSITIVE, duration, number, whole_number, word
from twgen.model.values import dataclass

MOST_VERSIONS = 100
"""Temporal's default limit on the versions of a Worker Deployment, `matching.maxVersionsInDeployment`."""

POLLERS_ARE_LISTED = timedelta(minutes=5)
"""How long Temporal remembers a poller by default, `matching.PollerHistoryTTL`."""


class ConnectionChanges(StrEnum):
    """The live versions to which a changed connection is applied."""

    TARGET = "Target"
    NEW_VERSIONS_ONLY = "NewVersionsOnly"
    ALL_VERSIONS = "AllVersions"


class EnvironmentNames(StrEnum):
    """A set of names for the injected environment variables."""

    CURRENT = "Current"
    HOST_PORT = "HostPort"
    BINARY_CHECKSUM = "BinaryChecksum"


class OwnerReferences(StrEnum):
    """Whether the versioned Deployment owns its attached resources."""

    RENDER = "Render"
    NONE = "None"


class HistorySource(StrEnum):
    """The possible sources of an old version's manifest."""

    LEDGER = "Ledger"
    CLUSTER = "Cluster"
    GIT = "Git"


class MissingTemplate(StrEnum):
    """The reaction if a version needs pods, and no source has its manifest."""

    WARN = "Warn"
    FAIL = "Fail"


class WhenNoPollers(StrEnum):
    """The reaction to a ramping version without pollers."""

    ABORT = "Abort"
    PAUSE = "Pause"
    WAIT = "Wait"


class OnDelete(StrEnum):
    """How Argo CD treats protected versions when the Application is deleted."""

    CONFIRM = "Confirm"
    ORPHAN = "Orphan"
    DELETE = "Delete"


_KEEPS_A_POD = ": a version that may have work needs a pod, and sunset removes the pods of the others"
Line = Annotated[str, LINE]
"""A name that does not have to follow the Kubernetes rules: a single line of text."""


@dataclass(frozen=True, slots=True)
class VersionPatch:
    """Changes to one deployed version of a worker."""

    build_id: Annotated[str, BUILD_ID, Example("v1.4.2-6964")]
    """The build ID of the version. Each version has at most one entry."""
    containers: tuple[Mapping[str, Any], ...] = ()
    """Changes to containers or init containers. Any other change to the pod template needs a new version."""
    replicas: Annotated[int | None, whole_number(1, 2**31 - 1, too_few=_KEEPS_A_POD)] = None
    """The number of pods of this version, 1 or more. This field has no effect if an autoscaler exists."""
    scaledown_delay: Annotated[
        timedelta | None,
        FieldName(
            "sunset.scaledownDelay", "The sunset delays of this version, instead of the delays in the spec."
        ),
    ] = None
    """How long this version keeps its pods after it is drained."""
    delete_delay: Annotated[timedelta | None, FieldName("sunset.deleteDelay")] = None
    """How long this version keeps its Deployment after scaling to zero replicas."""


@dataclass(frozen=True, slots=True)
class NoPollers:
    """The time limit for a ramping version without a polling worker, and the reaction after this time."""

    after: Annotated[
        timedelta,
        duration(
            timedelta(minutes=2), POLLERS_ARE_LISTED, ": Temporal lists a silent poller for only 5 minutes"
        ),
    ] = POLLERS_ARE_LISTED
    """The time without a polling worker after which twgen acts, from 2m to 5m.

    An idle worker polls about once a minute, and Temporal forgets a poller after five minutes."""
    action: WhenNoPollers = WhenNoPollers.ABORT
    """`Abort` takes the target's share back until you run `twgen retry` or commit a new build. `Pause` keeps
    the share unchanged until you run `twgen resume`. `Wait` waits for the pods."""


@dataclass(frozen=True, slots=True)
class PolicyStep:
    """A policy's additional settings for one step. The percentage identifies the step."""

    percentage: Annotated[float, FieldName("rampPercentage"), number(*RAMP_PERCENTAGES)]
    """The percentage of the step in the worker's spec."""
    gate: Annotated[
        str,
        FieldName(
            "gate.workflowType", "A workflow that must complete on the target before this step begins."
        ),
        LINE,
        FieldRule.OF_HOLDER,
    ] = ""
    """The type of the gate workflow. The workflow gets no input."""
    metrics: Annotated[tuple[Annotated[str, WORDS], ...] | None, Each(is_set=True)] = None
    """The metrics of the analysis that apply during the step. If absent, all metrics apply."""
    until_promoted: Annotated[bool, FieldName("until"), word("Promoted")] = False
    """With `Promoted`, the rollout waits for `twgen promote` after the step's pause."""


class Sample(NamedTuple):
    """The limits on the histories to replay."""

    of_each_type: Annotated[int, FieldName("sample"), whole_number(1, 10_000)] = 50
    """The maximum number of histories of each workflow type. Open workflows are replayed first."""
    most_bytes: Annotated[int, FieldName("maxBytes")] = 64 * 2**20
    """The maximum total size of the histories."""


class ReplayBefore(StrEnum):
    """The events that must wait for a replay."""

    RAMP = "BeforeRamp"
    MOVE = "BeforeMove"
    BOTH = "Both"


@dataclass(frozen=True, slots=True)
class Replay:
    """How a version replays histories before it takes over traffic or workflows from older versions."""

    command: Annotated[
        tuple[Name, ...],
        Each(least=1),
        Hint("a program in the worker's image that replays histories"),
    ]
    """The command to run in the worker's image. The folder /histories contains the histories. The command
    must exit with 0 if it replayed all histories, and with 1 if a replay failed."""
    sample: Annotated[Sample, FieldRule.INLINE] = Sample()
    before: Annotated[ReplayBefore, FieldName("when")] = ReplayBefore.RAMP
    """What must wait for the replay. With `BeforeRamp`, the target's first share of traffic waits. With
    `BeforeMove`, the `Move` actions in `draining` wait. With `Both`, both wait."""
    within: Annotated[timedelta, duration(timedelta(seconds=10), timedelta(hours=24))] = timedelta(hours=1)
    """The time limit, from 10s to 24h. A replay that takes longer fails."""
    in_memory: bool = False
    """If true, the histories are kept in the Pod's memory instead of on the node's disk. The histories then
    count towards the Pod's memory limit."""

    @property
    def upgrading_only(self) -> bool:
        """Whether only auto-upgrade workflows are replayed, because pinned workflows stay on old versions."""
        return self.before is ReplayBefore.RAMP


@dataclass(frozen=True, slots=True)
class Policy:
    """A RolloutPolicy with every default filled in."""

    worker: Annotated[
        str,
        FieldName(
            "workerRef.name",
            "The worker. If absent, the policy applies to every worker of the namespace without a policy of"
            " its own.",
        ),
        NAME,
        FieldRule.OF_HOLDER,
    ] = ""
    """The name of the WorkerDeployment, in the same namespace."""
    identity: Annotated[str, IDENTITY, Example("prod-eu/payments")] = ""
    """The manager identity in Temporal, without the prefix twgen/. In Argo CD, the default consists of the
    operator's instance and the application. At a terminal, the default is the identity on the live
    Deployments, or your user and host if there are no live Deployments."""
    adopt_from: Annotated[tuple[Line, ...], Each(is_set=True)] = ()
    """Other managers from which twgen may take over the worker, such as the controller. Enter the full
    identity of each manager."""
    driver: Driver = Driver.AUTO
    """The driver of the rollout. `Job` uses a Job that Argo CD tracks. `Hook` uses a hook that Argo CD's sync
    waits for. `Tick` uses `twgen tick`, if the operator allows it. `None` leaves the rollout to a person or
    CI. `Auto` uses the operator's driver. If the operator chose no driver, `Auto` means `Job`, or `Hook` if
    another policy of the same Application requests `Hook`."""
    hold_for: timedelta = timedelta(minutes=5)
    """The maximum time that a sync waits for the hook. If the rollout takes longer, the hook fails."""
    service_account_name: Annotated[str, NAME] = ""
    """The ServiceAccount of the rollout's Job. If you set this field, create the ServiceAccount, Role and
    RoleBinding yourself, because twgen does not render them."""
    control_plane_secret: Annotated[
        str,
        FieldName(
            "controlPlaneSecretRef.name",
            "A Secret with the Job's credentials, if they differ from the workers'. It has the same keys as"
            " the Secret of the Connection.",
        ),
        NAME,
    ] = ""
    """The name of the Secret. If the name is empty, the Job uses the workers' own credentials."""
    rollback_window: timedelta = timedelta(hours=1)
    """If the spec returns to a version that was current within this time, the version becomes current
    immediately, without a gate or steps."""
    connection_changes: ConnectionChanges = ConnectionChanges.TARGET
    """The versions to which a changed Connection is applied: the target, only new versions, or all versions.
    A new address or Temporal namespace is applied to running versions only with `AllVersions`."""
    environment: EnvironmentNames = EnvironmentNames.CURRENT
    """The names of the injected variables: Current, or an older set (HostPort: TEMPORAL_HOST_PORT,
    WORKER_BUILD_ID; BinaryChecksum: TEMPORAL_HOST_PORT, WORKER_BINARY_CHECKSUM). A change of this setting
    applies to new versions only."""
    credential_containers: Annotated[tuple[Annotated[str, NAME], ...] | None, Each(least=1, is_set=True)] = (
        None
    )
    """The containers that get the worker's credentials: TEMPORAL_API_KEY, or the client certificate. If
    absent, every container gets the credentials, as with the controller. A change of this setting applies to
    new versions only."""
    owner_references: OwnerReferences = OwnerReferences.RENDER
    """With `Render`, each version's Deployment owns the version's attached objects. With `None`, attached
    objects have no owner."""
    history: Annotated[tuple[HistorySource, ...], Each(is_set=True)] = tuple(HistorySource)
    """The sources of an old version's manifest. twgen uses the first source that contains the manifest."""
    missing_template: MissingTemplate = MissingTemplate.WARN
    """The reaction if a version needs pods and no source contains the version's manifest. `Warn` prints a
    warning. `Fail` ends the run with an error."""
    on_delete: OnDelete = OnDelete.CONFIRM
    """How Argo CD treats versions that may have work, and their attached objects, when the Application is
    deleted. With `Confirm`, Argo CD waits until a person confirms the deletion. With `Orphan`, Argo CD keeps
    the objects. With `Delete`, Argo CD deletes the objects."""
    max_versions: Annotated[int, whole_number(1, MOST_VERSIONS, too_many=", Temporal's own cap")] = 75
    """The maximum number of deployed versions. When this number is reached, a new version must wait.
    Temporal's own limit is 100."""
    keep_records: Annotated[int | None, whole_number(1, MOST_VERSIONS)] = None
    """The number of drained versions to keep in Temporal. `twgen tick` deletes older versions if the operator
    allows it. If absent, tick deletes no versions."""
    deployment_labels: Mapping[str, str] = field(default_factory=dict)
    """Additional labels for the Deployments of all versions. A change does not restart pods. Pods do not
    get these labels."""
    deployment_annotations: Mapping[str, str] = field(default_factory=dict)
    """Additional annotations for the Deployments of all versions. A change does not restart pods. If you
    remove an annotation, older versions keep the annotation until they are removed."""
    # at least one pod, because without a pod that polls the version's task queues, its workflows would stop
    draining_replicas: Annotated[int | None, POSITIVE] = None
    """The number of pods of each draining version, 1 or more. If absent, each version keeps its number of
    pods. This field has no effect on versions with an autoscaler."""
    analysis: Analysis | None = None
    """The metrics that twgen measures while a version ramps."""
    ignore_missing_task_queues: Annotated[tuple[Line, ...], Each(is_set=True)] = ()
    """Task queues that a new version does not have to poll, although the current version polls them. The
    entries are names or glob patterns. twgen also makes Temporal ignore these task queues."""
    unserved: NoPollers = NoPollers()
    """The reaction if no worker polls for a ramping version. This setting does not apply to a version that
    KEDA has scaled to zero."""
    steps: Annotated[tuple[PolicyStep, ...], Each(noun="step", most=MOST_STEPS)] = ()
    """Additional settings for steps in the spec."""
    draining: Annotated[tuple[DrainingEntry, ...], Each(noun="entry", most=10)] = ()
    """The actions on the open workflows of a draining version, sorted by `after`. Each action runs once.
    `Cancel` and `Terminate` run again for workflows that start later."""
    replay: Replay | None = None
    """Replays workflow histories on the target before it gets traffic, in a Job with the target's own
    image."""
    patches: tuple[VersionPatch, ...] = ()
    """Changes to single versions, such as a different image. Each change causes a rolling update. If you
    remove an entry, twgen undoes the entry's change."""
    document: Annotated[Document, FieldRule.INTERNAL] = field(
        default=Document("", 0, None), compare=False, repr=False
    )
    """The policy's document. The document's value is None if there is no RolloutPolicy."""

    def analysis_at(self, percentage: float) -> Analysis | None:
        """The metrics that apply at the step with this percentage, or None if the policy has no metrics."""
        step = self.step(percentage)
        if not self.analysis or not step or step.metrics is None:
            return self.analysis
        asked = tuple(metric for metric in self.analysis.metrics if metric.name in step.metrics)
        return replace(self.analysis, metrics=asked)

    def step(self, percentage: float) -> PolicyStep | None:
        """The policy's settings for the step with this percentage, or None if the policy does not name it."""
        return next((step for step in self.steps if step.percentage == percentage), None)
