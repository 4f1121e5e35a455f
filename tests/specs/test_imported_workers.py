"""What comes along with a worker that runs: its address, its credentials, what scales it, and its canary."""

from typing import Any

import pytest

from tests.specs.test_imports import CONTAINER, deployment, documents, parsed
from twgen.model.spec import Strategy
from twgen.specs.imported_workers import Imported
from twgen.specs.imports import imported

NAMESPACE = {"name": "TEMPORAL_NAMESPACE", "value": "pay"}
ADDRESS = "temporal-frontend.temporal:7233"


def of_kind(found: list[Imported], kind: str) -> Imported:
    [one] = [spec for spec in found if spec.document["kind"] == kind]
    return one


def manifest(api_version: str, kind: str, spec: dict[str, Any], name: str = "payments") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def config_map(**data: str) -> dict[str, Any]:
    metadata = {"name": "settings", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def with_env(*variables: dict[str, Any], **more: Any) -> dict[str, Any]:
    return deployment(env=[NAMESPACE, *variables], **more)


@pytest.mark.parametrize(
    ("variables", "origin"),
    [
        ({"TEMPORAL_HOST": ADDRESS}, "TEMPORAL_HOST"),
        ({"WMS_TEMPORAL_HOST_URL": f"dns:///{ADDRESS}"}, "WMS_TEMPORAL_HOST_URL"),
        ({"TEMPORAL_HOST": "temporal-frontend.temporal", "TEMPORAL_PORT": "7233"}, "TEMPORAL_HOST"),
        ({"TEMPORAL_SERVER_URL": f"http://{ADDRESS}"}, "TEMPORAL_SERVER_URL"),
        ({"TEMPORAL_UI_URL": "http://temporal-ui:8080", "TEMPORAL_ENDPOINT": ADDRESS}, "TEMPORAL_ENDPOINT"),
    ],
)
def test_address_comes_from_a_variable_of_another_name_which_is_named(
    variables: dict[str, str], origin: str
) -> None:
    env = [{"name": name, "value": value} for name, value in variables.items()]
    found, _ = imported(documents(with_env(*env)), "")
    connection = of_kind(found, "Connection")
    assert connection.document["spec"] == {"hostPort": ADDRESS}
    told = f"from {origin}, which stays in the pods: change both together"
    assert connection.comments["spec", "hostPort"].startswith(told)
    assert connection.missing == ()
    kept = of_kind(found, "WorkerDeployment").document["spec"]["template"]["spec"]["containers"][0]["env"]
    assert [item["name"] for item in kept] == list(variables)
    assert parsed(found).problems == ()


def test_address_can_have_an_ip_of_version_6() -> None:
    address = "[2001:db8::1]:7233"
    found, _ = imported(documents(with_env({"name": "TEMPORAL_GRPC_ENDPOINT", "value": address})), "")
    assert of_kind(found, "Connection").document["spec"] == {"hostPort": address}
    assert parsed(found).problems == ()


@pytest.mark.parametrize(
    ("variables", "hint"),
    [
        (
            {"TEMPORAL_TARGET": "dns:///a:7233,b:7233"},
            "fill in: TEMPORAL_TARGET has 'dns:///a:7233,b:7233', which is not host:port",
        ),
        ({"TEMPORAL_HOST": "temporal"}, "fill in: TEMPORAL_HOST has 'temporal', without a port"),
        (
            {"TEMPORAL_HOST": "a:7233", "OLD_TEMPORAL_HOST": "b:7233"},
            "fill in: TEMPORAL_HOST has a:7233 and OLD_TEMPORAL_HOST has b:7233",
        ),
        ({"TEMPORAL_UI_URL": "http://temporal-ui:8080"}, "fill in: no variable of the pods contains it"),
        ({"TEMPORAL_DB_HOST": "postgres:5432"}, "fill in: no variable of the pods contains it"),
        ({"DATABASE_HOST": "postgres:5432"}, "fill in: no variable of the pods contains it"),
    ],
)
def test_address_that_is_not_plain_is_left_to_a_person(variables: dict[str, str], hint: str) -> None:
    env = [{"name": name, "value": value} for name, value in variables.items()]
    found, _ = imported(documents(with_env(*env)), "")
    connection = of_kind(found, "Connection")
    assert connection.comments["spec", "hostPort"].startswith(hint)
    assert connection.missing == ("connection-temporal.yaml: fill in spec.hostPort",)
    [problem] = parsed(found).problems
    assert problem.message == "is not filled in yet: write the address of Temporal"


@pytest.mark.parametrize(
    "container",
    [
        {"envFrom": [{"configMapRef": {"name": "settings"}}]},
        {
            "env": [
                {
                    "name": name,
                    "valueFrom": {"configMapKeyRef": {"name": "settings", "key": name}},
                }
                for name in ("TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE")
            ]
        },
    ],
)
def test_config_map_beside_the_pods_tells_what_their_variables_say(container: dict[str, Any]) -> None:
    settings = config_map(TEMPORAL_ADDRESS=ADDRESS, TEMPORAL_NAMESPACE="pay")
    found, left = imported(documents(deployment(**{"env": [], **container}), settings), "")
    [worker] = parsed(found).workers
    assert (worker.connection.host_port, worker.temporal_namespace, left) == (ADDRESS, "pay", [])


def test_config_map_that_is_mounted_as_a_file_tells_the_address_too() -> None:
    settings = config_map(**{"temporal.host": ADDRESS, "temporal.namespace": "pay"})
    found, _ = imported(documents(deployment(env=[]), settings), "")
    [worker] = parsed(found).workers
    assert (worker.connection.host_port, worker.temporal_namespace) == (ADDRESS, "pay")
    comment = of_kind(found, "Connection").comments["spec", "hostPort"]
    assert comment.startswith("from temporal.host of ConfigMap settings, which stays")


def test_default_that_nobody_wrote_does_not_override_a_namespace_of_the_program() -> None:
    found, _ = imported(documents(deployment(env=[{"name": "TEMPORAL_ADDRESS", "value": ADDRESS}])), "")
    worker = of_kind(found, "WorkerDeployment")
    assert worker.missing == ("payments.yaml: fill in spec.workerOptions.temporalNamespace",)
    [problem] = parsed(found).problems
    assert problem.path == "spec.workerOptions.temporalNamespace"
    assert problem.message.startswith("is not filled in yet")


def mounting(secret: str, folder: str = "/certs", volume: str = "certs") -> dict[str, Any]:
    value = deployment(
        env=[
            *CONTAINER["env"],
            {"name": "TEMPORAL_TLS_CLIENT_CERT_PATH", "value": f"{folder}/tls.crt"},
            {"name": "TEMPORAL_TLS_CLIENT_KEY_PATH", "value": f"{folder}/tls.key"},
        ],
        volumeMounts=[{"name": volume, "mountPath": folder}],
    )
    value["spec"]["template"]["spec"]["volumes"] = [{"name": volume, "secret": {"secretName": secret}}]
    return value


@pytest.mark.parametrize(
    ("folder", "volume"),
    [("/certs", "certs"), ("/etc/temporal/tls", "certs"), ("/certs", "temporal-tls")],
)
def test_secret_of_a_client_certificate_becomes_that_of_the_connection(folder: str, volume: str) -> None:
    found, _ = imported(documents(mounting("pay-tls", folder, volume)), "")
    assert of_kind(found, "Connection").document["spec"]["mutualTLSSecretRef"] == {"name": "pay-tls"}
    worker = of_kind(found, "WorkerDeployment")
    assert worker.missing == ()
    [container] = worker.document["spec"]["template"]["spec"]["containers"]
    assert [item["name"] for item in container["env"]] == ["LOG"]
    assert parsed(found).problems == ()


def test_credentials_that_the_connection_does_not_have_stay_in_the_pods_and_are_told() -> None:
    value = mounting("pay-tls")
    value["spec"]["template"]["spec"]["volumes"][0]["secret"]["items"] = [{"key": "a", "path": "tls.crt"}]
    found, _ = imported(documents(value), "")
    assert "mutualTLSSecretRef" not in of_kind(found, "Connection").document["spec"]
    worker = of_kind(found, "WorkerDeployment")
    [container] = worker.document["spec"]["template"]["spec"]["containers"]
    names = [item["name"] for item in container["env"]]
    assert names == ["LOG", "TEMPORAL_TLS_CLIENT_CERT_PATH", "TEMPORAL_TLS_CLIENT_KEY_PATH"]
    assert len(worker.missing) == 2
    assert all("stays in the pods, but the Connection does not have it" in note for note in worker.missing)


def test_api_key_is_of_the_container_with_the_address() -> None:
    def key(secret: str) -> dict[str, Any]:
        return {"name": "TEMPORAL_API_KEY", "valueFrom": {"secretKeyRef": {"name": secret, "key": "key"}}}

    def with_sidecar(*variables: dict[str, Any]) -> tuple[Any, list[str]]:
        value = deployment(env=[*CONTAINER["env"], *variables])
        sidecar = {"name": "proxy", "image": "proxy:1", "env": [key("other")]}
        value["spec"]["template"]["spec"]["containers"].append(sidecar)
        found, _ = imported(documents(value), "")
        worker = of_kind(found, "WorkerDeployment")
        return of_kind(found, "Connection").document["spec"], [*worker.missing]

    told = (
        "payments.yaml: TEMPORAL_API_KEY of container 'proxy' is left out: it is from another Secret, but all"
        " containers get the Connection's credentials"
    )
    address = {"hostPort": "temporal.example.com:7233"}
    assert with_sidecar() == (address, [told])
    own = {"apiKeySecretRef": {"name": "own", "key": "key"}}
    assert with_sidecar(key("own")) == (address | own, [told])
    assert with_sidecar(key("other"))[1] == []


def test_empty_api_key_is_no_news() -> None:
    found, _ = imported(
        documents(deployment(env=[*CONTAINER["env"], {"name": "TEMPORAL_API_KEY", "value": ""}])), ""
    )
    assert of_kind(found, "WorkerDeployment").missing == ()


def test_credential_of_a_config_map_is_told() -> None:
    value = deployment(envFrom=[{"configMapRef": {"name": "settings"}}])
    found, _ = imported(documents(value, config_map(TEMPORAL_API_KEY="secret")), "")
    [told] = of_kind(found, "WorkerDeployment").missing
    assert told.startswith(
        "payments.yaml: TEMPORAL_API_KEY stays in the pods, but the Connection does not have"
    )


def test_certificate_beside_an_api_key_is_told() -> None:
    value = mounting("pay-tls")
    reference = {"secretKeyRef": {"name": "keys", "key": "own"}}
    container = value["spec"]["template"]["spec"]["containers"][0]
    container["env"].append({"name": "TEMPORAL_API_KEY", "valueFrom": reference})
    found, _ = imported(documents(value), "")
    assert "apiKeySecretRef" in of_kind(found, "Connection").document["spec"]
    notes = of_kind(found, "WorkerDeployment").missing
    assert all("the Connection has only the API key" in note for note in notes)
    assert [note.partition(" stays ")[0].rpartition(" ")[2] for note in notes] == [
        "TEMPORAL_TLS_CLIENT_CERT_PATH",
        "TEMPORAL_TLS_CLIENT_KEY_PATH",
    ]


HPA = manifest(
    "autoscaling/v2",
    "HorizontalPodAutoscaler",
    {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "payments"},
        "minReplicas": 2,
        "maxReplicas": 9,
    },
)
BUDGET = manifest(
    "policy/v1",
    "PodDisruptionBudget",
    {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "payments"}}},
    "budget",
)
SCALED = manifest(
    "keda.sh/v1alpha1",
    "ScaledObject",
    {
        "scaleTargetRef": {"name": "payments"},
        "minReplicaCount": 1,
        "maxReplicaCount": 9,
        "triggers": [
            {
                "type": "temporal",
                "metadata": {
                    "endpoint": "temporal.example.com:7233",
                    "namespace": "pay",
                    "taskQueue": "payments",
                    "buildId": "1",
                },
            }
        ],
    },
)


@pytest.mark.parametrize("autoscaler", [HPA, SCALED], ids=["HPA", "ScaledObject"])
def test_what_scales_and_protects_the_pods_becomes_attached_templates(autoscaler: dict[str, Any]) -> None:
    found, left = imported(documents(deployment(), autoscaler, BUDGET), "")
    assert left == []
    assert [one.file for one in found[2:]] == ["template-payments.yaml", "template-budget.yaml"]
    specs = parsed(found)
    assert (specs.problems, specs.warnings, specs.unknown_fields) == ((), (), ())
    [worker] = specs.workers
    assert {item.kind for item in worker.attached} == {autoscaler["kind"], "PodDisruptionBudget"}
    assert worker.replicas is None, "the autoscaler sets them"


@pytest.mark.parametrize("autoscaler", [HPA, SCALED], ids=["hpa", "so"])
def test_objects_of_the_same_name_become_templates_of_several_names(
    autoscaler: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    budget = {**BUDGET, "metadata": HPA["metadata"]}
    short = request.node.callspec.id
    found, left = imported(documents(deployment(), autoscaler, budget), "")
    assert left == []
    names = ["payments-pdb", f"payments-{short}"]
    assert sorted(one.file for one in found[2:]) == sorted(f"template-{name}.yaml" for name in names)
    [worker] = parsed(found).workers
    assert sorted(item.name for item in worker.attached) == sorted(names)
    theirs = {"workerDeploymentRef": {"name": "other"}, "template": {}}
    taken = manifest("temporal.io/v1alpha1", "WorkerResourceTemplate", theirs, "budget")
    found, left = imported(documents(deployment(), autoscaler, BUDGET, taken), "")
    assert left == []
    assert {one.file for one in found[2:]} == {
        "template-payments.yaml",
        "template-budget-pdb.yaml",
        "template-budget.yaml",
    }


def test_budget_of_two_workers_becomes_a_template_for_each_and_its_labels_are_left_out() -> None:
    other = deployment()
    other["metadata"] = {**other["metadata"], "name": "mail"}
    budget = {**BUDGET, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"team": "pay"}}}}
    found, left = imported(documents(deployment(), other, budget), "")
    assert left == []
    specs = parsed(found)
    attached = [(worker.name, [item.name for item in worker.attached]) for worker in specs.workers]
    assert sorted(attached) == [
        ("mail", ["budget-mail"]),
        ("payments", ["budget-payments"]),
    ]
    for spec in found:
        if spec.document["kind"] == "WorkerDeployment":
            assert "metadata" not in spec.document["spec"]["template"], "app and team are left out"
            assert spec.missing == ()


def test_budget_that_selects_the_new_pods_too_is_told() -> None:
    rule = {"key": "app", "operator": "NotIn", "values": ["web"]}
    budget = {**BUDGET, "spec": {"maxUnavailable": 1, "selector": {"matchExpressions": [rule]}}}
    found, _ = imported(documents(deployment(), budget), "")
    [told] = of_kind(found, "WorkerDeployment").missing
    assert told.startswith("PodDisruptionBudget budget also selects the new pods, which cannot be evicted")
    assert told.endswith(
        "add {key: temporal.io/deployment-name, operator: DoesNotExist} to its matchExpressions"
    )


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"spec": {"maxUnavailable": 1, "selector": {}}},
            "it selects all pods of the namespace, so the new pods",
        ),
        ({"apiVersion": "policy/v1beta1"}, "twgen does not know policy/v1beta1: use policy/v1"),
    ],
)
def test_budget_that_is_not_imported_says_why(changes: dict[str, Any], why: str) -> None:
    found, [told] = imported(documents(deployment(), {**BUDGET, **changes}), "")
    assert f"PodDisruptionBudget budget is not imported: {why}" in told
    assert of_kind(found, "WorkerDeployment").missing == ()


def test_autoscaler_of_another_deployment_is_left_and_told() -> None:
    other = {**HPA, "spec": {**HPA["spec"], "scaleTargetRef": {"kind": "Deployment", "name": "web"}}}
    found, left = imported(documents(deployment(), other), "")
    assert len(found) == 2
    assert "each version needs its own copy" in left[0]


def rollout(**spec: Any) -> dict[str, Any]:
    value = deployment()
    return manifest("argoproj.io/v1alpha1", "Rollout", {**value["spec"], **spec})


STEPS = [
    {"setWeight": 20},
    {"pause": {"duration": "20m"}},
    {"setWeight": 60},
    {"pause": {}},
    {"analysis": {"templates": []}},
    {"setWeight": 100},
]


def test_canary_of_an_argo_rollout_becomes_steps_and_its_open_pause_a_promotion() -> None:
    value = rollout(strategy={"canary": {"steps": STEPS}})
    found, left = imported(documents(value), "")
    assert left == []
    [worker] = parsed(found).workers
    assert worker.rollout.strategy is Strategy.PROGRESSIVE
    assert [(step.percentage, step.pause.total_seconds()) for step in worker.rollout.steps] == [
        (20, 1200),
        (60, 30),
    ]
    assert of_kind(found, "RolloutPolicy").document["spec"]["steps"] == [
        {"rampPercentage": 60, "until": "Promoted"}
    ]
    assert of_kind(found, "WorkerDeployment").missing == (
        "payments.yaml: step 5 of the Rollout (analysis) is left out: use a gate or an analysis instead",
    )


def wait(duration: Any) -> dict[str, Any]:
    return {"pause": {"duration": duration}}


@pytest.mark.parametrize(
    ("steps", "shown", "notes"),
    [
        (
            [{"setWeight": 50}, wait("1h"), {"setWeight": 100}, wait("30m")],
            [(50, "1h")],
            ["step 4 of the Rollout (pause at 100%) is left out: lengthen the pause of a step instead"],
        ),
        ([{"setWeight": 50}, wait("1h"), wait(7200)], [(50, "3h")], []),
        ([{"setWeight": 50}, wait("90"), {"setWeight": 50}, wait("1m")], [(50, "2m30s")], []),
        ([{"setWeight": 50}, wait("5s")], [(50, "30s")], []),
        (
            [{"setWeight": 50}, wait("1h"), {"setWeight": 100}, {"pause": {}}],
            [(50, "1h")],
            ["step 4 of the Rollout (pause at 100%) is left out: lengthen the pause of a step instead"],
        ),
        (
            [{"setWeight": 0}, {"pause": {}}],
            [],
            ["step 2 of the Rollout (pause at 0%) is left out: use a gate or strategy Manual instead"],
        ),
        (
            [{"setWeight": 50}, {"setWeight": 20}, wait("1h")],
            [(50, "30s")],
            [
                (
                    "step 2 of the Rollout (setWeight: 20) is left out: each percentage must be above the one"
                    " before"
                ),
                "step 3 of the Rollout (pause at 20%) is left out: lengthen the pause of a step instead",
            ],
        ),
        (
            [{"setWeight": 50}, wait("soon")],
            [(50, "30s")],
            [
                (
                    "step 2 of the Rollout (pause) is left out, because 'soon' is not a duration such as 90s"
                    " or 1h30m: set pauseDuration of the step"
                ),
            ],
        ),
    ],
)
def test_pauses_of_a_canary_stay_at_their_percentage_or_are_told(
    steps: list[Any], shown: list[tuple[int, str]], notes: list[str]
) -> None:
    found, _ = imported(documents(rollout(strategy={"canary": {"steps": steps}})), "")
    worker = of_kind(found, "WorkerDeployment")
    written = worker.document["spec"]["rollout"].get("steps", [])
    assert [(step["rampPercentage"], step["pauseDuration"]) for step in written] == shown
    assert list(worker.missing) == [f"payments.yaml: {note}" for note in notes]
    assert [one for one in found if one.document["kind"] == "RolloutPolicy"] == []
    assert parsed(found).problems == ()


@pytest.mark.parametrize(
    ("strategy", "becomes", "left_out"),
    [
        (
            {"blueGreen": {"autoPromotionEnabled": False, "prePromotionAnalysis": {"templates": []}}},
            "Manual",
            ["prePromotionAnalysis"],
        ),
        ({"blueGreen": {"autoPromotionSeconds": 30}}, "AllAtOnce", ["autoPromotionSeconds"]),
        ({"blueGreen": {"activeService": "a"}}, "AllAtOnce", []),
        ({"canary": {"analysis": {"templates": []}, "steps": STEPS[:2]}}, "Progressive", ["analysis"]),
    ],
)
def test_settings_of_a_rollout_that_are_left_out_are_told(
    strategy: dict[str, Any], becomes: str, left_out: list[str]
) -> None:
    worker = of_kind(imported(documents(rollout(strategy=strategy)), "")[0], "WorkerDeployment")
    assert worker.document["spec"]["rollout"]["strategy"] == becomes
    assert [note.partition(" of the Rollout")[0] for note in worker.missing] == [
        f"payments.yaml: {field}" for field in left_out
    ]


def test_rollout_that_refers_to_a_deployment_gives_it_its_steps() -> None:
    value = manifest(
        "argoproj.io/v1alpha1",
        "Rollout",
        {
            "replicas": 4,
            "workloadRef": {"kind": "Deployment", "name": "payments"},
            "strategy": {"canary": {"steps": STEPS[:2]}},
        },
    )
    found, left = imported(documents(value, deployment()), "")
    assert left == []
    [worker] = parsed(found).workers
    assert (worker.replicas, len(worker.rollout.steps)) == (4, 1)
    _, [told] = imported(documents(value), "")
    assert told.endswith("the Deployment that its workloadRef names is missing")


@pytest.mark.parametrize(
    "image",
    ["temporalio/ui:2.39.0", "docker.io/temporalio/auto-setup@sha256:1", "temporalio/admin-tools"],
)
def test_program_of_temporal_itself_is_no_worker(image: str) -> None:
    found, [told] = imported(documents(deployment(image=image)), "")
    assert found == []
    assert told.endswith(f"{image} is one of Temporal's own programs, not a worker")


def test_image_that_only_sounds_like_temporals_is_a_worker() -> None:
    assert len(imported(documents(deployment(image="shop/temporalio-ui:1")), "")[0]) == 2


def test_stateful_set_is_told_what_versions_cannot_have() -> None:
    value = {**deployment(), "kind": "StatefulSet"}
    _, [told] = imported(documents(value), "")
    assert "its own name and claims (volumeClaimTemplates)" in told


OF_APP = {"matchLabels": {"app": "payments"}}


def policy_from(peer: dict[str, Any]) -> dict[str, Any]:
    return manifest(
        "networking.k8s.io/v1", "NetworkPolicy", {"podSelector": {}, "ingress": [{"from": [peer]}]}
    )


def in_namespace(name: str) -> dict[str, Any]:
    return {"matchLabels": {"kubernetes.io/metadata.name": name}}


def cilium(spec: dict[str, Any], kind: str = "CiliumNetworkPolicy") -> dict[str, Any]:
    return manifest("cilium.io/v2", kind, spec)


def of_app_in(namespace: str) -> dict[str, Any]:
    return {"matchLabels": {"app": "payments", "k8s:io.kubernetes.pod.namespace": namespace}}


def monitor(namespaces: dict[str, Any]) -> dict[str, Any]:
    return manifest(
        "monitoring.coreos.com/v1", "PodMonitor", {"selector": OF_APP, "namespaceSelector": namespaces}
    )


@pytest.mark.parametrize(
    ("value", "is_told"),
    [
        (manifest("v1", "Service", {"selector": {"app": "payments"}}), True),
        (manifest("v1", "Service", {"selector": {"team": "pay"}}), False),
        (manifest("v1", "Service", {"selector": {"app": "web"}}), False),
        (manifest("v1", "Service", {}), False),
        (
            manifest(
                "networking.k8s.io/v1", "NetworkPolicy", {"podSelector": {"matchLabels": {"app": "payments"}}}
            ),
            True,
        ),
        (manifest("networking.k8s.io/v1", "NetworkPolicy", {"podSelector": {}}), False),
        (
            manifest(
                "monitoring.coreos.com/v1",
                "PodMonitor",
                {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}},
            ),
            True,
        ),
        (policy_from({"podSelector": OF_APP}), True),
        (policy_from({"podSelector": OF_APP, "namespaceSelector": {}}), True),
        (policy_from({"podSelector": OF_APP, "namespaceSelector": in_namespace("mail")}), False),
        (
            manifest(
                "networking.k8s.io/v1", "NetworkPolicy", {"egress": [{"to": [{"podSelector": OF_APP}]}]}
            ),
            True,
        ),
        (manifest("security.istio.io/v1", "AuthorizationPolicy", {"selector": OF_APP}), True),
        (manifest("monitoring.coreos.com/v1", "ServiceMonitor", {"selector": OF_APP}), False),
        *(
            (
                manifest(
                    "networking.istio.io/v1", kind, {"workloadSelector": {"labels": {"app": "payments"}}}
                ),
                True,
            )
            for kind in ("EnvoyFilter", "ServiceEntry", "Sidecar")
        ),
        (manifest("telemetry.istio.io/v1", "Telemetry", {"selector": OF_APP}), True),
        (cilium({"endpointSelector": {"matchLabels": {"k8s:app": "payments"}}}), True),
        (cilium({"endpointSelector": {}, "ingress": [{"fromEndpoints": [OF_APP]}]}), True),
        (cilium({"egress": [{"toEndpoints": [of_app_in("mail")]}]}), False),
        (cilium({"egress": [{"toEndpoints": [of_app_in("shop")]}]}), True),
        ({**cilium({}), "spec": None, "specs": [{"endpointSelector": OF_APP}]}, True),
    ],
)
def test_what_selects_the_old_pods_by_a_label_that_the_new_ones_lack_is_told(
    value: dict[str, Any],
    is_told: bool,  # noqa: FBT001 - what pytest is given
) -> None:
    found, _ = imported(documents(deployment(), value), "")
    missing = of_kind(found, "WorkerDeployment").missing
    why = "selects the pods by app, which the new pods do not have"
    told = f"{value['kind']} payments {why}: write temporal.io/deployment-name: payments there"
    assert missing == ((told,) if is_told else ())


@pytest.mark.parametrize(
    ("value", "is_told"),
    [
        (policy_from({"podSelector": OF_APP}), False),
        (policy_from({"podSelector": OF_APP, "namespaceSelector": in_namespace("shop")}), True),
        (policy_from({"podSelector": OF_APP, "namespaceSelector": {"matchLabels": {"team": "pay"}}}), True),
        (manifest("v1", "Service", {"selector": {"app": "payments"}}), False),
        (monitor({"matchNames": ["shop"]}), True),
        (monitor({"any": True}), True),
        (monitor({"matchNames": ["mail"]}), False),
        (monitor({}), False),
        (cilium({"endpointSelector": OF_APP}), False),
        (cilium({"ingress": [{"fromEndpoints": [of_app_in("shop")]}]}), True),
        (cilium({"endpointSelector": OF_APP}, "CiliumClusterwideNetworkPolicy"), True),
    ],
)
def test_object_of_another_namespace_that_selects_the_old_pods_is_told(
    value: dict[str, Any],
    is_told: bool,  # noqa: FBT001 - what pytest is given
) -> None:
    value["metadata"]["namespace"] = "other"
    found, _ = imported(documents(deployment(), value), "")
    missing = of_kind(found, "WorkerDeployment").missing
    told = (
        f"{value['kind']} payments in namespace other selects the pods by app, which the new pods do not have"
    )
    assert missing == ((f"{told}: write temporal.io/deployment-name: payments there",) if is_told else ())


def test_policy_of_istios_root_namespace_reaches_the_pods() -> None:
    policy = manifest("security.istio.io/v1", "AuthorizationPolicy", {"selector": OF_APP})
    policy["metadata"]["namespace"] = "istio-system"
    found, _ = imported(documents(deployment(), policy), "")
    [told] = of_kind(found, "WorkerDeployment").missing
    assert "AuthorizationPolicy payments in namespace istio-system selects the pods by app" in told


@pytest.mark.parametrize(
    ("rule", "is_told"),
    [
        ({"key": "app", "operator": "NotIn", "values": ["payments"]}, True),
        ({"key": "app", "operator": "DoesNotExist"}, True),
        ({"key": "app", "operator": "NotIn", "values": ["web"]}, False),
        ({"key": "team", "operator": "NotIn", "values": ["pay"]}, False),
        ({"key": "temporal.io/deployment-name", "operator": "In", "values": ["payments"]}, False),
    ],
)
def test_policy_that_selects_only_the_new_pods_is_told(
    rule: dict[str, Any],
    is_told: bool,  # noqa: FBT001 - what pytest is given
) -> None:
    policy = manifest("networking.k8s.io/v1", "NetworkPolicy", {"podSelector": {"matchExpressions": [rule]}})
    found, _ = imported(documents(deployment(), policy), "")
    told = of_kind(found, "WorkerDeployment").missing
    why = "selects the new pods, but not the old ones, because the new pods do not have app: if that is wrong"
    assert [note.startswith(f"NetworkPolicy payments {why}") for note in told] == ([True] if is_told else [])


def test_variable_that_reads_a_label_that_is_left_out_gets_its_value() -> None:
    def reads(label: str) -> dict[str, Any]:
        path = f"metadata.labels['{label}']"
        return {"name": "SERVICE_NAME", "valueFrom": {"fieldRef": {"fieldPath": path}}}

    for label, value in (("app", {"name": "SERVICE_NAME", "value": "payments"}), ("team", reads("team"))):
        found, _ = imported(documents(with_env(reads(label))), "")
        pods = of_kind(found, "WorkerDeployment").document["spec"]["template"]
        assert pods["metadata"]["labels"] == {"team": "pay"}
        assert value in pods["spec"]["containers"][0]["env"]
    [specs] = [parsed(found)]
    assert specs.warnings == ()


def test_namespace_that_the_pods_do_not_say_is_what_an_sdk_uses() -> None:
    found, _ = imported(documents(deployment(env=[{"name": "TEMPORAL_ADDRESS", "value": ADDRESS}])), "")
    comments = of_kind(found, "WorkerDeployment").comments
    says = "fill in: no variable of the pods contains it; SDKs then use namespace default"
    assert comments["spec", "workerOptions", "temporalNamespace"] == says


def test_account_and_its_rights_are_no_news() -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "pay", "namespace": "shop"}}
    binding = {**account, "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding"}
    assert imported(documents(deployment(), account, binding), "")[1] == []
