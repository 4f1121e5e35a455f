from collections.abc import Iterator

import pytest

from testing.servers import NEWEST, OLDEST, TemporalServer, temporal_server


@pytest.fixture(scope="session")
def oldest_temporal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporalServer]:
    with temporal_server(tmp_path_factory.mktemp("temporal"), OLDEST) as server:
        yield server


@pytest.fixture(scope="session")
def newest_temporal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporalServer]:
    with temporal_server(tmp_path_factory.mktemp("temporal"), NEWEST) as server:
        yield server


@pytest.fixture(scope="session", params=["oldest", "newest"])
def temporal(request: pytest.FixtureRequest) -> TemporalServer:
    server: TemporalServer = request.getfixturevalue(f"{request.param}_temporal")
    return server
