"""Old versions of workers, from the commits that changed their specs."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from twgen.cluster.deployments import recorded_deployment
from twgen.model.operator import GroupKind
from twgen.model.paths import value_at
from twgen.model.policy import ConnectionChanges
from twgen.model.problem import Document
from twgen.model.spec import WorkerSpec
from twgen.model.world import GitHistory, RecordedDeployment
from twgen.reading.documents import STDIN, SUFFIXES
from twgen.reading.git import Commit, HistoryEnds, Repository, repository_root
from twgen.rendering.deployments import target_deployment
from twgen.specs import kinds
from twgen.specs.parse import parse_specs
from twgen.specs.spec_document import NamespaceRule
from twgen.yaml.limits import DEFAULT, Budget
from twgen.yaml.reader import read_documents
from twgen.yaml.source import YamlError

_HEAD = "HEAD"


class SpecSources(NamedTuple):
    """How today's specs were read: the specs of a commit are read the same way."""

    paths: Sequence[str]
    rule: NamespaceRule
    attached_kinds: tuple[GroupKind, ...]


def read_history(
    spec: WorkerSpec, build_ids: frozenset[str], sources: SpecSources, ends: float, without_repository: str
) -> GitHistory:
    """The versions among `build_ids` that commits of the worker's spec describe.

    It reads until `ends` of time.monotonic. `without_repository` is the reason given if there is none.
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
    """Commits in a row, the newest first, in which a spec describes one version."""

    build_id: str
    newest: Commit
    """The newest commit that changed the file."""
    oldest: Commit
    last: str
    """The newest commit of all, even if it did not change the file."""


class _Walk:
    """Goes back through the commits of the file with one worker's spec."""

    def __init__(self, repository: Repository, spec: WorkerSpec, sources: SpecSources) -> None:
        self._repository = repository
        self._spec = spec
        self._sources = sources
        self._file = _below(repository, spec.document.source)
        self._build_ids: dict[Commit, str] = {}
        """The build ID of each commit that was read; the second walk meets most of them again."""

    def versions(self, build_ids: frozenset[str]) -> Iterator[WorkerSpec]:
        """The worker's spec as it last described each of these versions, the newest version first.

        Connection and policy come from the last commit that has the version, because changes to them reach a
        live target. The names of variables, and a connection for new versions only, come from the first.
        Commits of the branch itself come first, because those were deployed: a commit of another branch,
        merged later, had other connections with it.
        """
        missing = set(build_ids)
        for run in chain(self._runs(first_parents=True), self._runs(first_parents=False)):
            if run.build_id not in missing:
                continue
            # with two branches, the newer commit that was listed last may have another version
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
        """The worker as a commit describes it, with its connection; `path` is its file there."""
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
        """The files of a commit where specs are read today, or were read when a folder had another name."""
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
            return  # nothing can have been deployed from it
        for index, value in enumerate(values):
            if value is not None:
                yield from kinds.without_lists(Document(path, index, value))


def _below(repository: Repository, path: str) -> str:
    """A path relative to the root of the repository; `.` if it contains the repository, or is outside."""
    resolved = Path(os.path.realpath(path))
    return str(resolved.relative_to(repository.root)) if resolved.is_relative_to(repository.root) else "."
