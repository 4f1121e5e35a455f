"""Stories of hooks on the older Argo CD, which judges the health of what a hook waits for otherwise."""

from collections.abc import Iterator

import pytest

from testing.argocd.argocd import argocd
from testing.kubernetes.control_plane import kubernetes_cluster
from testing.local_node.node import local_node
from testing.recipes import ARGO_CD_3_2
from testing.servers import TemporalServer
from tests.servers import test_argocd, test_argocd_attached, test_argocd_hooks, test_argocd_trouble
from tests.servers.side_by_side import Told, side_by_side

pytestmark = pytest.mark.server
BY_HOOK = pytest.mark.parametrize("driver", ["Hook"])


@pytest.fixture(scope="module")
def told_stories(
    request: pytest.FixtureRequest, newest_temporal: TemporalServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Told]:
    """In a cluster of its own: each Argo CD looks after all Applications of its cluster."""
    with kubernetes_cluster(tmp_path_factory.mktemp("older-kubernetes")) as cluster:
        cluster.define("keda")
        folder = tmp_path_factory.mktemp("older-argocd")
        with (
            local_node(cluster) as node,
            argocd(cluster, folder, release=ARGO_CD_3_2) as argo,
            test_argocd_hooks.told_of_hooks(request, argo, node, newest_temporal) as told,
        ):
            yield told


test_second_sync_finds_no_difference = BY_HOOK(
    side_by_side(test_argocd.test_second_sync_finds_no_difference_whoever_computes_it.tell)
)
test_revert_of_a_version_that_never_starts = BY_HOOK(
    side_by_side(
        test_argocd.test_revert_of_a_version_that_never_starts_is_applied_by_a_retry_that_refreshes.tell
    )
)
test_hook_waits_for_no_metrics = side_by_side(
    test_argocd_attached.test_hook_waits_for_no_metrics_of_an_autoscaler_which_is_owned_soon.tell
)
test_one_line_makes_a_hook = side_by_side(
    test_argocd_hooks.test_one_line_of_a_policy_makes_a_hook_of_a_rollout_with_autoscaler_and_gate.tell
)
test_hook_that_finds_no_temporal_fails = side_by_side(
    test_argocd_hooks.test_hook_that_finds_no_temporal_until_hold_for_is_over_fails_with_a_sentence_and_takes_nothing_away.tell
)
test_hook_goes_on_where_its_sync_ends = side_by_side(
    test_argocd_hooks.test_hook_goes_on_where_a_hard_refresh_without_temporal_ends_its_sync.tell
)
test_rollout_whose_sync_is_terminated_goes_on = side_by_side(
    test_argocd_trouble.test_rollout_whose_sync_somebody_terminates_stands_still_and_goes_on_with_the_next.tell
)
