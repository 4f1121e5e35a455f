"""Record examples/three-versions from a real Temporal server: three versions in flight, and their ledger.

Run it by `make example` when the snapshot format changes.
"""

import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from testing.asking import succeeds
from testing.processes import eventually
from testing.servers import temporal_server
from testing.workers import DeployedWorker
from twgen.model.problem import Document
from twgen.specs.kinds import LEDGER_FOLDER
from twgen.specs.parse import parse_specs
from twgen.specs.spec_document import NamespaceRule
from twgen.yaml.reader import read_documents

EXAMPLE = Path("examples/three-versions")
ADDRESS = "temporal.example.com:7233"
OLD_TAGS = ("v1.4.2", "v2.0.1")
NEW_TAG = "v3.0.0"
TWGEN = str(Path(sys.executable).with_name("twgen"))


def main() -> None:
    """Write the snapshot and the ledger of the example."""
    worker, connection = _file("worker.yaml"), _file("connection.yaml")
    shutil.rmtree(EXAMPLE / LEDGER_FOLDER, ignore_errors=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        temporal_server(Path(folder)) as server,
        ExitStack() as stack,
    ):
        specs = Path(folder) / "specs"
        specs.mkdir()
        deployed = DeployedWorker(server, "shop/payments", "payments")
        builds = []
        for tag in (*OLD_TAGS, NEW_TAG):
            text = worker.replace(NEW_TAG, tag)
            _lock(text)
            builds.append(_build_id(f"{text}---\n{connection}"))
            stack.enter_context(deployed.version(builds[-1]))
        _roll_out(deployed, builds)
        (specs / "worker.yaml").write_text(worker)
        (specs / "connection.yaml").write_text(connection.replace(ADDRESS, server.address))
        snapshot = eventually(lambda: _snapshot(specs), 60)
    (EXAMPLE / "snapshot.yaml").write_text(snapshot)


def _file(name: str) -> str:
    return (EXAMPLE / name).read_text()


def _lock(text: str) -> None:
    spec = EXAMPLE / "worker.yaml"
    current = spec.read_text()
    try:
        spec.write_text(text)
        subprocess.run([TWGEN, "lock", EXAMPLE], check=True)
    finally:
        spec.write_text(current)


def _build_id(text: str) -> str:
    documents = [Document("", index, value) for index, value in enumerate(read_documents(text))]
    return parse_specs(documents, NamespaceRule()).workers[0].build_id


def _roll_out(deployed: DeployedWorker, builds: list[str]) -> None:
    first, second, third = builds
    eventually(lambda: succeeds(lambda: deployed.set_current(first)), 60)
    deployed.start("WaitingWorkflow", "order-1001")
    eventually(lambda: succeeds(lambda: deployed.set_current(second)), 60)
    deployed.start("WaitingWorkflow", "order-1002")
    eventually(lambda: succeeds(lambda: deployed.set_ramp(third, 5)), 60)
    deployed.set_manager("twgen/prod-eu/payments")


def _snapshot(specs: Path) -> str:
    done = subprocess.run(
        [TWGEN, "snapshot", specs, "--allow-unlisted-connections"], check=True, capture_output=True, text=True
    )
    return done.stdout if "Draining" in done.stdout and "pollers: true" in done.stdout else ""


if __name__ == "__main__":
    main()
