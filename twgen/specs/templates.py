"""The rules for a worker's pod template that go beyond its types."""

from twgen.model.spec import WorkerSpec
from twgen.specs.fields import Fields
from twgen.versioning.images import image_tag
from twgen.versioning.injection import Identity, injection

_MUTABLE_TAGS = {"latest", "main", "master", "dev", "edge", "nightly", "stable"}


def check_template(spec: Fields, worker: WorkerSpec) -> None:
    """Note what is wrong with, or doubtful about, the worker's pods."""
    template = worker.template.content
    if not template:
        return
    pod, path = template["spec"], spec.mapping("template").mapping("spec")
    if pod.get("restartPolicy", "Always") != "Always":
        path.warning("restartPolicy", "is not Always: the API server will refuse the Deployment")
    if not pod.get("containers"):
        path.warning("containers", "is empty: the API server will refuse the Deployment")
        return
    _check_environment(path, worker)
    image = pod["containers"][0].get("image", "")
    if not worker.has_custom_build_id and (doubt := _doubt_about(image)):
        path.warning("containers[0].image", doubt)


def _check_environment(pod: Fields, worker: WorkerSpec) -> None:
    who = Identity(worker.temporal_namespace, worker.worker_deployment, worker.build_id)
    injected = injection(worker.connection, who, worker.policy.environment).names
    for index, container in enumerate(worker.template.content["spec"]["containers"]):
        for place, variable in enumerate(container.get("env") or ()):
            if variable["name"] in injected:
                path = f"containers[{index}].env[{place}].name"
                pod.problem(path, f"{variable['name']} is injected: remove it")


def _doubt_about(image: str) -> str:
    tag = image_tag(image)
    if "@" in image or (tag and tag not in _MUTABLE_TAGS):
        return ""
    what = f"the tag {tag!r} can move" if tag else "there is no tag"
    return f"{what}: a changed image keeps its build ID, so nothing would be deployed"
