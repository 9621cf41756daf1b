"""A server made of the SDK's own parts whose tools change; run as a program it is a process.

    python sdk.py stdio TOOLS_FILE
    python sdk.py http TOOLS_FILE PORT

The file holds the names of the tools and is read for each listing. The tool ``become`` replaces it
and tells everybody, ``die`` ends the process at once. Its id stands beside the
file, under ``.pid``.
"""

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server import NotificationOptions, Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

Context = ServerRequestContext[Any, Any]


class ChangingServer:
    """Serves the tools named in ``names``, ``page_size`` at a time."""

    def __init__(self, names: list[str], page_size: int = 2) -> None:
        self.names = names
        self.page_size = page_size
        self.bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self.bus)
        self.server: Server[Any] = Server(
            "changing",
            version="1",
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=self._listen,
        )
        # The SDK asks for the options itself, and by default declares no listChanged.
        options = self.server.create_initialization_options
        declared = NotificationOptions(tools_changed=True)
        self.server.create_initialization_options = partial(options, declared)  # type: ignore[method-assign]

    def now(self) -> list[str]:
        """The names of the tools at this moment."""
        return self.names

    async def become(self, *names: str, session: Any = None) -> None:
        """Change, then tell everybody: modern subscribers, and the legacy ``session``."""
        self.names = list(names)
        await self.bus.publish(ToolsListChanged())
        if session is not None:
            await session.send_tool_list_changed()

    async def _listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        return await self.listen(ctx, params)

    async def _list(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        names = self.now()
        start = int(params.cursor) if params and params.cursor else 0
        end = start + self.page_size
        tools = [
            types.Tool(name=name, input_schema={"type": "object"}) for name in names[start:end]
        ]
        more = str(end) if end < len(names) else None
        return types.ListToolsResult(tools=tools, next_cursor=more, ttl_ms=60_000)

    async def _call(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if params.name == "die":
            os._exit(1)
        if params.name == "become":
            await self.become(*(params.arguments or {})["names"], session=ctx.session)
        return types.CallToolResult(content=[types.TextContent(text=params.name)])


class FileServer(ChangingServer):
    """The names stand in a file, and so outlive the process."""

    def __init__(self, path: Path) -> None:
        super().__init__([])
        self.path = path

    def now(self) -> list[str]:
        names: list[str] = json.loads(self.path.read_text())
        return names

    async def become(self, *names: str, session: Any = None) -> None:
        self.path.write_text(json.dumps(names))
        await super().become(*names, session=session)


async def _stdio(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def main(how: str, path: str, port: str = "") -> None:
    """Serve until killed, or until stdin closes."""
    Path(path).with_suffix(".pid").write_text(str(os.getpid()))
    server = FileServer(Path(path)).server
    if how == "stdio":
        anyio.run(_stdio, server)
    else:
        uvicorn.run(server.streamable_http_app(), port=int(port), log_level="critical")


if __name__ == "__main__":
    main(*sys.argv[1:])
