"""A Kubernetes cluster for tests: requests to its API server, and kubeconfigs."""

import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from urllib3.exceptions import HTTPError

from testing.install import installed
from testing.kubernetes.api import Api, Object, Refused
from testing.leaks import credential
from testing.processes import ENVIRONMENT, eventually
from testing.recipes import KUBECTL

DEFAULT_CONTEXTS = ("testing",)

_DEFINITIONS = Path(__file__).with_name("definitions")
# plain requests, because tests repeat them often, and starting kubectl takes longer than the request
_GROUPS = {
    "deployments": "/apis/apps/v1",
    "replicasets": "/apis/apps/v1",
    "jobs": "/apis/batch/v1",
    "horizontalpodautoscalers": "/apis/autoscaling/v2",
    "poddisruptionbudgets": "/apis/policy/v1",
    "clusterrolebindings": "/apis/rbac.authorization.k8s.io/v1",
    "roles": "/apis/rbac.authorization.k8s.io/v1",
    "rolebindings": "/apis/rbac.authorization.k8s.io/v1",
    "scaledobjects": "/apis/keda.sh/v1alpha1",
}
"""The API groups of kinds outside the core group."""
_CORE = "/api/v1/namespaces"
_APPS = "/apis/apps/v1/namespaces"
_BATCH = "/apis/batch/v1/namespaces"
_RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces"
_KINDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_RBAC_GROUP = "rbac.authorization.k8s.io"
_ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_TOKEN_SECONDS = 24 * 3600


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster, with its administrator's access."""

    address: str
    """The address of the API server: https://127.0.0.1:<port>."""
    authority: Path
    """The PEM file with which its certificate is verified."""
    folder: Path
    """The folder of its logs and kubeconfigs."""
    kubeconfig: Path
    """The administrator's kubeconfig, with the single context `testing`."""
    api: Api
    """Plain requests as the administrator."""

    def kubectl(self, *arguments: str, input: str | None = None, kubeconfig: Path | None = None) -> str:  # noqa: A002 - as in subprocess
        """Run `kubectl` as the administrator, or with another kubeconfig; returns its output.

        Raises AssertionError with its stderr if it fails.
        """
        command = [str(installed(KUBECTL)), "--kubeconfig", str(kubeconfig or self.kubeconfig), *arguments]
        # kubectl caches the kinds in HOME, which would be wrong for another cluster on the same port
        environment = {**ENVIRONMENT, "HOME": str(self.folder), "KUBECACHEDIR": str(self.folder / "cache")}
        ended = subprocess.run(
            command, input=input, capture_output=True, text=True, check=False, env=environment
        )
        if ended.returncode:
            message = f"kubectl {' '.join(arguments)} ended with {ended.returncode}: {ended.stderr.strip()}"
            raise AssertionError(message)
        return ended.stdout

    def apply(self, manifests: Iterable[Mapping[str, Any]], *, is_stored: bool = True) -> Sequence[Object]:
        """Apply manifests, server-side and with force; returns the objects.

        Raises AssertionError with the API server's error.
        """
        found = []
        for manifest in manifests:
            try:
                found.append(self.api.apply(self._place(manifest), manifest, is_stored=is_stored))
            except Refused as error:
                name = f"{manifest['kind']} {manifest['metadata']['name']}"
                raise AssertionError(f"{name}: {error}") from error
        return found

    def _place(self, manifest: Mapping[str, Any]) -> str:
        version, metadata = str(manifest["apiVersion"]), manifest["metadata"]
        group = f"/apis/{version}" if "/" in version else f"/api/{version}"
        plural, is_namespaced = _kind(self.api, group, str(manifest["kind"]))
        namespace = f"/namespaces/{metadata.get('namespace', 'default')}" if is_namespaced else ""
        return f"{group}{namespace}/{plural}/{metadata['name']}"

    def get(self, kind: str, name: str, namespace: str = "") -> Object:
        """One object of a kind (in the singular); raises AssertionError if it does not exist."""
        return self._read(f"{_collection(f'{kind}s', namespace)}/{name}")

    def list(self, kinds: str, namespace: str = "", selector: str = "") -> Sequence[Object]:
        """The objects of these kinds (in the plural, with commas) that match the label selector."""
        found: list[Object] = []
        for plural in kinds.split(","):
            answer = self._read(f"{_collection(plural, namespace)}?labelSelector={quote(selector)}")
            head = {"apiVersion": answer["apiVersion"], "kind": answer["kind"].removesuffix("List")}
            found += [{**head, **item} for item in answer["items"]]
        return found

    def create_namespace(self, name: str) -> None:
        """Create a namespace, and wait until Pods can be created in it."""
        self.api.create(_CORE, {"metadata": {"name": name}})
        self.await_namespace(name)

    def await_namespace(self, name: str) -> None:
        """Wait for the account and the certificates that every Pod needs."""
        eventually(lambda: self.api.find(f"{_CORE}/{name}/serviceaccounts/default"))
        eventually(lambda: self.api.find(f"{_CORE}/{name}/configmaps/kube-root-ca.crt"))

    def clear(self, namespace: str) -> None:
        """Delete all workloads in a namespace without waiting.

        The namespace is kept, because its deletion would list every kind, which would disturb tests that
        count requests.
        """
        for path in (
            f"{_APPS}/{namespace}/deployments",
            f"{_BATCH}/{namespace}/jobs",
            f"{_CORE}/{namespace}/pods",
        ):
            self.api.delete(path, {"propagationPolicy": "Background"})

    @contextmanager
    def own_namespace(self) -> Iterator[str]:
        """A new namespace, whose workloads are deleted at the end."""
        name = f"test-{uuid4().hex[:8]}"
        self.create_namespace(name)
        try:
            yield name
        finally:
            self.clear(name)

    def define(self, *names: str) -> None:
        """Define the kinds of `keda` or `vpa`."""
        for name in names:
            _define(self, name)

    def define_kinds(self, *places: Path, text: str = "") -> None:
        """Apply definitions of kinds from files, folders or a text, and wait until they are established."""
        files = [option for place in places or ("-",) for option in ("-f", str(place))]
        told = self.kubectl("apply", "--server-side", "-o", "name", *files, input=text or None)
        for name in told.split():
            self._await_kind(name.partition("/")[2])

    def _await_kind(self, name: str) -> None:
        def is_established() -> bool:
            found = self.api.get(f"{_KINDS}/{name}")
            # it is null at first
            conditions = found["status"]["conditions"] or ()
            if ("Established", "True") not in {(one["type"], one["status"]) for one in conditions}:
                return False
            group, kind = found["spec"]["group"], found["spec"]["names"]["kind"]
            served = [one["name"] for one in found["spec"]["versions"] if one["served"]]
            return all(_kind(self.api, f"/apis/{group}/{version}", kind) for version in served)

        eventually(is_established)

    def user(
        self,
        name: str,
        rules: Sequence[Mapping[str, Any]],
        namespace: str = "default",
        contexts: Sequence[str] = DEFAULT_CONTEXTS,
    ) -> Path:
        """Create a service account with these permissions in its namespace; returns its kubeconfig.

        The rules are RBAC's: `{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["list"]}`.
        """
        metadata = {"name": name}
        self.api.create(f"{_CORE}/{namespace}/serviceaccounts", {"metadata": metadata})
        self.api.create(f"{_RBAC}/{namespace}/roles", {"metadata": metadata, "rules": list(rules)})
        subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
        role = {"apiGroup": _RBAC_GROUP, "kind": "Role", "name": name}
        binding = {"metadata": metadata, "subjects": [subject], "roleRef": role}
        self.api.create(f"{_RBAC}/{namespace}/rolebindings", binding)
        for rule in rules[:1]:
            self.await_rights(name, namespace, rule)
        return self.write_kubeconfig(f"{namespace}-{name}", self.token(name, namespace), contexts, namespace)

    def may(self, account: str, namespace: str, attributes: Mapping[str, Any]) -> bool:
        """Whether an account has a permission: `{"verb": "list", "group": "apps", "resource": "pods"}`."""
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
        user = {"user": f"system:serviceaccount:{namespace}:{account}", "groups": groups}
        review = {"spec": {**user, "resourceAttributes": attributes}}
        return bool(self.api.create(_ACCESS, review)["status"]["allowed"])

    def await_rights(self, account: str, namespace: str, rule: Mapping[str, Any]) -> None:
        """Wait until a rule has taken effect for an account, which takes the API server a moment."""
        resource, _, below = rule["resources"][0].partition("/")
        attributes = {
            "namespace": namespace,
            "verb": rule["verbs"][0],
            "group": rule["apiGroups"][0],
            "resource": resource,
            "subresource": below,
            "name": rule.get("resourceNames", [""])[0],
        }
        eventually(lambda: self.may(account, namespace, attributes))

    def token(self, account: str, namespace: str = "default") -> str:
        """A token of a service account, which is valid for a day."""
        request = {"spec": {"expirationSeconds": _TOKEN_SECONDS}}
        answer = self.api.create(f"{_CORE}/{namespace}/serviceaccounts/{account}/token", request)
        return credential(str(answer["status"]["token"]))

    def write_kubeconfig(
        self,
        name: str,
        token: str,
        contexts: Sequence[str] = DEFAULT_CONTEXTS,
        namespace: str = "default",
    ) -> Path:
        """Write a kubeconfig with this token; the first context is the current one."""
        path = self.folder / f"{name}.kubeconfig"
        path.write_text(kubeconfig_text(self.address, self.authority, token, contexts, namespace))
        path.chmod(0o600)
        return path

    def _read(self, path: str) -> Object:
        try:
            return self.api.get(path)
        except (Refused, HTTPError) as error:
            raise AssertionError(f"{path}: {error}") from error


def kubeconfig_text(
    address: str, authority: Path, token: str, contexts: Sequence[str], namespace: str
) -> str:
    """A kubeconfig as JSON, which is YAML; the first context is the current one."""
    place = {"cluster": "testing", "user": "testing", "namespace": namespace}
    server = {"server": address, "certificate-authority": str(authority)}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": contexts[0],
            "clusters": [{"name": "testing", "cluster": server}],
            "users": [{"name": "testing", "user": {"token": token}}],
            "contexts": [{"name": name, "context": place} for name in contexts],
        }
    )


@cache
def _kind(api: Api, group: str, kind: str) -> tuple[str, bool]:
    """The plural of a kind, and whether its objects are in namespaces."""
    [found] = [one for one in api.get(group)["resources"] if one["kind"] == kind and "/" not in one["name"]]
    return str(found["name"]), bool(found["namespaced"])


@cache
def _define(cluster: Cluster, name: str) -> None:
    cluster.define_kinds(_DEFINITIONS / f"{name}.yaml")


def _collection(plural: str, namespace: str) -> str:
    group = _GROUPS.get(plural, "/api/v1")
    return f"{group}/namespaces/{namespace}/{plural}" if namespace else f"{group}/{plural}"
