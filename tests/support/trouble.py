"""One client in one trouble with one server process: how it begins, and how it must end.

``test_reconnects.py`` is the table of troubles.
"""

import gc
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, aclosing
from enum import Enum
from typing import Any

import pytest
from attrs import evolve, field, frozen

from relist.effects import NeedCredentials
from relist.inputs import DiscoverFailed, InitializeFailed, PageFailed
from relist.machine import Hit
from relist.policy import Policy
from relist.values import Doubt, Era, Kind, LinkPhase, Parked, Wire
from relist_mcp import Catalogs, Credentials, Http
from relist_mcp.loop import Fed
from support.brain import LEGACY, MODERN
from support.live import moved, names
from support.processes import Relay, ServerProcess

OLD, NEW, NEWER = ["a", "b", "c"], ["d", "e"], ["f", "g", "h"]
TOKEN = "Bearer other"
LISTEN = "subscriptions/listen"
QUICK: Mapping[str, Any] = {
    "seed": b"t",
    "gather_ms": 2,
    "gap_base_ms": 2,
    "backoff_base_ms": 20,
    "backoff_max_ms": 80,
    "uncovered_grace_ms": 10_000,  # so that a list is not listed before push is back
}


class End(Enum):
    """What a trouble ends in."""

    VOUCHED = "fresh, and the next change is heard of"
    LISTED = "fresh, without push"
    PARKED = "parked, and with other credentials vouched"


class Watch:
    """How often the core asked for credentials, and how long it waits after each failure (ms)."""

    def __init__(self) -> None:
        self.needs: list[NeedCredentials] = []
        self.pauses: list[int] = []

    def observe(self, fed: Fed) -> None:
        """See ``relist_mcp.loop``."""
        self.needs.extend(effect for effect in fed.effects if isinstance(effect, NeedCredentials))
        if isinstance(fed.heard, DiscoverFailed | InitializeFailed | PageFailed):
            tools = fed.after.catalog(Kind.TOOLS).pacing
            due_at_ms = fed.after.link.due_at_ms or tools.due_at_ms
            if due_at_ms is not None:
                self.pauses.append(due_at_ms - fed.heard.now_ms)


@frozen
class Scene:
    """A client in trouble."""

    server: ServerProcess
    catalogs: Catalogs
    era: str
    epoch: int
    relay: Relay | None
    watch: Watch

    async def change(self) -> None:
        """The list changes, and nobody is told."""
        await self.server.ask("change", tools=NEW)

    async def fails(self) -> None:
        """A refresh fails: what is held stays, in doubt."""
        reading = await self.catalogs.tools.refresh()
        assert (reading.hit, reading.doubt, names(reading)) == (Hit.DOUBTED, Doubt.FAILED, OLD)

    @property
    def generation(self) -> int:
        """Of the list that is published."""
        return self.catalogs.session.catalog(Kind.TOOLS).generation

    @property
    def stateless(self) -> bool:
        """Whether the link is more than its connections: then it outlives them."""
        return self.era == MODERN and self.catalogs.session.link.wire is Wire.HTTP

    @property
    def stream(self) -> str:
        """What carries notices over HTTP."""
        return LISTEN if self.era == MODERN else "GET"


Act = Callable[[Scene], Awaitable[None]]


@frozen
class Row:
    """One trouble. ``early`` is told to the server before anybody connects."""

    name: str
    act: Act
    end: End = End.VOUCHED
    wires: tuple[Wire, ...] = (Wire.HTTP,)
    eras: tuple[str, ...] = (MODERN, LEGACY)
    early: Mapping[str, Any] = field(factory=dict[str, Any])
    policy: Mapping[str, Any] = field(factory=dict[str, Any])
    rules: tuple[pytest.MarkDecorator, ...] = ()
    renews: Callable[[Scene], bool] = lambda _: False  # whether it costs the link
    relay: str = ""  # what stands between client and server at first: "open" or "stalled"


# --- how it goes ----------------------------------------------------------------------------------


def descriptors() -> int:
    """How many this process has open."""
    gc.collect()
    return len(os.listdir("/dev/fd"))


async def play(row: Row, server: ServerProcess, wire: Wire, era: str) -> None:
    """Connect, get into trouble, and see how it ends. The server has begun with the old list."""
    target, relay, watch = server.target(wire), None, Watch()
    async with AsyncExitStack() as stack:
        if row.relay:
            assert isinstance(target, Http)
            relay = await stack.enter_async_context(Relay.before(target.url))
            target = evolve(target, url=relay.url)
            if row.relay == "stalled":
                relay.stall(new=True)
        if row.early:
            await server.ask("refuse", **row.early)
        modern: Mapping[str, Any] = {} if era == MODERN else {"modern_versions": ()}
        policy = Policy(**{**QUICK, **modern, **row.policy})
        async with Catalogs.connect(target, policy=policy) as catalogs:
            catalogs.observe(watch.observe)
            await server.met()
            if not (row.early or row.relay == "stalled"):
                await until(catalogs, OLD)
            epoch = catalogs.session.link.epoch
            scene = Scene(server, catalogs, era, epoch, relay, watch)
            await row.act(scene)
            await _check(row, scene)


async def _check(row: Row, scene: Scene) -> None:
    """The right list, the right link, and the next change is heard of where push exists."""
    catalogs = scene.catalogs
    if row.end is End.PARKED:
        await _parked(row, scene)
    await until(catalogs, NEW, vouched=row.end is not End.LISTED)
    assert len(scene.watch.needs) == (row.end is End.PARKED)
    era = Era.MODERN if scene.era == MODERN else Era.LEGACY
    link = catalogs.session.link
    assert (link.era, link.phase) == (era, LinkPhase.LIVE)
    if not (row.early or row.relay == "stalled"):
        assert (link.epoch > scene.epoch) is row.renews(scene)
    if row.end is not End.LISTED:
        await scene.server.ask("tell", tools=NEWER)
        await until(catalogs, NEWER)
        if link.wire is Wire.HTTP:
            await scene.server.ask("only", of=scene.stream, count=1)  # nothing is left open


async def _parked(row: Row, scene: Scene) -> None:
    """Nothing is tried, and one event asks for credentials; with those all is well again."""
    catalogs = scene.catalogs
    async with aclosing(catalogs.needs_credentials()) as needs:
        need = await anext(needs)
    await catalogs.idle()
    reading, session = catalogs.tools.read(), catalogs.session
    if row.early:
        assert (reading.hit, need.kinds) == (Hit.MISS, frozenset())
        assert session.link.phase is LinkPhase.PARKED
    else:
        assert (reading.hit, names(reading)) == (Hit.DOUBTED, OLD)
        assert need.kinds == frozenset({Kind.TOOLS})
        assert session.catalog(Kind.TOOLS).pacing.parked is Parked.AUTHORIZATION
    catalogs.change_credentials(Credentials(headers={"authorization": TOKEN}))


async def until(catalogs: Catalogs, listed: list[str], vouched: bool | None = None) -> None:
    """Wait until this is published, vouched for if so said, and nothing is under way any more."""

    def is_so() -> bool:
        catalog = catalogs.session.catalog(Kind.TOOLS)
        if catalog.snapshot is None or vouched not in (None, catalog.vouched):
            return False
        return names(catalogs.tools.read()) == listed

    while not is_so():
        await moved(catalogs)
    await catalogs.idle()
    reading = catalogs.tools.read()
    assert (reading.hit, names(reading)) == (Hit.HIT, listed)
