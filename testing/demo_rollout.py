"""`make demo-rollout`: rolls out three versions of a real worker. One is broken and is rolled back."""

import re
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from testing.asking import succeeds
from testing.building import say
from testing.processes import ENVIRONMENT, eventually
from testing.servers import TemporalServer, temporal_server
from testing.workers import DeployedWorker

TWGEN = Path(sys.executable).with_name("twgen")
WORKFLOWS = 3
_DIM, _BOLD, _PLAIN = ("\x1b[2m", "\x1b[1m", "\x1b[0m") if sys.stdout.isatty() else ("", "", "")

_ROOT = Path(__file__).parents[1]
_EXAMPLE = _ROOT / "examples" / "draining"
_WORKFLOWS = """from testing.worker_program import GateWorkflow, WaitingWorkflow

WORKFLOWS = [GateWorkflow, WaitingWorkflow]
"""


@dataclass(frozen=True, slots=True)
class Demo:
    """The demonstration: a worker on a server, and the folder of its spec."""

    worker: DeployedWorker
    folder: Path
    running: ExitStack

    @property
    def server(self) -> TemporalServer:
        """The worker's Temporal server."""
        return self.worker.server

    def tell(self) -> None:
        """Run the whole demonstration."""
        self.deploy("v1", "The first version: no other version has traffic, so only its gate must pass.")
        self.run("rollout", ".")
        for number in range(WORKFLOWS):
            self.worker.start("WaitingWorkflow", f"order-{number}")
        self.deploy("v2", f"{WORKFLOWS} workflows are open on v1. The second version ramps.")
        self.run("rollout", ".")
        self.comment("The workflows stay on v1, where they started: it drains, and keeps its pods.")
        self.run("status", ".")
        self.move("v1")
        self.deploy(
            "v3", "The third version is broken: its gate fails, so it never gets a workflow.", broken=True
        )
        self.run("rollout", ".")
        self.describe("v1", "A revert to v1: it was current a minute ago, so no gate, no steps.")
        self.run("rollout", ".")
        for number in range(WORKFLOWS):
            self.worker.finish(f"order-{number}")
        self.run("status", ".")

    def move(self, build_id: str) -> None:
        """Replay and move open workflows by hand, which the policy would do after a day in a cluster."""
        self.comment("Its policy moves them after a day, once a Job has replayed them. By hand that is:")
        self.run("histories", ".", "--folder", "../histories")
        (shop := self.folder.parent / "shop").mkdir()
        (shop / "workflows.py").write_text(_WORKFLOWS)
        page = (_ROOT / "docs" / "replay.md").read_text()
        [program] = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        (shop / "replay.py").write_text(program)
        self.show("python", "-m", "shop.replay", "../histories")
        variables = {"PYTHONPATH": f"{self.folder.parent}:{_ROOT}"}
        command = [sys.executable, "-m", "shop.replay", "../histories"]
        subprocess.run(command, cwd=self.folder, env={**ENVIRONMENT, **variables}, check=True)
        self.comment("All were replayed.")
        self.run("end", ".", "--version", build_id, "--move", "--without-replay", "--yes", "--wait")

    def deploy(self, build_id: str, comment: str, *, broken: bool = False) -> None:
        """Start a version's worker, and make the version the target."""
        self.describe(build_id, comment)
        self.running.enter_context(self.worker.version(build_id, gate_fails=broken))
        eventually(lambda: succeeds(lambda: self.worker.mark(build_id, "demo", b"true")))

    def describe(self, build_id: str, comment: str) -> None:
        """Write a spec with this version as the target."""
        self.comment(comment)
        for file in ("worker.yaml", "policy.yaml"):
            text = (_EXAMPLE / file).read_text()
            text = text.replace("temporal.example.com:7233", self.server.address)
            (self.folder / file).write_text(re.sub(r"\bv2$", build_id, text, flags=re.MULTILINE))
        self.run("lock", ".")

    def comment(self, text: str) -> None:
        """Print a comment for the audience."""
        sys.stdout.write(f"\n{_DIM}# {text}{_PLAIN}\n")

    def run(self, *command: str) -> None:
        """Print and run a twgen command."""
        self.show("twgen", *command)
        variables = {"TWGEN_NO_CLUSTER": "true"}
        subprocess.run([TWGEN, *command], cwd=self.folder, env={**ENVIRONMENT, **variables}, check=False)

    def show(self, *command: str) -> None:
        """Print a command line."""
        sys.stdout.write(f"{_BOLD}$ {' '.join(command)}{_PLAIN}\n")
        sys.stdout.flush()


def main() -> None:
    """Run the demonstration on a new server."""
    with TemporaryDirectory(prefix="twgen-demo-") as name, ExitStack() as running:
        place = Path(name)
        (place / "specs").mkdir()
        say("starting a Temporal server (the first time, it is built, which takes minutes)")
        server = running.enter_context(temporal_server(place))
        Demo(DeployedWorker(server, "shop/greeter", "greetings"), place / "specs", running).tell()


if __name__ == "__main__":
    main()
