"""What tells Argo CD of the plugin, and its Helm chart of the sidecar: written by `make documentation`."""

from pathlib import Path
from typing import Any

from twgen.cli.option_forms import FILES
from twgen.cli.options import OPTIONS
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

_DEPLOY = Path(__file__).parents[1] / "deploy"


def plugin_text() -> str:
    """`plugin.yaml`: how Argo CD runs a render, and what an application may set for it.

    It has no discovery: an application that names no plugin would become a plain folder of YAML as soon as
    the sidecar is away, and lose what the folder does not hold. A version would be part of the plugin's name.
    """
    parameters = [
        {
            "name": option.parameter,
            "title": option.name.replace("-", " ").capitalize(),
            "tooltip": option.help,
            "itemType": "string" if option.type else "boolean",
            **({"collectionType": "array"} if option.type is FILES else {}),
        }
        for option in OPTIONS.values()
        if option.of_application
    ]
    plugin = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ConfigManagementPlugin",
        "metadata": {"name": "twgen"},
        "spec": {
            "generate": {"command": ["twgen", "render", ".", "-o", "json"]},
            "parameters": {"static": parameters},
        },
    }
    return "# Written by `make documentation` from the options of twgen.\n" + write_documents([plugin])


def chart_values_text() -> str:
    """`deploy/values.yaml`: the sidecar and its account's rights, for the argo-cd Helm chart."""
    patches = [
        read_documents((_DEPLOY / name).read_text())[0] for name in ("sidecar.yaml", "in-cluster/token.yaml")
    ]
    pods: list[dict[str, Any]] = [patch["spec"]["template"]["spec"] for patch in patches]
    [sidecar], [with_token] = (pod["containers"] for pod in pods)
    mounts = [*sidecar["volumeMounts"], *with_token["volumeMounts"]]
    role, binding = read_documents((_DEPLOY / "in-cluster" / "rbac.yaml").read_text())
    # the chart fills these in
    account = '{{ include "argo-cd.repoServer.serviceAccountName" . }}'
    namespace = '{{ include "argo-cd.namespace" . }}'
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    values = {
        "repoServer": {
            # Argo CD's own manifests have this; with the chart's default its own container gets the token too
            "automountServiceAccountToken": False,
            "extraContainers": [sidecar | with_token | {"volumeMounts": mounts}],
            "volumes": [volume for pod in pods for volume in pod["volumes"]],
        },
        "extraObjects": [role, binding | {"subjects": [subject]}],
    }
    head = "# For the argo-cd Helm chart; written by `make documentation` from sidecar.yaml and in-cluster.\n"
    return head + write_documents([values])
