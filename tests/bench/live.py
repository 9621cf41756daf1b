"""What the benchmarks of the live client share: a server of many tools, and measuring in turns."""

import gc
from collections.abc import Awaitable, Callable
from statistics import median
from time import process_time
from typing import Any

import mcp_types as types
from mcp import Client
from mcp.client._memory import InMemoryTransport
from mcp.server import Server
from mcp.server.subscriptions import ToolsListChanged

from bench.conftest import Sample
from bench.tools import tool
from support.sdk import ChangingServer, Context

COUNT, PER_PAGE = 1_000, 100

Act = Callable[[], Awaitable[object]]


class ManyTools(ChangingServer):
    """The SDK's own server, with a thousand tools in ten pages."""

    def __init__(self) -> None:
        super().__init__([])
        self.tools = _tools()
        self._changes = 0

    async def _list(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        start = int(params.cursor) if params and params.cursor else 0
        end = start + PER_PAGE
        return types.ListToolsResult(
            tools=self.tools[start:end],
            next_cursor=str(end) if end < COUNT else None,
            ttl_ms=3_600_000,
            cache_scope="public",
        )

    def change(self) -> None:
        """Another description for one tool; nobody is told."""
        self._changes += 1
        described = {"description": f"Changed for the {self._changes}. time"}
        self.tools[COUNT // 2] = self.tools[COUNT // 2].model_copy(update=described)

    def restore(self) -> None:
        """As in the beginning; nobody is told."""
        self.tools = _tools()

    async def notify(self) -> None:
        """Tell everybody."""
        await self.bus.publish(ToolsListChanged())


def _tools() -> list[types.Tool]:
    return [types.Tool.model_validate(tool(n), by_name=False) for n in range(COUNT)]


def client(server: Server[Any], **options: Any) -> Client:
    """The SDK's client, over the same kind of transport as ours."""
    return Client(InMemoryTransport(server), mode="auto", **options)


async def in_turns(rounds: int, *acts: Act) -> list[Sample]:
    """Processor time of each, in seconds; in turns, so that a busy moment meets all of them.

    The collector is off meanwhile: when it runs is chance, and it burdens the SDK more than us.
    """
    taken: list[list[float]] = [[] for _ in acts]
    for number in range(rounds + 1):
        for times, act in zip(taken, acts, strict=True):
            gc.collect()
            gc.disable()
            try:
                before = process_time()
                await act()
                after = process_time()
            finally:
                gc.enable()
            if number:  # the first is for caches
                times.append(after - before)
    return [Sample(min(times), median(times)) for times in taken]
