"""Relist on real MCP sessions: the pure core bound to the `mcp` SDK. Start with ``catalogs.py``.

The server's side is in ``publisher.py`` and ``mcpserver.py``.
"""

from relist_mcp.binding import NotConnected
from relist_mcp.catalogs import Catalogs
from relist_mcp.changes import Change, Changed
from relist_mcp.credentials import Credentials, NeedsCredentials
from relist_mcp.handlers import Handlers
from relist_mcp.loop import Fed
from relist_mcp.mcpserver import publish
from relist_mcp.note import note_of
from relist_mcp.publisher import Publishing
from relist_mcp.status import Status
from relist_mcp.targets import Http, Stdio, Streams, Target
from relist_mcp.view import Surface, View

__all__ = [
    "Catalogs",
    "Change",
    "Changed",
    "Credentials",
    "Fed",
    "Handlers",
    "Http",
    "NeedsCredentials",
    "NotConnected",
    "Publishing",
    "Status",
    "Stdio",
    "Streams",
    "Surface",
    "Target",
    "View",
    "note_of",
    "publish",
]
