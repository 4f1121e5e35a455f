"""How full a Temporal namespace is, which may be why it takes no new worker."""

MOST_COUNTED = 1000
"""So many Worker Deployments are counted at most: there may be more."""
DEFAULT_LIMIT = 100
"""Of a server as it comes, `matching.maxDeployments`: it refuses the polls of one more.

1.29.1 says so in its log alone, 1.32.0 tells the workers too.
https://github.com/temporalio/temporal/blob/v1.32.0/service/worker/workerdeployment/client.go
"""


def why_full(worker_deployments: int | None) -> str:
    """Why a namespace with so many may take no new worker, and what to do; empty: nothing says so."""
    if worker_deployments is None or worker_deployments < DEFAULT_LIMIT:
        return ""
    number = f"{worker_deployments}{' or more' if worker_deployments >= MOST_COUNTED else ''}"
    return (
        f"its Temporal namespace has {number} Worker Deployments, and the default limit is"
        f" {DEFAULT_LIMIT}: at its limit a server refuses the polls of new workers. Delete those that nothing"
        " uses (`temporal worker deployment delete`), or raise the limit (`matching.maxDeployments`)"
    )
