"""Check the settings of the Pods of rollouts in the OperatorConfig, as an API server would."""

from twgen.model.operator import Operator
from twgen.model.paths import join_path
from twgen.model.problem import Finding
from twgen.specs.templates import why_no_image
from twgen.specs.validation.walk import refusals
from twgen.versioning.names import CONTROLLER_API, INTENT_HASH, MANAGED_BY, ROLLOUT

_WHERE = "rollout"
_RESERVED = {CONTROLLER_API.partition("/")[0]}
_OURS = {"labels": {ROLLOUT, *MANAGED_BY}, "annotations": {INTENT_HASH}}


def refusals_of_pod(operator: Operator) -> list[Finding]:
    """The problems of the Pods of rollouts, with their paths in the OperatorConfig."""
    pod = operator.rollout
    metadata = {"labels": dict(pod.labels), "annotations": dict(pod.annotations)}
    image = operator.rollout.image or "twgen"
    spec = {
        "containers": [{"name": "rollout", "image": image, "resources": dict(pod.resources)}],
        "nodeSelector": dict(pod.node_selector),
        "tolerations": list(pod.tolerations),
        "imagePullSecrets": list(pod.image_pull_secrets),
    }
    wrong_image = [Finding(f"{_WHERE}.image", wrong)] if (wrong := why_no_image(image)) else []
    reserved = [
        name
        for name in metadata["labels"]
        if name.partition("/")[0] in _RESERVED and name not in _OURS["labels"]
    ]
    refused = [*refusals(metadata, "ObjectMeta", _WHERE), *refusals(spec, "PodSpec", _WHERE)]
    return [
        *wrong_image,
        *(Finding(item.path.replace("containers[0].", "", 1), item.message) for item in refused),
        *(
            Finding(join_path(f"{_WHERE}.labels", name), "is reserved for the pods of versions: remove it")
            for name in reserved
        ),
        *(
            Finding(join_path(f"{_WHERE}.{field}", name), "is set by twgen: remove it")
            for field, names in _OURS.items()
            for name in sorted(names & metadata[field].keys())
        ),
    ]
