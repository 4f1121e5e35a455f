"""Finds old versions of workers in the Git commits that changed their specs."""

import os
import re
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple, Self, cast

from twgen.clients.programs import program_on_path
from twgen.cluster.deployments import recorded_deployment
from twgen.model.operator import GroupKind
from twgen.model.paths import value_at
from twgen.model.policy import ConnectionChanges
from twgen.model.problem import Document
from twgen.model.spec import WorkerSpec
from twgen.model.world import GitHistory, RecordedDeployment
from twgen.reading.documents import STDIN, SUFFIXES, repository_root
from twgen.rendering.deployments import target_deployment
from twgen.specs import kinds
from twgen.specs.parse import parse_specs
from twgen.specs.spec_document import NamespaceRule
from twgen.yaml.reader import read_documents
from twgen.yaml.source import DEFAULT, Budget, YamlError

_PIECE = 64 * 2**10
_MOST_MEMORY = 192 * 2**20
"""The memory limit of one git process. A small compressed file in a commit can decompress to a huge file."""
_NOT_ALL = "git cannot read the whole history: the clone may be incomplete, or contain a huge file"
_HEADER = re.compile(rb"[0-9a-f]+ (\w+) (\d+)\n")
"""The first line of git's response about an object. For a missing object, git repeats the request instead."""
_SAFE = (
    # these options keep a repository's own settings from making git run programs or contact servers
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false"),
    *("-c", "protocol.allow=never", "--no-pager", "--literal-pathspecs"),
    # git does not load or compare files above this size
    *("-c", "core.bigFileThreshold=16m"),
)
_ENVIRONMENT: Mapping[str, str] = {
    # a repository's settings can override protocol.allow, and older versions of git fetch missing objects
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


class HistoryEnds(Exception):
    """The Git history cannot be read any further. The message is a clause that gives the reason."""


class Commit(NamedTuple):
    """A commit that changed a file."""

    id: str
    parent: str
    """The first parent, or empty for a root commit."""
    path: str
    """The file's path in this commit, relative to the repository's root."""


class Repository:
    """Reads a Git repository. Reads after `ends`, a time on the clock time.monotonic, raise HistoryEnds."""

    def __init__(self, root: Path, ends: float) -> None:
        program = program_on_path("git")
        if not program:
            raise HistoryEnds("git is not installed")
        self.root = root
        self._ends = ends
        self._command = (program, f"--git-dir={root / '.git'}", *_SAFE)
        self._running: list[subprocess.Popen[bytes]] = []
        self._limit = threading.Timer(max(0, ends - time.monotonic()), self._kill)
        self._limit.daemon = True

    def __enter__(self) -> Self:
        self._limit.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._limit.cancel()
        self._kill()
        for process in self._running:
            process.communicate()

    @property
    def is_shallow(self) -> bool:
        """Whether older commits are missing from the clone."""
        with self._asking("rev-parse", "--is-shallow-repository") as output:
            return output.read().strip() == b"true"

    def commits_of(self, path: str, *, first_parents: bool) -> Iterator[Commit]:
        """The commits that changed a file, newest first. Renames are followed.

        `first_parents` limits the result to the branch's own commits, with each merge as a single change.
        """
        form = "--format=%x01%H %P"
        branch = ("--first-parent", "-m") if first_parents else ()
        safe = (*branch, "--no-ext-diff", "--no-textconv", "--no-show-signature", "--no-color")
        with self._asking("log", "--follow", "--name-only", "-z", form, *safe, "--", path) as output:
            commit, parent = "", ""
            for piece in _split(output):
                if piece.startswith(b"\x01"):
                    if commit:  # git lists no files for a merge
                        yield Commit(commit, parent, path)
                    commit, _, parents = piece[1:].decode().partition(" ")
                    parent = parents.partition(" ")[0]
                elif name := piece.removeprefix(b"\n"):
                    path = os.fsdecode(name)
                    yield Commit(commit, parent, path)
                    commit = ""
            if commit:
                yield Commit(commit, parent, path)

    def files_at(self, commit: str, paths: Sequence[str]) -> Iterator[str]:
        """The regular files at or below these paths in a commit. `.` means all files."""
        below = () if "." in paths else paths
        with self._asking("ls-tree", "-r", "-z", commit, "--", *below) as output:
            for entry in _split(output):
                head, _, name = entry.partition(b"\t")
                if head.startswith(b"100"):
                    yield os.fsdecode(name)

    def content(self, commit: str, path: str, most: int) -> bytes | None:
        """The content of a file in a commit, or None if it does not exist or is larger than `most` bytes."""
        requests, answers = self._contents
        if "\n" in path:
            return None
        text, line = None, b""
        with suppress(BrokenPipeError):
            requests.write(os.fsencode(f"{commit}:{path}\n"))
            requests.flush()
            line = answers.readline()
            if header := _HEADER.fullmatch(line):
                size = int(header[2])
                is_wanted = header[1] == b"blob" and size <= most
                text = answers.read(size) if is_wanted else None
                for start in range(size if is_wanted else 0, size, _PIECE):
                    answers.read(min(_PIECE, size - start))
                line = answers.read(1) and line  # reads the newline after the content
        self._in_time()
        if not line:
            raise HistoryEnds(_NOT_ALL)
        # a file that is missing from the clone could contain a worker's policy or the required version
        if line.endswith(b" missing\n") and any(self.files_at(commit, [path])):
            raise HistoryEnds("the clone is partial: it does not contain the content of every commit")
        return text

    @cached_property
    def _contents(self) -> tuple[IO[bytes], IO[bytes]]:
        """The input and output of a git process that returns file contents."""
        process = self._start("cat-file", "--batch")
        return cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)

    @contextmanager
    def _asking(self, *arguments: str) -> Iterator[IO[bytes]]:
        process = self._start(*arguments)
        try:
            yield cast("IO[bytes]", process.stdout)
            self._in_time()
            # after a failure, the output may be incomplete and, for example, lack a worker's policy
            if process.wait():
                raise HistoryEnds(_NOT_ALL)
        finally:
            process.kill()
            process.communicate()  # closes the pipes, so that open files do not accumulate

    def _start(self, *arguments: str) -> "subprocess.Popen[bytes]":
        self._in_time()
        process = subprocess.Popen(  # noqa: S603 - git itself, and no argument can be mistaken for an option
            [*self._command, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self.root,
            env=_ENVIRONMENT,
        )
        self._running.append(process)
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        if sys.platform == "linux" and (hard == resource.RLIM_INFINITY or hard > _MOST_MEMORY):
            with suppress(ProcessLookupError):
                resource.prlimit(process.pid, resource.RLIMIT_DATA, (_MOST_MEMORY, _MOST_MEMORY))
        return process

    def _kill(self) -> None:
        for process in self._running:
            process.kill()

    def _in_time(self) -> None:
        if time.monotonic() >= self._ends:
            raise HistoryEnds("reading the Git history takes too long: run `twgen lock` to record versions")


def _split(output: IO[bytes]) -> Iterator[bytes]:
    """Split git's output at null bytes as it arrives."""
    remainder = b""
    while piece := output.read1(_PIECE):  # type: ignore[attr-defined]
        *whole, remainder = (remainder + piece).split(b"\0")
        yield from whole
    if remainder:
        yield remainder


_HEAD = "HEAD"


class SpecSources(NamedTuple):
    """The settings for reading the current specs, which also apply to specs in commits."""

    paths: Sequence[str]
    rule: NamespaceRule
    attached_kinds: tuple[GroupKind, ...]


def read_history(
    spec: WorkerSpec, build_ids: frozenset[str], sources: SpecSources, ends: float, without_repository: str
) -> GitHistory:
    """Find the versions with these build IDs in the commits that changed the worker's spec.

    The search stops at `ends`, a time on the clock time.monotonic. If there is no repository, the result
    contains the reason `without_repository`.
    """
    file = spec.document.source
    if file == STDIN:
        return GitHistory(ends="the specs come from stdin")
    if file.startswith(kinds.RENDERED_BY):
        return GitHistory(
            ends="twgen does not read the Git history of rendered specs: run `twgen lock` to record versions"
        )
    root = repository_root(file)
    if not root:
        return GitHistory(ends=without_repository)
    versions: dict[str, RecordedDeployment] = {}
    try:
        with Repository(root, ends) as repository:
            walk = _Walk(repository, spec, sources)
            for recorded in walk.versions(build_ids):
                versions[recorded.build_id] = recorded_deployment(target_deployment(recorded))
                if versions.keys() >= build_ids:
                    return GitHistory(versions)
            why = f"no commit of {file} contains it"
            if repository.is_shallow:
                why += ", but the clone is shallow"
    except HistoryEnds as error:
        why = str(error)
    return GitHistory(versions, why)


class _Run(NamedTuple):
    """Consecutive commits in which a spec describes the same version."""

    build_id: str
    newest: Commit
    """The newest commit that changed the file."""
    oldest: Commit
    last: str
    """The newest commit that contains this version, even if the commit did not change the file."""


class _Walk:
    """Searches the commits that changed the file with one worker's spec, newest first."""

    def __init__(self, repository: Repository, spec: WorkerSpec, sources: SpecSources) -> None:
        self._repository = repository
        self._spec = spec
        self._sources = sources
        self._file = _below(repository, spec.document.source)
        self._build_ids: dict[Commit, str] = {}
        """The build ID in each commit that was read. The second search needs most of these commits again."""

    def versions(self, build_ids: frozenset[str]) -> Iterator[WorkerSpec]:
        """The worker's spec for each of these versions, newest version first.

        The connection and the policy come from the last commit with the version, because changes to them
        affect a live target. The policy's `environment` comes from the first commit. If the policy applies
        connection changes only to new versions, the connection comes from the first commit too. The branch's
        own commits are preferred, because they were deployed: a commit from a branch that was merged later
        may contain other connections.
        """
        missing = set(build_ids)
        for run in chain(self._runs(first_parents=True), self._runs(first_parents=False)):
            if run.build_id not in missing:
                continue
            # after a merge, the commit listed before this one may contain another version
            commits = filter(None, (run.last, run.newest.id))
            workers = (self._worker_at(commit, run.newest.path) for commit in commits)
            last = next((worker for worker in workers if worker and worker.build_id == run.build_id), None)
            if not last:
                continue
            missing.remove(run.build_id)
            first = self._worker_at(run.oldest.id, run.oldest.path)
            if first and first.build_id == run.build_id:
                policy = replace(last.policy, environment=first.policy.environment)
                is_fixed = policy.connection_changes is ConnectionChanges.NEW_VERSIONS_ONLY
                connection = first.connection if is_fixed else last.connection
                last = replace(last, policy=policy, connection=connection)
            yield last

    def _runs(self, *, first_parents: bool) -> Iterator[_Run]:
        run, last, name = None, _HEAD, self._spec.name
        for commit in self._repository.commits_of(self._file, first_parents=first_parents):
            if commit not in self._build_ids:
                documents = self._documents(commit.id, commit.path, Budget())
                named = (item for item in documents if value_at(item.value, "metadata", "name") == name)
                worker = self._worker_of(named)
                self._build_ids[commit] = worker.build_id if worker else ""
            build_id = self._build_ids[commit]
            if run and run.build_id == build_id:
                run = run._replace(oldest=commit)
            else:
                if run:
                    yield run
                run = _Run(build_id, commit, commit, last)
            last = commit.parent
        if run:
            yield run

    def _worker_at(self, commit: str, path: str) -> WorkerSpec | None:
        """The worker's spec and connection in a commit. `path` is the spec's file in that commit."""
        budget = Budget()
        files = self._files_at(commit, path)
        worker = self._worker_of(
            document for file in files for document in self._documents(commit, file, budget)
        )
        return worker if worker and worker.template.hash and worker.connection.host_port else None

    def _worker_of(self, documents: Iterable[Document]) -> WorkerSpec | None:
        specs = [document for document in documents if kinds.kind_of(document.value)]
        workers = parse_specs(specs, self._sources.rule, self._sources.attached_kinds).workers
        names = {worker.worker_deployment: worker for worker in workers}
        return names.get(self._spec.worker_deployment)

    def _files_at(self, commit: str, path: str) -> Iterator[str]:
        """The files in a commit below the current paths, or below these paths' earlier names."""
        file_today, file_then = PurePosixPath(self._file), PurePosixPath(path)
        tops = {file_then}
        for top in (_below(self._repository, name) for name in self._sources.paths if name != STDIN):
            tops.add(PurePosixPath(top))
            if file_today != file_then and file_today.is_relative_to(top):
                inside = file_today.relative_to(top).parts
                is_same = len(inside) < len(file_then.parts) and file_then.parts[-len(inside) :] == inside
                tops.add(PurePosixPath(*file_then.parts[: -len(inside)]) if is_same else file_then.parent)
        for file in self._repository.files_at(commit, sorted(map(str, tops))):
            place = PurePosixPath(file)
            below = min(
                (place.relative_to(top).parts for top in tops if place.is_relative_to(top)),
                key=len,
                default=place.parts,
            )
            is_left_out = any(part.startswith(".") or part == kinds.LEDGER_FOLDER for part in below)
            if not below or (file.lower().endswith(SUFFIXES) and not is_left_out):
                yield file

    def _documents(self, commit: str, path: str, budget: Budget) -> Iterator[Document]:
        text = self._repository.content(commit, path, DEFAULT.text_bytes)
        if text is None:
            return
        try:
            values = read_documents(text, budget)
        except YamlError:
            return  # an invalid file was never deployed
        for index, value in enumerate(values):
            if value is not None:
                yield from kinds.without_lists(Document(path, index, value))


def _below(repository: Repository, path: str) -> str:
    """The path relative to the repository's root, or `.` for the root itself and paths outside of it."""
    resolved = Path(os.path.realpath(path))
    return str(resolved.relative_to(repository.root)) if resolved.is_relative_to(repository.root) else "."
