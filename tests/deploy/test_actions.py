"""The buttons of Argo CD: the scripts themselves, in the version of Lua that Argo CD runs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lupa import lua51

from tests.strategies import NOW
from twgen.model.plan import Phase
from twgen.model.reasons import RoutingReason
from twgen.model.rollout import PendingRequest, Verb
from twgen.model.status import RolloutStatus
from twgen.planning.requests import offered
from twgen.records.rollout_status import annotation_of, parse_pending
from twgen.versioning.names import ABORT_REQUEST, REQUEST, REQUEST_ANNOTATIONS
from twgen.yaml.reader import read_documents

[CONFIG] = read_documents((Path(__file__).parents[2] / "deploy" / "actions" / "argocd-cm.yaml").read_text())
[ACTIONS] = read_documents(CONFIG["data"]["resource.customizations.actions.ConfigMap"])
FASTER = "Promote Retry"


def status(phase: str, reason: str, permits: str = FASTER, **annotations: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "payments-rollout-status",
            "namespace": "shop",
            "resourceVersion": "4711",
            "labels": {"twgen.io/rollout": "payments"},
            **({"annotations": annotations} if annotations else {}),
        },
        "data": {"phase": phase, "reason": reason, "target": "v2.0.1-c656", "permits": permits},
    }


def run(script: str, manifest: dict[str, Any]) -> Any:
    """What a script returns, with `obj` as Argo CD gives it."""
    lua = lua51.LuaRuntime(unpack_returned_tuples=True)
    # Argo CD opens no other libraries than base, table, package and a part of os
    lua.execute('debug.setmetatable("", nil); string, math, io, os, coroutine, debug = nil')
    lua.globals().obj = lua.table_from(manifest, recursive=True)
    return _plain(lua.execute(script))


def _plain(value: Any) -> Any:
    if lua51.lua_type(value) == "table":
        return {key: _plain(item) for key, item in value.items()}
    return value


def enabled(manifest: dict[str, Any]) -> set[str]:
    found = run(ACTIONS["discovery.lua"], manifest)
    assert not found or set(found) == {f"twgen-{verb.lower()}" for verb in Verb}
    return {name.removeprefix("twgen-") for name, action in found.items() if not action["disabled"]}


@pytest.mark.parametrize(
    ("phase", "reason", "permits", "expected"),
    [
        ("Settled", "Settled", FASTER, set()),
        ("Waiting", "RampPaused", FASTER, {"pause", "abort", "promote"}),
        ("Waiting", "RampPaused", "", {"pause", "abort"}),
        ("Waiting", "UntilPromoted", "Promote", {"pause", "abort", "promote"}),
        ("Moving", "NextStep", "Retry", {"pause", "abort"}),
        ("Waiting", "Paused", FASTER, {"resume", "abort", "promote"}),
        ("Blocked", "Aborted", FASTER, {"retry"}),
        ("Blocked", "Aborted", "Promote", set()),
        ("Blocked", "GateFailed", FASTER, {"abort", "retry"}),
        ("Blocked", "RolloutEnded", "Retry", {"retry"}),
    ],
)
def test_button_is_enabled_only_where_it_makes_sense(
    phase: str, reason: str, permits: str, expected: set[str]
) -> None:
    assert RoutingReason(reason)
    assert enabled(status(phase, reason, permits)) == expected


@pytest.mark.parametrize("permits", ["", "Promote", "Retry", "Promote Retry"])
def test_argo_cd_and_the_page_offer_the_same(permits: str) -> None:
    verbs = tuple(verb for verb in Verb if verb in permits.split())
    for reason in RoutingReason:
        for phase in Phase:
            manifest = status(phase.value, reason.value, permits)
            kept = RolloutStatus("shop/payments", phase, reason, "", "v2", None, None, NOW, None)
            kept = replace(kept, permits=verbs, resource_version="4711")
            assert enabled(manifest) == {verb.lower() for verb in offered(kept)}, (phase, reason)
            for name in REQUEST_ANNOTATIONS:
                waits = replace(kept, pending=(PendingRequest(name, None, "", None, "4711"),))
                asked = status(phase.value, reason.value, permits, **{name: "{}"})
                assert enabled(asked) == {verb.lower() for verb in offered(waits)}, (phase, reason)


def test_abort_can_be_pressed_in_every_state_in_which_a_rollout_moves_traffic() -> None:
    for reason in RoutingReason:
        for phase in ("Moving", "Waiting"):
            expected = reason not in {"Aborted", "RolloutEnded", "InvalidIntent"}
            assert ("abort" in enabled(status(phase, reason.value))) == expected, reason


@pytest.mark.parametrize(
    "manifest",
    [
        {"metadata": {"name": "settings"}, "data": {"phase": "Waiting"}},
        {"metadata": {"name": "settings", "labels": {"app": "shop"}}},
        {
            "metadata": {"name": "payments-rollout", "labels": {"twgen.io/rollout": "payments"}},
            "data": {"target": "v2"},
        },
    ],
)
def test_other_config_map_has_no_buttons(manifest: dict[str, Any]) -> None:
    assert run(ACTIONS["discovery.lua"], manifest) == {}


SCRIPTS = {action["name"].removeprefix("twgen-"): action["action.lua"] for action in ACTIONS["definitions"]}


@pytest.mark.parametrize("verb", list(Verb))
def test_button_makes_a_request_that_a_rollout_reads(verb: Verb) -> None:
    for manifest in (status("Waiting", "RampPaused"), status("Waiting", "RampPaused", other="kept")):
        pressed = run(SCRIPTS[verb.lower()], manifest)
        [pending] = parse_pending(pressed)
        assert (pending.wrong, pending.annotation) == ("", annotation_of(verb))
        request = pending.request
        assert request
        expected = (f"argocd-{verb.lower()}-4711", verb, "v2.0.1-c656", "RampPaused")
        assert (request.id, request.verb, request.target, request.reason) == expected
        assert request.by == "Argo CD"
        others = {name for name in pressed["metadata"]["annotations"] if name != pending.annotation}
        assert others == set(manifest["metadata"].get("annotations", ()))


@pytest.mark.parametrize("verb", list(Verb))
@pytest.mark.parametrize("waiting", list(Verb))
def test_while_a_request_waits_every_other_button_than_abort_is_an_error(verb: Verb, waiting: Verb) -> None:
    pressed = run(SCRIPTS[waiting.lower()], status("Waiting", "RampPaused"))
    before = pressed["metadata"]["annotations"]
    if verb is not Verb.ABORT:
        with pytest.raises(lua51.LuaError, match=r"^a request waits for its answer"):
            run(SCRIPTS[verb.lower()], pressed)
        return
    after = run(SCRIPTS["abort"], pressed)["metadata"]["annotations"]
    assert set(after) == {*before, ABORT_REQUEST}
    if waiting is not Verb.ABORT:
        assert after[REQUEST] == before[REQUEST], "its answer must find it"


def test_buttons_say_that_a_request_waits() -> None:
    pressed = run(SCRIPTS["pause"], status("Waiting", "RampPaused"))
    actions = run(ACTIONS["discovery.lua"], pressed)
    assert {action["displayName"] for action in actions.values()} == {
        f"{verb} (a request waits)" for verb in Verb
    }
    assert enabled(pressed) == {"abort"}
