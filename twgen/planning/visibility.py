"""Visibility queries for Temporal's servers."""


def quoted_text(text: str) -> str:
    """A text as a literal of a query."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def pinned_to(worker_deployment: str, build_id: str) -> str:
    """The workflows that are pinned to a version, open or closed."""
    version = quoted_text(f"{worker_deployment}:{build_id}")
    return f"TemporalWorkerDeploymentVersion = {version} AND TemporalWorkflowVersioningBehavior = 'Pinned'"


def still_open(query: str) -> str:
    """The workflows of a query that run or are paused: on every server, only these have no close time."""
    return f"{query} AND CloseTime IS NULL"


def of_deployment(worker_deployment: str) -> str:
    """The workflows that run, or ran, on any version of a worker."""
    return f"TemporalWorkerDeployment = {quoted_text(worker_deployment)}"
