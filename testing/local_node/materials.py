"""Reads a Pod's external input: ConfigMaps, Secrets, tokens, and the address of the API server."""

import base64
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from urllib3.exceptions import HTTPError

from testing.kubernetes.api import Api, Object, Refused

NOT_CONFIGURED = "CreateContainerConfigError"
"""The reason of a container that waits for an object to which its Pod refers."""

ADDRESS = "127.0.0.1"
"""The address of the node and of all its Pods."""


class CannotStart(Exception):
    """A container cannot be started yet. It has the same reason as with a kubelet, and a message."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Materials:
    """Reads for one Pod. Every method raises CannotStart if an object is missing and not optional."""

    api: Api
    api_address: str
    pod: Object

    @property
    def namespace(self) -> str:
        """The Pod's namespace."""
        return str(self.pod["metadata"]["namespace"])

    def config_map(self, reference: Object, name_key: str = "name") -> dict[str, bytes]:
        """The entries of a ConfigMap; empty if it is missing but optional."""
        found = self._find("configmaps", reference, name_key)
        text = {key: value.encode() for key, value in found.get("data", {}).items()}
        return text | _decoded(found.get("binaryData", {}))

    def secret(self, reference: Object, name_key: str = "name") -> dict[str, bytes]:
        """The entries of a Secret; empty if it is missing but optional."""
        return _decoded(self._find("secrets", reference, name_key).get("data", {}))

    def token(self, projection: Object) -> bytes:
        """A token of the Pod's service account, bound to the Pod."""
        metadata = self.pod["metadata"]
        bound = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
        spec: Object = {
            "expirationSeconds": projection.get("expirationSeconds", 3600),
            "boundObjectRef": bound,
        }
        if audience := projection.get("audience"):
            spec["audiences"] = [audience]
        account = self.pod["spec"].get("serviceAccountName", "default")
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{account}/token"
        try:
            answer = self.api.create(path, {"spec": spec})
        except (Refused, HTTPError) as error:
            raise _not_given(error) from error
        return str(answer["status"]["token"]).encode()

    def field(self, path: str) -> str:
        """A field of the Pod, such as `metadata.labels['app']`."""
        section, _, rest = path.partition(".")
        known = {"status.podIP": ADDRESS, "status.hostIP": ADDRESS}
        if path in known:
            return known[path]
        name, _, key = rest.partition("[")
        value: Any = self.pod[section].get(name)
        if key:
            value = (value or {}).get(key.strip("']\""), "")
        if isinstance(value, dict):
            return "\n".join(f'{entry}="{text}"' for entry, text in sorted(value.items()))
        return str(value or "")

    def api_variables(self) -> dict[str, str]:
        """The variables with the address of the API server."""
        address = urlsplit(self.api_address)
        return {
            "KUBERNETES_SERVICE_HOST": str(address.hostname),
            "KUBERNETES_SERVICE_PORT": str(address.port),
            "KUBERNETES_SERVICE_PORT_HTTPS": str(address.port),
        }

    def _find(self, kind: str, reference: Object, name_key: str) -> Object:
        name = reference[name_key]
        try:
            found = self.api.find(f"/api/v1/namespaces/{self.namespace}/{kind}/{name}")
        except (Refused, HTTPError) as error:
            raise _not_given(error) from error
        if found is None and not reference.get("optional"):
            message = f"{kind} {name!r} of namespace {self.namespace!r} does not exist"
            raise CannotStart(NOT_CONFIGURED, message)
        return found or {}


def _not_given(error: Exception) -> CannotStart:
    return CannotStart(NOT_CONFIGURED, str(error))


def _decoded(data: dict[str, str]) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in data.items()}
