"""A RolloutPolicy, which has the settings that the controller's kinds lack."""

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
"""Temporal's default limit for the versions of a Worker Deployment, `matching.maxVersionsInDeployment`."""

POLLERS_ARE_LISTED = timedelta(minutes=5)
"""How long Temporal remembers a poller by default, `matching.PollerHistoryTTL`."""


class ConnectionChanges(StrEnum):
    """Which live versions a changed connection reaches."""

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
    """The sources of an old version's manifest."""

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
    """The fate of protected versions when the Argo CD Application is deleted."""

    CONFIRM = "Confirm"
    ORPHAN = "Orphan"
    DELETE = "Delete"


_KEEPS_A_POD = ": a version that may have work needs a pod, and sunset removes the pods of the others"
Line = Annotated[str, LINE]
"""A name that need not follow the rules of Kubernetes: text on one line."""


@dataclass(frozen=True, slots=True)
class VersionPatch:
    """Changes to one deployed version of a worker."""

    build_id: Annotated[str, BUILD_ID, Example("v1.4.2-6964")]
    """The build ID of the version. Each version has at most one entry."""
    containers: tuple[Mapping[str, Any], ...] = ()
    """Changes to containers or init containers. All other changes need a new version."""
    replicas: Annotated[int | None, whole_number(1, 2**31 - 1, too_few=_KEEPS_A_POD)] = None
    """The number of pods of this version, 1 or more. Has no effect if the version has an autoscaler."""
    scaledown_delay: Annotated[
        timedelta | None,
        FieldName(
            "sunset.scaledownDelay", "The sunset delays of this version, instead of the delays in the spec."
        ),
    ] = None
    """How long this version keeps its pods after it is drained."""
    delete_delay: Annotated[timedelta | None, FieldName("sunset.deleteDelay")] = None
    """How long this version then keeps its Deployment with zero replicas."""


@dataclass(frozen=True, slots=True)
class NoPollers:
    """How long a ramping version may have no polling worker, and the reaction after that."""

    after: Annotated[
        timedelta,
        duration(
            timedelta(minutes=2), POLLERS_ARE_LISTED, ": Temporal lists a silent poller for only 5 minutes"
        ),
    ] = POLLERS_ARE_LISTED
    """The time without a polling worker after which twgen acts, from 2m to 5m.

    An idle worker polls about once a minute, and Temporal forgets a poller after five minutes."""
    action: WhenNoPollers = WhenNoPollers.ABORT
    """Abort: take the share back until `twgen retry` or a new build ID. Pause: keep the share until `twgen
    resume`. Wait: wait for the pods."""


@dataclass(frozen=True, slots=True)
class PolicyStep:
    """A policy's additional settings for one step, which its percentage identifies."""

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
    """The workflow type. The workflow gets no input."""
    metrics: Annotated[tuple[Annotated[str, WORDS], ...] | None, Each(is_set=True)] = None
    """The metrics of the analysis that apply during the step. If absent, all metrics apply."""
    until_promoted: Annotated[bool, FieldName("until"), word("Promoted")] = False
    """Promoted: after the pause of the step, the rollout waits for `twgen promote`."""


class Sample(NamedTuple):
    """The limits of the histories to replay."""

    of_each_type: Annotated[int, FieldName("sample"), whole_number(1, 10_000)] = 50
    """The number of histories of each workflow type. Open workflows come first."""
    most_bytes: Annotated[int, FieldName("maxBytes")] = 64 * 2**20
    """The limit of the total size of the histories."""


class ReplayBefore(StrEnum):
    """The events that must wait for a replay."""

    RAMP = "BeforeRamp"
    MOVE = "BeforeMove"
    BOTH = "Both"


@dataclass(frozen=True, slots=True)
class Replay:
    """How a version replays histories before it takes traffic, or workflows of older versions."""

    command: Annotated[
        tuple[Name, ...],
        Each(least=1),
        Hint("a program in the worker's image that replays histories"),
    ]
    """The command to run in the worker's image. The folder /histories contains the histories. The command
    must exit with 0 if it replayed all of them, and with 1 if a replay failed."""
    sample: Annotated[Sample, FieldRule.INLINE] = Sample()
    before: Annotated[ReplayBefore, FieldName("when")] = ReplayBefore.RAMP
    """The event that waits for the replay. BeforeRamp: the first share of traffic. BeforeMove: the action
    Move of `draining`. Both: both events."""
    within: Annotated[timedelta, duration(timedelta(seconds=10), timedelta(hours=24))] = timedelta(hours=1)
    """The time limit, from 10s to 24h. A replay that takes longer fails."""
    in_memory: bool = False
    """true: keep the histories in the Pod's memory instead of on the node's disk. They count towards the
    Pod's memory limit."""

    @property
    def upgrading_only(self) -> bool:
        """Whether only auto-upgrade workflows are replayed, since no pinned one will run on this version."""
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
    """The manager identity in Temporal, without its prefix twgen/. If absent in Argo CD: the operator's
    instance and the application. If absent at a terminal: the identity of the live Deployments, or your user
    and host if there are none."""
    adopt_from: Annotated[tuple[Line, ...], Each(is_set=True)] = ()
    """Other managers from which twgen may take over the worker, such as the controller. Give the full
    identity of each."""
    driver: Driver = Driver.AUTO
    """What runs the rollout. Job: a tracked Job. Hook: a hook, and Argo CD's sync waits for it. Tick: `twgen
    tick`, if the operator allows it. None: a person or CI. Auto: the operator's driver. If the operator chose
    none, Auto means Job, or Hook if another policy of the same Application says Hook."""
    hold_for: timedelta = timedelta(minutes=5)
    """How long a sync waits for the hook at most. If the rollout takes longer, the hook fails."""
    service_account_name: Annotated[str, NAME] = ""
    """The ServiceAccount of the rollout's Job. If you set it, create the ServiceAccount, Role and RoleBinding
    yourself: twgen renders none."""
    control_plane_secret: Annotated[
        str,
        FieldName(
            "controlPlaneSecretRef.name",
            "A Secret with the Job's credentials, if they differ from the workers'. It has the same keys as"
            " the Secret of the Connection.",
        ),
        NAME,
    ] = ""
    """The name of the Secret. If it is empty, the Job uses the workers' own credentials."""
    rollback_window: timedelta = timedelta(hours=1)
    """If the spec returns to a version that was current within this time, that version becomes current at
    once, without gate and steps."""
    connection_changes: ConnectionChanges = ConnectionChanges.TARGET
    """The versions that follow a changed Connection: the target, only new versions, or all versions. If the
    address or the Temporal namespace changes, running versions follow only with AllVersions."""
    environment: EnvironmentNames = EnvironmentNames.CURRENT
    """The names of the injected variables: Current, or an older set (HostPort: TEMPORAL_HOST_PORT,
    WORKER_BUILD_ID; BinaryChecksum: TEMPORAL_HOST_PORT, WORKER_BINARY_CHECKSUM). A change applies to new
    versions only."""
    credential_containers: Annotated[tuple[Annotated[str, NAME], ...] | None, Each(least=1, is_set=True)] = (
        None
    )
    """The containers that get the worker's credentials: TEMPORAL_API_KEY, or the client certificate. If
    absent, every container gets them, as with the controller. A change applies to new versions only."""
    owner_references: OwnerReferences = OwnerReferences.RENDER
    """Render: the Deployment of each version owns its attached objects. None: they have no owner."""
    history: Annotated[tuple[HistorySource, ...], Each(is_set=True)] = tuple(HistorySource)
    """The sources for the manifest of an old version. twgen uses the first source that has it."""
    missing_template: MissingTemplate = MissingTemplate.WARN
    """The reaction if a version needs pods and no source has its manifest. Warn: print a warning. Fail: end
    the run with an error."""
    on_delete: OnDelete = OnDelete.CONFIRM
    """How Argo CD treats versions that may have work, and their attached objects, when the Application is
    deleted. Confirm: it waits until a person confirms. Orphan: it keeps them. Delete: it deletes them."""
    max_versions: Annotated[int, whole_number(1, MOST_VERSIONS, too_many=", Temporal's own cap")] = 75
    """The highest number of deployed versions. A new version waits while this number is reached. Temporal's
    own limit is 100."""
    keep_records: Annotated[int | None, whole_number(1, MOST_VERSIONS)] = None
    """The number of drained versions to keep in Temporal. `twgen tick` deletes older versions if the operator
    allows it. If absent, it deletes none."""
    deployment_labels: Mapping[str, str] = field(default_factory=dict)
    """Additional labels for the Deployments of all versions. A change restarts no pod. Pods keep the labels
    of the pod template."""
    deployment_annotations: Mapping[str, str] = field(default_factory=dict)
    """Additional annotations for the Deployments of all versions. A change restarts no pod. If you remove an
    annotation, older versions keep it until they are removed."""
    # at least one pod: it polls every task queue of its version, whose workflows would stop without a pod
    draining_replicas: Annotated[int | None, POSITIVE] = None
    """The number of pods of each draining version, 1 or more. If absent, each version keeps its number of
    pods. Has no effect on versions with an autoscaler."""
    analysis: Analysis | None = None
    """The metrics that twgen measures while a version ramps."""
    ignore_missing_task_queues: Annotated[tuple[Line, ...], Each(is_set=True)] = ()
    """Task queues that a new version need not poll although the current version polls them: names or glob
    patterns. twgen also makes Temporal ignore them."""
    unserved: NoPollers = NoPollers()
    """The reaction if no worker polls for a ramping version. It does not apply to a version that KEDA scaled
    to zero."""
    steps: Annotated[tuple[PolicyStep, ...], Each(noun="step", most=MOST_STEPS)] = ()
    """Additional settings for steps of the spec."""
    draining: Annotated[tuple[DrainingEntry, ...], Each(noun="entry", most=10)] = ()
    """The actions on the open workflows of a draining version, sorted by `after`. Each action runs once.
    Cancel and Terminate run again for workflows that start later."""
    replay: Replay | None = None
    """Replays workflow histories on the target before it gets traffic, in a Job with the target's own
    image."""
    patches: tuple[VersionPatch, ...] = ()
    """Changes to single versions, such as another image. Each change is a rolling update. If you remove an
    entry, twgen undoes its change."""
    document: Annotated[Document, FieldRule.INTERNAL] = field(
        default=Document("", 0, None), compare=False, repr=False
    )
    """The document of the policy. Its value is None if there is no policy, only the defaults."""

    def analysis_at(self, percentage: float) -> Analysis | None:
        """The metrics that apply at the step with this percentage, or None if the policy has no metrics."""
        step = self.step(percentage)
        if not self.analysis or not step or step.metrics is None:
            return self.analysis
        asked = tuple(metric for metric in self.analysis.metrics if metric.name in step.metrics)
        return replace(self.analysis, metrics=asked)

    def step(self, percentage: float) -> PolicyStep | None:
        """The additional settings for the step with this percentage, or None if there are none."""
        return next((step for step in self.steps if step.percentage == percentage), None)
