"""Relist on real MCP sessions: the pure core bound to the `mcp` SDK. Start with ``catalogs.py``.

The server's side is in ``publisher.py`` and ``mcpserver.py``.
"""

from relist_mcp.binding import NotConnected
from relist_mcp.catalogs import Catalogs
from relist_mcp.changes import Change, Changed
from relist_mcp.credentials import Credentials, NeedsCredentials
from relist_mcp.drift.guard import Pinned
from relist_mcp.handlers import Handlers
from relist_mcp.loop import Fed
from relist_mcp.mcpserver import publish
from relist_mcp.note import note_of
from relist_mcp.publisher import Publishing
from relist_mcp.refusals import (
    Ambiguous,
    CallRefused,
    ChangedSincePlanned,
    InvalidArguments,
    InvalidResult,
    Rejected,
    Removed,
    Unauthorized,
    Unreachable,
    Unsupported,
    UnusableSchema,
    Unverifiable,
    Withheld,
)
from relist_mcp.schemas import Fault
from relist_mcp.status import Status
from relist_mcp.targets import Http, Stdio, Streams, Target
from relist_mcp.view import Surface, View

__all__ = [
    "Ambiguous",
    "CallRefused",
    "Catalogs",
    "Change",
    "Changed",
    "ChangedSincePlanned",
    "Credentials",
    "Fault",
    "Fed",
    "Handlers",
    "Http",
    "InvalidArguments",
    "InvalidResult",
    "NeedsCredentials",
    "NotConnected",
    "Pinned",
    "Publishing",
    "Rejected",
    "Removed",
    "Status",
    "Stdio",
    "Streams",
    "Surface",
    "Target",
    "Unauthorized",
    "Unreachable",
    "Unsupported",
    "UnusableSchema",
    "Unverifiable",
    "View",
    "Withheld",
    "note_of",
    "publish",
]
