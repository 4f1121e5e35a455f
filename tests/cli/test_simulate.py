"""`twgen simulate` as people use it."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.cli.conftest import Run

WORLD = ("--snapshot", "snapshot.json", "--identity", "twc")


@pytest.mark.usefixtures("story")
def test_reads_no_server_and_begins_at_no_time(run: Run) -> None:
    ended = run("simulate", "specs", "-o", "json")
    assert (ended.returncode, ended.stderr) == (0, "")
    timeline = json.loads(ended.stdout)
    assert (timeline["kind"], timeline["begins"], timeline["isUsual"]) == ("Timeline", None, True)
    assert timeline["workers"][0]["currentBuildID"] == "previous"


@pytest.mark.usefixtures("story")
def test_snapshot_is_where_and_when_it_begins(run: Run) -> None:
    timeline = json.loads(run("simulate", "specs", *WORLD, "-o", "json").stdout)
    assert (timeline["begins"], timeline["isUsual"]) == ("2026-11-21T12:00:00Z", False)
    first = json.loads(run("plan", "specs", *WORLD, "-o", "json").stdout)["workers"][0]["routing"]
    told = [event for event in timeline["workers"][0]["events"] if event["event"] != "Found"]
    assert (told[0]["at"], told[0]["buildID"], told[0]["percentage"]) == (
        0,
        first["buildID"],
        first["percentage"],
    )


@pytest.mark.usefixtures("story")
def test_now_gives_the_usual_world_a_time(run: Run) -> None:
    ended = run("simulate", "specs", "--now", "2026-11-21T12:00:00Z", "-o", "json")
    assert json.loads(ended.stdout)["begins"] == "2026-11-21T12:00:00Z"


@pytest.mark.usefixtures("story")
def test_options_are_the_assumptions(run: Run) -> None:
    options = ("--workflow-duration", "2h", "--startup", "10s", "--gate", "fails")
    intervals = ("--drainage-interval", "1m", "--render-interval", "90s")
    ended = run("simulate", "specs", "-o", "json", *options, *intervals)
    assert json.loads(ended.stdout)["assumptions"] == {
        "workflowDuration": 7200,
        "startup": 10,
        "gateDuration": 60,
        "gatePasses": False,
        "drainageInterval": 60,
        "renderInterval": 90,
        "startsPerHour": None,
        "failing": None,
    }


@pytest.mark.usefixtures("story")
def test_options_come_from_the_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWGEN_WORKFLOW_DURATION", "90m")
    assert "pinned workflows run 1h30m" in run("simulate", "specs").stdout


@pytest.mark.usefixtures("story")
@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--workflow-duration", "two days", "--workflow-duration 'two days' is not a duration"),
        ("--gate", "breaks", "--gate 'breaks' is not a duration such as 90s or 1h30m, or 'fails'"),
        ("--render-interval", "0", "--render-interval '0' is too short: it must be at least 1s"),
        ("--drainage-interval", "1ms", "--drainage-interval '1ms' is too short: it must be at least 1s"),
        ("--starts-per-hour", "many", "--starts-per-hour 'many' is not a number"),
        ("--starts-per-hour", "nan", "--starts-per-hour 'nan' is not a number"),
        ("--starts-per-hour", "0", "--starts-per-hour '0' must be above 0 and at most 100000"),
        ("--starts-per-hour", "100", "--starts-per-hour needs --failing"),
        ("--failing", "0.2", "--failing needs --starts-per-hour"),
        ("--failing", "20", "--failing '20' must be above 0 and at most 1: 20% is 0.2"),
        ("--failing", "-0.2", "--failing '-0.2' is not a number"),
    ],
)
def test_wrong_assumption_is_one_line(run: Run, option: str, value: str, says: str) -> None:
    ended = run("simulate", "specs", option, value)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert says in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.usefixtures("story")
def test_workflows_of_centuries_hold_their_version_for_as_long(run: Run) -> None:
    ended = run("simulate", "specs", "--workflow-duration", "2562047h", "-o", "json")
    (worker,) = json.loads(ended.stdout)["workers"]
    assert worker["outcome"] == "Settled"
    (drained,) = [event["at"] for event in worker["events"] if event["event"] == "Drained"]
    assert drained > 2562047 * 3600


@pytest.mark.usefixtures("story")
def test_length_that_go_does_not_know_is_refused(run: Run) -> None:
    ended = run("simulate", "specs", "--workflow-duration", "99999999h")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "'99999999h' is not a duration" in ended.stderr


@pytest.mark.usefixtures("story")
def test_picture_is_one_file(run: Run) -> None:
    ended = run("simulate", "specs", "-o", "svg")
    assert ET.fromstring(ended.stdout).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314 - our own


def test_folder_without_a_worker_is_refused(run: Run, tmp_path: Path) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "d"}}
    (tmp_path / "service.json").write_text(json.dumps(service))
    ended = run("simulate", ".")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        "twgen: no worker found in .: a worker is a WorkerDeployment of temporal.io/v1alpha1\n"
    )


@pytest.mark.usefixtures("story")
def test_gate_is_assumed_in_vain_where_no_worker_has_one(run: Run) -> None:
    assert run("simulate", "specs").stderr == ""
    assert run("simulate", "specs", "--gate", "fails").stderr == (
        "warning: no worker has a gate: --gate has no effect\n"
    )


POLICY = {
    "apiVersion": "twgen.io/v1alpha1",
    "kind": "RolloutPolicy",
    "metadata": {"name": "measured", "namespace": "shop"},
    "spec": {"analysis": {"metrics": [{"name": "failures", "workflowFailures": {"maxRatio": 0.02}}]}},
}
TRAFFIC = ("--starts-per-hour", "1000", "--failing", "0.2")


@pytest.mark.usefixtures("story")
def test_traffic_is_asked_in_vain_where_no_worker_is_measured(run: Run) -> None:
    assert run("simulate", "specs", *TRAFFIC).stderr == (
        "warning: no worker uses workflowFailures: --starts-per-hour and --failing have no effect\n"
    )
    assert run("simulate", "specs", *TRAFFIC, "-q").stderr == ""


@pytest.mark.usefixtures("story")
def test_traffic_says_when_a_version_that_fails_would_be_noticed(run: Run, tmp_path: Path) -> None:
    namespace = json.loads(run("simulate", "specs", "-o", "json").stdout)["workers"][0]["worker"]
    metadata = {"name": "measured", "namespace": namespace.partition("/")[0]}
    (tmp_path / "specs" / "policy.json").write_text(json.dumps(POLICY | {"metadata": metadata}))
    told = json.loads(run("simulate", "specs", "-o", "json").stdout)["workers"][0]
    assert told["noticing"] == []
    assert [
        note
        for note in told["notes"]
        if "To assume other numbers, use --starts-per-hour and --failing" in note
    ]
    ended = run("simulate", "specs", *TRAFFIC, "-o", "json")
    assert (ended.returncode, ended.stderr) == (0, "")
    timeline = json.loads(ended.stdout)
    assert (timeline["assumptions"]["startsPerHour"], timeline["assumptions"]["failing"]) == (1000, 0.2)
    (noticing,) = timeline["workers"][0]["noticing"]
    assert noticing["metric"] == "failures"
    assert noticing["half"]["after"] <= noticing["nineOfTen"]["after"]
    assert run("simulate", "specs", *TRAFFIC, "-o", "json").stdout == ended.stdout
    text = run("simulate", "specs", *TRAFFIC).stdout
    assert "Metric failures would detect this failure rate within" in " ".join(text.split())
