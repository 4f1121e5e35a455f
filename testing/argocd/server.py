"""Uses the API server of Argo CD, as its administrator or with other accounts."""

import base64
import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import urllib3

from testing.kubernetes.cluster import Cluster
from testing.leaks import credential
from testing.processes import ENVIRONMENT

_FIRST_PASSWORD = "argocd-initial-admin-secret"  # noqa: S105 - the name of its Secret


@dataclass(frozen=True, slots=True)
class ArgoServer:
    """A running API server on loopback, without TLS."""

    address: str
    """`http://host:port`."""
    program: Path
    """Argo CD's program, which is also the command `argocd`."""
    cluster: Cluster
    namespace: str
    """The namespace of Argo CD."""
    folder: Path

    def token(self, account: str) -> str:
        """Generate a token for a local account with `argocd`, as the administrator."""
        self._login()
        return credential(self._argocd("account", "generate-token", f"--account={account}").strip())

    def administrator(self) -> Mapping[str, str]:
        """The environment variables with which `argocd` is logged in as administrator."""
        self._login()
        return {"ARGOCD_OPTS": f"--config={self._config}", "ARGOCD_BINARY_NAME": "argocd"}

    def permits(self, token: str, action: str, resource: str) -> bool:
        """Whether the server says that an account may do this to all resources of a kind."""
        # starting `argocd account can-i` would take a hundred times as long
        path = f"/api/v1/account/can-i/{resource}/{action}/*/*"
        answer = self._answer(token, "GET", path, None)
        if answer.status != HTTPStatus.OK:
            raise AssertionError(answer.data)
        return bool(answer.json()["value"] == "yes")

    def request(self, token: str, method: str, path: str, body: Any = None) -> int:
        """Send a request to its API; returns the status."""
        return self.answer(token, method, path, body)[0]

    def answer(self, token: str, method: str, path: str, body: Any = None) -> tuple[int, str]:
        """Send a request to its API; returns the status and the text of the answer."""
        answer = self._answer(token, method, path, body)
        return answer.status, answer.data.decode()

    def _answer(self, token: str, method: str, path: str, body: Any) -> urllib3.BaseHTTPResponse:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        with urllib3.PoolManager(retries=False) as pool:
            sent = None if body is None else json.dumps(body)
            return pool.request(method, f"{self.address}{path}", body=sent, headers=headers)

    @property
    def _config(self) -> Path:
        return self.folder / "argocd-client"

    def _login(self) -> None:
        path = f"/api/v1/namespaces/{self.namespace}/secrets/{_FIRST_PASSWORD}"
        password = credential(base64.b64decode(self.cluster.api.get(path)["data"]["password"]).decode())
        place = urlsplit(self.address).netloc
        self._argocd("login", place, "--plaintext", "--username=admin", f"--password={password}")

    def _argocd(self, *arguments: str) -> str:
        command = [str(self.program), *arguments, f"--config={self._config}"]
        environment = {**ENVIRONMENT, "ARGOCD_BINARY_NAME": "argocd", "HOME": str(self.folder)}
        ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if ended.returncode:
            message = f"argocd {arguments[0]} {arguments[1]} ended with {ended.returncode}: {ended.stderr}"
            raise AssertionError(message)
        return ended.stdout
