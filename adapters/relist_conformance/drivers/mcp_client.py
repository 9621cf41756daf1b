"""The client of the `mcp` SDK 2.x, used through its public API as its documentation tells.

One `mcp.Client` stays open. A list is read page by page until there is no further cursor, at each
need; the client's own response cache serves what it holds fresh. In the modern era the change
stream is opened once, as in the documentation: the client drops what it cached when a notice comes,
and nobody opens the stream again when it ends. The client keeps no list that could be believed.
"""

import sys
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import version
from typing import Any

import anyio
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.subscriptions import SubscriptionLost
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from relist_conformance.drivers.base import Answer, Connection, Target, listed, run_driver


class McpConnection(Connection):
    """One `mcp.Client`, open until stopped."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._client = Client(_server(target), read_timeout_seconds=target.request_timeout_s)

    async def run(self, usable: Callable[[], None]) -> None:
        """Hold the client and its change stream open, as an application that lives long does."""
        async with self._client, anyio.create_task_group() as tasks:
            if self._client.protocol_version in MODERN_PROTOCOL_VERSIONS:
                tasks.start_soon(self._follow)
            usable()
            await anyio.sleep_forever()

    async def _follow(self) -> None:
        """Follow changes until the stream ends; the client itself forgets what it cached."""
        try:
            async with self._client.listen(
                tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
            ) as changes:
                async for _ in changes:
                    pass
        except (MCPError, SubscriptionLost, TimeoutError) as error:
            print(f"change stream ended: {error!r}", file=sys.stderr)

    async def need(self, kind: str) -> Answer:
        """List now. An exception goes to the application, so it is reported as an error."""
        match kind:
            case "tools":
                return {"items": await _walk(self._client.list_tools, "tools")}
            case "prompts":
                return {"items": await _walk(self._client.list_prompts, "prompts")}
            case "resources":
                return {"items": await _walk(self._client.list_resources, "resources")}
            case _:
                pages = self._client.list_resource_templates
                return {"items": await _walk(pages, "resource_templates")}

    def believe(self, kind: str) -> Answer:  # noqa: ARG002
        """Nothing: what the client caches is pages, and it does not show them."""
        return {"items": None, "state": "unknown"}

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Call a tool."""
        try:
            result = await self._client.call_tool(name, dict(arguments))
        except (MCPError, RuntimeError) as error:
            return {"outcome": "error", "detail": str(error)}
        return {"outcome": "error" if result.is_error else "result"}


async def _walk(page_of: Callable[..., Awaitable[Any]], field: str) -> list[dict[str, str]]:
    items: list[dict[str, str]] = []
    cursor: str | None = None
    while True:
        page = await page_of(cursor=cursor)
        items += listed(getattr(page, field))
        cursor = page.next_cursor
        if cursor is None:
            return items


def _server(target: Target) -> StdioServerParameters | str:
    if target.command is None:
        return target.url or ""
    command, *args = target.command
    return StdioServerParameters(command=command, args=args, env=dict(target.env))


def main() -> None:
    """Run the driver."""
    run_driver({"name": "mcp.Client", "version": version("mcp")}, McpConnection)


if __name__ == "__main__":
    main()
