"""``Catalogs``: the four catalogs of one server, kept correct over a real MCP session.

One loop: feed the core what was heard, perform its effects, re-arm one timer. The law is in
``relist``; this file decides nothing about freshness.
"""

import logging
import os
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import anyio
import anyio.abc
from mcp.shared.dispatcher import CallOptions
from mcp_types import CallToolResult

from relist import effects as e
from relist import inputs as i
from relist.core import Relist
from relist.effects import Effect
from relist.inputs import SessionInput
from relist.machine import Hit, Reading
from relist.policy import Policy
from relist.rules.guards import wake_ms
from relist.session import Session
from relist.values import Catalog, Kind, LinkPhase, ListenPhase, Phase
from relist_mcp.connection import Connection
from relist_mcp.observed import now_ms
from relist_mcp.speech import NAME_HEADER, Voice
from relist_mcp.targets import Target

logger = logging.getLogger("relist_mcp")

CLIENT_INFO = {"name": "relist", "version": version("relist")}
_ENDED = (LinkPhase.CLOSED, LinkPhase.PARKED, LinkPhase.REFUSED)


class NotConnected(Exception):
    """A call needs a live connection, and there is none right now."""


class Catalogs:
    """The catalogs of one server. Use ``async with Catalogs.connect(target) as catalogs``."""

    def __init__(self, target: Target, policy: Policy) -> None:
        self._target = target
        self._core = Relist(target.wire, policy)
        self._voice = Voice(CLIENT_INFO, {})
        self._inbox: deque[SessionInput] = deque()
        self._wake = anyio.Event()
        self._moved = anyio.Event()
        self._connections: dict[int, Connection] = {}
        self._tasks: anyio.abc.TaskGroup | None = None

    @classmethod
    @asynccontextmanager
    async def connect(
        cls, target: Target, *, policy: Policy | None = None
    ) -> AsyncGenerator["Catalogs"]:
        """Keep the catalogs of ``target`` correct while the block runs; reconnects by itself.

        ``policy`` defaults to ``Policy`` with a random seed. Entering does not wait for the server.
        """
        catalogs = cls(target, policy or Policy(seed=os.urandom(16)))
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            catalogs._tasks = tasks
            tasks.start_soon(catalogs._loop)
            catalogs.tell(i.ConnectWanted(now_ms()))
            try:
                yield catalogs
            except Exception as error:  # raised below: not as a group, which nobody expects
                failure = error
            await catalogs._close()
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    # --- what an application asks -----------------------------------------------------------------

    @property
    def session(self) -> Session:
        """The frozen state of the core."""
        return self._core.session

    def read(self, kind: Kind) -> Reading:
        """What is known now: free, no traffic."""
        return self._core.read(kind, now_ms())

    async def get(self, kind: Kind) -> Reading:
        """The list, asked for if what is held is expired, doubted or missing.

        Waits for the walk that serves the wish, or until it fails once: then what is held comes
        back with its doubt. Bound the wait with ``anyio.fail_after``.
        """
        reading = self.read(kind)
        if reading.hit in (Hit.HIT, Hit.UNSUPPORTED):
            return reading
        asked = self._core.session
        self.tell(i.ReadWanted(kind, now_ms()))
        return await self._served(kind, asked)

    async def refresh(self, kind: Kind) -> Reading:
        """The list as of a walk begun after this call; several calls share one."""
        asked = self._core.session
        self.tell(i.RefreshWanted(kind, now_ms()))
        return await self._served(kind, asked)

    async def _served(self, kind: Kind, asked: Session) -> Reading:
        while self._inbox or not _is_served(asked, self._core.session, kind):
            await self._moved.wait()
        return self.read(kind)

    async def idle(self) -> None:
        """Return once nothing is under way that would go on without a new stimulus."""
        while self._inbox or not _is_idle(self._core.session, self._core.policy):
            await self._moved.wait()

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """Call a tool. Raises NotConnected without a live link, MCPError for an error answer."""
        while not self._is_live():
            if self._core.session.link.phase in _ENDED:
                raise NotConnected(self._core.session.link.phase.value)
            await self._moved.wait()
        tap = self._connections[self._core.session.link.epoch].tap
        if tap is None:
            raise NotConnected("the transport has just been lost")
        params, headers = self._voice.envelope(
            "tools/call", {"name": name, "arguments": dict(arguments)}
        )
        options: CallOptions = {"headers": {**headers, NAME_HEADER: name}}
        return CallToolResult.model_validate(
            await tap.send_raw_request("tools/call", params, options)
        )

    def _is_live(self) -> bool:
        link = self._core.session.link
        return link.phase is LinkPhase.LIVE and link.epoch in self._connections

    # --- the loop ---------------------------------------------------------------------------------

    def tell(self, heard: SessionInput) -> None:
        """Queue an input; the loop feeds it to the core in order."""
        self._inbox.append(heard)
        self._wake.set()

    async def _loop(self) -> None:
        while True:
            while self._inbox:
                self._feed(self._inbox.popleft())
            self._moved.set()
            self._moved = anyio.Event()
            self._wake = anyio.Event()
            deadline_ms = self._core.deadline_ms()
            wait_s = None if deadline_ms is None else max(0.0, (deadline_ms - now_ms()) / 1000)
            with anyio.move_on_after(wait_s):
                await self._wake.wait()
            if deadline_ms is not None and now_ms() >= deadline_ms:
                self._inbox.append(i.TimePassed(now_ms()))

    def _feed(self, heard: SessionInput) -> None:
        self._core.receive(heard)
        link = self._core.session.link
        self._voice.settle(link.era, link.version)
        for effect in self._core.effects():
            self._perform(effect)

    def _perform(self, effect: Effect) -> None:
        epoch = self._core.session.link.epoch
        match effect:
            case e.OpenTransport():
                self._open(effect.epoch)
            case e.CloseTransport():
                if (connection := self._connections.pop(effect.epoch, None)) is not None:
                    connection.close()
            case _ if (connection := self._connections.get(epoch)) is not None:
                self._say(connection, effect)
            case _:
                pass  # what it was about went with its transport

    def _say(self, connection: Connection, effect: Effect) -> None:
        match effect:
            case e.RequestPage() | e.RequestDiscover() | e.RequestInitialize() | e.OpenListen():
                connection.ask(effect)
            case e.SendInitialized():
                connection.send(self._voice.initialized())
            case e.AbandonWalk() | e.CancelListen():
                connection.cancel(effect)
            case _:
                logger.debug("%s", effect)

    def _open(self, epoch: int) -> None:
        connection = Connection(epoch, self._voice, self.tell, lambda: self._core.session.listen)
        self._connections[epoch] = connection
        assert self._tasks is not None
        self._tasks.start_soon(connection.run, self._target)

    async def _close(self) -> None:
        """Close the link in good order, within the grace of its transports."""
        running = list(self._connections.values())
        self._feed(i.CloseWanted(now_ms()))
        for connection in running:
            await connection.closed.wait()


def _is_served(asked: Session, now: Session, kind: Kind) -> bool:
    """Whether a wish made at ``asked`` has been served, or has failed once."""
    before, after = asked.catalog(kind), now.catalog(kind)
    if after.phase is Phase.UNSUPPORTED or after.pacing.parked or now.link.phase in _ENDED:
        return True
    if now.link.failures > asked.link.failures:
        return True
    if after.wanted or after.walk is not None:
        return False
    listed = after.snapshot is not None and after.snapshot is not before.snapshot
    return listed or after.pacing.failures > before.pacing.failures


def _is_idle(session: Session, policy: Policy) -> bool:
    link = session.link.phase
    if link in _ENDED:
        return True
    return (
        link is LinkPhase.LIVE
        and session.listen.phase in (ListenPhase.OFF, ListenPhase.OPEN)
        and all(_is_quiet(catalog, policy) for catalog in session.catalogs)
    )


def _is_quiet(catalog: Catalog, policy: Policy) -> bool:
    if catalog.phase is Phase.STALE:
        return wake_ms(catalog, policy) is None
    return catalog.phase in (Phase.FRESH, Phase.UNSUPPORTED)
