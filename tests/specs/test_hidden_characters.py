"""What nobody sees in a name is named, with its place."""

from typing import Any

import pytest

from tests.specs.parsing import CONNECTION, attach, parsed, policy, told, worker
from twgen.model.problem import hidden_character, quoted

ZERO_WIDTH = "character 4 is zero width space, U+200B"
ANEW = "contains an invisible character: retype it"


@pytest.mark.parametrize(
    ("character", "called"),
    [
        ("\u00a0", "no-break space, U+00A0"),
        ("\u00ad", "soft hyphen, U+00AD"),
        ("\u200b", "zero width space, U+200B"),
        ("\u200d", "zero width joiner, U+200D"),
        ("\u202e", "right-to-left override, U+202E"),
        ("\u2060", "word joiner, U+2060"),
        ("\u3000", "ideographic space, U+3000"),
        ("\ufe0f", "variation selector-16, U+FE0F"),
        ("\ufeff", "zero width no-break space, U+FEFF"),
    ],
)
def test_character_that_nobody_sees_is_named(character: str, called: str) -> None:
    assert hidden_character(f"pay{character}ments") == f"character 4 is {called}"
    assert quoted(f"{character}pay").endswith(f"(character 1 is {called})")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "payments",
        "zahlungen-für-käufe",
        "支払い",
        "a b",
        "\u0645\u06cc\u200c\u062e\u0648",
        "\u2764\ufe0f",
        "👩\u200d💻",
    ],
)
def test_text_that_is_seen_is_told_as_it_is(text: str) -> None:
    assert hidden_character(text) == ""
    assert quoted(text) == repr(text)


def problem_of(value: dict[str, Any], *others: dict[str, Any]) -> str:
    [problem] = told(parsed(value, *others).problems)
    return problem


@pytest.mark.parametrize("field", ["temporalNamespace", "taskQueue", "unsafeCustomBuildID"])
def test_options_of_a_worker_name_what_nobody_sees(field: str) -> None:
    options = worker()["spec"]["workerOptions"] | {field: "pay\u200bments"}
    found = parsed(worker(workerOptions=options), CONNECTION)
    assert found.warnings == ()
    assert problem_of(worker(workerOptions=options), CONNECTION) == (
        f"spec.workerOptions.{field}: 'pay\\u200bments' ({ZERO_WIDTH}) {ANEW}"
    )


def test_connection_names_what_nobody_sees() -> None:
    def wrong(**spec: Any) -> str:
        return problem_of({**CONNECTION, "spec": {"hostPort": "a:7233", **spec}})

    assert wrong(hostPort="tem\u200bporal:7233") == (
        f"spec.hostPort: 'tem\\u200bporal:7233' ({ZERO_WIDTH}) {ANEW}"
    )
    server = {"serverName": "tem\u200bporal"}
    assert wrong(tls=server) == f"spec.tls.serverName: 'tem\\u200bporal' ({ZERO_WIDTH}) {ANEW}"
    # it may be what the Secret holds
    assert wrong(mutualTLSSecretRef={"name": "hun\u200bter2"}) == (
        f"spec.mutualTLSSecretRef.name: contains an invisible character ({ZERO_WIDTH}): retype it"
    )


def test_name_of_a_document_is_told_of_by_what_nobody_sees() -> None:
    misnamed = {**CONNECTION, "metadata": {"name": "tem\u200bporal", "namespace": "shop"}}
    assert problem_of(misnamed).startswith(f"metadata.name: 'tem\\u200bporal' ({ZERO_WIDTH})")


def test_words_and_lengths_and_fields_show_what_nobody_sees() -> None:
    strategy = problem_of(worker(rollout={"strategy": "AllAtOnce\u200b"}), CONNECTION)
    assert "(character 10 is zero width space, U+200B)" in strategy
    assert strategy.endswith("did you mean AllAtOnce?")
    delay = problem_of(worker(sunset={"deleteDelay": "24h\u00a0"}), CONNECTION)
    assert "(character 4 is no-break space, U+00A0) is not a duration: write 24h" in delay
    [unknown] = parsed(worker(**{"repli\u00adcas": 3}), CONNECTION).unknown_fields
    assert unknown.message == ("no such field: character 6 is soft hyphen, U+00AD; did you mean replicas?")
    assert ZERO_WIDTH in problem_of(policy(identity="pay\u200bments"), worker(), CONNECTION)


def pod(**container: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "w", "image": "payments:v3", **container}]}}


def test_short_text_of_a_pod_is_warned_of() -> None:
    env = [{"name": "QUEUE", "value": "pay\u200bments"}, {"name": "TEXT", "value": "zu\u00a0viel, sagt er"}]
    found = parsed(worker(template=pod(env=env, args=["--queue=pay\u00adments"])), CONNECTION)
    assert found.problems == found.unknown_fields == ()
    place = "spec.template.spec.containers[0]"
    assert sorted(told(found.warnings)) == [
        (
            f"{place}.args[0]: '--queue=pay\\xadments' (character 12 is soft hyphen, U+00AD)"
            " contains an invisible character: retype it"
        ),
        f"{place}.env[0].value: 'pay\\u200bments' ({ZERO_WIDTH}) contains an invisible character: retype it",
    ]


def test_what_a_server_refuses_anyway_is_told_once() -> None:
    found = parsed(worker(template=pod(env=[{"name": "A", "value": "b"}], workingDir="/a")), CONNECTION)
    assert found.warnings == ()
    template = {"metadata": {"labels": {"app": "pay\u200bments"}}, **pod()}
    found = parsed(worker(template=template), CONNECTION)
    [refused] = told([*found.problems, *found.unknown_fields, *found.warnings])
    assert refused.startswith("spec.template.metadata.labels.app: 'pay\\u200bments'")
    assert ZERO_WIDTH in refused


def test_short_text_of_an_attached_template_is_warned_of() -> None:
    version = {"workerDeploymentName": "", "workerDeploymentBuildId": ""}
    metadata = {"endpoint": "temporal:7233", "taskQueue": "pay\u200bments", **version}
    trigger = {"type": "temporal", "metadata": metadata}
    scaled = {"scaleTargetRef": {}, "minReplicaCount": 1, "triggers": [trigger]}
    template = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "spec": scaled}
    found = parsed(worker(), CONNECTION, attach(template))
    assert found.problems == found.unknown_fields == ()
    assert told(found.warnings) == [
        (
            "spec.template.spec.triggers[0].metadata.taskQueue: 'pay\\u200bments'"
            f" ({ZERO_WIDTH}) contains an invisible character: retype it"
        )
    ]
