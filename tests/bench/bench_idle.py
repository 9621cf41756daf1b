"""What ten thousand idle catalogs take up, in bytes and in timers: those of 2,500 servers.

All lists are empty, so that there are no items to subtract. A live client is measured beside a
client of the SDK on the same kind of pipe, with the same scripted server behind it: an application
that keeps no catalogs has that as well. What is more is the adapter's, the core within it included.
"""

import asyncio
import gc
import tracemalloc
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp import Client

from bench.conftest import Sample
from relist import effects as e
from relist import inputs as i
from relist.core import Relist
from relist.inputs import SessionInput
from relist.policy import Policy
from relist.values import CHANNELS, KINDS, Capabilities, Phase, Scope, Wire
from relist_mcp import Catalogs
from support.brain import LEGACY, MODERN, Brain
from support.pipe import Pipe

SERVERS = 10_000 // len(KINDS)
POLICY = Policy(seed=b"bench", poll_ms=3_600_000)  # so that each has something to wait for
OFFER = Capabilities(frozenset(KINDS), frozenset(CHANNELS))


def _in_use() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


# --- the core -------------------------------------------------------------------------------------


def _answer(effect: e.Effect) -> SessionInput | None:
    match effect:
        case e.OpenTransport():
            return i.TransportOpened(effect.epoch, 1_000)
        case e.RequestDiscover():
            return i.DiscoverAnswered(effect.serial, (MODERN,), OFFER, 1_000, 3_600_000)
        case e.OpenListen():
            return i.PushOpened(effect.serial, frozenset(CHANNELS), 1_000)
        case e.RequestPage():
            ends = (None, 3_600_000, Scope.PUBLIC, 1_000)
            return i.PageArrived(effect.kind, effect.serial, (), *ends)
        case _:
            return None


def _core() -> Relist:
    """A core whose four catalogs are fresh."""
    core = Relist(Wire.PIPE, POLICY)
    core.receive(i.ConnectWanted(1_000))
    while effects := core.effects():
        for effect in effects:
            if (heard := _answer(effect)) is not None:
                core.receive(heard)
    assert all(catalog.phase is Phase.FRESH for catalog in core.session.catalogs)
    return core


def test_core(measured: dict[str, Sample]) -> None:
    _core()
    tracemalloc.start()
    try:
        before = _in_use()
        cores = [_core() for _ in range(SERVERS)]
        each = (_in_use() - before) / (SERVERS * len(KINDS))
    finally:
        tracemalloc.stop()
    assert len(cores) == SERVERS
    measured["idle in the core"] = Sample(each, each)


# --- alive ----------------------------------------------------------------------------------------

Live = Callable[[Pipe], AbstractAsyncContextManager[object]]


@asynccontextmanager
async def _sdk(pipe: Pipe) -> AsyncGenerator[None]:
    async with Client(pipe.target.connect(), mode="auto", cache=None):
        yield


@asynccontextmanager
async def _ours(pipe: Pipe) -> AsyncGenerator[None]:
    async with Catalogs.connect(pipe.target, policy=POLICY) as catalogs:
        await catalogs.idle()
        assert all(catalog.phase is Phase.FRESH for catalog in catalogs.session.catalogs)
        yield


async def _one(live: Live, era: str, ready: anyio.Event, done: anyio.Event) -> None:
    brain = Brain(era)
    brain.lists = {"tools": [], "prompts": [], "resources": [], "resourceTemplates": []}
    async with live(Pipe(brain)):
        brain.seen.clear()  # what the server remembers is not the client's
        brain.listens.clear()
        ready.set()
        del ready
        await done.wait()


def _timers() -> int:
    loop: Any = asyncio.get_running_loop()
    return sum(not handle.cancelled() for handle in loop._scheduled)


async def _many(live: Live, era: str) -> tuple[float, int]:
    """What one server takes up, in bytes, and the timers of all of them."""
    done = anyio.Event()

    async def begin(count: int) -> None:
        for _ in range(count):
            ready = anyio.Event()
            tasks.start_soon(_one, live, era, ready, done)
            await ready.wait()

    async with anyio.create_task_group() as tasks:
        timers = _timers()
        await begin(5)  # for caches
        tracemalloc.start()
        try:
            before = _in_use()
            await begin(SERVERS)
            each = (_in_use() - before) / SERVERS
        finally:
            tracemalloc.stop()
        timers = _timers() - timers
        done.set()
    return each, timers


@pytest.mark.parametrize("era", [MODERN, LEGACY])
def test_live(measured: dict[str, Sample], era: str) -> None:
    """The era in which it is more is the one that counts."""
    theirs, _ = anyio.run(_many, _sdk, era)
    ours, timers = anyio.run(_many, _ours, era)
    each = (ours - theirs) / len(KINDS)
    worst = measured.get("idle alive", Sample(0, 0))
    measured["idle alive"] = max(worst, Sample(each, each))
    measured["timers"] = Sample(timers, timers)
    print(f"\n{era}: a server of the SDK's client {theirs:.0f} bytes, of ours {ours:.0f}")
