"""What the reports of a plan say alike."""

from twgen.model.plan import RoutingAction, RoutingPlan, VersionAction, VersionPlan


def change_words(routing: RoutingPlan) -> str:
    """The next change of traffic, as an order."""
    match routing.action:
        case RoutingAction.SET_CURRENT:
            return f"make {routing.build_id} current"
        case RoutingAction.SET_RAMP:
            return f"send {routing.percentage} % of new workflows to {routing.build_id}"
        case RoutingAction.CLEAR_RAMP:
            return "end the ramp"
        case RoutingAction.NONE:
            return "no change of traffic"


def replicas_words(version: VersionPlan) -> str:
    """The replicas of a version: as they are, or from what to what."""
    live = version.live.replicas if version.live else None
    if version.action is VersionAction.DROP:
        return f"{live} → gone"
    if not version.is_rendered:
        return "" if live is None else str(live)
    if version.replicas is None:
        return "left out" if live is None else f"{live} (left out)"
    return str(version.replicas) if live in {None, version.replicas} else f"{live} → {version.replicas}"
