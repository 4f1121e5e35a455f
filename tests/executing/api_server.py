"""The part of an API server that rollouts speak to, in memory."""

from collections.abc import Mapping
from copy import deepcopy
from itertools import count
from typing import Any

Manifest = dict[str, Any]
INTENT = "/api/v1/namespaces/shop/configmaps/payments-rollout"
STATUS = "/api/v1/namespaces/shop/configmaps/payments-rollout-status"
DEPLOYMENTS = "/apis/apps/v1/namespaces/shop/deployments"
JOBS = "/apis/batch/v1/namespaces/shop/jobs"
PODS = "/api/v1/namespaces/shop/pods"
EVENTS = "/api/v1/namespaces/shop/events"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers"
BUDGETS = "/apis/policy/v1/namespaces/shop/poddisruptionbudgets"
SCALED_OBJECTS = "/apis/keda.sh/v1alpha1/namespaces/shop/scaledobjects"
_SERVED = {"autoscaling": "v2", "policy": "v1", "keda.sh": "v1alpha1"}


class ApiServer:
    """Objects by their paths; `ask` takes what the method of a KubernetesClient takes."""

    def __init__(self) -> None:
        self.objects: dict[str, Manifest] = {}
        self._numbers = count(1)

    def put(self, path: str, manifest: Mapping[str, Any]) -> Manifest:
        """Create an object, or change it; what it is now."""
        before = self.objects.get(path, {}).get("metadata", {})
        number = str(next(self._numbers))
        known = {
            "uid": before.get("uid") or f"uid-{number}",
            "namespace": "shop",
            "creationTimestamp": "2026-11-20T12:00:00Z",
        }
        metadata = known | dict(manifest["metadata"]) | {"resourceVersion": number}
        self.objects[path] = {**deepcopy(dict(manifest)), "metadata": metadata}
        return self.objects[path]

    def annotate(self, path: str, **annotations: str | None) -> None:
        """Set annotations of an object, or take them away (None)."""
        metadata = self.objects[path]["metadata"]
        now = {**metadata.get("annotations", {}), **annotations}
        kept = {name: text for name, text in now.items() if text is not None}
        self.put(path, {**self.objects[path], "metadata": {**metadata, "annotations": kept}})

    def listed(self, path: str, selector: str = "") -> list[Manifest]:
        """The objects of a collection whose labels fit."""
        return [
            item
            for own, item in self.objects.items()
            if own.rpartition("/")[0] == path
            and all(_fits(item, part) for part in selector.split(",") if part)
        ]

    async def ask(
        self,
        method: str,
        path: str,
        deadline: object,  # noqa: ARG002 - as a client's, which has one
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
    ) -> tuple[int, Mapping[str, Any]]:
        """The status and the document that one request is answered with."""
        found = self.objects.get(path)
        answer: Mapping[str, Any]
        status, answer = 404, {"message": "not found"}
        match method:
            case "GET" if (group := path.removeprefix("/apis/")) in _SERVED:
                status, answer = 200, {"preferredVersion": {"groupVersion": f"{group}/{_SERVED[group]}"}}
            case "GET" if query is not None:
                items = self.listed(path, query.get("labelSelector", ""))
                status, answer = 200, {"items": deepcopy(items)}
            case "GET" if found:
                status, answer = 200, deepcopy(found)
            case "PATCH" if (
                found
                and path == STATUS
                and (
                    (query or {}).get("force") == "false"
                    or body["metadata"].get("resourceVersion", found["metadata"]["resourceVersion"])
                    != found["metadata"]["resourceVersion"]
                )
            ):
                status, answer = 409, {"message": "the object has been modified"}
            case "PATCH" if query and query.get("dryRun") == "All":
                status, answer = 200, deepcopy(body)
            case "PATCH":
                spec = {**(found or {}).get("spec", {}), **body.get("spec", {})}
                before = (found or {}).get("metadata", {})
                metadata = {**before, **body["metadata"]}
                metadata["annotations"] = {**before.get("annotations", {}), **metadata.get("annotations", {})}
                changed = {**(found or {}), **body, "metadata": metadata}
                status, answer = 200, self.put(path, {**changed, "spec": spec} if spec else changed)
            case "POST":
                name = f"{body['metadata']['generateName']}{next(self._numbers)}"
                metadata = {**body["metadata"], "name": name}
                status, answer = 201, self.put(f"{path}/{name}", {**body, "metadata": metadata})
            case "DELETE" if found and found["metadata"]["uid"] != body["preconditions"]["uid"]:
                status, answer = 409, {"message": "the UID in the precondition does not match"}
            case "DELETE" if found:
                status, answer = 200, self.objects.pop(path)
        return status, answer


def _fits(item: Mapping[str, Any], part: str) -> bool:
    name, _, text = part.partition("=")
    labels = item["metadata"].get("labels", {})
    return name in labels and text in {"", labels[name]}
