"""What all tests have in common."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# what a shell starts in its background ignores Ctrl-C, and so would every program that is started here
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# as `nohup` ignores SIGHUP
for number in (signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

# on a terminal that is dumb, nothing has colours, on demand either
os.environ["TERM"] = "xterm-256color"  # noqa: TID251 - of the programs that tests start

# how long an example takes says how busy the machine is, and nothing of the code
COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("twgen", COMMON, max_examples=20)
# the same examples each time: what fails is what a change has broken; the others look for new ones
settings.register_profile("thorough", COMMON, max_examples=100, derandomize=True)
# pytest tests/cli/test_broken_records.py --hypothesis-profile=attack
settings.register_profile("attack", COMMON, max_examples=20_000)
settings.load_profile("twgen")


# those that take a minute or more, by the sum of their times of `--durations=0`: what computes for long and
# what waits for long turn about
_LONG = (
    *("image", "make_targets", "argocd_hooks", "leaving_the_controller", "rollout_process", "argocd"),
    *("tick_rollouts", "argocd_tick", "argocd_older", "rollout_managers", "unserved", "argocd_image"),
    *("rollout_trouble", "argocd_protection", "argocd_buttons", "analysis_killed", "argocd_trouble"),
    *("argocd_expiry", "rollout", "rollout_lifecycle", "argocd_attached", "rollout_conditions", "worlds"),
    *("argocd_neighbours", "applying", "rollout_job", "tutorial", "argocd_credentials", "draining"),
    *("argocd_emptied_cache", "policy_steps", "page", "argocd_frozen_plugin", "replay", "requests"),
    *("argocd_removal", "rollout_ends", "argocd_security", "forget", "argocd_templated", "analysis"),
    *("argocd_examples", "doctor", "pre_commit", "rendered_manifests", "prometheus"),
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take longest come first: no process is left alone with a long one at the end."""
    places = {f"test_{name}": place for place, name in enumerate(_LONG)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))
