"""Reading what a RolloutPolicy does to the workflows of versions that drain."""

import json
from collections.abc import Iterator
from datetime import timedelta

from twgen.model.draining import DrainingEntry, Ending, WhatEnds
from twgen.model.histories import ReplayBefore
from twgen.model.policy import Policy
from twgen.specs.fields import Fields
from twgen.specs.limits import WORKFLOW_TYPE

MOST_ENTRIES = 10
"""Each costs a version an entry in its metadata."""
MOST_TYPES = 50
LONGEST_INPUT = 10_000
"""Characters; it is part of every intent."""
_LEAST_AGE = timedelta(seconds=1)
_ENDS = {Ending.CANCEL, Ending.TERMINATE}


def parse_draining(spec: Fields) -> tuple[DrainingEntry, ...]:
    """The entries of a policy's `spec`, in order of age."""
    written = spec.raw("draining")
    if isinstance(written, list) and len(written) > MOST_ENTRIES:
        spec.problem("draining", f"has {len(written)} entries: at most {MOST_ENTRIES} are allowed")
        return ()
    return tuple(_entries(spec))


def _entries(spec: Fields) -> Iterator[DrainingEntry]:
    before = timedelta()
    for fields in spec.mappings("draining"):
        for name in ("after", "action"):
            if not fields.has(name):
                fields.problem(name, "is required")
        after = fields.duration("after", before, least=_LEAST_AGE)
        if after < before:
            fields.problem("after", "must not be shorter than in the entry above: sort the entries by age")
        before = max(before, after)
        ending = fields.choice("action", Ending, Ending.SIGNAL)
        # of an action that is none, nothing else is wrong yet
        is_told = fields.raw("action") == ending
        yield DrainingEntry(after, _what(fields, ending, is_told=is_told))
        if is_told:
            _check_consent(fields, ending)
            fields.close()


def check_entries(policy: Policy, spec: Fields) -> None:
    """Note each Move that nothing has replayed, and what ends workflows that a rollback would go on with."""
    is_replayed = policy.replay is not None and policy.replay.before is not ReplayBefore.RAMP
    for fields, entry in zip(spec.mappings("draining"), policy.draining, strict=False):
        if entry.what.ending is not Ending.SIGNAL and entry.after < policy.rollback_window:
            fields.warning(
                "after", "is shorter than rollbackWindow: a rollback to that version may come too late"
            )
        if entry.what.needs_replay and not is_replayed:
            why = "no replay covers the version that these workflows would move to"
            remedy = "set spec.replay with `when: BeforeMove`, or `withoutReplay: true` in this entry"
            fields.problem("action", f"{why}: {remedy}")


def _check_consent(fields: Fields, ending: Ending) -> None:
    """What nobody can undo is written twice."""
    allowed = fields.boolean("allowTermination")
    if ending in _ENDS and not allowed:
        fields.problem("action", f"{ending} ends workflows: set `allowTermination: true` in the same entry")
    for name, goes_with in (("allowTermination", _ENDS), ("withoutReplay", {Ending.MOVE})):
        if fields.has(name) and ending not in goes_with:
            fields.warning(name, f"has no effect on {ending}")


def _what(fields: Fields, ending: Ending, *, is_told: bool) -> WhatEnds:
    is_signal = is_told and ending is Ending.SIGNAL
    signal_name = fields.line("signalName", required=is_signal)
    types = fields.lines("workflowTypes", form=WORKFLOW_TYPE)
    if len(types) > MOST_TYPES:
        fields.problem("workflowTypes", f"has {len(types)} types: at most {MOST_TYPES} are allowed")
    if fields.raw("workflowTypes") == []:
        fields.problem("workflowTypes", "must not be empty: leave it out for all types")
    told = fields.raw("signalInput")
    signal_input = None if told is None else json.dumps(told, separators=(",", ":"), sort_keys=True).encode()
    if signal_input and len(signal_input) > LONGEST_INPUT:
        fields.problem("signalInput", f"is longer than {LONGEST_INPUT} characters")
    for name in ("signalName", "signalInput"):
        if is_told and not is_signal and fields.has(name):
            fields.problem(name, f"belongs to Signal, not to {ending}")
    return WhatEnds(
        ending,
        types,
        signal_name=signal_name,
        signal_input=signal_input,
        without_replay=ending is Ending.MOVE and fields.boolean("withoutReplay"),
    )
