"""The SDK's own server as a process that does what a test tells it: see ``unruly``, ``processes``.

    python -m support.sdk_process TEST_PORT          on stdin and stdout
    python -m support.sdk_process TEST_PORT PORT     over HTTP

Lists, subscriptions, sessions and transports are all the SDK's; only the tools are ours.
"""

import os
import sys
from contextlib import suppress
from typing import Any

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server.stdio import stdio_server

from support.sdk import ChangingServer, Context
from support.unruly import Unruly, obey, serve


class ObedientServer(ChangingServer):
    """Its listings can be held back, and its subscriptions ended."""

    def __init__(self) -> None:
        super().__init__([])
        self.unruly = Unruly(self.server.streamable_http_app())
        self._holding = False
        self._held: anyio.Event = anyio.Event()
        self._released: anyio.Event = anyio.Event()
        self._session: Any = None
        self._ends: list[tuple[anyio.CancelScope, Context]] = []

    async def perform(self, op: str, **given: Any) -> Any:
        """Do what the test says."""
        match op:
            case "begin":
                self.names = given["tools"]
                self._holding = False
                self.unruly.behave()
            case "change":
                self.names = given["tools"]
            case "tell":
                await self.become(*given["tools"], session=self._session)
            case "hold":
                self._held, self._released, self._holding = anyio.Event(), anyio.Event(), True
            case "held":
                await self._held.wait()
            case "release":
                self._released.set()
            case "unlisten":
                return await self._unlisten(given["how"])
            case _:
                return await self.unruly.perform(op, **given)
        return None

    async def _list(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        self._session = ctx.session
        result = await super()._list(ctx, params)
        if self._holding:  # only this one, and with what was true when it was asked
            self._holding = False
            self._held.set()
            await self._released.wait()
        return result

    async def _listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        with anyio.CancelScope() as scope:
            self._ends.append((scope, ctx))
            try:
                return await super()._listen(ctx, params)
            finally:
                self._ends.remove((scope, ctx))
        raise MCPError(types.INTERNAL_ERROR, "told to")

    async def _unlisten(self, how: str) -> int:
        """End all subscriptions: by a *result*, an *error*, or by a *cancel*."""
        ending = list(self._ends)
        if how == "result":
            self.listen.close()
        for scope, ctx in ending:
            if how == "error":
                scope.cancel()
            elif how == "cancel":
                cancelled = types.CancelledNotificationParams(request_id=ctx.request_id)
                await ctx.session.send_notification(
                    types.CancelledNotification(params=cancelled), ctx.request_id
                )
        return len(ending)


async def _stdio(test_port: int) -> None:
    obedient = ObedientServer()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(obey, test_port, {}, obedient.perform)
        await obedient.unruly.begun.wait()
        async with stdio_server() as (read, write):
            options = obedient.server.create_initialization_options()
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await obedient.server.run(read, write, options)
        os._exit(0)


async def _http(test_port: int, http_port: int) -> None:
    obedient = ObedientServer()

    async def started(port: int) -> None:
        hello = {"port": port, "url": f"http://127.0.0.1:{port}/mcp"}
        await obey(test_port, hello, obedient.perform)

    await serve(obedient.unruly, http_port, started)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        anyio.run(_stdio, int(sys.argv[1]))
    else:
        anyio.run(_http, int(sys.argv[1]), int(sys.argv[2]))
