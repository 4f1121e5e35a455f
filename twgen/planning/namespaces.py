"""Other Worker Deployments of a Temporal namespace, which may be why it does not know a worker."""

import re

MOST_COUNTED = 1000
"""At most this many Worker Deployments are counted; there may be more."""
DEFAULT_LIMIT = 100
"""The default of `matching.maxDeployments`: at this number a server rejects polls of new workers.

1.29.1 reports that only in its log, 1.32.0 reports it to the workers too.
https://github.com/temporalio/temporal/blob/v1.32.0/service/worker/workerdeployment/client.go
"""


_NO_LETTER = re.compile(r"[^a-z0-9]+")


def may_be_called(name: str, worker: str) -> bool:
    """The names are so similar that a Worker Deployment may be this worker under a wrong name.

    A name with a slash belongs to another worker, unless it is written almost the same.
    """
    plain, whole, own = (_plain(text) for text in (name, worker, worker.partition("/")[2]))
    if "/" in name:
        return plain == whole and name != worker
    return bool(plain) and (own in plain or plain in own)


def _plain(name: str) -> str:
    return _NO_LETTER.sub("", name.casefold())


def why_full(worker_deployments: int | None) -> str:
    """Why a namespace with this many may reject new workers, and what to do; empty: it does not."""
    if worker_deployments is None or worker_deployments < DEFAULT_LIMIT:
        return ""
    number = f"{worker_deployments}{' or more' if worker_deployments >= MOST_COUNTED else ''}"
    return (
        f"its Temporal namespace has {number} Worker Deployments. At its limit (by default {DEFAULT_LIMIT}) a"
        " server rejects polls of new workers: delete unused Worker Deployments (`temporal worker deployment"
        " delete`), or raise the limit (`matching.maxDeployments`)"
    )
