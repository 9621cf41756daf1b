"""Ten thousand notices through a session of the SDK, which is in this process: few walks, no queue.

What each of them costs is in ``tests/bench/bench_live.py``.
"""

from typing import Any

import anyio
import anyio.lowlevel
import mcp_types as types
import pytest
from mcp.server.subscriptions import ToolsListChanged

from relist.machine import Hit
from relist_mcp import Catalogs
from relist_mcp.loop import Fed
from support.live import names, policy
from support.loops import virtually
from support.sdk import ChangingServer, Context

NOTICES = 10_000


class Counting(ChangingServer):
    """Counts the walks."""

    def __init__(self) -> None:
        super().__init__(["a"], page_size=2)
        self.walks = 0

    async def _list(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        self.walks += params is None or params.cursor is None
        return await super()._list(ctx, params)


async def storm(server: Counting, notices: int, pause_s: float) -> None:
    """Each notice has a reason. Where there is no pause, time does not pass."""
    for number in range(notices):
        server.names = [f"{number}"]
        await server.bus.publish(ToolsListChanged())
        if pause_s:
            await anyio.sleep(pause_s)
        else:
            await anyio.lowlevel.checkpoint()


@pytest.mark.rule("ATOM-08")
@pytest.mark.parametrize(("gather_ms", "pause_s"), [(20, 0), (20, 0.000_5), (250, 0.005)])
@virtually
async def test_walks_are_bounded_by_the_windows_that_passed(gather_ms: int, pause_s: float) -> None:
    server = Counting()
    waiting: list[int] = []
    rules = policy(gather_ms=gather_ms, gap_max_ms=gather_ms)
    async with Catalogs.connect(server.server, policy=rules) as catalogs:
        await catalogs.idle()
        before = server.walks
        heard = 0

        def count(fed: Fed) -> None:
            nonlocal heard
            heard += type(fed.heard).__name__ == "NoticeHeard"
            waiting.append(catalogs._loop.waiting)

        catalogs.observe(count)
        begun_s = anyio.current_time()
        await storm(server, NOTICES, pause_s)
        lasted_ms = (anyio.current_time() - begun_s) * 1000
        await catalogs.idle()
        reading: Any = catalogs.tools.read()
        assert reading.hit is Hit.HIT
        assert names(reading) == [f"{NOTICES - 1}"]
        assert heard == NOTICES
        assert 1 <= server.walks - before <= 2 + lasted_ms / gather_ms
        assert max(waiting) < 10
