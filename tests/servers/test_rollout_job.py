"""The Job that a render holds, run as its real command line by the local node, beside real workers."""

import asyncio
import json
import re
import subprocess
from base64 import b64encode
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from temporalio.api.common.v1 import WorkflowType

from testing.install import installed
from testing.processes import ENVIRONMENT, eventually, free_ports
from testing.recipes import KUBECTL
from tests.servers.gitops import budget_document
from tests.servers.live import Document, autoscaler_document, connection_document, in_namespace, run
from tests.servers.pods import config_map
from tests.servers.rollouts import SOON, Story, last_word
from tests.servers.side_by_side import side_by_side
from twgen.clients.kubeconfig import ClusterAccess
from twgen.clients.kubernetes import KubernetesClient
from twgen.errors import StateUnavailable
from twgen.executing.cluster import ClusterWriter
from twgen.planning.cluster_changes import ReplicasChange
from twgen.records.intent import parse_intent, write_intent
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server

PAGES = [Path(__file__).parents[2] / "docs" / name for name in ("jobs.md", "steer.md")]


@side_by_side
def test_job_makes_the_first_version_current_and_tells_so(story: Story) -> None:
    story.describe("v1", steps=())
    story.apply()
    status = story.stands("Settled", "v1")
    assert (status["reason"], status["current"], status["percentage"]) == ("Settled", "v1", "100")
    done = story.job("Complete")
    [pod] = story.pods(f"job-name={done['metadata']['name']}")
    assert last_word(pod) == "Settled: it is current and nothing ramps"
    events = story.cluster.list("events", story.namespace)
    told = [event for event in events if event["involvedObject"]["name"] == "greeter-rollout"]
    assert [event["reason"] for event in told if event["type"] != "Normal"] == []
    assert {"FirstVersion", "Settled"} <= {event["reason"] for event in told}
    story.apply()
    assert len(story.jobs()) == 1, "the same intent is the same Job"
    fleet = ("status", "--from-cluster", "-n", story.namespace)
    line, of_version = story.run(*fleet, is_of_specs=False).stdout.splitlines()
    assert line.startswith(f"{story.namespace}/greeter: Settled for ")
    assert ", target v1; Settled: it is current and nothing ramps; manager: " in line
    assert of_version.startswith(f"{story.namespace}/greeter v1: 100%, Current for ")
    [worker] = json.loads(story.run(*fleet, "-o", "json", is_of_specs=False).stdout)["workers"]
    assert (worker["phase"], worker["targetBuildID"]) == ("Settled", "v1")
    held = story.run("drain", "--from-cluster", "-n", story.namespace, "-o", "json", is_of_specs=False)
    [worker] = json.loads(held.stdout)["workers"]
    assert (worker["worker"], worker["versions"]) == (f"{story.namespace}/greeter", [])


@side_by_side
def test_job_whose_gate_fails_ends_for_good_and_says_so_where_one_looks_first(story: Story) -> None:
    story.describe("v1", steps=())
    story.apply()
    story.stands("Settled", "v1")
    fails = {"name": "GATE_FAILS", "value": "yes"}
    story.describe("v2", steps=(), gate="GateWorkflow", variables=[fails])
    story.apply()
    status = story.stands("Blocked", "v2")
    assert (status["reason"], status["current"]) == ("GateFailed", "v1")
    failed = story.job("Failed")
    [pod] = story.pods(f"job-name={failed['metadata']['name']}")
    assert f"the gate on task queue {story.task_queue} ended as Failed" in last_word(pod)
    reasons = {condition["reason"] for condition in failed["status"]["conditions"]}
    assert reasons == {"PodFailurePolicy"}, "another attempt could change nothing"
    [event] = [
        event for event in story.cluster.list("events", story.namespace) if event["reason"] == "GateFailed"
    ]
    assert event["type"] == "Warning"
    assert story.share("v1") == 100

    retried = story.run("retry")
    name = failed["metadata"]["name"]
    assert (retried.code, f"restarted Job {name}" in retried.stderr) == (0, True), retried
    again = story.job("Failed")
    assert again["metadata"]["name"] == name, "to Argo CD it is the same"
    assert again["metadata"]["uid"] != failed["metadata"]["uid"]
    assert f":v2-{story.task_queue}-2" in story.status()["message"], "it is the second attempt that failed"


def ask(story: Story, **gate: object) -> None:
    """Roll out a worker with a gate, until it has passed."""
    story.describe("v1", steps=(), gate="AskedGateWorkflow")
    specs = story.folder / "specs.yaml"
    [worker] = [item for item in read_documents(specs.read_text()) if item["kind"] == "WorkerDeployment"]
    worker["spec"]["rollout"]["gate"] = gate
    specs.write_text(write_documents([connection_of(story), worker]))
    story.apply()
    story.stands("Settled", "v1")
    assert "started the gate" in story.log()


@side_by_side
def test_gate_gets_its_input_from_a_secret_and_no_log_has_it(story: Story) -> None:
    told = '{"passes": true, "token": false}'
    story.cluster.apply([config_map(story.namespace, "question", {"json": told}, "Secret")])
    reference = {"secretKeyRef": {"name": "question", "key": "json"}}
    ask(story, workflowType="AskedGateWorkflow", inputFrom=reference)
    assert "token" not in story.log()


@pytest.mark.parametrize("encoding", ["json/protobuf", "binary/protobuf"])
@side_by_side
def test_gate_gets_a_protobuf_message_from_a_config_map(story: Story, encoding: str) -> None:
    question = config_map(story.namespace, "question", {"json": '{"name": "passes"}'})
    binary = b64encode(WorkflowType(name="passes").SerializeToString()).decode()
    story.cluster.apply([{**question, "binaryData": {"binary": binary}}])
    ask(
        story,
        workflowType="MessageGateWorkflow",
        inputFrom={"configMapKeyRef": {"name": "question", "key": encoding.partition("/")[0]}},
        encoding=encoding,
        messageType=WorkflowType.DESCRIPTOR.full_name,
    )


@side_by_side
def test_newer_intent_takes_over_in_mid_ramp_and_the_older_job_goes(story: Story) -> None:
    story.describe("v1", steps=())
    story.apply()
    story.stands("Settled", "v1")
    story.describe("v2", steps=(25, 50))
    story.apply()
    eventually(lambda: story.share("v2") == 25, SOON)
    older = story.newest_job()

    story.describe("v3", steps=(10,))
    story.apply()
    eventually(lambda: story.share("v3") == 10, SOON)

    def left() -> list[str]:
        return [job["metadata"]["name"] for job in story.jobs()]

    # if its intent returns, it is to run again
    eventually(lambda: older["metadata"]["name"] not in left(), SOON)
    eventually(lambda: story.status()["target"] == "v3", SOON)
    assert story.share("v2") == 0


@side_by_side
def test_job_that_is_killed_in_mid_ramp_goes_on_in_another_pod(story: Story) -> None:
    story.describe("v1", steps=())
    story.apply()
    story.stands("Settled", "v1")
    story.describe("v2", steps=(25,))
    story.apply()
    eventually(lambda: story.share("v2") == 25, SOON)
    assert 0 < most_memory(story) < 96, "MiB, as the Job asks for"
    pod = story.running_pod()["metadata"]["name"]
    story.cluster.kubectl("delete", "pod", pod, "--namespace", story.namespace, "--force")

    def goes_on() -> bool:
        another = story.running_pod()["metadata"]["name"]
        return another != pod and "it stays at 25%" in story.node.logs(story.namespace, another)

    eventually(goes_on, SOON)
    assert story.share("v2") == 25
    story.describe("v1", steps=())
    story.apply()
    eventually(lambda: story.share("v1") == 100, SOON)


@side_by_side
def test_autoscaled_version_comes_back_from_zero_and_keeps_its_replicas(story: Story) -> None:
    story.describe("v1", autoscaler_document("greeter"), steps=())
    story.apply()
    story.stands("Settled", "v1")
    deployment = ("deployment/greeter-v1", "--namespace", story.namespace)
    story.cluster.kubectl("scale", *deployment, "--replicas=0")
    story.describe("v1", autoscaler_document("greeter"), steps=(50,))
    jobs = [item for item in story.manifests() if item["kind"] != "Deployment"]
    story.cluster.apply(jobs)
    eventually(lambda: replicas(story, "greeter-v1") == 1, SOON)


@side_by_side
def test_status_says_how_each_attached_object_stands(story: Story) -> None:
    story.describe("v1", autoscaler_document("greeter"), budget_document("greeter"), steps=())
    story.apply()
    story.stands("Settled", "v1")

    def told() -> dict[str, str]:
        ended = story.run("status", "-o", "json")
        assert ended.code == 0, ended.stderr
        [version] = json.loads(ended.stdout)["workers"][0]["versions"]
        return {item["kind"]: f"{item['state']} {item['message']}".strip() for item in version["attached"]}

    # there is no metrics server here
    eventually(lambda: "ScalingActive is False (Failed" in told()["HorizontalPodAutoscaler"], SOON)
    eventually(lambda: told()["PodDisruptionBudget"] == "Ready", SOON)
    story.cluster.kubectl("delete", "poddisruptionbudgets", "--all", "--namespace", story.namespace)
    assert told()["PodDisruptionBudget"].startswith("Missing it was deleted")
    document = json.loads(story.status()["status.json"])
    [version] = document["workers"][0]["versions"]
    kept = {item["kind"]: item["state"] for item in version["attached"]}
    assert kept.keys() == {"HorizontalPodAutoscaler", "PodDisruptionBudget"}
    assert "NotRead" not in kept.values(), "its Job lists them"


@side_by_side
def test_attached_object_whose_template_is_gone_is_deleted_although_it_has_an_owner(story: Story) -> None:
    story.describe("v1", autoscaler_document("greeter"), steps=())
    story.apply()
    story.stands("Settled", "v1")

    def owned() -> Document:
        [found] = story.cluster.list("horizontalpodautoscalers", story.namespace)
        # by the Job: the Deployment had no UID when it was rendered
        [owner] = found["metadata"]["ownerReferences"]
        assert (
            owner["uid"] == story.cluster.get("deployment", "greeter-v1", story.namespace)["metadata"]["uid"]
        )
        return found

    scaler = eventually(owned, SOON)
    other = autoscaler_document("greeter", "other")
    story.cluster.apply([hand_made(story.namespace, scaler)])
    story.describe("v1", other, steps=())
    story.apply()

    def left() -> bool:
        found = story.cluster.list("horizontalpodautoscalers", story.namespace)
        return sorted(item["metadata"]["name"].split("-")[1] for item in found) == ["made", "other"]

    eventually(left, SOON)


@side_by_side
def test_rollout_whose_temporal_is_away_ends_by_its_time_limit_and_says_why(story: Story) -> None:
    story.describe("v1", steps=())
    [away] = in_namespace(story.namespace, connection_document(f"127.0.0.1:{free_ports(1)[0]}"))
    manifests = story.manifests()
    worker = parse_intent(next(item for item in manifests if item["kind"] == "ConfigMap"))
    documents = [away if item["kind"] == "Connection" else item for item in worker.documents]
    intent = replace(worker, documents=tuple(documents))
    story.cluster.apply([write_intent(intent)])
    kubeconfig = ("--kubeconfig", str(story.cluster.kubeconfig))
    place = f"{story.namespace}/greeter-rollout"
    limits = ("--within", "20s", "--timeout", "3s")
    ended = run(story.folder, "rollout", "--intent", place, options=[*limits, *kubeconfig])
    assert ended.code == 4, ended.stderr
    assert "is not settled within 20s: nothing could be read yet; Temporal at 127.0.0.1" in ended.stderr
    [event] = [
        event for event in story.cluster.list("events", story.namespace) if event["reason"] == "LookFailed"
    ]
    assert "cannot be reached" in event["message"]


@side_by_side
def test_replicas_that_an_autoscaler_has_set_since_they_were_read_are_not_taken_back(story: Story) -> None:
    story.describe("v1", autoscaler_document("greeter"), steps=())
    story.cluster.apply([item for item in story.manifests() if item["kind"] != "Job"])
    read = story.cluster.get("deployment", "greeter-v1", story.namespace)
    version = read["metadata"]["resourceVersion"]
    deployment = ("deployment/greeter-v1", "--namespace", story.namespace)
    story.cluster.kubectl("scale", *deployment, "--replicas=2")
    intent = parse_intent(story.cluster.get("configmap", "greeter-rollout", story.namespace))

    with closing(KubernetesClient(ClusterAccess(str(story.cluster.kubeconfig)))) as client:
        stale = ReplicasChange("greeter-v1", 1, "its autoscaler changes the replicas from now on", version)
        with pytest.raises(StateUnavailable, match="the object has been modified"):
            asyncio.run(ClusterWriter(client, intent, SOON).scale(stale))
    assert replicas(story, "greeter-v1") == 2


@side_by_side
def test_commands_of_the_page_follow_a_rollout_pause_it_and_let_it_go_on(story: Story) -> None:
    text = "".join(page.read_text() for page in PAGES)
    text = text.replace("-n shop", f"-n {story.namespace}").replace("payments", "greeter")
    blocks = re.findall(r"^```\n((?:kubectl|target=).*?)^```$", text, re.MULTILINE | re.DOTALL)
    wait, tell = blocks[:2]
    pause, go_on = re.findall(r"^kubectl annotate .*/paused.*$", text, re.MULTILINE)

    def shell(commands: str) -> str:
        script = f'kubectl() {{ {installed(KUBECTL)} "$@"; }}\n{commands}'
        home, kubeconfig = str(story.cluster.folder), str(story.cluster.kubeconfig)
        variables = {**ENVIRONMENT, "HOME": home, "KUBECONFIG": kubeconfig}
        ended = subprocess.run(
            ["bash", "-ec", script], env=variables, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    story.describe("v1", steps=())
    story.apply()
    assert shell(wait).endswith("condition met\n")
    assert story.status()["phase"] == "Settled"
    story.job("Complete")
    told = shell(tell)
    assert "FirstVersion" in told
    assert told.endswith("Settled: it is current and nothing ramps")
    story.describe("v2", steps=())
    shell(pause)
    story.apply()
    eventually(lambda: story.status().get("reason") == "Frozen", SOON)
    shell(go_on)
    shell(wait)
    assert story.share("v2") == 100


def most_memory(story: Story) -> float:
    """The most that the process of the Job that works ever needed, in MiB."""
    process = story.node.process(story.running_pod())
    said = Path(f"/proc/{process}/status").read_text().partition("VmHWM:")[2]
    return int(said.split()[0]) / 1024


def connection_of(story: Story) -> Document:
    [connection] = in_namespace(story.namespace, connection_document(story.temporal.address))
    return connection


def hand_made(namespace: str, scaler: Document) -> Document:
    """An autoscaler of a person: of the same owner, but not made here."""
    metadata = {
        "name": "hand-made",
        "namespace": namespace,
        "ownerReferences": scaler["metadata"]["ownerReferences"],
    }
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "somewhere-else"}
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 2}
    head = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata}
    return {**head, "spec": spec}


def replicas(story: Story, name: str) -> int:
    return int(story.cluster.get("deployment", name, story.namespace)["spec"]["replicas"])
