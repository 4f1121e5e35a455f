"""Check `draining` of a RolloutPolicy, its actions on the workflows of draining versions."""

from datetime import timedelta

from twgen.model.draining import BatchAction, DrainingEntry
from twgen.model.histories import ReplayBefore
from twgen.model.policy import Policy
from twgen.specs.declared import spec_shape
from twgen.specs.fields import Fields

_ENDS = {BatchAction.CANCEL, BatchAction.TERMINATE}


def _check(fields: Fields, entry: DrainingEntry) -> None:
    action = entry.what.action
    # an entry without a valid action cannot be checked further
    if fields.raw("action") != action:
        return
    if action is BatchAction.SIGNAL and not entry.what.signal_name:
        fields.problem("signalName", "must not be empty" if fields.has("signalName") else "is required")
    for name in ("signalName", "signalInput"):
        if action is not BatchAction.SIGNAL and fields.has(name):
            fields.problem(name, f"belongs to Signal, not to {action}")
    # nobody can undo these actions, so the spec must say them twice
    if action in _ENDS and not entry.allow_termination:
        fields.problem("action", f"{action} ends workflows: set `allowTermination: true` in the same entry")
    for name, goes_with in (("allowTermination", _ENDS), ("withoutReplay", {BatchAction.MOVE})):
        if fields.has(name) and action not in goes_with:
            fields.warning(name, f"has no effect on {action}")


def check_entries(policy: Policy, spec: Fields) -> None:
    """Note each Move without a replay, and each action that ends workflows a rollback may need."""
    is_replayed = policy.replay is not None and policy.replay.before is not ReplayBefore.RAMP
    above = timedelta()
    for fields, entry in zip(spec.mappings("draining"), policy.draining, strict=False):
        if entry.after < above and fields.has("after"):
            fields.problem("after", "must not be shorter than in the entry above: sort the entries by age")
        above = max(above, entry.after)
        if entry.what.action is not BatchAction.SIGNAL and entry.after < policy.rollback_window:
            fields.warning(
                "after", "is shorter than rollbackWindow: a rollback to that version may come too late"
            )
        if entry.what.needs_replay and not is_replayed:
            why = "no replay covers the version that these workflows would move to"
            remedy = "set spec.replay with `when: BeforeMove`, or `withoutReplay: true` in this entry"
            fields.problem("action", f"{why}: {remedy}")


ENTRY = spec_shape(DrainingEntry, _check)
