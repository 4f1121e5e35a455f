"""Old versions from the commits of their specs, in real Git repositories."""

import resource
from pathlib import Path

import pytest

from testing.processes import ENVIRONMENT
from tests.reading.repositories import (
    CONNECTION,
    POLICY,
    Repository,
    app,
    history,
    pod,
    specs,
    variables,
    worker,
)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_old_version_is_found_in_the_commits_of_its_spec(repository: Repository) -> None:
    first = repository.commit(app("1"))["pay"]
    second = repository.commit({"app/pay.yaml": worker("2", replicas=5)})["pay"]
    repository.commit({"app/pay.yaml": worker("3")})
    found = history(repository.root / "app", first, second)
    assert not found.ends
    assert {build_id: recorded.replicas for build_id, recorded in found.versions.items()} == {
        first: 2,
        second: 5,
    }
    assert pod(found, first)["containers"][0]["image"] == "registry.example.com/pay:1"


def test_commit_that_changed_connection_and_policy_too_leaves_older_versions_theirs(
    repository: Repository,
) -> None:
    first = repository.commit(app("1", "old", ("HostPort", "Target")))["pay"]
    repository.commit(app("2", "new", ("Current", "Target")))
    found = history(repository.root / "app", first)
    assert variables(found, first)["TEMPORAL_HOST_PORT"] == "old:7233"


@pytest.mark.parametrize(("changes", "address"), [("Target", "new"), ("NewVersionsOnly", "old")])
def test_connection_that_reached_a_live_target_is_that_of_its_last_commit(
    repository: Repository, changes: str, address: str
) -> None:
    first = repository.commit(app("1", "old", ("HostPort", changes)))["pay"]
    repository.commit(
        {"app/temporal.yaml": CONNECTION % "new", "app/policy.yaml": POLICY % ("Current", changes)}
    )
    repository.commit({"app/pay.yaml": worker("1", replicas=7)})
    repository.commit({"app/temporal.yaml": CONNECTION % "newest", "app/pay.yaml": worker("2")})
    found = history(repository.root / "app", first)
    assert found.versions[first].replicas == 7
    # the names of variables wait for a new version, the address does not
    assert variables(found, first)["TEMPORAL_HOST_PORT"] == f"{address}:7233"


def test_file_and_folder_may_have_had_other_names(repository: Repository) -> None:
    first = repository.commit(app("1"))["pay"]
    (repository.root / "apps").mkdir()
    repository.git("mv", "app", "apps/pay")
    repository.git("mv", "apps/pay/pay.yaml", "apps/pay/worker.yaml")
    repository.commit({})
    second = repository.commit({"apps/pay/worker.yaml": worker("2")})["pay"]
    repository.commit({"apps/pay/worker.yaml": worker("3")})
    assert history(repository.root / "apps" / "pay", first, second).versions.keys() == {first, second}


def test_version_of_a_branch_that_was_merged_is_found(repository: Repository) -> None:
    repository.commit(app("1"))
    repository.git("checkout", "--quiet", "-b", "branch")
    tried = repository.commit({"app/pay.yaml": worker("2")})["pay"]
    repository.commit({"app/pay.yaml": worker("3")})
    repository.git("checkout", "--quiet", "main")
    repository.commit({"elsewhere": "1"})
    repository.git("merge", "--quiet", "--no-edit", "branch")
    repository.commit({"app/pay.yaml": worker("4")})
    assert tried in history(repository.root / "app", tried).versions


def test_version_of_one_branch_is_found_where_another_had_gone_on_from_an_older_one(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at(minute: int) -> None:
        monkeypatch.setitem(ENVIRONMENT, "GIT_COMMITTER_DATE", f"2026-11-21T12:{minute}:00Z")

    at(10)
    repository.commit(app("1"))
    repository.git("checkout", "--quiet", "-b", "branch")
    repository.git("checkout", "--quiet", "main")
    at(11)
    deployed = repository.commit({"app/pay.yaml": worker("2")})["pay"]
    repository.git("checkout", "--quiet", "branch")
    at(12)
    repository.commit({"app/pay.yaml": worker("3")})
    repository.git("checkout", "--quiet", "main")
    at(13)
    repository.git("merge", "--quiet", "--no-edit", "--strategy-option=theirs", "branch")
    found = history(repository.root / "app", deployed)
    assert deployed in found.versions, found.ends


def test_version_that_a_merge_replaced_has_the_connection_of_its_own_branch(repository: Repository) -> None:
    """And not that of where the other branch began."""
    first = repository.commit(app("1", "old"))["pay"]
    repository.git("checkout", "--quiet", "-b", "branch")
    repository.commit({"app/pay.yaml": worker("2")})
    repository.git("checkout", "--quiet", "main")
    repository.commit({"app/temporal.yaml": CONNECTION % "new"})
    repository.git("merge", "--quiet", "--no-edit", "branch")
    repository.commit({"app/pay.yaml": worker("3")})
    found = history(repository.root / "app", first)
    assert variables(found, first)["TEMPORAL_ADDRESS"] == "new:7233"


def test_folder_whose_name_begins_with_dots_is_inside_of_its_repository(repository: Repository) -> None:
    path = repository.root / "..app"
    first = repository.commit({"..app/pay.yaml": worker("1"), "..app/temporal.yaml": CONNECTION % "a"})
    assert not first
    [spec] = specs(path)
    repository.commit({"..app/pay.yaml": worker("2")})
    assert history(path, spec.build_id).versions.keys() == {spec.build_id}


def test_newest_template_of_a_custom_build_id_is_what_ran_last(repository: Repository) -> None:
    repository.commit({"app/pay.yaml": worker("1", custom="blue"), "app/temporal.yaml": CONNECTION % "a"})
    repository.commit({"app/pay.yaml": worker("2", custom="blue")})
    repository.commit({"app/pay.yaml": worker("3", custom="green")})
    found = history(repository.root / "app", "blue")
    assert pod(found, "blue")["containers"][0]["image"] == "registry.example.com/pay:2"


def test_workers_of_one_file_are_told_apart(repository: Repository) -> None:
    both = {"app/all.yaml": f"{worker('1')}---{worker('1', name='bill')}---{CONNECTION % 'a'}"}
    first = repository.commit(both)["bill"]
    both = {"app/all.yaml": f"{worker('2')}---{worker('2', name='bill')}---{CONNECTION % 'a'}"}
    repository.commit(both)
    found = history(repository.root / "app", first, name="bill")
    assert found.versions[first].worker_deployment == "shop/bill"


def test_commits_that_cannot_be_read_are_passed_over(repository: Repository) -> None:
    first = repository.commit(app("1"))["pay"]
    for text in ("a: [", "\x00", "", worker("2").replace("containers", "container"), "a" * 17 * 2**20):
        repository.commit({"app/pay.yaml": text, "app/other.yaml": "kind: X"})
    repository.commit({"app/pay.yaml": worker("3")})
    found = history(repository.root / "app", first, "never-seen")
    assert found.versions.keys() == {first}
    assert found.ends.startswith("no commit of ")


@pytest.mark.parametrize("name", ["pay\nroll.yaml", "päy.yaml", ":(glob)*.yaml", "-x.yaml", "a b.yaml"])
def test_any_name_of_a_file_is_read_or_passed_over(repository: Repository, name: str) -> None:
    first = repository.commit({f"app/{name}": worker("1"), "app/temporal.yaml": CONNECTION % "a"})["pay"]
    repository.commit({f"app/{name}": worker("2")})
    found = history(repository.root / "app", first)
    assert bool(found.versions) is ("\n" not in name)


@pytest.mark.parametrize("name", ["a b.yaml", "a blob 5.yaml"])
def test_file_that_was_gone_for_a_while_may_have_any_name(repository: Repository, name: str) -> None:
    first = repository.commit({f"app/{name}": worker("1"), "app/temporal.yaml": CONNECTION % "a"})["pay"]
    repository.commit({f"app/{name}": None})
    repository.commit({f"app/{name}": worker("2")})
    assert first in history(repository.root / "app", first).versions


def test_many_old_versions_need_no_more_open_files_than_one(repository: Repository) -> None:
    old = [repository.commit(app(str(number)))["pay"] for number in range(12)]
    repository.commit({"app/pay.yaml": worker("last")})
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len([*Path("/proc/self/fd").iterdir()]) + 12, hard))
    try:
        found = history(repository.root / "app", *old)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert found.versions.keys() == set(old)


def test_shallow_clone_says_so(repository: Repository, tmp_path: Path) -> None:
    first = repository.commit(app("1"))["pay"]
    repository.commit({"app/pay.yaml": worker("2")})
    clone = tmp_path / "clone"
    repository.git("clone", "--quiet", "--depth=1", f"file://{tmp_path}", str(clone))
    assert history(clone / "app", first).ends.endswith("the clone is shallow")
    repository.git("-C", str(clone), "fetch", "--quiet", "--unshallow")
    assert first in history(clone / "app", first).versions


@pytest.mark.parametrize("lost", ["pay", "policy"])
def test_partial_clone_says_so(repository: Repository, tmp_path: Path, lost: str) -> None:
    """Also where only the policy is missing, without which the version would be another one."""
    first = repository.commit(app("1", policy=("HostPort", "Target")))["pay"]
    blob = repository.git("rev-parse", f"HEAD:app/{lost}.yaml")
    repository.commit({"app/pay.yaml": worker("2"), "app/policy.yaml": POLICY % ("Current", "Target")})
    assert first in history(repository.root / "app", first).versions
    (tmp_path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    found = history(repository.root / "app", first)
    why = "the clone is partial: it does not contain the content of every commit"
    assert (found.versions, found.ends) == ({}, why)


def test_folder_that_no_repository_holds_says_why(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "all.yaml").write_text(f"{worker('1')}---{CONNECTION % 'a'}")
    assert history(tmp_path / "app", "v1").ends == "there is none"


def test_time_that_is_over_is_said(repository: Repository) -> None:
    repository.commit(app("1"))
    assert history(repository.root / "app", "v1", seconds=0).ends.startswith(
        "reading the Git history takes too long"
    )


def test_machine_without_git_says_so(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.commit(app("1"))
    monkeypatch.setenv("PATH", "/nowhere")
    assert history(repository.root / "app", "v1").ends == "git is not installed"
