"""Runs the plugin's server in the environment that `deploy/` describes for Argo CD's repo-server."""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testing.argocd import warm_plugin
from testing.install import installed
from testing.kubernetes.cluster import Cluster
from testing.local_node.image import Image, entering
from testing.local_node.node import mounts_alone
from testing.local_node.volumes import Mount
from testing.processes import ENVIRONMENT
from testing.recipes import HELM, KUSTOMIZE, Server
from testing.security import Security
from testing.servers import TemporalServer
from twgen.yaml.reader import read_documents

_ROOT = Path(__file__).parents[2]
_CONFIG = "/home/argocd/cmp-server/config"


@dataclass(frozen=True, slots=True)
class Sidecar:
    """The sidecar, with folders as volumes. It runs from an image, or with this machine's programs."""

    folder: Path
    release: Server
    """The release of its Argo CD."""
    image: Image | None

    def prepare(self, cluster: Cluster, token: str) -> None:
        """Create its volumes. The token decides which account it uses in the cluster."""
        for name in (
            "twgen-operator",
            "twgen-temporal",
            "twgen-clusters",
            "twgen-token",
            "twgen-tmp",
            "root",
        ):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "twgen-tmp").chmod(0o777)
        (self.folder / "twgen-token" / "token").write_text(token)
        (self.folder / "twgen-token" / "namespace").write_text("argocd")
        shutil.copy(cluster.authority, self.folder / "twgen-token" / "ca.crt")
        (self.folder / "config").mkdir()
        shutil.copy(_ROOT / "plugin.yaml", self.folder / "config")

    def operate(
        self, operator: Any, addresses: Sequence[str], secured: Sequence[TemporalServer], *more: str
    ) -> None:
        """Write the operator's file, and a Temporal profile `at-<number>` for each server, then `more`."""
        own = self.folder / "twgen-temporal"
        profiles = [_profile(number, address) for number, address in enumerate(addresses)]
        for number, server in enumerate(secured, len(addresses)):
            given = server.credentials
            lines = [_profile(number, server.address)]
            if server.security is Security.API_KEY:
                lines.append(f'api_key = "{given.issuer.api_key(["default:read"])}"')
            files = {"server_ca_cert_path": given.authority.file}
            if server.security is Security.MUTUAL_TLS:
                files |= {"client_cert_path": given.client.certificate, "client_key_path": given.client.key}
            lines.append(f"[profile.at-{number}.tls]")
            for key, file in files.items():
                shutil.copy(file, own / f"{number}-{file.name}")
                lines.append(f'{key} = "/etc/twgen/temporal/{number}-{file.name}"')
            profiles.append("\n".join(lines))
        (own / "temporal.toml").write_text("\n\n".join([*profiles, *more]))
        (self.folder / "twgen-operator" / "operator.yaml").write_text(json.dumps(operator))

    def start(self, plugins: Path, cluster: Cluster) -> tuple[list[str], dict[str, str]]:
        """The command, and its additional variables. Its socket will be in the folder `plugins`."""
        patches = [
            read_documents((_ROOT / "deploy" / name).read_text())[0]["spec"]["template"]["spec"]
            for name in ("sidecar.yaml", "in-cluster/token.yaml", "templating/programs.yaml")
        ]
        [container], *more = (patch["containers"] for patch in patches)
        seen = []
        for mount in (
            *container["volumeMounts"],
            *(mount for [one] in more for mount in one["volumeMounts"]),
        ):
            place, name, read_only = mount["mountPath"], mount["name"], mount.get("readOnly", False)
            if name == "var-files":
                seen.append(Mount(installed(self.release), container["command"][0], read_only=True))
            elif name == "twgen-programs":
                programs = (KUSTOMIZE, HELM)
                seen += [Mount(installed(one), f"{place}/{one.program}", read_only) for one in programs]
            elif name != "twgen-tmp":  # an image has its own, and on the machine TMPDIR is used
                seen.append(Mount(plugins if name == "plugins" else self.folder / name, place, read_only))
        with_programs = more[-1][0]
        variables = {entry["name"]: entry["value"] for entry in (*container["env"], *with_programs["env"])}
        host, port = cluster.address.removeprefix("https://").split(":")
        variables |= {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        if self.image:
            os.chown(plugins, self.image.user, self.image.user)
            return self.image.command(container["command"], self.folder, seen, variables=variables), {}
        seen.append(Mount(self.folder / "config", _CONFIG, read_only=True))
        # it has only the clusters and credentials that the operator's file names
        ours = (self._programs(), Path(sys.executable).parent, ENVIRONMENT["PATH"], variables["PATH"])
        variables |= {"KUBECONFIG": "", "PATH": ":".join(map(str, ours))}
        variables |= {"TMPDIR": str(plugins.parent)}
        server = [*self._warm("serve"), *container["command"]]
        return [*mounts_alone(), *entering(self.folder / "root", server, seen)], variables

    def _programs(self) -> Path:
        """A folder with a `twgen` that starts immediately."""
        (folder := self.folder / "programs").mkdir()
        program = folder / "twgen"
        program.write_text(f'#!/bin/sh\nexec {shlex.join(self._warm("ask"))} "$@"\n')
        program.chmod(0o755)
        return folder

    def _warm(self, part: str) -> list[str]:
        options = ["-I", "-S"] if part == "ask" else ["-P"]
        return [sys.executable, *options, str(warm_plugin.__file__), part, f"twgen{self.folder}"]


def _profile(number: int, address: str) -> str:
    return f'[profile.at-{number}]\naddress = "{address}"\nnamespace = "default"'
