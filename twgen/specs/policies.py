"""Reading RolloutPolicies; the defaults of every field are here and nowhere else."""

from datetime import timedelta

from twgen.model import policy as words
from twgen.model.policy import MOST_VERSIONS, Policy
from twgen.specs.fields import Fields, Findings


def parse_policy(spec: Fields) -> Policy:
    """The Policy of a document's `spec`."""
    worker, control_plane = spec.mapping("workerRef"), spec.mapping("controlPlaneSecretRef")
    policy = Policy(
        worker=worker.text("name", required=spec.has("workerRef")),
        identity=spec.text("identity"),
        adopt_from=spec.texts("adoptFrom"),
        driver=spec.choice("driver", words.Driver, words.Driver.AUTO),
        hold_for=spec.duration("holdFor", timedelta(minutes=5)),
        service_account_name=spec.text("serviceAccountName"),
        control_plane_secret=control_plane.text("name"),
        rollback_window=spec.duration("rollbackWindow", timedelta(hours=1)),
        connection_changes=spec.choice(
            "connectionChanges", words.ConnectionChanges, words.ConnectionChanges.TARGET
        ),
        environment=spec.choice("environment", words.EnvironmentNames, words.EnvironmentNames.CURRENT),
        owner_references=spec.choice("ownerReferences", words.OwnerReferences, words.OwnerReferences.RENDER),
        history=spec.choices("history", words.HistorySource, tuple(words.HistorySource)),
        missing_template=spec.choice("missingTemplate", words.MissingTemplate, words.MissingTemplate.WARN),
        on_delete=spec.choice("onDelete", words.OnDelete, words.OnDelete.CONFIRM),
        max_versions=_max_versions(spec),
    )
    for fields in (worker, control_plane, spec):
        fields.close()
    return policy


def default_policy() -> Policy:
    """The policy of a worker that has none."""
    return parse_policy(Fields({}, "spec", Findings()))


def _max_versions(spec: Fields) -> int:
    most = spec.integer("maxVersions", 75, least=1) or 75
    if most > MOST_VERSIONS:
        spec.problem("maxVersions", f"{most} is above {MOST_VERSIONS}, Temporal's own cap")
    return most
