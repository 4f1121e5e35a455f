"""What carries a rollout out in the cluster, as it is rendered."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import AUTOSCALER, BUDGET, NOW, STEPS, a_spec, live_manifest, with_policy, world
from twgen.cluster.deployments import recorded_deployment
from twgen.errors import InvalidInput
from twgen.model.operator import CaBundle, Caller, GroupKind, Links, RolloutPod
from twgen.model.plan import WorkerVersions
from twgen.model.policy import OwnerReferences
from twgen.model.problem import Document
from twgen.model.rollout import Driver
from twgen.model.spec import Connection, Gate, GateInput, Rollout, RolloutStep, Strategy, WorkerSpec
from twgen.model.temporal import CurrentVersion, Routing, Version, VersionStatus, WorkerDeployment
from twgen.planning.plan import plan_versions
from twgen.records.intent import Intent, intent_of, is_annotated_as_paused, parse_intent, write_intent
from twgen.rendering.jobs import RolloutJobs
from twgen.rendering.manifests import attached_kinds, render_manifests
from twgen.specs.attached import KINDS
from twgen.versioning.names import DASHBOARD_LINK, DRIVER, PLAN_HASH, SYNC_WAVE

AUTOSCALERS = {"HorizontalPodAutoscaler", "ScaledObject"}
ME = Caller("twgen/me", forced=True)
SPEC = a_spec()
JOB, HOOK = (RolloutJobs(driver, "registry.example.com/twgen:1") for driver in (Driver.JOB, Driver.HOOK))


def rendered(spec: WorkerSpec = SPEC, jobs: RolloutJobs = JOB, *live: dict[str, Any]) -> list[dict[str, Any]]:
    plan = plan_versions([spec], world(None, list(live)), NOW, ME)
    return render_manifests(plan.workers, [], ME.of, jobs)


def of_kind(kind: str, manifests: list[dict[str, Any]]) -> dict[str, Any]:
    [found] = [item for item in manifests if item["kind"] == kind]
    return found


def rules(spec: WorkerSpec, jobs: RolloutJobs = JOB, *live: dict[str, Any]) -> dict[str, Any]:
    """The names of every right, by verb and resource; any: it is for all names."""
    role = of_kind("Role", rendered(spec, jobs, *live))
    return {
        f"{verb} {resource}": rule.get("resourceNames", "any")
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_objects_are_applied_before_the_job_that_needs_them() -> None:
    kinds = [item["kind"] for item in rendered()]
    assert kinds == ["ServiceAccount", "Role", "RoleBinding", "ConfigMap", "Deployment", "Job"]


@pytest.mark.parametrize("jobs", [JOB, HOOK])
def test_job_of_somebody_else_never_takes_the_place_of_a_rollouts(jobs: RolloutJobs) -> None:
    plan = plan_versions([SPEC], world(None, []), NOW, ME)
    name = of_kind("Job", rendered(jobs=jobs))["metadata"]["name"]
    metadata = {"name": name, "namespace": "shop"}
    same, another, broken = (
        Document("jobs.yaml", 0, {"apiVersion": "batch/v1", "kind": kind, "metadata": metadata})
        for kind, metadata in (("Job", metadata), ("CronJob", metadata), ("Job", {"name": [name]}))
    )
    render_manifests(plan.workers, [another, broken], ME.of, jobs)
    with pytest.raises(InvalidInput, match=rf"jobs\.yaml: Job {name} has the name of a rollout's Job"):
        render_manifests(plan.workers, [same], ME.of, jobs)


def test_intent_is_read_back_as_it_was_rendered_and_holds_what_git_says() -> None:
    spec = replace(SPEC, attached=(AUTOSCALER,))
    intent = parse_intent(of_kind("ConfigMap", rendered(spec)))
    assert intent == intent_of(spec, "twgen/me")
    assert [document["kind"] for document in intent.documents] == ["WorkerDeployment", "Connection"]
    assert (intent.namespace, intent.worker, intent.target) == ("shop", "payments", "v3")


@given(st.lists(st.text(st.characters(categories=("L", "N", "P", "Zs")), min_size=1), max_size=3))
def test_warnings_of_a_render_start_no_rollout_anew(warnings: list[str]) -> None:
    intent = intent_of(SPEC, "twgen/me", warnings)
    assert intent.hash == intent_of(SPEC, "twgen/me").hash
    assert parse_intent(write_intent(intent)).hash == intent.hash


def test_rollout_knows_the_kinds_that_are_attached_or_were_also_after_their_last_template_went() -> None:
    policy, hpa = GroupKind("example.com", "Policy"), GroupKind("autoscaling", "HorizontalPodAutoscaler")
    jobs = RolloutJobs(Driver.JOB, "twgen", (policy, GroupKind("", "ConfigMap")))
    live = live_manifest(SPEC, "v1", 2)
    assert not parse_intent(of_kind("ConfigMap", rendered(SPEC, jobs, live))).attached_kinds
    live["metadata"]["annotations"]["twgen.io/attached"] = "Policy/one"
    found = parse_intent(of_kind("ConfigMap", rendered(SPEC, jobs, live)))
    assert found.attached_kinds == (policy,)
    assert found.hash == intent_of(SPEC, "twgen/me").hash, "it has nothing else to do"
    scaled = replace(SPEC, attached=(AUTOSCALER,))
    assert parse_intent(of_kind("ConfigMap", rendered(scaled, jobs, live))).attached_kinds == (hpa, policy)


def test_kind_that_the_operator_lets_be_attached_is_known_where_no_cluster_tells_what_was() -> None:
    policy = GroupKind("example.com", "Policy")
    plan = plan_versions([SPEC], world(None, None), NOW, ME)
    assert policy in attached_kinds(plan.workers[0], [policy])
    assert len(attached_kinds(plan.workers[0], [])) == len(KINDS)


def test_what_a_rollout_is_to_do_starts_it_anew() -> None:
    intent = intent_of(SPEC, "twgen/me")
    others = (
        replace(intent, identity="twgen/you"),
        replace(intent, target="v4"),
        replace(intent, documents=intent.documents[:1]),
    )
    assert len({intent.hash, *(other.hash for other in others)}) == 4


def test_intent_under_another_name_cannot_speak_for_a_worker_that_has_one() -> None:
    manifest = write_intent(intent_of(SPEC, "twgen/me"))
    manifest["metadata"]["name"] = "evil"
    with pytest.raises(
        InvalidInput, match="shop/evil is not the intent of payments: that one is named payments-"
    ):
        parse_intent(manifest)


@pytest.mark.parametrize("key", ["worker", "identity", "target", "specs.yaml"])
def test_intent_that_was_edited_by_hand_is_refused(key: str) -> None:
    manifest = write_intent(intent_of(SPEC, "twgen/me"))
    edited = {**manifest, "data": {**manifest["data"], key: manifest["data"][key] + "x: 1\n"}}
    with pytest.raises(InvalidInput, match="was edited by hand"):
        parse_intent(edited)
    lacking = {name: text for name, text in manifest["data"].items() if name != key}
    with pytest.raises(InvalidInput, match=f"has no {key}"):
        parse_intent({**manifest, "data": lacking})


@pytest.mark.parametrize(
    ("annotation", "is_paused"), [(None, False), ("false", False), ("true", True), ("", True)]
)
def test_annotation_pauses_an_intent(annotation: str | None, is_paused: bool) -> None:  # noqa: FBT001 - a row
    annotations = {} if annotation is None else {"twgen.io/paused": annotation}
    assert is_annotated_as_paused(annotations) is is_paused


def test_another_intent_and_another_image_are_another_job() -> None:
    newer = RolloutJobs(Driver.JOB, "registry.example.com/twgen:2")
    slower = replace(SPEC, rollout=Rollout(Strategy.PROGRESSIVE, STEPS))
    jobs = [of_kind("Job", made) for made in (rendered(), rendered(SPEC, newer), rendered(slower))]
    assert len({job["metadata"]["name"] for job in jobs}) == 3
    assert of_kind("Job", rendered()) == jobs[0], "the same is the same"


def test_hook_comes_after_the_target_and_before_all_that_may_be_broken() -> None:
    template = {**AUTOSCALER.template, "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject"}
    scaled_object = replace(AUTOSCALER, name="keda", template=template)
    spec = replace(SPEC, attached=(AUTOSCALER, scaled_object, BUDGET))
    manifests = rendered(spec, HOOK, live_manifest(SPEC, "v1", 2))
    waves = {
        (item["kind"], item["metadata"].get("labels", {}).get("temporal.io/build-id") == "v3"): item[
            "metadata"
        ]
        .get("annotations", {})
        .get(SYNC_WAVE, "0")
        for item in manifests
        if item["kind"] not in AUTOSCALERS
    }
    assert waves.pop(("Job", False)) == "1"
    assert waves.pop(("Deployment", False)) == waves.pop(("PodDisruptionBudget", False)) == "2"
    assert set(waves.values()) == {"0"}
    job = of_kind("Job", manifests)
    assert job["metadata"]["annotations"]["argocd.argoproj.io/hook"] == "Sync,PostSync"
    assert job["spec"]["template"]["spec"]["containers"][0]["args"][-2:] == ["--within", "300s"]


def test_beside_a_hook_no_sync_applies_an_autoscaler_and_its_job_does() -> None:
    spec = replace(SPEC, attached=(AUTOSCALER, BUDGET))
    live = live_manifest(SPEC, "v1", 2)
    for jobs, owners, expected in (
        (HOOK, OwnerReferences.RENDER, {"Skip"}),
        (HOOK, OwnerReferences.NONE, {None}),
        (JOB, OwnerReferences.RENDER, {None}),
    ):
        manifests = rendered(with_policy(spec, owner_references=owners), jobs, live)
        hooks = {kind: set[Any]() for kind in ("HorizontalPodAutoscaler", "PodDisruptionBudget")}
        for item in manifests:
            if item["kind"] in hooks:
                hooks[item["kind"]].add(item["metadata"]["annotations"].get("argocd.argoproj.io/hook"))
        assert hooks == {"HorizontalPodAutoscaler": expected, "PodDisruptionBudget": {None}}
        assert parse_intent(of_kind("ConfigMap", manifests)).has_hook is (jobs is HOOK)


def test_autoscaler_is_no_part_of_the_health_of_an_application_unless_its_template_says_so() -> None:
    annotation = "argocd.argoproj.io/ignore-healthcheck"
    counted = {**AUTOSCALER.template, "metadata": {"annotations": {annotation: "false"}}}
    for template, expected in ((AUTOSCALER.template, "true"), (counted, "false")):
        spec = replace(SPEC, attached=(replace(AUTOSCALER, template=template), BUDGET))
        manifests = rendered(spec, JOB)
        assert (
            of_kind("HorizontalPodAutoscaler", manifests)["metadata"]["annotations"][annotation] == expected
        )
        assert annotation not in of_kind("PodDisruptionBudget", manifests)["metadata"]["annotations"]


@pytest.mark.parametrize(
    ("status", "waits"),
    [(VersionStatus.INACTIVE, False), (VersionStatus.DRAINING, True), (VersionStatus.DRAINED, True)],
)
def test_version_that_has_traffic_and_no_pods_waits_for_no_target_but_on_the_way_back_from_it(
    status: VersionStatus, *, waits: bool
) -> None:
    known = Version("v1", VersionStatus.CURRENT), Version("v3", status)
    says = WorkerDeployment(routing=Routing(current=CurrentVersion("v1", NOW)), versions=known)
    ledger = {("shop/payments", "v1"): recorded_deployment(live_manifest(SPEC, "v1", 2))}
    found = world(says, []).remembering(ledger)
    manifests = render_manifests(plan_versions([SPEC], found, NOW, ME).workers, [], ME.of, HOOK)
    annotations = {
        item["metadata"]["name"]: item["metadata"]["annotations"]
        for item in manifests
        if item["kind"] == "Deployment"
    }
    assert SYNC_WAVE not in annotations["payments-v3"]
    assert (SYNC_WAVE in annotations["payments-v1"]) is waits


@pytest.mark.parametrize("hold_for", [timedelta(), timedelta(milliseconds=500)])
def test_hook_that_may_hardly_wait_gets_a_time_limit_that_it_takes(hold_for: timedelta) -> None:
    job = of_kind("Job", rendered(with_policy(SPEC, hold_for=hold_for), HOOK))
    assert job["spec"]["template"]["spec"]["containers"][0]["args"][-2:] == ["--within", "1s"]


def test_job_of_a_rollout_of_centuries_has_a_deadline_that_kubernetes_can_count() -> None:
    steps = tuple(RolloutStep(percentage, timedelta(hours=2562047)) for percentage in range(1, 21))
    job = of_kind("Job", rendered(replace(SPEC, rollout=Rollout(Strategy.PROGRESSIVE, steps))))
    assert job["spec"]["activeDeadlineSeconds"] * 10**9 < 2**63


def test_nothing_beside_a_tracked_job_has_a_hook_or_a_wave() -> None:
    once_hooked = live_manifest(SPEC, "v1", 2)
    once_hooked["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"] = "2"
    text = json.dumps(rendered(replace(SPEC, attached=(AUTOSCALER,)), JOB, once_hooked))
    assert "sync-wave" not in text
    assert "argocd.argoproj.io/hook" not in text


@pytest.mark.parametrize("jobs", [JOB, HOOK, replace(JOB, image="")])
def test_driver_none_renders_the_intent_and_nothing_that_rolls_out(jobs: RolloutJobs) -> None:
    spec = with_policy(SPEC, driver=Driver.NONE)
    manifests = rendered(spec, jobs, live_manifest(spec, "v1", 2))
    assert [item["kind"] for item in manifests] == ["ConfigMap", "Deployment", "Deployment"]
    assert of_kind("ConfigMap", manifests)["metadata"]["annotations"][PLAN_HASH]
    assert SYNC_WAVE not in json.dumps(manifests)


def test_driver_tick_renders_an_intent_that_says_so_and_no_job() -> None:
    spec, jobs = with_policy(SPEC, driver=Driver.TICK), replace(HOOK, is_tick_allowed=True)
    manifests = rendered(spec, jobs, live_manifest(spec, "v1", 2))
    assert [item["kind"] for item in manifests] == ["ConfigMap", "Deployment", "Deployment"]
    metadata = of_kind("ConfigMap", manifests)["metadata"]
    assert metadata["annotations"][DRIVER] == "Tick"
    assert SYNC_WAVE not in json.dumps(manifests)
    refused = rendered(spec, HOOK, live_manifest(spec, "v1", 2))
    assert [item["kind"] for item in refused] == ["Deployment", "Deployment"]


def test_driver_is_part_of_what_an_intent_says() -> None:
    by_job = intent_of(SPEC, "twgen/me")
    by_tick = replace(by_job, is_for_tick=True)
    assert by_tick.hash != by_job.hash
    manifest = write_intent(by_tick)
    assert parse_intent(manifest) == by_tick
    del manifest["metadata"]["annotations"][DRIVER]
    with pytest.raises(InvalidInput, match="was edited by hand"):
        parse_intent(manifest)


def test_without_an_identity_or_an_image_nothing_tells_of_a_rollout() -> None:
    for spec, jobs in ((with_policy(SPEC, driver=Driver.NONE), JOB), (SPEC, replace(JOB, image=""))):
        plan = plan_versions([spec], world(None, []), NOW, Caller("", forced=True))
        made = render_manifests(plan.workers, [], lambda _: "", jobs)
        assert [item["kind"] for item in made] == ["Deployment"]


def test_account_that_is_named_is_used_and_none_is_rendered() -> None:
    manifests = rendered(with_policy(SPEC, service_account_name="ours"))
    assert [item["kind"] for item in manifests] == ["ConfigMap", "Deployment", "Job"]
    assert of_kind("Job", manifests)["spec"]["template"]["spec"]["serviceAccountName"] == "ours"


def test_rights_follow_what_the_spec_needs() -> None:
    plain = rules(SPEC)
    assert plain["get configmaps"] == ["payments-rollout", "payments-rollout-status"]
    assert not {"get secrets", "patch deployments"} & plain.keys()
    secret = Gate("Check", input_from=GateInput("Secret", "input", "key"))
    gated = replace(SPEC, rollout=replace(SPEC.rollout, gate=secret), attached=(AUTOSCALER,))
    found = rules(gated, JOB, live_manifest(SPEC, "v1", 2))
    assert found["get secrets"] == ["input"]
    assert found["patch deployments"] == ["payments-v1", "payments-v3"]
    assert "delete horizontalpodautoscalers" in found
    assert {"delete horizontalpodautoscalers", "patch horizontalpodautoscalers"} <= found.keys()
    assert not {"delete scaledobjects", "list poddisruptionbudgets"} & found.keys(), "none ever was"
    unowned = rules(with_policy(gated, owner_references=OwnerReferences.NONE))
    assert "delete horizontalpodautoscalers" not in unowned, "Argo CD prunes what has no owner"


def test_certificate_of_the_control_plane_is_mounted_in_place_of_the_workers() -> None:
    connection = Connection("temporal", "temporal:7233", mutual_tls_secret="workers")  # noqa: S106 - a name
    spec = with_policy(replace(SPEC, connection=connection), control_plane_secret="rollouts")  # noqa: S106 - a name
    pod = of_kind("Job", rendered(spec))["spec"]["template"]["spec"]
    assert [item["secret"]["secretName"] for item in pod["volumes"] if "secret" in item] == ["rollouts"]
    assert "workers" not in json.dumps(pod)


def test_pod_is_told_where_temporal_is_and_not_whose_worker_it_is() -> None:
    [container] = of_kind("Job", rendered())["spec"]["template"]["spec"]["containers"]
    assert {item["name"] for item in container["env"]} == {"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE"}


def test_intent_leads_to_its_row_of_the_page_if_the_operator_says_where_that_is() -> None:
    versions = plan_versions([SPEC], world(None, []), NOW, ME).workers
    links = Links(dashboard="https://page.example.com/")
    linked = render_manifests(versions, [], ME.of, JOB, links)
    found = of_kind("ConfigMap", linked)["metadata"]["annotations"].pop(DASHBOARD_LINK)
    assert found == "Rollout|https://page.example.com/#shop/payments"
    # and the link makes no new Job
    assert linked == rendered()


def test_warnings_of_the_render_are_in_the_intent() -> None:
    [worker] = plan_versions([SPEC], world(None, []), NOW, ME).workers
    warned = replace(worker, warnings=("one", "two"))
    assert isinstance(warned, WorkerVersions)
    found = of_kind("ConfigMap", render_manifests([warned], [], ME.of, JOB))
    intent: Intent = parse_intent(found)
    assert intent.warnings == ("one", "two")


def test_intent_repeats_no_more_warnings_than_there_may_be_events() -> None:
    many = [f"warning {number}" for number in range(5000)]
    intent = intent_of(SPEC, "twgen/me", many)
    assert intent.warnings == (*many[:99], "and 4901 more warnings: `twgen render` prints them")
    manifest = write_intent(intent)
    manifest["data"]["warnings"] = "\n".join(many)
    assert parse_intent(manifest).warnings == tuple(many[:100])


def test_intent_that_no_config_map_can_hold_is_refused_where_it_is_rendered() -> None:
    [worker] = plan_versions([SPEC], world(None, []), NOW, ME).workers
    warned = replace(worker, warnings=("ü" * (512 * 1024),))
    with pytest.raises(
        InvalidInput, match="bytes, but a ConfigMap can contain at most 1048576: make the pod template"
    ):
        render_manifests([warned], [], ME.of, JOB)


def test_pod_of_a_rollout_has_what_its_operator_gives_it() -> None:
    own = RolloutPod(
        labels={"team": "platform", "twgen.io/rollout": "never"},
        annotations={"a": "b"},
        node_selector={"kubernetes.io/os": "linux"},
        tolerations=({"key": "batch", "operator": "Exists"},),
        image_pull_secrets=({"name": "registry"},),
        resources={"limits": {"memory": "1Gi"}},
        ca_bundle=CaBundle("temporal-ca"),
    )
    jobs = replace(JOB, pod=own)
    template = of_kind("Job", rendered(SPEC, jobs))["spec"]["template"]
    plain = of_kind("Job", rendered(SPEC, JOB))["spec"]["template"]
    assert template["metadata"]["labels"] == plain["metadata"]["labels"] | {"team": "platform"}
    assert template["metadata"]["annotations"] == plain["metadata"]["annotations"] | {"a": "b"}
    pod, container = template["spec"], template["spec"]["containers"][0]
    assert pod["nodeSelector"] == own.node_selector
    assert pod["tolerations"] == list(own.tolerations)
    assert pod["imagePullSecrets"] == list(own.image_pull_secrets)
    assert container["resources"] == own.resources
    # without TLS there is nobody to trust, and its variable would ask for TLS
    assert (container["env"], pod["volumes"]) == (
        plain["spec"]["containers"][0]["env"],
        plain["spec"]["volumes"],
    )
    secured = replace(SPEC, connection=replace(SPEC.connection, mutual_tls_secret="t"))  # noqa: S106
    pod = of_kind("Job", rendered(secured, jobs))["spec"]["template"]["spec"]
    [variable] = [item for item in pod["containers"][0]["env"] if item["name"].endswith("_CA_CERT_PATH")]
    [mount] = [item for item in pod["containers"][0]["volumeMounts"] if item["name"] == "temporal-ca"]
    assert variable["value"] == f"{mount['mountPath']}/ca.crt"
    assert {"name": "temporal-ca", "configMap": {"name": "temporal-ca"}} in pod["volumes"]


def test_pod_of_a_rollout_trusts_whom_its_connection_says_whatever_its_operator_gives() -> None:
    trusting = replace(SPEC, connection=replace(SPEC.connection, ca_secret="authority"))  # noqa: S106
    jobs = replace(JOB, pod=RolloutPod(ca_bundle=CaBundle("temporal-ca")))
    pod = of_kind("Job", rendered(trusting, jobs))["spec"]["template"]["spec"]
    assert pod == of_kind("Job", rendered(trusting, JOB))["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert {"name": "TEMPORAL_TLS", "value": "true"} in container["env"]
    [variable] = [item for item in container["env"] if item["name"].endswith("_CA_CERT_PATH")]
    [volume] = [item for item in pod["volumes"] if "secret" in item]
    [mount] = [item for item in container["volumeMounts"] if item["name"] == volume["name"]]
    assert volume["secret"] == {"secretName": "authority"}
    assert variable["value"] == f"{mount['mountPath']}/ca.crt"
