from collections.abc import Iterator

import pytest

from testing.servers import TemporalServer, temporal_server


@pytest.fixture(scope="session")
def temporal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporalServer]:
    with temporal_server(tmp_path_factory.mktemp("temporal")) as server:
        yield server
