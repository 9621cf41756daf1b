"""Relist on real MCP sessions: the pure core bound to the `mcp` SDK. Start with ``catalogs.py``."""

from relist_mcp.catalogs import Catalogs, NotConnected
from relist_mcp.targets import Http, Stdio, Streams, Target

__all__ = ["Catalogs", "Http", "NotConnected", "Stdio", "Streams", "Target"]
