"""Whatever a peer sends or fails to take, memory stays bounded and secrets stay out of the log."""

import gc
import logging
import tracemalloc
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from relist.machine import Hit
from relist.values import Kind
from relist_mcp import Catalogs, Http, Stdio
from relist_mcp.loop import INBOX_MAX
from support.brain import MODERN, SUBSCRIPTION, Frame, notice, tool
from support.live import ERAS, LIST, connections, names, policy, serve, serve_http
from support.loops import everywhere, virtually

CHANGE = "notifications/tools/list_changed"


@pytest.mark.rule("ATOM-08")
@ERAS
@everywhere
async def test_a_storm_of_notices_costs_few_walks_and_no_memory(era: str) -> None:
    brain, pipe = serve(era, "a")
    async with Catalogs.connect(pipe.target, policy=policy(gather_ms=50)) as catalogs:
        await catalogs.idle()
        brain.set_tools("b")
        longest = 0
        for _ in range(60):
            pipe.send(*[brain.change()] * 50)
            for _ in range(60):
                longest = max(longest, catalogs._loop.waiting)
                await anyio.lowlevel.checkpoint()
        await catalogs.idle()
        assert names(catalogs.read(Kind.TOOLS)) == ["b"]
        assert longest < 100
        assert brain.count(LIST) < 30


@ERAS
@virtually
async def test_a_peer_that_is_faster_than_the_core_waits(
    era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the loop is late for whatever reason, frames stay in the transport."""
    brain, pipe = serve(era, "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        drain, late = catalogs._loop.drain, anyio.Event()
        longest: list[int] = []

        def nothing() -> None:
            longest.append(catalogs._loop.waiting)
            if late.is_set():
                monkeypatch.setattr(catalogs._loop, "drain", drain)
                drain()

        monkeypatch.setattr(catalogs._loop, "drain", nothing)
        pipe.send(*[brain.change()] * 3 * INBOX_MAX)
        for _ in range(6 * INBOX_MAX):
            await anyio.lowlevel.checkpoint()
        assert catalogs._loop.waiting == INBOX_MAX
        late.set()
        pipe.send(brain.change())
        catalogs._loop._wake.set()
        await catalogs.idle()
        assert max(longest) <= INBOX_MAX


@virtually
async def test_readers_are_not_starved_by_a_storm() -> None:
    """Whether it is believed or not, and how ever long it lasts."""
    brain, pipe = serve(MODERN, "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()

        async def storm() -> None:
            while True:
                pipe.send(brain.change(), notice(CHANGE), notice(CHANGE, _meta={SUBSCRIPTION: 1}))
                await anyio.sleep(0.0005)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(storm)
            with anyio.fail_after(200):
                for name in "bcdefg":
                    brain.set_tools(name)
                    assert names(await catalogs.refresh(Kind.TOOLS)) == [name]
                    await catalogs.get(Kind.TOOLS)
            tasks.cancel_scope.cancel()
        await catalogs.idle()
        assert catalogs.read(Kind.TOOLS).hit is Hit.HIT


@virtually
async def test_a_lazy_reader_is_served_in_a_storm() -> None:
    """Nothing walks by itself there, so a wish whose walk was spoiled is made again."""
    brain, pipe = serve(MODERN, "a")
    walks: list[int] = []

    def spoiling(frame: Frame) -> Frame:
        walks.append(1)
        pipe.send(brain.change())
        return {"result": brain.page("tools", None)}

    brain.answers[LIST] = spoiling
    async with Catalogs.connect(pipe.target, policy=policy(lazy=True)) as catalogs:
        with anyio.fail_after(600):
            assert names(await catalogs.get(Kind.TOOLS)) == ["a"]
            brain.set_tools("b")
            assert names(await catalogs.refresh(Kind.TOOLS)) == ["b"]
        made = len(walks)
        await catalogs.idle()
        await anyio.sleep(3_600)
        assert len(walks) == made


@pytest.mark.parametrize("method", ["server/discover", LIST, "subscriptions/listen"])
@virtually
async def test_what_is_remembered_of_requests_is_bounded(method: str) -> None:
    """A server that never answers, for hours."""
    brain, pipe = serve(MODERN, "a")
    brain.answers[method] = lambda _: None
    rules = policy(request_limit_ms=500, backoff_max_ms=500, ack_limit_ms=500, legacy_versions=())
    async with Catalogs.connect(pipe.target, policy=rules) as catalogs:
        await anyio.sleep(600)
        for connection in connections(catalogs).values():
            hearing: Any = connection._hearing
            assert len(hearing._asked) < 100
            assert len(hearing._given_up) < 100
            assert not hearing._exchanges
            assert not hearing.notes
        assert brain.count(method) > 50
        assert len(connections(catalogs)) <= 1


@ERAS
@virtually
async def test_links_that_come_and_go_leave_no_memory(era: str) -> None:
    brain, pipe = serve(era, "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:

        async def come_and_go(times: int) -> None:
            for _ in range(times):
                await brain.until_seen(LIST)
                await catalogs.idle()
                brain.seen.clear()
                pipe.cut()

        def in_use() -> int:
            gc.collect()  # else what happens to be uncollected decides
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        await come_and_go(40)  # until the caches of the interpreter and of libraries are full
        before = in_use()
        await come_and_go(40)
        after = in_use()
        tracemalloc.stop()
        assert after - before < 30_000
        await catalogs.idle()
        assert len(connections(catalogs)) == 1


@ERAS
@virtually
async def test_the_sdk_is_not_bothered_with_what_the_core_has_heard(
    era: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It would start a task for each notice, and complain of answers that it did not ask for."""
    brain, pipe = serve(era, "a")
    with caplog.at_level(logging.DEBUG):
        async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
            await catalogs.idle()
            pipe.send(brain.change())
            await brain.until_seen(LIST, 2)
            await catalogs.idle()
    assert not [r.getMessage() for r in caplog.records if not r.name.startswith("relist")]


SECRET = "s3cret"


@pytest.mark.rule("OBS-06")
@ERAS
@virtually
async def test_nothing_secret_and_nothing_foreign_is_logged(
    era: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither credentials nor argument values nor the peer's text, not even when things fail."""
    brain, web = serve_http(era)
    brain.lists["tools"] = [tool("a", description=SECRET), {"name": SECRET}, {"bad": SECRET}]
    with caplog.at_level(logging.DEBUG, "relist_mcp"):
        async with Catalogs.connect(web.target, policy=policy()) as catalogs:
            await catalogs.idle()
            await catalogs.call_tool("a", {"password": SECRET})
            error = {"code": 1, "message": SECRET, "data": SECRET}
            brain.answers[LIST] = lambda _: {"error": error}
            await catalogs.refresh(Kind.TOOLS)
            web.down = True
            await catalogs.refresh(Kind.TOOLS)
    ours = [record.getMessage() for record in caplog.records if record.name == "relist_mcp"]
    assert ours
    assert not [text for text in ours if SECRET in text]


def test_nothing_secret_is_shown() -> None:
    assert SECRET not in repr(Http("http://a.test", {"authorization": SECRET}))
    assert SECRET not in repr(Stdio(["server"], {"TOKEN": SECRET}))
