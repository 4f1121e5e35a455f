"""What an API server takes of a worker's pods, and nobody means."""

from collections.abc import Iterator, Mapping
from typing import Any

from twgen.model.paths import value_at
from twgen.model.problem import quoted
from twgen.versioning.quantities import quantity_nanos

_BYTES = ("memory", "ephemeral-storage")
_LEAST_BYTES = 2**20
_NANOS = 10**9
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_ASKED = ("httpGet", "tcpSocket")


def doubts_of_pod(pod: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is doubtful about the stored form of a pod that an API server takes, each with its path in it."""
    for field in ("initContainers", "containers"):
        for index, container in enumerate(pod.get(field) or ()):
            for place, doubt in _doubts_of_container(container):
                yield f"{field}[{index}].{place}", doubt


def _doubts_of_container(container: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for field in ("limits", "requests"):
        for name in _BYTES:
            amount = value_at(container, "resources", field, name)
            if amount and 0 < quantity_nanos(amount) < _LEAST_BYTES * _NANOS:
                why = f"{amount} is less than a mebibyte, and no container starts with that: write Mi or Gi"
                yield f"resources.{field}.{name}", why
    ports = {port.get("name") for port in container.get("ports") or ()}
    for probe in _PROBES:
        for asked in _ASKED:
            port = value_at(container, probe, asked, "port")
            if isinstance(port, str) and port not in ports:
                yield (
                    f"{probe}.{asked}.port",
                    f"there is no port named {quoted(port)}: the probe always fails",
                )
