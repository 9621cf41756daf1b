"""What the live client costs beside the SDK's: reading a list, renewing it, hearing notices.

All on asyncio, in one process, over in-memory streams; the server's share is in all that is listed.
"""

from contextlib import AsyncExitStack
from typing import Any

import anyio
from mcp import Client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest

from bench.conftest import Sample
from bench.live import COUNT, PER_PAGE, ManyTools, client, in_turns
from bench.tools import tool
from relist import effects as e
from relist.paging import join
from relist.policy import Policy
from relist.snapshot import share
from relist.values import Item, Items, Kind, Snapshot
from relist_mcp import Catalogs
from relist_mcp.changes import change
from relist_mcp.hearing import canonical
from relist_mcp.loop import Fed
from support.brain import MODERN, SUBSCRIPTION, Brain
from support.pipe import Pipe

POLICY = Policy(seed=b"bench", gather_ms=0, gap_base_ms=1, gap_max_ms=1)
CHANGED = "notifications/tools/list_changed"
NOTICES = 10_000


# --- reading --------------------------------------------------------------------------------------


async def _read(measured: dict[str, Sample]) -> None:
    server = ManyTools()
    async with (
        client(server.server) as sdk,
        Catalogs.connect(server.server, policy=POLICY) as catalogs,
    ):
        await catalogs.tools.get()

        async def theirs() -> None:
            """A page at a time: it keeps only the first."""
            assert len((await sdk.list_tools()).tools) == PER_PAGE

        async def ours() -> None:
            tools = catalogs.tools
            assert len(tools.parsed(await tools.get())) == COUNT

        cached, got = await in_turns(200, theirs, ours)
        # Ten pages of them would be all.
        whole = COUNT // PER_PAGE
        measured["cached"] = Sample(cached.least * whole, cached.median * whole)
        measured["get"] = got


def test_read(measured: dict[str, Sample]) -> None:
    """Items parsed, nothing asked of the server."""
    anyio.run(_read, measured)


# --- renewing -------------------------------------------------------------------------------------


class Followed:
    """A live client that is told when a list is published."""

    def __init__(self, server: ManyTools, catalogs: Catalogs) -> None:
        self._server, self._catalogs = server, catalogs
        self._published = anyio.Event()
        catalogs.observe(self._observe)

    def _observe(self, fed: Fed) -> None:
        if any(isinstance(effect, e.Publish) for effect in fed.effects):
            self._published.set()

    async def renew(self) -> None:
        """From the notice to what readers see."""
        self._published = anyio.Event()
        await self._server.notify()
        await self._published.wait()

    def snapshot(self) -> Snapshot:
        """What is published."""
        listed = self._catalogs.tools.read().snapshot
        assert listed is not None
        return listed


async def _renew(measured: dict[str, Sample]) -> None:
    server = ManyTools()
    async with (
        client(server.server, cache=None) as sdk,
        Catalogs.connect(server.server, policy=POLICY) as catalogs,
    ):
        await catalogs.idle()
        followed = Followed(server, catalogs)

        async def theirs() -> None:
            cursor, found = None, 0
            while True:
                page = await sdk.list_tools(cursor=cursor)
                found += len(page.tools)
                cursor = page.next_cursor
                if cursor is None:
                    break
            assert found == COUNT

        async def ours() -> None:
            generation = followed.snapshot().generation
            server.change()
            await followed.renew()
            assert followed.snapshot().generation == generation + 1

        measured["listing"], measured["renewal"] = await in_turns(40, theirs, ours)
        server.restore()
        await followed.renew()
        await _judge(measured, followed.snapshot())


async def _judge(measured: dict[str, Sample], before: Snapshot) -> None:
    """What is done with the entries of one renewal, by itself: made canonical, compared, told.

    Each entry is made canonical anew: whatever tells that it is unchanged costs more than that, or
    takes Python's word that 1 is True. A digest is not among it: one is made for who asks for it.
    """
    raw = [tool(n) for n in range(COUNT)]
    raw[7]["description"] = "changed"

    async def judge() -> None:
        items = tuple([Item(entry["name"], canonical(entry)) for entry in raw])
        after = _with(before, share(before.items, join((items,)).items))
        found = change(Kind.TOOLS, before, after)
        assert found is not None
        assert len(found.changed) == 1

    (measured["judging"],) = await in_turns(40, judge)


def _with(snapshot: Snapshot, items: Items) -> Snapshot:
    fields = [getattr(snapshot, name) for name in snapshot.__annotations__]
    return Snapshot(items, *fields[1:])


def test_renew(measured: dict[str, Sample]) -> None:
    """One tool of a thousand has changed; gather window 0."""
    anyio.run(_renew, measured)


# --- hearing --------------------------------------------------------------------------------------


class Storm:
    """A server that can say the same thing ten thousand times."""

    def __init__(self) -> None:
        self._brain = Brain(MODERN, "a")
        self.pipe = Pipe(self._brain)
        self._storms = 0

    async def rage(self, method: str, tagged: bool) -> None:
        """Until all is heard: an answer to what was asked last says so."""
        self._storms += 1
        asked = f"storm {self._storms}"
        out: Any = self.pipe._out
        tag = {"_meta": {SUBSCRIPTION: self._brain.listens[-1]["id"]}} if tagged else {}
        notice = JSONRPCNotification(jsonrpc="2.0", method=method, params=tag)
        for _ in range(NOTICES):
            out.send_nowait(SessionMessage(notice))
        out.send_nowait(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=asked, method="ping")))
        await self._brain.until(lambda: self._brain.seen[-1].get("id") == asked)


async def _hear(measured: dict[str, Sample]) -> None:
    theirs, ours = Storm(), Storm()
    async with AsyncExitStack() as stack:
        transport = theirs.pipe.target.connect()
        await stack.enter_async_context(Client(transport, mode="auto", cache=None))
        policy = Policy(seed=b"bench", gather_ms=60_000, gap_max_ms=60_000)
        catalogs = await stack.enter_async_context(
            Catalogs.connect(ours.pipe.target, policy=policy)
        )
        await catalogs.idle()
        measured["unhandled"], measured["unknown"], measured["notice"] = await in_turns(
            12,
            lambda: theirs.rage(CHANGED, tagged=False),
            lambda: theirs.rage("notifications/of/nobody", tagged=False),
            lambda: ours.rage(CHANGED, tagged=True),
        )


def test_hear(measured: dict[str, Sample]) -> None:
    """Ours are believed: each is a doubt, and none but the first says anything new."""
    anyio.run(_hear, measured)
