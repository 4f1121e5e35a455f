"""Ticks that share workers."""

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.planning.situations import SPEC
from twgen.model.spec import WorkerSpec
from twgen.planning.drivers import Shard


def of_namespace(namespace: str, name: str = "pay") -> WorkerSpec:
    return replace(SPEC, name=name, temporal_namespace=namespace)


def shards_with(spec: WorkerSpec, total: int) -> list[int]:
    return [number for number in range(total) if Shard(number, total).has(spec)]


@given(st.integers(1, 40), st.text(), st.lists(st.text(), min_size=1))
def test_all_workers_of_a_namespace_have_the_same_one(total: int, namespace: str, names: list[str]) -> None:
    found = [shards_with(of_namespace(namespace, name), total) for name in names]
    assert len(found[0]) == 1
    assert found == found[:1] * len(names)


def test_namespaces_are_spread_over_all_of_them() -> None:
    found = Counter(shards_with(of_namespace(f"team-{number}"), 3)[0] for number in range(300))
    assert sorted(found) == [0, 1, 2]
    assert max(found.values()) < 130


def test_one_of_them_tells_of_workers_of_an_unknown_namespace() -> None:
    assert [Shard(number, 3).is_first for number in range(3)] == [True, False, False]


def test_same_one_has_a_worker_in_each_release() -> None:
    # ticks of two releases run side by side while they are replaced
    assert [shards_with(of_namespace(name), 3)[0] for name in ("default", "prod", "a.b1c2d")] == [1, 0, 2]
