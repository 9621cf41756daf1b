"""The client of FastMCP, used through its public API as its documentation tells its users.

One `fastmcp.Client` stays open for the life of the connection. `list_tools()` and its siblings are
called at each need: they read all pages, and without the opt-in response cache they ask the server
each time. The client keeps no list, so there is nothing to believe between two needs, and it offers
no way to open `subscriptions/listen`, so there is nothing to follow in the modern era.
"""

from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

import anyio
from fastmcp import Client
from fastmcp.client.transports import ClientTransport, StdioTransport, StreamableHttpTransport
from fastmcp.exceptions import ToolError
from mcp import MCPError

from relist_conformance.drivers.base import (
    OPS,
    Answer,
    Connection,
    Target,
    listed,
    run_driver,
    texts,
)


class FastMCPConnection(Connection):
    """One `fastmcp.Client`, open until stopped."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._client = Client(_transport(target), timeout=target.request_timeout_s)

    async def run(self, usable: Callable[[], None]) -> None:
        """Hold the client open, as an application that lives long does."""
        try:
            async with self._client:
                usable()
                await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await self._client.close()  # type: ignore[no-untyped-call]

    async def need(self, kind: str) -> Answer:
        """List now. An exception goes to the application, so it is reported as an error."""
        match kind:
            case "tools":
                return {"items": listed(await self._client.list_tools())}
            case "prompts":
                return {"items": listed(await self._client.list_prompts())}
            case "resources":
                return {"items": listed(await self._client.list_resources())}
            case _:
                return {"items": listed(await self._client.list_resource_templates())}

    def believe(self, kind: str) -> Answer:  # noqa: ARG002
        """Nothing: the client keeps no list."""
        return {"items": None, "state": "unknown"}

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Call a tool."""
        try:
            await self._client.call_tool(name, dict(arguments))
        except (MCPError, RuntimeError, ToolError) as error:
            return {"outcome": "error", "detail": str(error)}
        return {"outcome": "result"}

    async def read(self, uri: str) -> Answer:
        """Read a resource."""
        try:
            contents = await self._client.read_resource(uri)
        except (MCPError, RuntimeError) as error:
            return {"outcome": "error", "detail": str(error)}
        return {"outcome": "result", "text": texts(contents)}

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> Answer:
        """Have a prompt rendered."""
        try:
            result = await self._client.get_prompt(name, dict(arguments))
        except (MCPError, RuntimeError) as error:
            return {"outcome": "error", "detail": str(error)}
        return {"outcome": "result", "text": texts(one.content for one in result.messages)}


def _transport(target: Target) -> ClientTransport:
    if target.command is None:
        return StreamableHttpTransport(target.url or "")
    command, *args = target.command
    return StdioTransport(command, args, env=dict(target.env))


def main() -> None:
    """Run the driver."""
    hello = {"name": "fastmcp.Client", "version": version("fastmcp")}
    run_driver({**hello, "ops": (*OPS, "read", "get_prompt")}, FastMCPConnection)


if __name__ == "__main__":
    main()
