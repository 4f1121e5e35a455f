"""The replicas of a Deployment, and the field managers that hold them, as server-side apply has it."""

from dataclasses import dataclass, field
from typing import Any

ARGOCD, ROLLOUT, HPA = "argocd-controller", "twgen", "kube-controller-manager"


@dataclass
class HeldReplicas:
    """`spec.replicas` of one Deployment."""

    number: int
    holders: set[str] = field(default_factory=lambda: {ARGOCD})

    def managed_fields(self) -> list[dict[str, Any]]:
        """The entries of its managers, and that of the rest of the manifest."""
        applied = {"manager": ARGOCD, "operation": "Apply", "fieldsV1": {"f:spec": {"f:template": {}}}}
        held = {"fieldsV1": {"f:spec": {"f:replicas": {}}}}
        fields = [{"manager": holder, "operation": "Apply", **held} for holder in self.holders - {HPA}]
        if HPA in self.holders:
            fields.append({"manager": HPA, "operation": "Update", "subresource": "scale", **held})
        return [applied, *fields]

    def set_by(self, holder: str, number: int) -> None:
        """Set them as a manager that overrides others."""
        self.holders = {holder} if number != self.number else self.holders | {holder}
        self.number = number

    def sync(self, number: int | None) -> None:
        """Apply a manifest as Argo CD does; None: it has no replicas."""
        if number is not None:
            self.set_by(ARGOCD, number)
        elif self.holders == {ARGOCD}:
            self.holders, self.number = set(), 1  # the default, which no manifest set
        else:
            self.holders -= {ARGOCD}
