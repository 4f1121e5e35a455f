"""Since when Argo CD is to look at an Application again."""

from typing import Any

import pytest

from twgen.cluster.applications import asked_since
from twgen.model.times import format_time

EARLY, LATE, LATER = (f"2026-11-26T12:{minute}:00Z" for minute in ("00", "10", "20"))


def asked_by(manager: str, time: Any) -> dict[str, Any]:
    fields = {"f:metadata": {"f:annotations": {".": {}, "f:argocd.argoproj.io/refresh": {}}}}
    return {"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields}


def application(*entries: Any, looked: Any = EARLY, annotations: Any = None) -> dict[str, Any]:
    if annotations is None:
        annotations = {"argocd.argoproj.io/refresh": "normal"}
    metadata = {"name": "shop", "annotations": annotations, "managedFields": list(entries)}
    return {"metadata": metadata, "status": {"reconciledAt": looked}}


STATUS = {"manager": "argocd-application-controller", "time": LATER, "fieldsV1": {"f:status": {}}}


@pytest.mark.parametrize(
    ("found", "since"),
    [
        (application(STATUS, asked_by("argocd-server", LATE)), LATE),
        (application(asked_by("kubectl-annotate", LATE), asked_by("argocd-server", LATER)), LATER),
        (application(asked_by("argocd-server", LATE), looked=None), LATE),
        (application(asked_by("argocd-server", LATE), looked=LATER), LATER),
    ],
    ids=["asked after it looked", "asked twice", "never looked", "looked and was asked anew meanwhile"],
)
def test_application_waits_since_it_was_asked_for_or_looked_at_last(found: Any, since: str) -> None:
    assert (told := asked_since(found))
    assert format_time(told) == since


@pytest.mark.parametrize(
    "found",
    [
        application(asked_by("argocd-server", LATE), annotations={}),
        application(STATUS),
        application(asked_by("argocd-server", "some day")),
        application(asked_by("argocd-server", None), "?"),
        {
            "metadata": {"annotations": {"argocd.argoproj.io/refresh": "hard"}, "managedFields": 1},
            "status": [],
        },
        {},
    ],
    ids=["not asked", "nobody tells when", "no time", "no entry", "no list", "nothing"],
)
def test_application_of_which_nobody_tells_since_when_it_waits_does_not(found: Any) -> None:
    assert asked_since(found) is None
