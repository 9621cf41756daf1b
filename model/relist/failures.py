"""Failures told apart, because each asks for something else. Rule: FAIL-07, DISC-14, LIFE-35."""

from enum import Enum

from relist.values import Failure

INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
HEADER_MISMATCH = -32020
MISSING_CLIENT_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
RESOURCE_NOT_FOUND = -32002  # of earlier revisions

MODERN_CODES = frozenset({HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_VERSION})
AUTHORIZATION_STATUSES = frozenset({401, 403})


class FailureClass(Enum):
    """What a failed request asks of us."""

    TRANSIENT = "transient"  # try again later
    AUTHORIZATION = "authorization"  # wait for other credentials
    UNMENDABLE = "unmendable"  # the same request will be refused again
    DEAD_CURSOR = "dead cursor"  # start the walk over
    UNKNOWN_METHOD = "unknown method"  # the kind does not exist after all


def classify_page(failure: Failure, cursor: str | None) -> FailureClass:
    """What a failed page request means; ``cursor`` is the one it carried.

    -32602 speaks of the cursor only when there was one. An unknown method is one under any HTTP
    status. Rule: CAP-20, DISC-14, FAIL-19.
    """
    if failure.status in AUTHORIZATION_STATUSES:
        return FailureClass.AUTHORIZATION
    if failure.code == METHOD_NOT_FOUND:
        return FailureClass.UNKNOWN_METHOD
    if failure.code in (INVALID_REQUEST, MISSING_CLIENT_CAPABILITY):
        return FailureClass.UNMENDABLE
    if failure.code == INVALID_PARAMS and cursor is not None:
        return FailureClass.DEAD_CURSOR
    return FailureClass.TRANSIENT


def lasts(failure: Failure) -> bool:
    """Whether the same request would fail again: unknown, unauthorized, or refused as such.

    Rule: FAIL-19.
    """
    return classify_page(failure, None) is not FailureClass.TRANSIENT


def says_nothing_about_the_era(failure: Failure) -> bool:
    """Whether a failed probe proves nothing about the era: authorization, throttling, outage.

    Rule: LIFE-35.
    """
    status = failure.status
    if failure.code in MODERN_CODES:
        return False
    return status is not None and (status in (401, 403, 408, 429) or status >= 500)
