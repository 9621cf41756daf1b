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

from relist_conformance.drivers.base import (
    OPS,
    Answer,
    Connection,
    Target,
    listed,
    run_driver,
)
from relist_conformance.drivers.results import Result, outcome_of


class McpConnection(Connection):
    """One `mcp.Client`, open until stopped."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._client = Client(_server(target), read_timeout_seconds=target.request_timeout_s)
        self._streams: dict[str, anyio.CancelScope] = {}

    async def run(self, usable: Callable[[], None]) -> None:
        """Hold the client and its change stream open, as an application that lives long does."""
        async with self._client, anyio.create_task_group() as self._tasks:
            if self._is_modern():
                self._tasks.start_soon(self._follow, "")
            usable()
            await anyio.sleep_forever()

    def _is_modern(self) -> bool:
        return self._client.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def _follow(self, uri: str) -> None:
        """Follow changes of lists, or of one resource; the client itself forgets what it cached."""
        lists = {f"{kind}_list_changed": not uri for kind in ("tools", "prompts", "resources")}
        uris = [uri] if uri else []
        with anyio.CancelScope() as self._streams[uri]:
            try:
                async with self._client.listen(**lists, resource_subscriptions=uris) as changes:
                    async for _ in changes:
                        pass
            except (MCPError, SubscriptionLost, TimeoutError) as error:
                print(f"change stream ended: {error!r}", file=sys.stderr)

    async def need(self, kind: str) -> Answer:
        """List now. An exception goes to the application, so it is reported as an error."""
        pages: Mapping[str, Callable[..., Awaitable[Any]]] = {
            "tools": self._client.list_tools,
            "prompts": self._client.list_prompts,
            "resources": self._client.list_resources,
            "resource_templates": self._client.list_resource_templates,
        }
        return {"items": await _walk(pages[kind], kind)}

    def believe(self, kind: str) -> Answer:  # noqa: ARG002
        """Nothing: what the client caches is pages, and it does not show them."""
        return {"items": None, "state": "unknown"}

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Call a tool."""
        return await _used(self._client.call_tool(name, dict(arguments)))

    async def read(self, uri: str) -> Answer:
        """Read a resource; the client keeps what it may."""
        return await _used(self._client.read_resource(uri))

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> Answer:
        """Have a prompt rendered."""
        return await _used(self._client.get_prompt(name, dict(arguments)))

    async def subscribe(self, uri: str) -> Answer:
        """In the way of the era: a request, or a stream of its own."""
        if self._is_modern():
            self._tasks.start_soon(self._follow, uri)
        else:
            await self._client.subscribe_resource(uri)  # pyright: ignore[reportDeprecated]
        return {}

    async def unsubscribe(self, uri: str) -> Answer:
        """The same undone."""
        if stream := self._streams.get(uri):
            stream.cancel()
        else:
            await self._client.unsubscribe_resource(uri)  # pyright: ignore[reportDeprecated]
        return {}


def _used(use: Awaitable[Result]) -> Awaitable[Answer]:
    return outcome_of(use, errors=(MCPError, RuntimeError))


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
    offered = (*OPS, "read", "get_prompt", "subscribe", "unsubscribe")
    run_driver({"name": "mcp.Client", "version": version("mcp"), "ops": offered}, McpConnection)


if __name__ == "__main__":
    main()
