"""In Argo CD a repository sets what is harmless, and the operator everything."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from testing.processes import ENVIRONMENT
from tests.cli.conftest import Ended, Run, edited

RENDER = ("render", "specs", "--snapshot", "snapshot.json")
IDENTITY = "twgen.io/identity"
CASES = Path(__file__).parents[1] / "fixtures" / "cases"
OPERATOR = {
    "apiVersion": "twgen.io/v1alpha1",
    "kind": "OperatorConfig",
    "instance": "prod-eu",
    "rollout": {"image": "registry.example.com/twgen:1.0.0"},
}


@pytest.fixture
def operator(story: Path) -> Path:
    path = story / "operator.json"
    path.write_text(json.dumps(OPERATOR))
    return path


def plugin(operator: Path | None, *parameters: Mapping[str, Any], **variables: str) -> dict[str, str]:
    named = {"TWGEN_OPERATOR_CONFIG": str(operator)} if operator else {}
    application = {"ARGOCD_APP_NAME": "shop", "ARGOCD_APP_PROJECT_NAME": "payments"}
    given = {"ARGOCD_APP_PARAMETERS": json.dumps(parameters) if parameters else "null"}
    return {**ENVIRONMENT, **application, **given, **named, **variables}


def parameter(name: str, value: str) -> dict[str, str]:
    return {"name": name, "string": value}


def identities(ended: Ended) -> set[str]:
    assert ended.returncode == 0, ended.stderr
    documents = [json.loads(part) for part in (ended.stdout,)]
    return {
        item["metadata"]["annotations"][IDENTITY]
        for item in documents[0]["items"]
        if item["kind"] == "Deployment"
    }


def refused(ended: Ended, *parts: str) -> None:
    assert (ended.returncode, ended.stdout) == (2, ""), ended.stderr
    for part in parts:
        assert part in ended.stderr.splitlines()[-1]


def test_identity_is_the_instance_of_the_operator_and_the_application(run: Run, operator: Path) -> None:
    assert identities(run(*RENDER, "-o", "json", env=plugin(operator))) == {"twgen/prod-eu/shop"}


def test_operator_allows_a_kind_to_be_attached(run: Run, story: Path, operator: Path) -> None:
    template = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PodMonitor", "spec": {}}
    metadata = {"name": "monitor", "namespace": "default"}
    spec = {"workerDeploymentRef": {"name": "helloworld"}, "template": template}
    head = {"apiVersion": "temporal.io/v1alpha1", "kind": "WorkerResourceTemplate", "metadata": metadata}
    (story / "specs" / "monitor.json").write_text(json.dumps(head | {"spec": spec}))
    kind = "monitoring.coreos.com/PodMonitor cannot be attached"
    ended = run(*RENDER, env=plugin(operator))
    assert (ended.returncode, kind in ended.stderr) == (2, True)
    allowed = {"kinds": [{"group": "monitoring.coreos.com", "kind": "PodMonitor"}]}
    operator.write_text(json.dumps(OPERATOR | {"attached": allowed}))
    ended = run(*RENDER, env=plugin(operator))
    assert (ended.returncode, "kind: PodMonitor" in ended.stdout) == (0, True)
    assert run("validate", "specs", env=plugin(operator)).returncode == 0


def test_application_without_any_identity_is_refused(run: Run, story: Path) -> None:  # noqa: ARG001
    refused(run(*RENDER, env=plugin(None)), "default/helloworld has no manager identity", "instance")


def test_parameter_of_the_application_goes_before_its_variable_and_the_operators(
    run: Run, operator: Path
) -> None:
    operators = {"TWGEN_IDENTITY": "twgen/a"}
    variables = {**operators, "ARGOCD_ENV_TWGEN_IDENTITY": "twgen/b"}
    asked = (*RENDER, "-o", "json")
    assert identities(run(*asked, env=plugin(operator, **operators))) == {"twgen/a"}
    assert identities(run(*asked, env=plugin(operator, **variables))) == {"twgen/b"}
    both = plugin(operator, parameter("identity", "twgen/c"), **variables)
    assert identities(run(*asked, env=both)) == {"twgen/c"}


OF_OPERATOR = "snapshot now timeout allow-unlisted-connections via operator-config kubeconfig no-hooks"


@pytest.mark.parametrize("name", OF_OPERATOR.split())
def test_option_of_the_operator_is_refused_from_a_repository(run: Run, operator: Path, name: str) -> None:
    variable = f"TWGEN_{name.replace('-', '_').upper()}"
    said = (f"'{name}' is for the operator", variable)
    refused(run(*RENDER, env=plugin(operator, parameter(name, "x"))), *said)
    refused(run(*RENDER, env=plugin(operator, **{f"ARGOCD_ENV_{variable}": "x"})), *said)


def test_rollout_that_would_be_left_out_is_refused_from_the_operator_too(run: Run, operator: Path) -> None:
    """Argo CD would prune the Job, the intent and the status of every worker, and nothing would say so."""
    refused(
        run(*RENDER, env={**plugin(operator), "TWGEN_NO_HOOKS": "true"}),
        "Argo CD would prune the omitted rollouts",
    )


WRITTEN = 'as {"name": "strict", "string": "true"}'
NO_TEXT = f"plugin parameter 'strict' must be a single text: write it {WRITTEN}"
OWN = "an application may set identity, input, quiet, release, strict, valueFiles, values"


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("ARGOCD_ENV_TWGEN_STRICT", "maybe", "ARGOCD_ENV_TWGEN_STRICT: 'maybe' is neither true nor false"),
        ("TWGEN_STRICT", "maybe", "TWGEN_STRICT: 'maybe' is neither true nor false"),
        (
            "TWGEN_COLOR",
            "allways",
            "TWGEN_COLOR: 'allways' is not one of auto, always, never; did you mean always?",
        ),
        ("TWGEN_OUTPUT", "markdown", "TWGEN_OUTPUT: 'markdown' is not one of text, json; did you mean"),
        ("TWGEN_TIMEOUT", "soon", "TWGEN_TIMEOUT: 'soon' is not a duration such as 90s or 1h30m"),
        (
            "TWGEN_NOW",
            "noon",
            "TWGEN_NOW: 'noon' is not a time from 1970 to 2199 such as 2026-11-21T12:00:00Z",
        ),
        ("TWGEN_VIA", "a:1=b:2 c", "TWGEN_VIA: 'c' is not ADDRESS=ADDRESS such as temporal.prod.svc:7233="),
        (
            "TWGEN_IDENTITY",
            "a\x1b[2J",
            "TWGEN_IDENTITY: 'a\\x1b[2J' contains a character that cannot be printed",
        ),
        (
            "ARGOCD_ENV_TWGEN_STRIKT",
            "true",
            f"ARGOCD_ENV_TWGEN_STRIKT: no such setting; did you mean strict? {OWN}",
        ),
        ("ARGOCD_ENV_TWGEN_ZZZ", "true", f"ARGOCD_ENV_TWGEN_ZZZ: no such setting; {OWN}"),
    ],
)
def test_variable_with_a_mistake_is_named_with_what_it_holds_and_what_it_may_hold(
    run: Run, operator: Path, variable: str, value: str, said: str
) -> None:
    command = ("status", *RENDER[1:]) if variable in {"TWGEN_COLOR", "TWGEN_OUTPUT"} else RENDER
    ended = run(*command, env=plugin(operator, **{variable: value}))
    refused(ended, said.partition("; did you mean")[0])
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ([parameter("strict", "maybe")], "plugin parameter 'strict': 'maybe' is neither true nor false"),
        (
            [parameter("strikt", "true")],
            f"plugin parameter 'strikt': no such setting; did you mean strict? {OWN}",
        ),
        ([{"name": "strict", "array": ["a"]}], NO_TEXT),
        ([{"name": "strict", "map": {"a": "b"}}], NO_TEXT),
        ([{"name": "strict", "string": "true", "array": ["false"]}], NO_TEXT),
        ([{"name": "strict", "string": True}], NO_TEXT),
        (
            [{"name": "values", "map": {"replicas": "3"}}],
            (
                "plugin parameter 'values' must be a single text:"
                ' write it as {"name": "values", "string": "replicas: 3"}'
            ),
        ),
        ([{"name": "strict"}], NO_TEXT),
        (
            [parameter("strict", "true"), parameter("strict", "false")],
            "plugin parameter 'strict' is set twice: remove one",
        ),
        ([{"name": 3, "string": "a"}], f"contains a parameter without a name: write it {WRITTEN}"),
        (["strict"], f"contains a parameter without a name: write it {WRITTEN}"),
    ],
)
def test_mistaken_parameter_is_told(run: Run, operator: Path, parameters: list[Any], said: str) -> None:
    refused(run(*RENDER, env=plugin(operator, *parameters)), said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "{",
            "ARGOCD_APP_PARAMETERS is not JSON: line 1: a [ or { is not closed before this",
        ),
        ('{"strict": "true"}', f"ARGOCD_APP_PARAMETERS is not a list of parameters such {WRITTEN}"),
    ],
)
def test_parameters_that_are_no_json_list_are_told(run: Run, operator: Path, text: str, said: str) -> None:
    refused(run(*RENDER, env=plugin(operator, ARGOCD_APP_PARAMETERS=text)), said)


@pytest.fixture
def doubtful(story: Path) -> Path:
    """A story whose connection has a field that is none, which is a warning."""
    with edited(story / "specs" / "connection.json") as document:
        document["spec"]["colour"] = "red"
    return story


def test_strict_as_a_parameter_refuses_warnings(run: Run, doubtful: Path, operator: Path) -> None:  # noqa: ARG001
    assert run(*RENDER, env=plugin(operator)).returncode == 0
    refused(run(*RENDER, env=plugin(operator, parameter("strict", "true"))), "1 problem found")


def test_intent_repeats_what_the_render_warns_of_the_documents_of_its_worker(
    run: Run,
    doubtful: Path,  # noqa: ARG001
    operator: Path,
) -> None:
    ended = run(*RENDER, "-o", "json", env=plugin(operator))
    [intent] = [item for item in json.loads(ended.stdout)["items"] if item["kind"] == "ConfigMap"]
    [told] = intent["data"]["warnings"].splitlines()
    assert told.startswith("specs/connection.json: spec.colour: ")
    # on stderr, which Argo CD shows to nobody, with its line
    assert told.replace(".json", ".json:1", 1) in ended.stderr


@pytest.mark.parametrize("case", ["spec-deleted-beside-another", "version-cap", "missing-template"])
def test_strict_refuses_no_render_in_argocd_for_what_only_the_world_warns_of(
    run: Run, operator: Path, case: str
) -> None:
    """One worker's old version would hold up all others, and at the cap nothing would drain any more."""
    snapshot = next((CASES / case).glob("snapshot.*"))
    command = ("render", str(CASES / case / "documents"), "--snapshot", str(snapshot))
    identity = "twgen/payments/prod-eu"
    at_a_terminal = run(*command, "--strict", "--identity", identity)
    assert (at_a_terminal.returncode, at_a_terminal.stdout) == (2, ""), "there a warning has a reader"
    ended = run(*command, env=plugin(operator, parameter("strict", "true"), parameter("identity", identity)))
    assert (ended.returncode, ended.stdout != "") == (0, True), ended.stderr


def test_mistake_of_the_operator_is_told_with_file_and_path(run: Run, operator: Path) -> None:
    operator.write_text(json.dumps({**OPERATOR, "instanse": "a"}))
    ended = run(*RENDER, env=plugin(operator))
    assert ended.returncode == 2
    assert f"{operator}:1: instanse: no such field; did you mean instance?" in ended.stderr


def test_deployment_of_another_application_is_refused_with_5(run: Run, story: Path, operator: Path) -> None:
    with edited(story / "snapshot.json") as snapshot:
        for worker in snapshot["workers"]:
            for deployment in worker["deployments"]:
                tracking = {"argocd.argoproj.io/tracking-id": "other:apps/Deployment:default/x"}
                deployment["metadata"].setdefault("annotations", {}).update(tracking)
    ended = run(*RENDER, env=plugin(operator))
    assert (ended.returncode, ended.stdout) == (5, "")
    assert "tracked by Argo CD application other" in ended.stderr


def test_deployments_that_the_controller_still_owns_are_refused_with_5_and_told_at_a_terminal(
    run: Run, story: Path, operator: Path
) -> None:
    with edited(story / "snapshot.json") as snapshot:
        for worker in snapshot["workers"]:
            for deployment in worker["deployments"]:
                owner = {"apiVersion": "temporal.io/v1alpha1", "kind": "WorkerDeployment"}
                deployment["metadata"]["ownerReferences"] = [owner | {"name": worker["name"]}]
    ended = run(*RENDER, env=plugin(operator))
    assert (ended.returncode, ended.stdout) == (5, "")
    assert "if it is deleted or pruned, Kubernetes deletes them with all pods" in ended.stderr
    person = run(*RENDER)
    assert (person.returncode, person.stdout.count("kind: Deployment")) == (0, 2), person.stderr
    assert "if it is deleted or pruned, Kubernetes deletes them with all pods" in person.stderr


def test_settings_of_an_application_mean_nothing_outside_of_argocd(run: Run, story: Path) -> None:  # noqa: ARG001
    assert run(*RENDER, env={**ENVIRONMENT, "ARGOCD_ENV_TWGEN_TIMEOUT": "x"}).returncode == 0


def test_plugin_variable_that_is_not_ours_means_nothing(run: Run, operator: Path) -> None:
    others = {"ARGOCD_APP_TWGEN_NOW": "x", "PARAM_NOW": "x", "MY_ARGOCD_ENV_TIMEOUT": "x"}
    assert run(*RENDER, env=plugin(operator, **others)).returncode == 0


@pytest.mark.parametrize("name", ["IMAGE_TAG", "TIMEOUT", "MY_TWGEN_NOW"])
def test_variable_of_an_application_that_sets_nothing_is_refused_by_its_name(
    run: Run, operator: Path, name: str
) -> None:
    refused = run(*RENDER, env=plugin(operator, **{f"ARGOCD_ENV_{name}": "x"}))
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"twgen: {name} in plugin.env of the Application sets nothing: ")


def test_connection_that_no_profile_lists_is_not_used_in_argocd(run: Run, operator: Path) -> None:
    ended = run("render", "specs", env=plugin(operator))
    assert (ended.returncode, ended.stdout) == (3, "")
    assert "ask the operator to add a profile for them" in ended.stderr
    assert "(for default/helloworld of specs/" in ended.stderr


def test_profile_that_the_project_may_not_use_is_refused(run: Run, story: Path, operator: Path) -> None:
    address = json.loads((story / "specs" / "connection.json").read_text())["spec"]["hostPort"]
    profiles = story / "temporal.toml"
    profiles.write_text(f'[profile.pay]\naddress = "{address}"\nnamespace = "default"\napi_key = "the-key"\n')
    temporal = {"configFile": str(profiles), "profiles": [{"name": "pay", "projects": ["shop"]}]}
    operator.write_text(json.dumps({**OPERATOR, "temporal": temporal}))
    ended = run("render", "specs", env=plugin(operator))
    assert (ended.returncode, ended.stdout) == (3, "")
    said = (
        "Argo CD project 'payments' may not use profile 'pay': the operator must list the project there, in"
    )
    assert f"{said} temporal.profiles of {operator}\n" in ended.stderr
    assert "the-key" not in ended.stderr


@pytest.mark.parametrize("variable", ["OPERATOR_CONFIG", "KUBECONFIG", "SNAPSHOT", "CA_FILE"])
def test_repository_gives_no_file_of_the_operator(run: Run, operator: Path, variable: str) -> None:
    given = f"authority={operator.name}" if variable == "CA_FILE" else operator.name
    ended = run(*RENDER, env=plugin(operator) | {f"TWGEN_{variable}": given})
    why = "must be an absolute path, because the repository may contain such a file"
    refused(ended, f"TWGEN_{variable}: 'operator.json' {why}")


def test_repository_does_not_choose_whom_a_profile_trusts(run: Run, story: Path, operator: Path) -> None:
    profiles = story / "temporal.toml"
    tls = '[profile.pay.tls]\nserver_ca_cert_path = "ca.pem"\n'
    profiles.write_text(f'[profile.pay]\naddress = "temporal:7233"\n{tls}')
    (story / "ca.pem").write_text("of whoever may merge")
    operator.write_text(json.dumps({**OPERATOR, "temporal": {"configFile": str(profiles)}}))
    ended = run("render", "specs", env=plugin(operator))
    assert (ended.returncode, ended.stdout) == (3, "")
    assert "Temporal profile 'pay': server_ca_cert_path must be an absolute path, such as /" in ended.stderr


def test_template_that_would_silently_not_be_deployed_fails_a_render_in_argocd(
    run: Run, story: Path, operator: Path
) -> None:
    target = json.loads(run("plan", *RENDER[1:], "-o", "json").stdout)["workers"][0]["targetBuildID"]
    with edited(story / "snapshot.json") as snapshot:
        for deployment in snapshot["workers"][0]["deployments"]:
            if deployment["metadata"]["labels"]["temporal.io/build-id"] == target:
                annotations = deployment["spec"]["template"].setdefault("metadata", {})
                annotations["annotations"] = {"temporal.io/pod-template-spec-hash": "another"}
    told = f"default/helloworld: {target} is already the build ID of another pod template"
    in_argocd = run(*RENDER, env=plugin(operator))
    refused(in_argocd, "1 problem found")
    assert told in in_argocd.stderr
    at_a_terminal = run(*RENDER)
    assert at_a_terminal.returncode == 0
    assert f"warning: {told}" in at_a_terminal.stderr


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "temporal.localhost", "LOCALHOST"])
def test_address_of_each_pod_itself_is_warned_of_in_argocd(
    run: Run, story: Path, operator: Path, host: str
) -> None:
    with edited(story / "specs" / "connection.json") as connection:
        connection["spec"]["hostPort"] = f"{host}:7233"
    told = (
        f"spec.hostPort: {host.lower().strip('[]')} is the pod itself: write the address of"
        " Temporal, unless a proxy runs in the pods"
    )
    assert told in run("validate", "specs", env=plugin(operator)).stderr
    assert told not in run("validate", "specs").stderr
    strict = run("validate", "specs", env=plugin(operator, parameter("strict", "true")))
    assert (strict.returncode, told in strict.stderr) == (0, False), "a proxy in the pods is reached so"
