"""A Git repository that is hostile, or only looks like one."""

from pathlib import Path

import pytest

from tests.reading.repositories import CONNECTION, POLICY, Repository, history, worker
from twgen.reading import history as git_history


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_nothing_that_a_repository_names_is_run(repository: Repository) -> None:
    first = repository.commit({"app/pay.yaml": worker("1"), "app/temporal.yaml": CONNECTION % "a"})["pay"]
    ran = repository.root / "ran"
    script = repository.root / "script"
    script.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    script.chmod(0o755)
    repository.commit({"app/pay.yaml": worker("2"), ".gitattributes": "*.yaml diff=x filter=x\n"})
    for setting in (
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "diff.x.textconv",
        "diff.x.command",
        "filter.x.smudge",
        "gpg.program",
        "diff.external",
    ):
        repository.git("config", setting, str(script))
    repository.git("config", "log.showSignature", "true")
    repository.git("config", "core.hooksPath", str(repository.root))
    assert first in history(repository.root / "app", first).versions
    assert not ran.exists()


def test_content_that_is_missing_is_fetched_from_nowhere_even_by_an_older_git(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = repository.commit({"app/pay.yaml": worker("1"), "app/temporal.yaml": CONNECTION % "a"})["pay"]
    missing = repository.git("rev-parse", "HEAD:app/pay.yaml")
    repository.commit({"app/pay.yaml": worker("2")})
    (repository.root / ".git" / "objects" / missing[:2] / missing[2:]).unlink()
    ran = repository.root / "ran"
    for setting, text in (
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", f"ext::touch {ran}"),
        ("protocol.ext.allow", "always"),
    ):
        repository.git("config", setting, text)
    monkeypatch.delitem(git_history._ENVIRONMENT, "GIT_NO_LAZY_FETCH")  # type: ignore[arg-type]  # noqa: SLF001
    assert not history(repository.root / "app", first).versions
    assert not ran.exists()


def test_commit_that_is_there_in_part_tells_nothing(repository: Repository) -> None:
    files = {"app/pay.yaml": worker("1"), "app/temporal.yaml": CONNECTION % "a"}
    first = repository.commit({**files, "app/policies/pay.yaml": POLICY % ("HostPort", "Target")})["pay"]
    missing = repository.git("rev-parse", "HEAD:app/policies")
    repository.commit({"app/pay.yaml": worker("2"), "app/policies/pay.yaml": POLICY % ("Current", "Target")})
    assert first in history(repository.root / "app", first).versions
    (repository.root / ".git" / "objects" / missing[:2] / missing[2:]).unlink()
    found = history(repository.root / "app", first)
    assert (dict(found.versions), found.ends) == (
        {},
        "git cannot read the whole history: the clone may be incomplete, or contain a huge file",
    )


@pytest.mark.parametrize("is_a_difference", [False, True])
def test_huge_files_of_earlier_commits_take_no_memory(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, *, is_a_difference: bool
) -> None:
    monkeypatch.setattr(git_history, "_MOST_MEMORY", 16 * 2**20)
    first = repository.commit({"app/pay.yaml": worker("1"), "app/temporal.yaml": CONNECTION % "a"})["pay"]
    for end in ("x", "longer"):
        repository.commit({"app/pay.yaml": " " * (24 * 2**20) + end})
    repository.commit({"app/pay.yaml": worker("2")})
    repository.git("-c", f"core.bigFileThreshold={'1g' if is_a_difference else '1m'}", "repack", "-adfq")
    found = history(repository.root / "app", first)
    if is_a_difference:  # git has to take it apart as a whole
        assert (
            found.ends == "git cannot read the whole history: the clone may be incomplete, or"
            " contain a huge file"
        )
    else:
        assert first in found.versions


def test_folder_that_only_looks_like_a_repository_is_none(repository: Repository) -> None:
    first = repository.commit({"app/pay.yaml": worker("1"), "app/temporal.yaml": CONNECTION % "a"})["pay"]
    looks = {"app/HEAD": "ref: refs/heads/main\n", "app/config": "[core]\nbare = true\n"}
    repository.commit({**looks, "app/objects/x": "", "app/refs/x": "", "app/pay.yaml": worker("2")})
    assert first in history(repository.root / "app", first).versions
