"""Why a call was not made: one class for each reason, so that a host can act on it.

None of them holds an argument or a credential. What is said in words is said in words of ours.
"""

from typing import ClassVar

from mcp import MCPError
from mcp_types import CallToolResult, ErrorData

from relist.admission import Refusal
from relist.drift.values import Review, Why
from relist.values import Doubt, Kind
from relist_mcp.binding import NotConnected
from relist_mcp.changes import Changed
from relist_mcp.schemas import Fault


class CallRefused(Exception):
    """A tool call, prompt or read that was not sent, or that the server refused as such.

    ``kind`` and ``key`` say of which entry: the name of a tool or prompt, the URI of a resource.
    """

    refusal: ClassVar[Refusal]
    why: ClassVar[str]

    def __init__(self, kind: Kind, key: str, why: str = "") -> None:
        super().__init__(why or self.why)
        self.kind, self.key = kind, key


class Removed(CallRefused):
    """It is not listed (any more)."""

    refusal, why = Refusal.REMOVED, "not listed any more"


class ChangedSincePlanned(CallRefused):
    """Its definition is another than the call was planned on: plan anew.

    ``changed`` is how it differs, None if what was planned on is not known any more.
    """

    refusal, why = Refusal.CHANGED, "changed since the call was planned"

    def __init__(self, kind: Kind, key: str, changed: Changed | None) -> None:
        super().__init__(kind, key)
        self.changed = changed


class InvalidArguments(CallRefused):
    """The arguments do not fit the definition in force: ``fault`` says where, as a JSON Pointer."""

    refusal = Refusal.INVALID

    def __init__(self, kind: Kind, key: str, fault: Fault) -> None:
        super().__init__(kind, key, f"arguments do not fit at {fault.path!r} ({fault.keyword})")
        self.fault = fault


class UnusableSchema(CallRefused):
    """Arguments cannot be checked against what the server gave as a schema. Rule: CALL-14."""

    refusal = Refusal.INVALID


class Ambiguous(CallRefused):
    """It is listed with two definitions."""

    refusal, why = Refusal.AMBIGUOUS, "listed with two definitions"


class Unverifiable(CallRefused):
    """The list is in doubt, or there is none, and that could not be cleared."""

    refusal = Refusal.UNVERIFIABLE

    def __init__(self, kind: Kind, key: str, doubt: Doubt | None) -> None:
        super().__init__(kind, key, f"in doubt: {'no list' if doubt is None else doubt.value}")
        self.doubt = doubt


class Unreachable(CallRefused, NotConnected):
    """The link is closed, or there is no common version: no list can be had, nothing be sent."""

    refusal = Refusal.UNVERIFIABLE


class Unauthorized(CallRefused):
    """Nothing is tried before credentials change. See ``Catalogs.change_credentials``."""

    refusal, why = Refusal.UNAUTHORIZED, "waits for credentials"


class Unsupported(CallRefused):
    """The server has nothing of this kind."""

    refusal, why = Refusal.UNSUPPORTED, "the server does not have this kind"


class Withheld(CallRefused):
    """It is not on the surface of this consumer. See ``drift.guard``.

    ``reason`` says why it is withdrawn; None if the profile does not select it, or nothing can be
    known. ``review`` is what has to be decided first, with how the definition differs, if anything.
    """

    refusal = Refusal.WITHHELD

    def __init__(self, kind: Kind, key: str, reason: Why | None, review: Review | None) -> None:
        super().__init__(
            kind, key, "not exposed" if reason is None else f"not exposed: {reason.value}"
        )
        self.reason, self.review = reason, review


class Rejected(CallRefused, MCPError):
    """The server answered with an error; asking the same again would not help."""

    refusal = Refusal.REJECTED

    def __init__(self, kind: Kind, key: str, error: ErrorData) -> None:
        MCPError.__init__(self, error.code, error.message, error.data)
        self.kind, self.key = kind, key


class InvalidResult(Exception):
    """A tool has run, and its structured result does not fit the output schema that it had.

    ``result`` is what came; ``fault`` says where it does not fit, None if the schema is unusable.
    """

    def __init__(self, why: str, result: CallToolResult, fault: Fault | None = None) -> None:
        super().__init__(why)
        self.result, self.fault = result, fault
