"""What else a Temporal namespace has, which may be why it does not know a worker."""

import re

MOST_COUNTED = 1000
"""So many Worker Deployments are counted at most: there may be more."""
DEFAULT_LIMIT = 100
"""Of a server as it comes, `matching.maxDeployments`: it refuses the polls of one more.

1.29.1 says so in its log alone, 1.32.0 tells the workers too.
https://github.com/temporalio/temporal/blob/v1.32.0/service/worker/workerdeployment/client.go
"""


_NO_LETTER = re.compile(r"[^a-z0-9]+")


def may_be_called(name: str, worker: str) -> bool:
    """A Worker Deployment may be a worker whose code names it otherwise: it is called alike.

    One with a slash is the worker of somebody else, unless it is written almost the same.
    """
    plain, whole, own = (_plain(text) for text in (name, worker, worker.partition("/")[2]))
    if "/" in name:
        return plain == whole and name != worker
    return bool(plain) and (own in plain or plain in own)


def _plain(name: str) -> str:
    return _NO_LETTER.sub("", name.casefold())


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
