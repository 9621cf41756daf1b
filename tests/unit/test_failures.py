"""Failures told apart."""

import pytest

from relist.failures import FailureClass, classify_page, says_nothing_about_the_era
from relist.values import Failure

rule = pytest.mark.rule


@rule("FAIL-07")
@rule("DISC-14")
@pytest.mark.parametrize(
    ("failure", "cursor", "expected"),
    [
        (Failure("x", status=401), None, FailureClass.AUTHORIZATION),
        (Failure("x", status=403, code=-32601), "c", FailureClass.AUTHORIZATION),
        (Failure("x", code=-32601), None, FailureClass.UNKNOWN_METHOD),
        (Failure("x", code=-32601, status=404), "c", FailureClass.UNKNOWN_METHOD),
        (Failure("x", code=-32602), None, FailureClass.TRANSIENT),
        (Failure("x", code=-32602), "", FailureClass.DEAD_CURSOR),
        (Failure("x", code=-32602, status=400), "c", FailureClass.DEAD_CURSOR),
        (Failure("x", code=-32603), "c", FailureClass.TRANSIENT),
        (Failure("x", status=404), None, FailureClass.TRANSIENT),
        (Failure("x", status=429), None, FailureClass.TRANSIENT),
        (Failure("x", status=503), "c", FailureClass.TRANSIENT),
        (Failure("x", timed_out=True), None, FailureClass.TRANSIENT),
        (Failure("x"), None, FailureClass.TRANSIENT),
    ],
)
def test_what_a_failed_page_means(
    failure: Failure, cursor: str | None, expected: FailureClass
) -> None:
    assert classify_page(failure, cursor) is expected


@rule("LIFE-35")
@pytest.mark.parametrize(
    ("status", "code", "nothing"),
    [
        (401, None, True),
        (403, None, True),
        (408, None, True),
        (429, None, True),
        (500, None, True),
        (503, -32601, True),
        (400, None, False),
        (404, -32601, False),
        (405, None, False),
        (None, -32601, False),
        (None, None, False),
        (500, -32022, False),
    ],
)
def test_what_says_nothing_about_the_era(
    status: int | None, code: int | None, nothing: bool
) -> None:
    assert says_nothing_about_the_era(Failure("x", code, status)) is nothing
