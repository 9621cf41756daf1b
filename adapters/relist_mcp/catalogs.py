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
from mcp import MCPError
from mcp.shared.dispatcher import CallOptions
from mcp_types import INTERNAL_ERROR, CallToolResult
from pydantic import ValidationError

from relist import effects as e
from relist import inputs as i
from relist.core import Relist
from relist.effects import Effect, RequestEffect
from relist.inputs import SessionInput
from relist.machine import Hit, Reading
from relist.policy import Policy
from relist.rules.guards import wake_ms
from relist.session import Session
from relist.values import Catalog, Kind, LinkPhase, ListenPhase, Phase
from relist_mcp.connection import Connection, Host
from relist_mcp.exchange import now_ms
from relist_mcp.speech import Voice
from relist_mcp.targets import Target
from relist_mcp.view import ENDED, View, is_denied

logger = logging.getLogger("relist_mcp")

CLIENT_INFO = {"name": "relist", "version": version("relist")}
INBOX_MAX = 1024  # inputs that wait to be fed; beyond it, transports wait


class NotConnected(Exception):
    """A call needs a live connection, and there is none right now."""


class Catalogs:
    """The catalogs of one server. Use ``async with Catalogs.connect(target) as catalogs``."""

    def __init__(self, target: Target, policy: Policy) -> None:
        self._target = target
        self._core = Relist(target.wire, policy)
        self._voice = Voice(CLIENT_INFO, {})  # no handlers, so no capabilities (LIFE-16)
        self._inbox: deque[SessionInput] = deque()
        self._told = 0
        self._fed = 0
        self._over = False
        self._wake = anyio.Event()
        self._moved = anyio.Event()
        self._connections: dict[int, Connection] = {}
        self._tasks: anyio.abc.TaskGroup | None = None
        self._views = {kind: View(self, kind, self._step) for kind in Kind}

    @classmethod
    @asynccontextmanager
    async def connect(
        cls, target: Target, *, policy: Policy | None = None
    ) -> AsyncGenerator["Catalogs"]:
        """Keep the catalogs of ``target`` correct while the block runs; reconnects by itself.

        ``policy`` defaults to ``Policy`` with a random seed. Entering does not wait for the server.
        """
        catalogs = cls(target, policy or Policy(seed=os.urandom(16)))
        failure: BaseException | None = None
        try:
            async with anyio.create_task_group() as tasks:
                catalogs._tasks = tasks
                catalogs.tell(i.ConnectWanted(now_ms()))
                catalogs._drain()
                tasks.start_soon(catalogs._loop)
                try:
                    yield catalogs
                except (Exception, KeyboardInterrupt, SystemExit) as error:
                    failure = error
                await catalogs._close()
                tasks.cancel_scope.cancel()
        finally:
            catalogs._end()
            if failure is not None:  # as it is: nobody expects a group
                raise failure

    # --- what an application asks -----------------------------------------------------------------

    @property
    def session(self) -> Session:
        """The frozen state of the core."""
        return self._core.session

    @property
    def over(self) -> bool:
        """Whether the block has ended: nothing changes any more."""
        return self._over

    @property
    def tools(self) -> View:
        """The tools."""
        return self._views[Kind.TOOLS]

    @property
    def prompts(self) -> View:
        """The prompts."""
        return self._views[Kind.PROMPTS]

    @property
    def resources(self) -> View:
        """The resources."""
        return self._views[Kind.RESOURCES]

    @property
    def templates(self) -> View:
        """The resource templates."""
        return self._views[Kind.TEMPLATES]

    async def _step(self) -> None:
        """Wait until something may have changed."""
        await self._moved.wait()

    def read(self, kind: Kind) -> Reading:
        """What is known now: free, no traffic."""
        return self._core.read(kind, now_ms())

    async def get(self, kind: Kind) -> Reading:
        """The list, asked for if what is held is expired, doubted or missing.

        Returns at once what is fresh or unsupported. Else it returns after the walk that serves the
        wish, or once that walk or the link has failed (what is held comes back with its doubt), or
        the link is closed, parked or refused. Each wait has a limit or a backoff of the policy, so
        it always returns, but perhaps late: bound it with ``anyio.fail_after``.
        """
        reading = self.read(kind)
        if reading.hit in (Hit.HIT, Hit.UNSUPPORTED):
            return reading
        return await self._served(kind, i.ReadWanted)

    async def refresh(self, kind: Kind) -> Reading:
        """The list as of a walk begun after this call; several calls share one.

        Tries once more, too, what waits for a backoff or for credentials. Returns as ``get`` does:
        if no such walk could be made, then with what is held. That is doubted, or as old as its
        ``age_ms`` says: a modern list within its lifetime is still good without a link.
        """
        return await self._served(kind, i.RefreshWanted)

    async def _served(
        self, kind: Kind, wish: type[i.ReadWanted] | type[i.RefreshWanted]
    ) -> Reading:
        asked = self._core.session
        ticket = self.tell(wish(kind, now_ms()))
        while self._fed < ticket or not _is_served(asked, self._core.session, kind):
            if self._fed >= ticket and _is_quiet(self._core.session.catalog(kind), self._policy):
                ticket = self.tell(wish(kind, now_ms()))  # lazy, and the walk was spoiled
            await self._moved.wait()
        return self.read(kind)

    async def idle(self) -> None:
        """Return once nothing is under way that would go on without a new stimulus.

        That is: each declared kind is fresh, or waits for a wish (lazy) or for credentials; no
        request is outstanding, no walk or subscription is due; or the link is closed, parked or
        refused. Does not return while a server is away or keeps failing, since there is always a
        next try: bound it with ``anyio.fail_after``.
        """
        while self._inbox or not _is_idle(self._core.session, self._policy):
            await self._moved.wait()

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """Call a tool, once the link is live.

        Raises NotConnected if the link is closed, parked, refused or just lost, and MCPError for an
        error answer, a lost transport, or a result of the wrong shape. A result that tells of an
        error is returned: it is for whoever wanted the call. Rule: CALL-25.
        """
        while not self._is_live():
            if self._core.session.link.phase in ENDED:
                raise NotConnected(self._core.session.link.phase.value)
            await self._moved.wait()
        tap = self._connections[self._core.session.link.epoch].tap
        if tap is None:
            raise NotConnected("the transport has just been lost")
        params, headers = self._voice.envelope(
            "tools/call", {"name": name, "arguments": dict(arguments)}, name
        )
        options: CallOptions = {"headers": headers}
        answer = await tap.send_raw_request("tools/call", params, options)
        try:
            return CallToolResult.model_validate(answer)
        except ValidationError:
            # Not chained: the reason quotes what the server sent.
            raise MCPError(INTERNAL_ERROR, "malformed result of tools/call") from None

    def _is_live(self) -> bool:
        link = self._core.session.link
        return link.phase is LinkPhase.LIVE and link.epoch in self._connections

    @property
    def _policy(self) -> Policy:
        return self._core.policy

    # --- the loop ---------------------------------------------------------------------------------

    def tell(self, heard: SessionInput) -> int:
        """Queue an input; the loop feeds it to the core in order. Returns how many were told."""
        if not self._over:
            self._inbox.append(heard)
            self._told += 1
            self._wake.set()
        return self._told

    async def _room(self) -> None:
        """Wait until the core has caught up with what it was told."""
        while len(self._inbox) >= INBOX_MAX:
            await self._moved.wait()

    async def _loop(self) -> None:
        while True:
            self._drain()
            self._wake = anyio.Event()
            deadline_ms = self._core.deadline_ms()
            wait_s = None if deadline_ms is None else max(0.0, (deadline_ms - now_ms()) / 1000)
            with anyio.move_on_after(wait_s):
                await self._wake.wait()
            if deadline_ms is not None and now_ms() >= deadline_ms:
                self.tell(i.TimePassed(now_ms()))

    def _drain(self) -> None:
        while self._inbox:
            self._feed(self._inbox.popleft())
        self._moved.set()
        self._moved = anyio.Event()

    def _feed(self, heard: SessionInput) -> None:
        self._core.receive(heard)
        self._fed += 1
        link = self._core.session.link
        self._voice.settle(link.era, link.version)
        for effect in self._core.effects():
            self._perform(effect)

    def _perform(self, effect: Effect) -> None:
        match effect:
            case e.OpenTransport():
                self._open(effect.epoch)
            case e.CloseTransport():
                if (connection := self._connections.get(effect.epoch)) is not None:
                    connection.close()
            case e.Publish() | e.Withdraw() | e.DoubtList() | e.NeedCredentials() | e.Note():
                _log(effect)
            case e.ContentChanged() | e.ContentUncovered():
                _log(effect)
            case _ if (current := self._connections.get(self._core.session.link.epoch)) is not None:
                self._say(current, effect)
            case _:
                pass  # what it was about went with its transport

    def _say(self, connection: Connection, effect: Effect) -> None:
        match effect:
            case e.SendInitialized():
                connection.welcome()
            case e.AbandonWalk() | e.CancelListen() | e.CancelUpdates() | e.CancelSubscribe():
                connection.cancel(effect)
            case _ if isinstance(effect, RequestEffect):
                connection.ask(effect)
            case _:
                raise AssertionError(f"nobody performs {type(effect).__name__}")

    def _open(self, epoch: int) -> None:
        assert self._tasks is not None
        host = Host(self.tell, self._room, lambda: self._core.session.listen)
        self._connections[epoch] = Connection(epoch, self._target, self._voice, host)
        self._tasks.start_soon(self._run, epoch)

    async def _run(self, epoch: int) -> None:
        try:
            await self._connections[epoch].run()
        finally:
            del self._connections[epoch]

    async def _close(self) -> None:
        """Close the link in good order, within the grace of its transports."""
        ticket = self.tell(i.CloseWanted(now_ms()))
        while self._fed < ticket:
            await self._moved.wait()
        for connection in list(self._connections.values()):
            connection.close()
            await connection.closed.wait()

    def _end(self) -> None:
        """Nothing is heard any more; whoever still waits is told that the link is closed."""
        self._over = True
        self._inbox.clear()
        self._fed = self._told
        self._core.receive(i.CloseWanted(now_ms()))
        self._moved.set()


def _log(effect: Effect) -> None:
    """What the peer sent is not logged, only how much. Rule: OBS-06."""
    if isinstance(effect, e.Publish):
        kind, listed = effect.kind.value, effect.snapshot
        logger.debug(
            "%s: generation %d, %d items, changed %s, clean %s",
            *(kind, listed.generation, len(listed.items), effect.changed, listed.clean),
        )
    elif isinstance(effect, e.ContentChanged | e.ContentUncovered):
        logger.debug("%s", type(effect).__name__)
    else:
        logger.debug("%s", effect)


def _is_served(asked: Session, now: Session, kind: Kind) -> bool:
    """Whether a wish made at ``asked`` and fed since has been served, or has failed once."""
    before, after = asked.catalog(kind), now.catalog(kind)
    if is_denied(now, kind) or now.link.failures > asked.link.failures:
        return True
    if after.wanted or after.walk is not None:
        return False
    listed = after.snapshot is not None and after.snapshot is not before.snapshot
    return listed or after.pacing.failures > before.pacing.failures


def _is_idle(session: Session, policy: Policy) -> bool:
    link, listen = session.link.phase, session.listen
    if link in ENDED:
        return True
    return (
        link is LinkPhase.LIVE
        and listen.phase is not ListenPhase.ASKED
        and listen.due_at_ms is None
        and all(_is_quiet(catalog, policy) for catalog in session.catalogs)
    )


def _is_quiet(catalog: Catalog, policy: Policy) -> bool:
    """Whether nothing becomes of this catalog by itself."""
    if catalog.phase is Phase.STALE:
        return wake_ms(catalog, policy) is None
    return catalog.phase in (Phase.FRESH, Phase.UNSUPPORTED)
