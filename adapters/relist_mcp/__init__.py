"""Relist on real MCP sessions: the pure core bound to the `mcp` SDK. Start with ``catalogs.py``."""

from relist_mcp.catalogs import Catalogs, NotConnected
from relist_mcp.changes import Change, Changed
from relist_mcp.targets import Http, Stdio, Streams, Target
from relist_mcp.view import Surface, View

__all__ = [
    "Catalogs",
    "Change",
    "Changed",
    "Http",
    "NotConnected",
    "Stdio",
    "Streams",
    "Surface",
    "Target",
    "View",
]
