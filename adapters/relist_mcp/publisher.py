"""``Publishing``: the lists of an `mcp` server, served and announced by ``relist.publisher``.

    server = Server("mine", on_call_tool=call)
    offer = Capabilities(frozenset({Kind.TOOLS}), frozenset({Channel.TOOLS}))
    publishing = Publishing(server, offer)
    publishing.commit(Kind.TOOLS, [Tool(name="add", input_schema={"type": "object"})])

From then on the server answers ``tools/list`` with what was committed last, page by page, declares
``listChanged`` in both eras and over each transport, and tells whoever has to know: modern
subscribers what they asked for, legacy sessions what is declared. Commit as often as you like:
bursts are merged, and nobody hears of a commit that changes nothing. Calls of a tool or prompt that
is not in force are refused. ``publish`` (``mcpserver.py``) does it all for an ``MCPServer``.

Where lists differ, ``view_of`` names the view of an authorization, by something harmless: it is
given the access token, never a connection. Commit the lists of each view by its name.

Use it from the thread of the event loop. Servers of one process share no event loop; where several
processes serve the same lists, say ``PublisherPolicy(alone=False)`` and commit in each.

This file decides nothing about who is told what, or when.
"""

import json
import logging
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from itertools import count
from typing import Any

import anyio
import anyio.from_thread
from anyio.lowlevel import EventLoopToken, current_token
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.context import CallNext, HandlerResult
from mcp.server.session import ServerSession
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    EmptyResult,
    InitializeRequestParams,
    PaginatedRequestParams,
    SubscribeRequestParams,
    SubscriptionsAcknowledgedNotification,
    SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

from relist.messages import NAMES
from relist.publisher import EVERYONE, Publisher, PublisherPolicy
from relist.requests import INITIALIZED
from relist.values import Capabilities, Failure, Item, Kind, Topic
from relist_mcp.exchange import now_ms
from relist_mcp.notices import Mailbox, declare, filter_of, notice_of, topics_of
from relist_mcp.sources import Source, item_of

logger = logging.getLogger("relist_mcp")

Context = ServerRequestContext[Any, Any]
ViewOf = Callable[[AccessToken | None], str]
"""A harmless name for what this authorization may see; None: there is none."""

_GATED = {"tools/call": Kind.TOOLS, "prompts/get": Kind.PROMPTS}
_INITIALIZED_LIMIT_S = 5.0  # how long an early request waits for ``initialized``


class _Session:
    """A legacy session. ``handshake`` is its identity: one object for each connection."""

    def __init__(self, name: str, handshake: InitializeRequestParams, view: str) -> None:
        self.name, self.handshake, self.view = name, handshake, view
        self.uris: set[str] = set()


class Publishing:
    """A server whose lists are published. See the module.

    ``source``: whence lists are read, instead of being committed. Raises PolicyError for an offer
    that makes no sense.
    """

    def __init__(
        self,
        server: Server[Any],
        offer: Capabilities,
        *,
        policy: PublisherPolicy | None = None,
        view_of: ViewOf | None = None,
        source: Source | None = None,
    ) -> None:
        if Kind.RESOURCES in offer.kinds or Kind.TEMPLATES in offer.kinds:  # one capability
            both = frozenset({Kind.RESOURCES, Kind.TEMPLATES})
            offer = Capabilities(offer.kinds | both, offer.channels, offer.subscribe)
        self._publisher = Publisher(offer, policy)
        self._view_of = view_of
        self._source = source
        self._boxes: dict[str, Mailbox] = {}
        self._sessions: dict[int, _Session] = {}
        self._numbers = count(1)
        self._runs = 0
        self._wake, self._joined = anyio.Event(), anyio.Event()
        self._thread = 0
        self._token: EventLoopToken | None = None
        self._install(server)

    # --- what a server says -----------------------------------------------------------------------

    def commit(self, kind: Kind, entries: Iterable[BaseModel], view: str = EVERYONE) -> None:
        """These entries are in force, all of them and no others, before this returns.

        Raises ImpossibleAct, with nothing changed, for a kind that is not offered, a key that comes
        twice, or a view too many.
        """
        self._commit(kind, [item_of(kind, entry) for entry in entries], view)

    def updated(self, uri: str, view: str | None = None) -> None:
        """The content of this resource has changed, for one view or for all."""
        self._publisher.updated(uri, self._now_ms(), view)
        self._stir()

    def changed(self) -> None:
        """What the source says may have changed: read it again. From any thread."""
        if self._source is not None:
            self._source.outdated = True
        self._stir()

    def close(self) -> None:
        """End all subscriptions in good order, by their results. Sessions go on.

        Rule: EMIT-11, EMIT-27, SUB-20.
        """
        sessions = {session.name for session in self._sessions.values()}
        for name, box in self._boxes.items():
            if name not in sessions:
                box.close()

    def _commit(self, kind: Kind, items: Iterable[Item], view: str) -> None:
        self._publisher.commit(kind, items, self._now_ms(), view)
        self._stir()

    def _now_ms(self) -> int:
        return now_ms() if self._runs else 0  # before that nobody can be told anything

    # --- what a server is asked -------------------------------------------------------------------

    def _install(self, server: Server[Any]) -> None:
        for kind in self._publisher.offer.kinds:
            handler = partial(self._list, kind)
            server.add_request_handler(NAMES[kind].method, PaginatedRequestParams, handler)
        for method, kind in _GATED.items():
            entry = server.get_request_handler(method)
            if entry is not None and kind in self._publisher.offer.kinds:
                gated = partial(self._gate, kind, entry.handler)
                server.add_request_handler(method, entry.params_type, gated)
        server.add_request_handler(
            "subscriptions/listen", SubscriptionsListenRequestParams, self._listen
        )
        if self._publisher.offer.subscribe:
            for method, params, act in (
                ("resources/subscribe", SubscribeRequestParams, set[str].add),
                ("resources/unsubscribe", UnsubscribeRequestParams, set[str].discard),
            ):
                server.add_request_handler(method, params, partial(self._watch, act))
        if self._view_of is not None and server.get_tool_input_schema is not None:
            server.get_tool_input_schema = self._schema_of
        server.middleware.insert(0, self._middleware)
        server.lifespan = partial(self._live, server.lifespan)
        declare(server, self._publisher.offer)

    async def _view(self) -> str:
        """The view of the request at hand, with its lists. By authorization: EMIT-14."""
        view = EVERYONE if self._view_of is None else self._view_of(get_access_token())
        await self._freshen(view)
        return view

    async def _list(self, kind: Kind, _: Context, params: PaginatedRequestParams) -> HandlerResult:
        """A page, never a call for input. Rule: EMIT-29, TTL-01."""
        served = self._publisher.page(kind, params.cursor, await self._view())
        if isinstance(served, Failure):
            raise MCPError(served.code or INTERNAL_ERROR, served.reason)
        answer: dict[str, Any] = {
            "resultType": "complete",
            NAMES[kind].field: [json.loads(item.canonical_json) for item in served.items],
            "ttlMs": served.ttl_ms,
            "cacheScope": served.scope.value,
        }
        if served.next_cursor is not None:
            answer["nextCursor"] = served.next_cursor
        return answer

    async def _gate(
        self, kind: Kind, handler: Callable[[Context, Any], Any], ctx: Context, params: Any
    ) -> HandlerResult:
        """What is not in force for this authorization is not called. Rule: EMIT-15."""
        if self._publisher.find(kind, params.name, await self._view()) is None:
            raise MCPError(INVALID_PARAMS, f"Unknown {kind.value.removesuffix('s')}: {params.name}")
        result: HandlerResult = await handler(ctx, params)
        return result

    def _schema_of(self, name: str) -> Mapping[str, Any] | None:
        """The SDK asks for it before any handler runs: what a view hides stays hidden."""
        assert self._view_of is not None
        item = self._publisher.find(Kind.TOOLS, name, self._view_of(get_access_token()))
        schema: Mapping[str, Any] | None = None
        if item is not None:
            schema = json.loads(item.canonical_json)["inputSchema"]
        return schema

    # --- who is told ------------------------------------------------------------------------------

    @asynccontextmanager
    async def _told(
        self, name: str, asked: frozenset[Topic], view: str
    ) -> AsyncGenerator[tuple[Mailbox, frozenset[Topic]]]:
        """A subscriber for as long as the block runs, and no longer. Rule: EMIT-28.

        Raises MCPError if there is no room.
        """
        granted = self._publisher.subscribe(name, asked, view)
        if granted is None:
            raise MCPError(INTERNAL_ERROR, "no room for this subscription")
        box = self._boxes[name] = Mailbox()
        try:
            yield box, granted
        finally:
            del self._boxes[name]
            self._publisher.unsubscribe(name)

    async def _listen(
        self, ctx: Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """A modern subscription: acknowledged first, then told, and of nothing else.

        Rule: EMIT-09, EMIT-10, SUB-38.
        """
        meta: dict[str, Any] = {SUBSCRIPTION_ID_META_KEY: ctx.request_id}
        asked, name = topics_of(params.notifications), f"subscription {next(self._numbers)}"
        async with self._told(name, asked, await self._view()) as (box, granted):
            acknowledged = SubscriptionsAcknowledgedNotificationParams(
                notifications=filter_of(granted), _meta=meta
            )
            await ctx.session.send_notification(
                SubscriptionsAcknowledgedNotification(params=acknowledged), ctx.request_id
            )
            while (topic := await box.next()) is not None:
                await ctx.session.send_notification(notice_of(topic, meta), ctx.request_id)
        return SubscriptionsListenResult(_meta=meta)

    async def _middleware(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """A legacy session is told from ``initialized`` on: that notification never ends."""
        result = await call_next(ctx)
        handshake = ctx.session.client_params
        legacy = ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS
        if ctx.method == INITIALIZED and legacy and handshake is not None:
            await self._serve(ctx.session, handshake)
        return result

    async def _serve(self, server: ServerSession, handshake: InitializeRequestParams) -> None:
        """Tell a session of all that is declared, once each. Rule: EMIT-07, EMIT-26."""
        view = await self._view()
        if id(handshake) in self._sessions:
            return
        session = _Session(f"session {next(self._numbers)}", handshake, view)
        self._sessions[id(handshake)] = session
        try:
            async with self._told(session.name, self._declared, view) as (box, _):
                self._joined.set()
                self._joined = anyio.Event()
                while (topic := await box.next()) is not None:
                    await server.send_notification(notice_of(topic, None))
        except MCPError:
            logger.debug("a session is not told of changes: there is no room")
        finally:
            del self._sessions[id(handshake)]

    @property
    def _declared(self) -> frozenset[Topic]:
        return frozenset[Topic](self._publisher.offer.channels)

    async def _watch(
        self, act: Callable[[set[str], str], None], ctx: Context, params: Any
    ) -> EmptyResult:
        """A legacy subscription to one resource begins or ends. Rule: EMIT-08."""
        session: _Session | None = None
        with anyio.move_on_after(_INITIALIZED_LIMIT_S):
            while (session := self._sessions.get(id(ctx.session.client_params))) is None:
                await self._joined.wait()
        if session is None:
            raise MCPError(INVALID_REQUEST, "not initialized")
        uris = set(session.uris)
        act(uris, str(params.uri))
        if self._publisher.subscribe(session.name, self._declared | uris, session.view) is None:
            raise MCPError(INTERNAL_ERROR, "no room for this subscription")
        session.uris = uris
        return EmptyResult()

    # --- the loop ---------------------------------------------------------------------------------

    @asynccontextmanager
    async def _live(
        self, lifespan: Callable[[Any], AbstractAsyncContextManager[Any]], server: Server[Any]
    ) -> AsyncGenerator[Any]:
        """The server's own lifespan with a loop beside it: one for each run, any will do."""
        failure: Exception | None = None
        async with lifespan(server) as context:
            if self._runs == 0:
                self._begin()
            self._runs += 1
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._loop)
                    try:
                        yield context
                    except Exception as error:
                        failure = error
                    tasks.cancel_scope.cancel()
            finally:
                self._runs -= 1
            if failure is not None:  # as it is: nobody expects a group
                raise failure

    def _begin(self) -> None:
        """Nobody is connected yet, and this may be another event loop than last time."""
        self._publisher.settle()
        if self._source is not None:
            self._source.begin()
        self._wake, self._joined = anyio.Event(), anyio.Event()
        self._thread = threading.get_ident()
        self._token = current_token()

    async def _loop(self) -> None:
        while True:
            wake = self._wake
            try:
                await self._freshen()
            except Exception:  # of the server's own code; who lists is told as well
                logger.exception("lists cannot be read")
            deadline_ms = self._publisher.deadline_ms()
            wait_s = None if deadline_ms is None else max(0.0, (deadline_ms - now_ms()) / 1000)
            with anyio.move_on_after(wait_s):
                await wake.wait()
            for announced in self._publisher.elapse(now_ms()):
                for name in announced.to:
                    self._boxes[name].put(announced.topic)

    def _stir(self) -> None:
        """Let the loop look again, whatever thread this is."""
        if not self._runs:
            return
        if threading.get_ident() == self._thread:
            self._stirred()
        else:
            anyio.from_thread.run_sync(self._stirred, token=self._token)

    def _stirred(self) -> None:
        self._wake.set()
        self._wake = anyio.Event()

    async def _freshen(self, view: str | None = None) -> None:
        if self._source is not None:
            await self._source.freshen(self._publisher, view, self._commit)
