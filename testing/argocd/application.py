"""An Application of Argo CD, as tests and a person bring it about and follow it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testing.argocd.argocd import NAMESPACE, ArgoCD
from testing.kubernetes.api import Object, Refused
from testing.processes import eventually

_PATH = f"/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/applications"
_REFRESH = "argocd.argoproj.io/refresh"
_SOON = 300.0


@dataclass(frozen=True, slots=True)
class Application:
    """An Application that deploys a folder of the repository into a namespace."""

    argo: ArgoCD
    name: str
    namespace: str

    @property
    def path(self) -> str:
        """Of its object, for plain requests."""
        return f"{_PATH}/{self.name}"

    def create(self, retry: Mapping[str, Any] | None = None) -> None:
        """Create it, of the folder with its name; it syncs, prunes and heals by itself."""
        source = {
            "repoURL": self.argo.repository.address,
            "path": self.name,
            "targetRevision": "main",
            "plugin": {"name": "twgen"},
        }
        spec: Object = {
            "project": "default",
            "source": source,
            "destination": {"server": "https://kubernetes.default.svc", "namespace": self.namespace},
            "syncPolicy": {"automated": {"prune": True, "selfHeal": True}},
        }
        if retry:
            spec["syncPolicy"] |= {"retry": retry}
        head = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": self.name}}
        self.argo.cluster.api.create(_PATH, {**head, "spec": spec})

    def get(self) -> Object:
        """Its object; it has a status also before Argo CD has seen it."""
        return {"status": {"sync": {"status": ""}}} | self.argo.cluster.api.get(self.path)

    def refresh(self, kind: str = "normal") -> None:
        """Let Argo CD look again, `hard` by a new render, and wait until it has."""
        self.argo.cluster.api.patch(self.path, {"metadata": {"annotations": {_REFRESH: kind}}})
        eventually(lambda: _REFRESH not in self.get()["metadata"].get("annotations", {}), _SOON)

    def synced(self, commit: str) -> Object:
        """Its object, once all of this commit is applied and nothing differs."""
        self.refresh()

        def is_synced() -> Object:
            found = self.get()
            status, operation = found["status"], found["status"].get("operationState", {})
            seen = (status["sync"]["status"], status["sync"].get("revision"), operation.get("phase"))
            if seen != ("Synced", commit, "Succeeded"):
                raise AssertionError(seen, operation.get("message"), self.errors())
            return found

        return eventually(is_synced, _SOON)

    def errors(self) -> Sequence[str]:
        """What Argo CD shows as wrong with it."""
        conditions: Sequence[Object] = self.get()["status"].get("conditions", [])
        return [str(one["message"]) for one in conditions if one["type"].endswith("Error")]

    def differing(self) -> Sequence[tuple[str, str]]:
        """Kind and name of all that is not as Git has it."""
        resources: Sequence[Object] = self.get()["status"].get("resources", [])
        return [(one["kind"], one["name"]) for one in resources if one.get("status") == "OutOfSync"]

    def tracked(self) -> Sequence[tuple[str, str]]:
        """Kind and name of all that it consists of."""
        return [(one["kind"], one["name"]) for one in self.get()["status"].get("resources", [])]

    def change(self, changes: Mapping[str, Any]) -> None:
        """Merge changes into its object."""
        self.argo.cluster.api.patch(self.path, changes)

    def delete(self, *, with_all_it_has: bool = False) -> None:
        """Delete it, and wait until it is gone; what it deployed stays unless told otherwise."""
        finalizers = ["resources-finalizer.argocd.argoproj.io"] if with_all_it_has else None
        self.change({"metadata": {"finalizers": finalizers}})
        self.argo.cluster.api.delete(self.path)
        eventually(lambda: self.argo.cluster.api.find(self.path) is None, _SOON)

    def discard(self) -> None:
        """Delete it if it is there, without waiting."""
        try:
            self.change({"metadata": {"finalizers": None}})
            self.argo.cluster.api.delete(self.path)
        except Refused:
            return
