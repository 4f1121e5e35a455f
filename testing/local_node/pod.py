"""Runs a Pod: a thread reconciles its processes with its object, and reports the status."""

import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Event, Thread
from typing import Any

from urllib3.exceptions import HTTPError

from testing.kubernetes.api import Api, Object, Refused
from testing.local_node.container import Container, Place
from testing.local_node.image import Image
from testing.local_node.materials import Materials
from testing.local_node.status import pod_status
from testing.local_node.volumes import write_volumes

_RETRY = 0.5
_GONE = (404, 409)
_GRACE_AT_STOP = 5.0


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of all Pods on a node."""

    api: Api
    api_address: str
    folder: Path
    unshare: Sequence[str]
    """The command that creates a mount namespace."""
    images: Mapping[str, Image]
    """The file systems of images, by name."""
    back_off: float
    """Seconds before the first restart of a container."""


class Pod:
    """A Pod whose processes run until its object is deleted, or until `stop`."""

    def __init__(self, settings: Settings, document: Object) -> None:
        metadata = document["metadata"]
        self.folder = pod_folder(settings.folder, metadata["namespace"], metadata["name"]) / metadata["uid"]
        self._api = settings.api
        self._path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        self._document = document
        self._reported: Object = {}
        self._must_retry = False
        self._wake = Event()
        self._stopped = False
        self._gone = False
        self._kill_at: float | None = None
        self._killed = False
        self._init, self._main = self._new_containers(settings)
        self._thread = Thread(target=self._live, name=f"pod {metadata['name']}", daemon=True)
        self._thread.start()

    @property
    def process(self) -> int:
        """The process ID of its only running container; raises ValueError if there is none."""
        [found] = [container.process for container in self._containers() if container.process]
        return found

    def see(self, document: Object) -> None:
        """Note that its object has changed."""
        self._document = document
        self._wake.set()

    def lose(self) -> None:
        """End it immediately, because its object is gone."""
        self._gone = True
        self._wake.set()

    def stop(self) -> None:
        """End it with SIGTERM, because the node stops; its status is no longer reported."""
        self._stopped = True
        self._wake.set()

    def join(self) -> None:
        """Wait until all its processes have ended."""
        self._thread.join()

    def _new_containers(self, settings: Settings) -> tuple[Sequence[Container], Sequence[Container]]:
        spec = self._document["spec"]
        materials = Materials(settings.api, settings.api_address, self._document)

        @cache
        def volumes() -> Mapping[str, Path]:
            return write_volumes(self.folder / "volumes", materials)

        place = Place(
            self.folder,
            materials,
            volumes,
            settings.unshare,
            settings.images,
            settings.back_off,
            self._wake.set,
        )
        policy = spec.get("restartPolicy", "Always")
        initial = "Never" if policy == "Never" else "OnFailure"
        return (
            [Container(one, initial, place) for one in spec.get("initContainers", [])],
            [Container(one, policy, place) for one in spec["containers"]],
        )

    def _live(self) -> None:
        self.folder.mkdir(parents=True)
        try:
            while not self._advance():
                self._wake.wait(self._pause())
                self._wake.clear()
        finally:
            for container in self._containers():
                container.end(signal.SIGKILL)
            # its logs are kept, but not its secrets
            shutil.rmtree(self.folder / "volumes", ignore_errors=True)

    def _advance(self) -> bool:
        """Do what is due; returns whether the Pod is finished."""
        self._must_retry = False
        if self._gone or self._stopped or "deletionTimestamp" in self._document["metadata"]:
            return self._end()
        for container in self._current_containers():
            container.advance()
        self._report()
        return False

    def _containers(self) -> Sequence[Container]:
        return [*self._init, *self._main]

    def _current_containers(self) -> Sequence[Container]:
        """The first init container that has not succeeded; the main containers once all have."""
        for container in self._init:
            if container.exit_code != 0:
                return [container]
        return self._main

    def _end(self) -> bool:
        now = time.monotonic()
        if self._kill_at is None:
            self._signal(signal.SIGTERM)
        self._kill_at = min(self._kill_at or now + self._grace(), now + self._grace())
        if not self._killed and now >= self._kill_at:
            self._killed = True
            self._signal(signal.SIGKILL)
        for container in self._containers():
            container.advance()
        if any(container.is_running for container in self._containers()):
            return False
        return self._stopped or self._gone or (self._report() and self._remove())

    def _grace(self) -> float:
        if self._gone:
            return 0.0
        usual = self._document["spec"].get("terminationGracePeriodSeconds", _GRACE_AT_STOP)
        grace = float(self._document["metadata"].get("deletionGracePeriodSeconds", usual))
        return min(grace, _GRACE_AT_STOP) if self._stopped else grace

    def _signal(self, number: signal.Signals) -> None:
        for container in self._containers():
            container.end(number)

    def _pause(self) -> float | None:
        """Seconds until the next step is due; None if only an event matters."""
        now = time.monotonic()
        due = [container.due for container in self._current_containers() if container.due is not None]
        if self._kill_at is not None:
            due = [] if self._killed else [self._kill_at]
        if self._must_retry:
            due.append(now + _RETRY)
        return max(0.0, min(due) - now) if due else None

    def _report(self) -> bool:
        """Report the status; returns whether the API server has it."""
        failed_to_begin = any(container.exit_code for container in self._init)
        before = self._reported or self._document.get("status", {})
        status = pod_status(before, self._init, self._main, has_failed=failed_to_begin)
        if status == self._reported:
            return True
        uid = {"uid": self._document["metadata"]["uid"]}
        changes = {"metadata": uid, "status": status}
        if not self._tell(lambda: self._api.patch(f"{self._path}/status", changes)):
            return False
        self._reported = status
        return True

    def _remove(self) -> bool:
        preconditions = {"uid": self._document["metadata"]["uid"]}
        options = {"gracePeriodSeconds": 0, "preconditions": preconditions}
        return self._tell(lambda: self._api.delete(self._path, options))

    def _tell(self, call: Callable[[], Any]) -> bool:
        try:
            call()
        except Refused as refused:
            # the Pod is gone, and another one may have its name
            self._gone = self._gone or refused.status in _GONE
            self._must_retry = not self._gone
            return self._gone
        except HTTPError:
            self._must_retry = True
            return False
        return True


def pod_folder(folder: Path, namespace: str, name: str) -> Path:
    """The folder for the output of all Pods with this name, each in a folder named by its UID."""
    return folder / namespace / name
