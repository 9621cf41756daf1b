"""Defects that only HTTP can show: sessions, streams, statuses."""

from mutants import inside
from mutants.kit import Defect, Patch
from mutants.storms import error_ends_nothing
from relist_mcp.connection import Connection


def keeps_a_lost_session(patch: Patch) -> None:
    """Does not begin anew when the server has forgotten the session."""
    patch.setattr(Connection, "on_expired", lambda _: None)


def waits_for_the_stream(patch: Patch) -> None:
    """Lists nothing before the stream of notices stands."""
    patch.setattr(Connection, "on_stream_ended", lambda *_: None)
    patch.setitem(inside.POLICY, "ack_limit_ms", 10**9)


DEFECTS = (
    Defect("keeps-a-lost-session", "session:lost", keeps_a_lost_session),
    Defect("waits-for-the-stream", "session:no-stream", waits_for_the_stream),
    Defect("close-ends-nothing", "listen:ended:by-close", error_ends_nothing),
)
