"""What all tests have in common."""

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, settings

# how long an example takes says how busy the machine is, and nothing of the code
COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("twgen", COMMON, max_examples=30)
settings.register_profile("thorough", COMMON, max_examples=100)
# pytest tests/cli/test_broken_records.py --hypothesis-profile=attack
settings.register_profile("attack", COMMON, max_examples=20_000)
settings.load_profile("twgen")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """With `--dist loadgroup` each file runs in one process, and all that share an Argo CD in one."""
    for item in items:
        shares_argocd = "argo" in getattr(item, "fixturenames", ())
        item.add_marker(pytest.mark.xdist_group("argocd" if shares_argocd else item.nodeid.split("::")[0]))
