"""What an error that nobody expected may say."""

from twgen.cli.boundary import bug_report

QUOTED = "Bearer eyJhbGciOiJSUzI1NiJ9"


def fail() -> None:
    try:
        {}[QUOTED]
    except KeyError as error:
        error.add_note(QUOTED)
        raise ValueError(f"header {QUOTED!r} has no end") from error


def test_report_of_a_bug_says_where_and_never_what_was_read() -> None:
    try:
        fail()
    except ValueError as error:
        report = bug_report(error)
    assert "Bearer eyJ" not in report
    assert report.index("builtins.KeyError") < report.index("builtins.ValueError")
    assert report.count("in fail") == 2
    assert report.startswith("twgen ")
