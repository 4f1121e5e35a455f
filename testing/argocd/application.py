"""An Application of Argo CD, as tests and a person bring it about and follow it."""

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
_OF_ARGOCD = ("context canceled", "error sending stream")
"""Errors of renders that Argo CD has ended itself, and keeps as if they were the plugin's."""
PLUGIN: Mapping[str, Any] = {
    "plugin": {"name": "twgen", "parameters": [{"name": "strict", "string": "true"}]}
}
"""What its source says to be rendered by twgen, as docs/first-application.md has it."""


@dataclass(frozen=True, slots=True)
class Application:
    """An Application that deploys a folder of the repository into a namespace."""

    argo: ArgoCD
    name: str
    namespace: str
    home: str = NAMESPACE
    """The namespace of its own object."""
    server: str = "https://kubernetes.default.svc"
    """The cluster that it deploys into; by default that of Argo CD."""

    @property
    def path(self) -> str:
        """Of its object, for plain requests."""
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
        """Create it, of the folder with its name; it syncs, prunes and heals by itself, if it is automated.

        A plain one applies the folder as it is, or as Argo CD's own tools render it, without the plugin.
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
        """Its object, empty when there is none."""
        return self.argo.cluster.api.find(self.path) or {}

    def get(self) -> Object:
        """Its object; it has a status, and one of its sync, also before Argo CD has seen it."""
        found: Object = self.argo.cluster.api.get(self.path)
        found.setdefault("status", {}).setdefault("sync", {"status": ""})
        return found

    def refresh(self, kind: str = "normal") -> None:
        """Let Argo CD look again, `hard` by a new render, and wait until it has."""
        self.begin_to_refresh(kind)
        eventually(lambda: _REFRESH not in self.get()["metadata"].get("annotations", {}), _SOON)

    def begin_to_refresh(self, kind: str = "normal") -> None:
        """Ask Argo CD to look again, and do not wait until it has."""
        self.change({"metadata": {"annotations": {_REFRESH: kind}}})

    def siblings(self) -> Sequence[Object]:
        """The objects of all Applications that deploy into its namespace of its cluster."""
        place = {"server": self.server, "namespace": self.namespace}
        items: Sequence[Object] = self.argo.cluster.api.get(self._collection)["items"]
        return [item for item in items if item["spec"]["destination"] == place]

    def synced(self, commit: str) -> Object:
        """Its object, once all of this commit is applied and nothing differs."""
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
        """What Argo CD shows as wrong with it."""
        return errors_in(self.get())

    def fails_with(self, *parts: str) -> str:
        """What Argo CD shows as wrong with it, once that has all these parts."""

        def shown() -> str:
            found = self.errors()
            errors = " ".join(found)
            if errors and all(part in errors for part in parts):
                return errors
            self._render_again_after_its_own(found)
            raise AssertionError(errors)

        return eventually(shown, _SOON)

    def _render_again_after_its_own(self, errors: Sequence[str]) -> None:
        """Ask for another render where one of the errors is Argo CD's own, which it keeps."""
        if any(own in error for error in errors for own in _OF_ARGOCD):
            self.refresh("hard")

    def waits_for_a_person(self) -> bool:
        """It is to be deleted, and Argo CD first wants to hear that it may be; only a log says so."""
        return any("requires manual confirmation to delete" in line for line in self._logged())

    def _logged(self) -> Sequence[str]:
        """What the application controller has written of it."""
        log = (self.argo.folder / "application-controller.log").read_text()
        return [line for line in log.splitlines() if f'"application":"{self.name}"' in line]

    def goes(self) -> None:
        """Wait until it is gone."""

        def is_gone() -> bool:
            found = self.find()
            if not found:
                return True
            # Argo CD goes on with a deletion when the object changes, or in its next round
            with suppress(Refused):
                self.begin_to_refresh()
            raise AssertionError(found["metadata"], errors_in(found), self._logged()[-5:])

        eventually(is_gone, _SOON)

    def approve_deletion(self) -> None:
        """Say that it may be deleted with all it has, as `argocd app confirm-deletion` does."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: TID251 - Argo CD compares it
        self.change({"metadata": {"annotations": {"argocd.argoproj.io/deletion-approved": now}}})

    def differing(self) -> Sequence[tuple[str, str]]:
        """Kind and name of all that is not as Git has it."""
        resources: Sequence[Object] = self.get()["status"].get("resources", [])
        return [(one["kind"], one["name"]) for one in resources if one.get("status") == "OutOfSync"]

    def differing_anew(self) -> Sequence[tuple[str, str]]:
        """Kind and name of all that differs from a new render, by either way in which Argo CD compares."""
        found: list[tuple[str, str]] = []
        for side in ("false", "true"):
            how = {"argocd.argoproj.io/compare-options": f"ServerSideDiff={side}"}
            self.change({"metadata": {"annotations": how}})
            self.refresh("hard")
            found += self.differing()
        return found

    def tracked(self) -> Sequence[tuple[str, str]]:
        """Kind and name of all that it consists of."""
        return [(one["kind"], one["name"]) for one in self.get()["status"].get("resources", [])]

    def change(self, changes: Mapping[str, Any]) -> None:
        """Merge changes into its object."""
        self.argo.cluster.api.patch(self.path, changes)

    def delete(self, *, with_all_it_has: bool = False) -> None:
        """Delete it, and wait until it is gone; what it deployed stays unless told otherwise."""
        self.begin_to_delete(with_all_it_has=with_all_it_has)
        self.goes()

    def operation(self) -> Object:
        """The sync that runs, or else the last one; empty before the first."""
        found: Object = self.get()["status"].get("operationState", {})
        return found

    def ended_syncs(self, commit: str) -> Sequence[str]:
        """What Argo CD tells of each sync of a commit that has ended, those of a part and self-heals too."""
        path = f"/api/v1/namespaces/{self.home}/events?fieldSelector=involvedObject.name={self.name}"
        events: Sequence[Object] = self.argo.cluster.api.get(path)["items"]
        ended = [str(event["message"]) for event in events if event["reason"] == "OperationCompleted"]
        return [message for message in ended if commit in message]

    def terminate(self) -> None:
        """End the sync that runs, as `argocd app terminate-op` does, and wait until it has ended."""

        def has_ended() -> bool:
            # Argo CD's own writes of a running sync may take the word back
            if self.operation()["phase"] == "Running":
                self.change({"status": {"operationState": {"phase": "Terminating"}}})
            return bool(self.operation()["phase"] in {"Failed", "Error"})

        eventually(has_ended, _SOON)

    def sync(self) -> None:
        """Begin a sync as a person does, of all that it has."""
        self.change({"operation": {"sync": {"prune": True, "syncStrategy": {"hook": {}}}}})

    def begin_to_delete(self, *, with_all_it_has: bool) -> None:
        """Delete it, and do not wait for its end."""
        finalizers = ["resources-finalizer.argocd.argoproj.io"] if with_all_it_has else None
        self.change({"metadata": {"finalizers": finalizers}})
        self.argo.cluster.api.delete(self.path)

    def discard(self) -> None:
        """Delete it if it is there, without waiting."""
        try:
            self.change({"metadata": {"finalizers": None}})
            self.argo.cluster.api.delete(self.path)
        except Refused:
            return


def has_synced(application: Object, commit: str) -> bool:
    """All of this commit is applied, nothing differs, and Argo CD was not asked to look again."""
    status = application.get("status", {})
    sync, operation = status.get("sync", {}), status.get("operationState", {})
    seen = (sync.get("status"), sync.get("revision"), operation.get("phase"))
    is_asked = _REFRESH in application["metadata"].get("annotations", {})
    return seen == ("Synced", commit, "Succeeded") and not is_asked


def errors_in(application: Object) -> Sequence[str]:
    """What Argo CD shows as wrong with it."""
    conditions: Sequence[Object] = application["status"].get("conditions", [])
    return [str(one["message"]) for one in conditions if one["type"].endswith("Error")]
