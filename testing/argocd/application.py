"""Creates, changes and observes an Application of Argo CD."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from testing.argocd.argocd import NAMESPACE, ArgoCD
from testing.kubernetes.api import Object, Refused
from testing.processes import eventually

_REFRESH = "argocd.argoproj.io/refresh"
_SOON = 300.0
_REQUESTS = 5
"""The number of times that a refresh is requested until then."""
_OF_ARGOCD = ("context canceled", "error sending stream")
"""Errors of renders that Argo CD itself has aborted, but shows as the plugin's."""
PLUGIN: Mapping[str, Any] = {
    "plugin": {"name": "twgen", "parameters": [{"name": "strict", "string": "true"}]}
}
"""The part of its source that selects twgen, as in docs/first-application.md."""


@dataclass(frozen=True, slots=True)
class Application:
    """An Application that deploys a folder of the repository to a namespace."""

    argo: ArgoCD
    name: str
    namespace: str
    home: str = NAMESPACE
    """The namespace of the Application object."""
    server: str = "https://kubernetes.default.svc"
    """The target cluster; by default the cluster of Argo CD."""

    @property
    def path(self) -> str:
        """The path of the Application object in the API."""
        return f"{self._collection}/{self.name}"

    @property
    def _collection(self) -> str:
        return f"/apis/argoproj.io/v1alpha1/namespaces/{self.home}/applications"

    def create(
        self,
        retry: Mapping[str, Any] | None = None,
        *,
        is_plain: bool = False,
        is_automated: bool = True,
    ) -> None:
        """Create it for the folder with its name. If it is automated, it syncs, prunes and self-heals.

        If it is plain, Argo CD renders the folder without the plugin.
        """
        source: Object = {
            "repoURL": self.argo.repository.address,
            "path": self.name,
            "targetRevision": "main",
            **({} if is_plain else PLUGIN),
        }
        spec: Object = {
            "project": "default",
            "source": source,
            "destination": {"server": self.server, "namespace": self.namespace},
            "syncPolicy": {"automated": {"prune": True, "selfHeal": True}} if is_automated else {},
        }
        if retry:
            spec["syncPolicy"] |= {"retry": retry}
        head = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": self.name}}
        self.argo.cluster.api.create(self._collection, {**head, "spec": spec})

    def find(self) -> Object:
        """The Application object; empty if it does not exist."""
        return self.argo.cluster.api.find(self.path) or {}

    def get(self) -> Object:
        """The Application object. It always has a sync status, even before Argo CD has set one."""
        found: Object = self.argo.cluster.api.get(self.path)
        found.setdefault("status", {}).setdefault("sync", {"status": ""})
        return found

    def refresh(self, kind: str = "normal") -> None:
        """Request a refresh (`hard` renders again), and wait until it is done.

        Argo CD does not see a request that arrives just before it caches its own change of the Application
        (github.com/argoproj/argo-cd/pull/6372). So the request is made again.
        """
        for _ in range(_REQUESTS):
            self.begin_to_refresh(kind)
            with suppress(AssertionError):
                eventually(self._is_refreshed, _SOON / _REQUESTS)
                return
            self.change({"metadata": {"annotations": {_REFRESH: None}}})
        raise AssertionError(f"{self.name} was not refreshed within {_SOON:.0f} s")

    def _is_refreshed(self) -> bool:
        return _REFRESH not in self.get()["metadata"].get("annotations", {})

    def begin_to_refresh(self, kind: str = "normal") -> None:
        """Request a refresh without waiting for it."""
        self.change({"metadata": {"annotations": {_REFRESH: kind}}})

    def siblings(self) -> Sequence[Object]:
        """All Application objects that deploy to the same namespace and cluster."""
        place = {"server": self.server, "namespace": self.namespace}
        items: Sequence[Object] = self.argo.cluster.api.get(self._collection)["items"]
        return [item for item in items if item["spec"]["destination"] == place]

    def synced(self, commit: str) -> Object:
        """Wait until this commit is applied completely; returns the Application object."""
        self.refresh()

        def is_synced() -> Object:
            found = self.get()
            operation = found["status"].get("operationState", {})
            if not has_synced(found, commit):
                self._render_again_after_its_own(errors_in(found))
                raise AssertionError(found["status"]["sync"], operation.get("message"), errors_in(found))
            return found

        return eventually(is_synced, _SOON)

    def errors(self) -> Sequence[str]:
        """The errors that Argo CD shows for it."""
        return errors_in(self.get())

    def fails_with(self, *parts: str) -> str:
        """Wait until the errors that Argo CD shows contain all these texts; returns the errors."""

        def shown() -> str:
            found = self.errors()
            errors = " ".join(found)
            if errors and all(part in errors for part in parts):
                return errors
            self._render_again_after_its_own(found)
            raise AssertionError(errors)

        return eventually(shown, _SOON)

    def _render_again_after_its_own(self, errors: Sequence[str]) -> None:
        """Request another render if one of the errors is Argo CD's own, because it would not go away."""
        if any(own in error for error in errors for own in _OF_ARGOCD):
            self.refresh("hard")

    def waits_for_a_person(self) -> bool:
        """Whether its deletion waits for a person's confirmation. Only Argo CD's log shows that."""
        return any("requires manual confirmation to delete" in line for line in self._logged())

    def _logged(self) -> Sequence[str]:
        """The lines about it in the log of the application controller."""
        log = (self.argo.folder / "application-controller.log").read_text()
        return [line for line in log.splitlines() if f'"application":"{self.name}"' in line]

    def goes(self) -> None:
        """Wait until it is gone."""

        def is_gone() -> bool:
            found = self.find()
            if not found:
                return True
            # Argo CD continues a deletion when the object changes, or in its next round
            with suppress(Refused):
                self.begin_to_refresh()
            raise AssertionError(found["metadata"], errors_in(found), self._logged()[-5:])

        eventually(is_gone, _SOON)

    def approve_deletion(self) -> None:
        """Confirm its deletion with all its objects, as `argocd app confirm-deletion` does."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: TID251 - Argo CD compares it
        self.change({"metadata": {"annotations": {"argocd.argoproj.io/deletion-approved": now}}})

    def differing(self) -> Sequence[tuple[str, str]]:
        """Kind and name of all objects that are out of sync."""
        resources: Sequence[Object] = self.get()["status"].get("resources", [])
        return [(one["kind"], one["name"]) for one in resources if one.get("status") == "OutOfSync"]

    def differing_anew(self) -> Sequence[tuple[str, str]]:
        """Kind and name of all objects that differ from a new render, by both of Argo CD's comparisons."""
        found: list[tuple[str, str]] = []
        for side in ("false", "true"):
            how = {"argocd.argoproj.io/compare-options": f"ServerSideDiff={side}"}
            self.change({"metadata": {"annotations": how}})
            self.refresh("hard")
            found += self.differing()
        return found

    def tracked(self) -> Sequence[tuple[str, str]]:
        """Kind and name of all its objects."""
        return [(one["kind"], one["name"]) for one in self.get()["status"].get("resources", [])]

    def change(self, changes: Mapping[str, Any]) -> None:
        """Merge changes into the Application object."""
        self.argo.cluster.api.patch(self.path, changes)

    def delete(self, *, with_all_it_has: bool = False) -> None:
        """Delete it, and wait until it is gone. Its objects are kept, unless `with_all_it_has`."""
        self.begin_to_delete(with_all_it_has=with_all_it_has)
        self.goes()

    def operation(self) -> Object:
        """The running or last sync; empty before the first one."""
        found: Object = self.get()["status"].get("operationState", {})
        return found

    def ended_syncs(self, commit: str) -> Sequence[str]:
        """Argo CD's messages about completed syncs of a commit, including partial syncs and self-heals."""
        path = f"/api/v1/namespaces/{self.home}/events?fieldSelector=involvedObject.name={self.name}"
        events: Sequence[Object] = self.argo.cluster.api.get(path)["items"]
        ended = [str(event["message"]) for event in events if event["reason"] == "OperationCompleted"]
        return [message for message in ended if commit in message]

    def terminate(self) -> None:
        """Terminate the running sync, as `argocd app terminate-op` does, and wait until it has ended."""

        def has_ended() -> bool:
            # Argo CD may overwrite the phase while the sync is running
            if self.operation()["phase"] == "Running":
                self.change({"status": {"operationState": {"phase": "Terminating"}}})
            return bool(self.operation()["phase"] in {"Failed", "Error"})

        eventually(has_ended, _SOON)

    def sync(self) -> None:
        """Begin a full sync, as a person would."""
        self.change({"operation": {"sync": {"prune": True, "syncStrategy": {"hook": {}}}}})

    def begin_to_delete(self, *, with_all_it_has: bool) -> None:
        """Delete it without waiting."""
        finalizers = ["resources-finalizer.argocd.argoproj.io"] if with_all_it_has else None
        self.change({"metadata": {"finalizers": finalizers}})
        self.argo.cluster.api.delete(self.path)

    def discard(self) -> None:
        """Delete it, if it exists, without waiting."""
        try:
            self.change({"metadata": {"finalizers": None}})
            self.argo.cluster.api.delete(self.path)
        except Refused:
            return


def has_synced(application: Object, commit: str) -> bool:
    """Whether this commit is applied completely, and no refresh is pending."""
    status = application.get("status", {})
    sync, operation = status.get("sync", {}), status.get("operationState", {})
    seen = (sync.get("status"), sync.get("revision"), operation.get("phase"))
    is_asked = _REFRESH in application["metadata"].get("annotations", {})
    return seen == ("Synced", commit, "Succeeded") and not is_asked


def errors_in(application: Object) -> Sequence[str]:
    """The errors in the conditions of an Application."""
    conditions: Sequence[Object] = application["status"].get("conditions", [])
    return [str(one["message"]) for one in conditions if one["type"].endswith("Error")]
