"""The plan and the status of a story, or of a situation, and the tree of a status."""

from tests.cases.story import STORIES
from tests.planning.situations import NOW, SPEC
from twgen.model.operator import Caller
from twgen.model.spec import WorkerSpec
from twgen.model.status import Status
from twgen.model.times import parse_time
from twgen.model.world import World
from twgen.planning.plan import make_plan
from twgen.planning.worker_status import make_status
from twgen.reading.documents import Sources, read_paths, read_snapshot_file
from twgen.reporting.status.trees import Layout, status_text
from twgen.specs.parse import parse_specs
from twgen.specs.spec_document import NamespaceRule
from twgen.yaml.reader import read_documents


def of_story(name: str) -> Status:
    """The status of a story, as its settings say."""
    folder = STORIES / name
    (settings,) = read_documents((folder / "settings.yaml").read_text())
    documents = read_paths([str(folder / "documents")], Sources()).documents
    specs = parse_specs(documents, NamespaceRule()).workers
    world = read_snapshot_file(str(folder / "snapshot.yaml"), Sources())
    caller = Caller(settings["identity"], forced=True)
    return make_status(make_plan(specs, world, parse_time(settings["now"]), caller), world, caller)


def of_situation(world: World, spec: WorkerSpec = SPEC, caller: Caller | None = None) -> Status:
    """The status of one worker in a situation, as `me` sees it."""
    who = caller or Caller("me", forced=True)
    return make_status(make_plan([spec], world, NOW, who), world, who)


def tree(status: Status, *, width: int = 80, colour: bool = False, ascii_only: bool = False) -> str:
    """What a terminal shows of a status."""
    return status_text(status, Layout(colour=colour, width=width, ascii_only=ascii_only))
