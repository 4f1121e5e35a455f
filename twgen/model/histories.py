"""Histories of workflows that a new version has to replay, or may have to."""

from typing import NamedTuple


class Recorded(NamedTuple):
    """A run of a workflow whose history a server keeps."""

    workflow_type: str
    workflow_id: str
    run_id: str
    is_open: bool


class Sample(NamedTuple):
    """How much is taken to be replayed."""

    of_each_type: int
    """Histories of each workflow type."""
    most_bytes: int
    """Of all of them together, as they are written."""
