"""What a pod template may not hold, since twgen puts it there."""

from typing import Any

import pytest

from tests.refused import documents
from tests.specs.parsing import CONNECTION, parsed, told, worker
from twgen.model.problem import Document
from twgen.specs.parse import parse_specs
from twgen.specs.spec_document import NamespaceRule

TLS = {"mutualTLSSecretRef": {"name": "certificate"}}


def problems(template: dict[str, Any], connection: dict[str, Any] | None = None) -> list[str]:
    connection_document, worker = documents({"spec": template})
    connection_document["spec"] |= connection or {}
    read = [Document("", index, value) for index, value in enumerate((connection_document, worker))]
    specs = parse_specs(read, NamespaceRule("shop"))
    found = (*specs.problems, *specs.unknown_fields)
    return [f"{problem.path}: {problem.message}" for problem in found]


def pod(mount: dict[str, Any] | None = None, volume: str = "certificates", **more: Any) -> dict[str, Any]:
    container = {"name": "worker", "image": "pay:v1", "volumeMounts": [mount] if mount else []}
    return {"containers": [container], "volumes": [{"name": volume, "emptyDir": {}}], **more}


def test_volume_by_hand_beside_the_one_for_mtls_is_refused() -> None:
    assert problems(pod(volume="temporal-tls"), TLS) == [
        "spec.template.spec.volumes[0].name: twgen adds temporal-tls: remove it"
    ]


@pytest.mark.parametrize(
    "mount",
    [
        {"name": "temporal-tls", "mountPath": "/tls"},
        {"name": "certificates", "mountPath": "/etc/temporal/tls"},
        {"name": "certificates", "mountPath": "/etc/temporal/tls/"},
    ],
)
def test_mount_by_hand_beside_the_one_for_mtls_is_refused(mount: dict[str, Any]) -> None:
    (problem, *_) = problems(pod(mount), TLS)
    place = "spec.template.spec.containers[0].volumeMounts[0]"
    assert problem == f"{place}: twgen mounts temporal-tls: remove it"


def test_volume_called_like_the_one_for_mtls_is_the_teams_own_without_it() -> None:
    assert problems(pod({"name": "temporal-tls", "mountPath": "/etc/temporal/tls"}, "temporal-tls")) == []


def test_init_container_may_mount_the_volume_that_is_injected() -> None:
    mount = {"name": "temporal-tls", "mountPath": "/etc/temporal/tls"}
    migrate = {"name": "migrate", "image": "pay:v1", "volumeMounts": [mount]}
    assert problems(pod(initContainers=[migrate]), TLS) == []
    (problem,) = problems(pod(initContainers=[migrate]))
    assert problem.endswith("there is no volume 'temporal-tls'")


def test_init_container_may_set_what_is_injected_into_containers() -> None:
    migrate = {"name": "migrate", "image": "pay:v1", "env": [{"name": "TEMPORAL_ADDRESS", "value": "a:1"}]}
    assert problems(pod(initContainers=[migrate])) == []
    migrate["name"] = "worker"
    (problem,) = problems({"containers": [migrate]})
    assert problem.endswith("twgen sets TEMPORAL_ADDRESS: remove it")


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("labels", "temporal.io/build-id"),
        ("labels", "temporal.io/deployment-name"),
        ("annotations", "temporal.io/pod-template-spec-hash"),
        ("annotations", "temporal.io/connection-spec-hash"),
    ],
)
def test_mark_that_twgen_sets_for_each_version_is_refused(field: str, name: str) -> None:
    template = {"metadata": {field: {name: "mine"}}, "spec": pod()}
    _, worker = documents({"spec": pod()})
    worker["spec"]["template"] = template
    read = [Document("", index, value) for index, value in enumerate((documents({"spec": pod()})[0], worker))]
    specs = parse_specs(read, NamespaceRule("shop"))
    expected = (f"spec.template.metadata.{field}['{name}']", "is set for each version: remove it")
    assert [(problem.path, problem.message) for problem in specs.problems] == [expected]


def warned(field: str = "containers", task_queue: str = "", **container: Any) -> list[str]:
    first = {"name": "worker", "image": "pay:v1"}
    spec = {"containers": [first], field: [{**first, "name": "c", **container}]}
    options = {"connectionRef": {"name": "temporal"}, "temporalNamespace": "default"}
    options |= {"taskQueue": task_queue} if task_queue else {}
    found = parsed(worker(template={"spec": spec}, workerOptions=options), CONNECTION)
    assert told((*found.problems, *found.unknown_fields)) == []
    return told(found.warnings)


def variables(**values: str) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


@pytest.mark.parametrize("field", ["command", "args", "env"])
def test_init_container_that_refers_to_what_only_containers_get_is_warned_of(field: str) -> None:
    text = "migrate --to=$(TEMPORAL_NAMESPACE)"
    written: list[Any] = variables(TO=text) if field == "env" else [text]
    place = f"spec.template.spec.initContainers[0].{field}[0]{'.value' if field == 'env' else ''}"
    why = "$(TEMPORAL_NAMESPACE) is not replaced: twgen does not set TEMPORAL_NAMESPACE in init containers"
    assert warned("initContainers", **{field: written}) == [
        f"{place}: {why}, so the program gets this text unchanged"
    ]
    own = variables(TEMPORAL_NAMESPACE="default")
    assert warned("initContainers", **{field: written} | {"env": [*own, *variables(TO=text)]}) == []


@pytest.mark.parametrize("text", ["$(", "$()", "$(TEMPORAL_ADDRESS", "TEMPORAL_ADDRESS", "$TEMPORAL_ADDRESS"])
def test_text_that_refers_to_no_variable_is_in_order(text: str) -> None:
    assert warned(env=variables(URL=text)) == []


@pytest.mark.parametrize(
    ("name", "value", "is_warned_of"),
    [
        ("helm.sh/chart", "payments-1.4.0", True),
        ("chart", "payments-1.4.0", True),
        ("chart", "payments", False),
        ("app.kubernetes.io/name", "payments-1.4.0", False),
    ],
)
def test_label_that_each_release_of_a_chart_changes_is_warned_of(
    name: str,
    value: str,
    is_warned_of: bool,  # noqa: FBT001 - what pytest is given
) -> None:
    pods = {"metadata": {"labels": {name: value}}, "spec": pod()}
    found = told(parsed(worker(template=pods), CONNECTION).warnings)
    assert any("changes with each chart release" in warning for warning in found) is is_warned_of


@pytest.mark.parametrize(
    "image",
    [
        *(f"pay:{tag}" for tag in ("PLACEHOLDER", "placeholder", "TAG", "IMAGE_TAG", "REPLACE_WITH_SHA")),
        *(f"pay:{tag}" for tag in ("changeme", "CHANGE-ME", "todo", "xxx", "replace_with_release", "sha")),
        *(f"pay:{tag}" for tag in ("__TAG__", "__image__", "undefined", "null", "None", "your-tag")),
        *(f"pay:{tag}" for tag in ("your-image-tag", "BUILD_NUMBER", "CI_COMMIT_SHORT_SHA", "GIT_COMMIT")),
        *(f"pay:{prefix}{'0' * 40}" for prefix in ("", "sha-")),
        f"pay@sha256:{'0' * 64}",
    ],
)
def test_tag_that_a_program_was_to_write_is_warned_of(image: str) -> None:
    pods = {"spec": {"containers": [{"name": "worker", "image": image}]}}
    [warning] = told(parsed(worker(template=pods), CONNECTION).warnings)
    assert warning.endswith("is a placeholder: the file was not rendered")


@pytest.mark.parametrize(
    "tag",
    [
        f"tag@sha256:{'1f' * 32}",
        *("v1", "change-4711", "release-1.2", "set-1", "sha-1f2e", "tagged", "version-2", "nonewline", "0"),
        *("null-safety", "yours", "0000000", f"{'0' * 39}1", "PROD_EU", "build_number_7", "RC_ID_3", "_1_"),
    ],
)
def test_tag_that_only_begins_like_a_placeholder_is_not(tag: str) -> None:
    pods = {"spec": {"containers": [{"name": "worker", "image": f"pay:{tag}"}]}}
    assert told(parsed(worker(template=pods), CONNECTION).warnings) == []


@pytest.mark.parametrize(
    ("path", "value", "right"),
    [
        ("spec.containers[0].securityContext.fsGroup", 1000, "spec.securityContext.fsGroup"),
        ("spec.containers[0].nodeSelector", {"a": "b"}, "spec.nodeSelector"),
        ("spec.containers[0].serviceAccountName", "pay", "spec.serviceAccountName"),
        ("spec.containers[0].runAsUser", 1000, "spec.containers[0].securityContext.runAsUser"),
        ("spec.envFrom", [], "spec.containers[0].envFrom"),
        ("spec.labels", {}, None),
        ("spec.securityContext.privileged", True, "spec.containers[0].securityContext.privileged"),
        ("containers", [], "spec.containers"),
        ("tolerations", [], "spec.tolerations"),
    ],
)
def test_field_on_another_level_of_the_pods_is_told_its_right_place(
    path: str, value: Any, right: str | None
) -> None:
    pods: dict[str, Any] = {"spec": pod()}
    *steps, last = path.replace("[0]", "").split(".")
    level: Any = pods
    for step in steps:
        level = level.setdefault(step, {})
        level = level[0] if isinstance(level, list) else level
    level[last] = value
    [problem] = parsed(worker(template=pods), CONNECTION).unknown_fields
    assert problem.path == f"spec.template.{path}"
    if right:
        assert problem.message == f"belongs elsewhere: write it as spec.template.{right}"
    else:
        assert "belongs elsewhere" not in problem.message
