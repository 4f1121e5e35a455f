"""Write the plugin's configuration for Argo CD, and the values for its Helm chart (`make documentation`)."""

from pathlib import Path
from typing import Any

from twgen.cli.option_table import FILES, OPTIONS
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

_DEPLOY = Path(__file__).parents[1] / "deploy"
_OF_CHART = (
    "{{ default .Values.global.image.repository .Values.repoServer.image.repository }}:"
    '{{ default (include "argo-cd.defaultTag" .) .Values.repoServer.image.tag }}'
)
"""The chart's template for the image of Argo CD."""


def plugin_text() -> str:
    """The text of `plugin.yaml`: the command that renders, and the options that an application may set.

    It has no discovery rules. With them, an application need not name the plugin. Then, without the sidecar,
    Argo CD would treat its folder as plain YAML, and prune all objects that are not in the folder. It has no
    version, because Argo CD would add it to the plugin's name.
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


def actions_values_text() -> str:
    """The text of `deploy/actions/values.yaml`: rollout buttons for the argo-cd Helm chart."""
    [config_map] = read_documents((_DEPLOY / "actions" / "argocd-cm.yaml").read_text())
    head = "# For the argo-cd Helm chart; written by `make documentation` from argocd-cm.yaml.\n"
    return head + write_documents([{"configs": {"cm": config_map["data"]}}])


def chart_values_text(*, with_programs: bool = False) -> str:
    """The text of `deploy/values.yaml`: the sidecar and its account's rights, for the argo-cd Helm chart.

    With programs, it is the text of `deploy/templating/values.yaml`. That adds helm and kustomize.
    """
    names = (
        "sidecar.yaml",
        "in-cluster/token.yaml",
        *(["templating/programs.yaml"] if with_programs else []),
    )
    patches = [read_documents((_DEPLOY / name).read_text())[0] for name in names]
    pods: list[dict[str, Any]] = [patch["spec"]["template"]["spec"] for patch in patches]
    parts = [pod["containers"][0] for pod in pods]
    lists = {
        field: [item for part in parts for item in part.get(field, ())] for field in ("env", "volumeMounts")
    }
    role, binding = read_documents((_DEPLOY / "in-cluster" / "rbac.yaml").read_text())
    # the chart fills in these values
    account = '{{ include "argo-cd.repoServer.serviceAccountName" . }}'
    namespace = '{{ include "argo-cd.namespace" . }}'
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    copying = [item | {"image": _OF_CHART} for pod in pods for item in pod.get("initContainers", ())]
    values = {
        "repoServer": {
            # as in Argo CD's own manifests; by default, the chart would give Argo CD's container the token
            "automountServiceAccountToken": False,
            "extraContainers": [{key: value for part in parts for key, value in part.items()} | lists],
            **({"initContainers": copying} if copying else {}),
            "volumes": [volume for pod in pods for volume in pod["volumes"]],
        },
        "extraObjects": [role, binding | {"subjects": [subject]}],
    }
    made_of = "sidecar.yaml, in-cluster and templating" if with_programs else "sidecar.yaml and in-cluster"
    head = f"# For the argo-cd Helm chart; written by `make documentation` from {made_of}.\n"
    return head + write_documents([values])
