"""Who runs twgen."""

from dataclasses import dataclass

from twgen.model.policy import Policy


@dataclass(frozen=True, slots=True)
class Caller:
    """Who runs twgen, and for which Argo CD application."""

    identity: str = ""
    """The manager identity of workers whose policy names none; empty: nobody said."""
    forced: bool = False
    """The identity goes before that of a policy."""
    is_person: bool = False
    """The identity is that of whoever looks, and no Deployment carries it."""
    application: str = ""
    """The Argo CD application that is rendered; empty: none."""

    def of(self, policy: Policy) -> str:
        """The manager identity under a policy; empty: nobody said."""
        if policy.identity and not self.forced:
            return f"twgen/{policy.identity}"
        return self.identity

    def on_deployments_of(self, policy: Policy) -> str:
        """The manager identity that Deployments carry under a policy; empty: nobody said."""
        return "" if self.is_person and not policy.identity else self.of(policy)
