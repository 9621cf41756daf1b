"""``Catalogs``: the four catalogs of one server, kept correct over a real MCP session.

The law is in ``relist``, the loop around it in ``loop.py``, what reaches the server in
``binding.py``. This file is what an application asks; it decides nothing about freshness.
"""

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cached_property
from typing import Any, Self

import anyio
from mcp import ClientSession
from mcp_types import CallToolResult, GetPromptResult, ReadResourceResult

from relist import inputs as i
from relist.core import Relist
from relist.effects import Effect
from relist.inputs import SessionInput
from relist.machine import Hit, Reading
from relist.policy import Policy, Risk
from relist.session import Session
from relist.values import Kind, LinkPhase, Wire
from relist_mcp.attached import Attached, Owner
from relist_mcp.binding import Binding, NotConnected, Transports
from relist_mcp.calls import Calls
from relist_mcp.contents import ContentCache
from relist_mcp.credentials import NOBODY, Credentials, Needs, NeedsCredentials, needed
from relist_mcp.drift.guard import Guard, Pinned
from relist_mcp.exchange import now_ms
from relist_mcp.fold import Events, Watcher
from relist_mcp.handlers import NO_HANDLERS, Handlers
from relist_mcp.identity import CLIENT_VERSION, NOBODY_YET, Identity
from relist_mcp.logs import Log
from relist_mcp.loop import Loop, Observer
from relist_mcp.sendable import check_sendable
from relist_mcp.speech import Voice
from relist_mcp.status import Status, status
from relist_mcp.tally import Counter
from relist_mcp.targets import AnyTarget, target_of
from relist_mcp.telemetry import Telemetry
from relist_mcp.view import ENDED, View, is_idle, is_quiet, is_served

CLIENT_INFO = {"name": "relist", "version": CLIENT_VERSION}


class Catalogs:
    """The catalogs of one server. Use ``async with Catalogs.connect(target) as catalogs``."""

    def __init__(self, core: Relist, profile: Pinned | None = None) -> None:
        self._loop = Loop(core, self._perform)
        self._needs = Needs()
        self._counter = Counter()
        identity = self._identity
        self._events = Events(self._counter, Log(identity), Telemetry(core, identity))
        self._loop.observers += [self._needs.observe, self._events]
        self.guard = None if profile is None else Guard(profile, lambda: self._binding)
        if self.guard is not None:
            self._loop.observers.append(self.guard.observe)
            self._events.watchers.append(self.guard.watch)
        self._binding: Binding | None = None
        self._calls = Calls(self, self._loop)
        self._loop.observers.append(self._calls.observe)

    @classmethod
    def connect(
        cls,
        target: AnyTarget,
        *,
        policy: Policy | None = None,
        credentials: Credentials = NOBODY,
        handlers: Handlers = NO_HANDLERS,
        observers: Sequence[Observer] = (),
        profile: Pinned | None = None,
    ) -> AbstractAsyncContextManager["Catalogs"]:
        """Keep the catalogs of ``target`` correct while the block runs; reconnects by itself.

        ``target``: see ``target_of``. ``policy`` defaults to ``Policy`` with a random seed.
        ``observers`` see each step, from the first on. Entering does not wait for the server.
        With a ``profile``, surfaces and calls are those of its consumer: see ``drift.guard``.
        """
        found = target_of(target)
        catalogs = cls(Relist(found.wire, _policy(policy), credentials.partition), profile)
        catalogs._loop.observers += observers
        voice = Voice(CLIENT_INFO, handlers.capabilities())
        binding = Transports(found, catalogs._loop, voice, handlers, credentials)
        return catalogs._live(binding)

    @classmethod
    @asynccontextmanager
    async def attach(
        cls,
        client: ClientSession | Owner,
        *,
        policy: Policy | None = None,
        partition: str | None = None,
        wire: Wire = Wire.HTTP,
        profile: Pinned | None = None,
    ) -> AsyncGenerator["Catalogs"]:
        """Keep the catalogs of a connected client correct, over its own connection.

        ``client``: an `mcp` ``Client`` or ``ClientSession``, or another client with such a session,
        as FastMCP's. It stays its owner's: requests of ours go out among its own, and all its
        handlers hear what they heard before, and besides the notices of our subscriptions (so that
        the client's cache of responses is evicted by them). Leaving restores it, whatever happens.

        ``partition`` names on whose authority its server answers; by default nobody else's.
        ``wire``: ``Wire.PIPE`` if you know that it is a process or in memory. What is promised is
        less than for ``connect``, since the SDK hides how its connection fares:

        - A notice is heard before all that came after it, but an answer only when its turn comes in
          the event loop. So a walk may be held for spoiled and be made again, though it was not; no
          list is held for fresh that is not.
        - Nobody can tell whether the notices of a legacy session over HTTP arrive. They are heeded,
          but vouch for nothing: its lists have the policy's ``unvouched_lifetime_ms``.
        - Statuses and Retry-After are out of sight: whatever HTTP refuses is tried again after a
          backoff, and no credentials are asked for. A cut stream is known when the SDK gives it up.
        - The core never connects. Once the connection ends, that of ``mcp.Client`` and of a session
          is closed for good; a client that can get another session is looked at again after each
          backoff. Nothing of its epoch is held for fresh meanwhile.
        - A legacy server knows one subscription to a resource per session: who watches the same one
          beside us loses it with us.

        Raises NotConnected if the client is not connected yet, TypeError for what is no client.
        """
        mine = os.urandom(16).hex() if partition is None else partition
        catalogs = cls(Relist(wire, _policy(policy), mine), profile)
        binding = Attached(client, wire, catalogs._loop)
        try:
            async with catalogs._live(binding):
                yield catalogs
        finally:
            await binding.close()  # also after a cancellation

    @asynccontextmanager
    async def _live(self, binding: Binding) -> AsyncGenerator[Self]:
        """Run while the block does; an error of the block comes out as it is."""
        self._binding = binding
        failure: BaseException | None = None
        try:
            async with anyio.create_task_group() as tasks:
                binding.start(tasks)
                self.tell(i.ConnectWanted(now_ms()))
                self._loop.drain()
                tasks.start_soon(self._loop.run)
                try:
                    yield self
                except (Exception, KeyboardInterrupt, SystemExit) as error:
                    failure = error
                await self._close(binding)
                tasks.cancel_scope.cancel()
        finally:
            self._loop.end()
            if failure is not None:  # as it is: nobody expects a group
                raise failure

    async def _close(self, binding: Binding) -> None:
        """Close the link in good order, within the grace of its transports."""
        ticket = self.tell(i.CloseWanted(now_ms()))
        while not self._loop.has_fed(ticket):
            await self._loop.moved()
        await binding.close()

    def _perform(self, effect: Effect) -> None:
        if self._binding is not None:
            self._binding.perform(effect)

    def _identity(self) -> Identity:
        return NOBODY_YET if self._binding is None else self._binding.server

    # --- what is known ----------------------------------------------------------------------------

    @property
    def session(self) -> Session:
        """The frozen state of the core."""
        return self._loop.session

    @property
    def over(self) -> bool:
        """Whether the block has ended: nothing changes any more."""
        return self._loop.over

    @cached_property
    def _contents(self) -> ContentCache:
        """Made for who asks first, as are views: most of many catalogs are idle."""
        contents = ContentCache(self, self._loop, self._calls)
        self._loop.observers.append(contents.observe)
        return contents

    @cached_property
    def tools(self) -> View:
        """The tools."""
        return View(self, Kind.TOOLS, self._loop.moved)

    @cached_property
    def prompts(self) -> View:
        """The prompts."""
        return View(self, Kind.PROMPTS, self._loop.moved)

    @cached_property
    def resources(self) -> View:
        """The resources."""
        return View(self, Kind.RESOURCES, self._loop.moved)

    @cached_property
    def templates(self) -> View:
        """The resource templates."""
        return View(self, Kind.TEMPLATES, self._loop.moved)

    def read(self, kind: Kind) -> Reading:
        """What is known now: free, no traffic."""
        return self._loop.core.read(kind, now_ms())

    def status(self) -> Status:
        """How everything stands now, for operators: free, no traffic. Holds nothing secret."""
        server, policy = self._identity(), self.policy
        return status(self.session, self._counter.tally, server, policy, now_ms())

    def observe(self, observer: Observer) -> None:
        """Call ``observer`` after each step of the core from now on. See ``loop``."""
        self._loop.observers.append(observer)

    def watch(self, watcher: Watcher) -> None:
        """Tell ``watcher`` from now on what happens, step by step. See ``events`` and ``fold``."""
        self._events.watchers.append(watcher)

    def tell(self, heard: SessionInput, *, at_once: bool = False) -> int:
        """Queue an input of the core; it is fed in order. Returns a ticket of the loop.

        ``at_once``: it and all before it are fed when this returns, unless an observer tells it.
        """
        ticket = self._loop.tell(heard)
        if at_once:
            self._loop.drain()
        return ticket

    # --- what is asked ----------------------------------------------------------------------------

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
        loop, asked = self._loop, self.session
        ticket = self.tell(wish(kind, now_ms()))
        while not (loop.has_fed(ticket) and is_served(asked, self.session, kind)):
            quiet = is_quiet(self.session.catalog(kind), self.policy)
            if loop.has_fed(ticket) and quiet:
                ticket = self.tell(wish(kind, now_ms()))  # lazy, and the walk was spoiled
            await loop.moved()
        return self.read(kind)

    async def idle(self) -> None:
        """Return once nothing is under way that would go on without a new stimulus.

        That is: each declared kind is fresh, or waits for a wish (lazy) or for credentials; no
        request is outstanding, no walk or subscription is due; or the link is closed, parked or
        refused. Does not return while a server is away or keeps failing, since there is always a
        next try: bound it with ``anyio.fail_after``.
        """
        while self._loop.waiting or not is_idle(self.session, self.policy):
            await self._loop.moved()

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        name: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """The raw result of any other request, sent once the link is live. It passes no gate.

        ``name``: of a tool or prompt, or a URI. Raises ImpossibleAct for what is no JSON in UTF-8,
        NotConnected if the link has ended, MCPError for an error or a lost link. Rule: CALL-25.
        """
        check_sendable([params, name])
        while self.session.link.phase is not LinkPhase.LIVE:
            if self.session.link.phase in ENDED:
                raise NotConnected(self.session.link.phase.value)
            await self._loop.moved()
        assert self._binding is not None
        return await self._binding.request(method, dict(params), name, headers or {})

    # --- calls ------------------------------------------------------------------------------------

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        planned: int | None = None,
        risk: Risk = Risk.SIDE_EFFECTS,
    ) -> CallToolResult:
        """Call a tool, if it is still what the call was planned on. Waits for link and list.

        ``planned``: the generation that the arguments were made for; by default that of the adopted
        surface, else what is published now. ``risk``: see ``policy.risks_on_doubt``. Verifies first
        where the list is in doubt; is tried once more only where the server asks for other headers.

        Raises CallRefused, by its subclasses, if it was not sent or was rejected; InvalidResult
        for a structured result that does not fit; ImpossibleAct for a generation that never was;
        else as ``request`` does, also for a result of the wrong shape. A result that tells of an
        error is returned: it is for whoever wanted the call.
        """
        return await self._calls.call_tool(name, arguments, planned, risk)

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, *, planned: int | None = None
    ) -> GetPromptResult:
        """Render a prompt, on the terms of ``call_tool``; it is never kept. Rule: RES-18."""
        return await self._calls.get_prompt(name, arguments or {}, planned)

    async def read_resource(self, uri: str) -> ReadResourceResult:
        """What the resource contains: kept for as long as the server said, listed or not.

        Raises Unsupported, Unauthorized, Unreachable or Rejected, else as ``request`` does.
        """
        return await self._contents.read(uri)

    def subscribe(self, uri: str) -> None:
        """Hear of updates of this resource, on this link and on every later one.

        Raises ImpossibleAct beyond ``policy.subscriptions_max``, and for what is no Unicode text.
        """
        self._contents.watch(self._contents.wanted | {uri})

    def unsubscribe(self, uri: str) -> None:
        """Hear of its updates no more."""
        self._contents.watch(self._contents.wanted - {uri})

    def updates(self) -> AsyncGenerator[str]:
        """Each resource whose content has changed, or may have, from now on: read it again.

        It is subscribed to, or lies below one that is. Whoever is slow hears of several changes
        as one. Ends when the block of ``Catalogs`` does.
        """
        return self._contents.updates()

    @property
    def sdk_session(self) -> ClientSession | None:
        """The session of the SDK that serves the requests of the server now, if any."""
        return None if self._binding is None else self._binding.sdk_session

    # --- credentials ------------------------------------------------------------------------------

    def change_credentials(self, credentials: Credentials) -> None:
        """Go on with these: the link is renewed, and what waited for credentials is tried again.

        Private lists of another partition are withdrawn at once. Raises TypeError where the caller
        owns the connection. Rule: AUTH-03, AUTH-12.
        """
        if not isinstance(self._binding, Transports):
            raise TypeError("the credentials of an attached client are its owner's")
        self._binding.use(credentials)
        self.tell(i.CredentialsChanged(credentials.partition, now_ms()), at_once=True)

    async def needs_credentials(self) -> AsyncGenerator[NeedsCredentials]:
        """One event each time that credentials turn out not to do; none while that is so already.

        Whoever asks late hears of what is so now. Ends when the block of ``Catalogs`` does.
        """
        told = 0
        while not self.over:
            now = needed(self.session)
            if now is not None and self._needs.count > told:
                told = self._needs.count
                yield now
            else:
                await self._loop.moved()

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._loop.core.policy


def _policy(given: Policy | None) -> Policy:
    return given or Policy(seed=os.urandom(16))
