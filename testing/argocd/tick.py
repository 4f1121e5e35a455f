"""Creates the account of `twgen tick` in Argo CD, as docs/tick.md describes."""

import re
import shlex
from pathlib import Path

from testing.argocd.argocd import NAMESPACE, ArgoCD
from twgen.yaml.reader import read_documents

_PAGE = Path(__file__).parents[2] / "docs" / "tick.md"


def install_account(argo: ArgoCD) -> str:
    """Run the commands on the page literally; returns the name of the account."""
    page = _PAGE.read_text()
    [patch] = re.findall(r"^kubectl (patch configmap .*)$", page, re.MULTILINE)
    argo.cluster.kubectl(*shlex.split(patch))
    [policy] = re.findall(r"^```yaml\n(data:\n  policy.csv.*?)^```$", page, re.MULTILINE | re.DOTALL)
    [rights] = read_documents(policy)
    argo.cluster.api.patch(f"/api/v1/namespaces/{NAMESPACE}/configmaps/argocd-rbac-cm", rights)
    [name] = re.findall(r"argocd account generate-token --account ([\w-]+)", page)
    return str(name)
