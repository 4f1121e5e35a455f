"""The lines about workers that were not read."""

from twgen.errors import OutOfTime, StateUnavailable
from twgen.planning.reads import Unread, unread_error, unread_lines

LATE = "did not answer within 20 s"


def late(worker: str, address: str = "a:7233") -> Unread:
    return Unread(
        address, f"Temporal at {address}, namespace 'of-{worker}' (for shop/{worker} of x.yaml) {LATE}"
    )


def test_many_workers_of_one_server_that_fail_alike_have_one_line() -> None:
    many = [late(f"w{number}") for number in range(412)]
    assert unread_lines([*many, late("mail", "b:7233")]) == [
        f"412 workers of a:7233 were not read: {many[0].why}",
        late("mail", "b:7233").why,
    ]


def test_error_is_about_time_only_if_nothing_else_failed() -> None:
    slow, refused = Unread("a:7233", "late", is_late=True), Unread("a:7233", "refused")
    assert type(unread_error([slow, slow])) is OutOfTime
    assert type(unread_error([slow, refused])) is StateUnavailable
    assert str(unread_error([slow, refused])) == "late; refused"


def test_few_workers_and_failures_of_another_kind_have_a_line_each() -> None:
    assert unread_lines([late("w1"), late("w2")]) == [late("w1").why, late("w2").why]
    many = [late(f"w{number}") for number in range(3)]
    refused = Unread("a:7233", "Temporal at a:7233, namespace 'x' (for shop/w9 of x.yaml): permits nothing")
    assert unread_lines([*many, refused])[1:] == [refused.why]
    assert unread_lines([Unread("a:7233", "pods cannot be read")] * 5) == ["pods cannot be read"]
