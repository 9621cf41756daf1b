"""A server made of the SDK's own parts at the other end of an in-memory pipe, with a known truth.

Each connection starts a ``Server`` of its own, as if it were a process: ``die`` ends it. What goes
wrong, or late, goes so in the handlers, which are all that an author of a server writes.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import anyio.abc
import mcp_types as types
from mcp import MCPError
from mcp.client._transport import TransportStreams
from mcp.server import NotificationOptions, Server, ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.memory import create_client_server_memory_streams

from relist.values import Channel, Kind
from support.truth import DeadCursor, Page, Truth

Context = ServerRequestContext[Any, Any]
Asked = types.PaginatedRequestParams | None

EVENTS: Mapping[Channel, ServerEvent] = {
    Channel.TOOLS: ToolsListChanged(),
    Channel.PROMPTS: PromptsListChanged(),
    Channel.RESOURCES: ResourcesListChanged(),
}
NOTICES: Mapping[Channel, types.ServerNotification] = {
    Channel.TOOLS: types.ToolListChangedNotification(),
    Channel.PROMPTS: types.PromptListChangedNotification(),
    Channel.RESOURCES: types.ResourceListChangedNotification(),
}
CALLED = types.CallToolResult(content=[types.TextContent(text="done")])


class Gates:
    """Where handlers are held up: ``hold`` closes a gate, ``release`` lets one who waits go on."""

    def __init__(self) -> None:
        self._closed: set[object] = set()
        self._waiting: list[anyio.Event] = []

    def hold(self, gate: object) -> None:
        """Whoever comes from now on waits here."""
        self._closed.add(gate)

    def release(self, number: int) -> None:
        """Let one who waits go on, whatever the order in which they came."""
        if self._waiting:
            self._waiting.pop(number % len(self._waiting)).set()

    def open(self) -> None:
        """Nobody waits any more."""
        self._closed.clear()
        while self._waiting:
            self.release(0)

    async def passed(self, gate: object) -> None:
        """Wait here if it is closed."""
        if gate not in self._closed:
            return
        event = anyio.Event()
        self._waiting.append(event)
        try:
            await event.wait()
        finally:
            if event in self._waiting:
                self._waiting.remove(event)


class Link:
    """One process of the server: one connection, in whatever era the client opens it."""

    def __init__(self, host: "Host", number: int, kinds: frozenset[Kind]) -> None:
        self._host = host
        self.number = number
        self.kinds = kinds
        self._tasks: anyio.abc.TaskGroup
        self._write: Any = None
        self._session: ServerSession | None = None
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)
        self._server = self._made()

    def _made(self) -> Server[Any]:
        handlers: dict[Kind, tuple[str, Callable[[Context, Asked], Any]]] = {
            Kind.TOOLS: ("on_list_tools", self._tools),
            Kind.PROMPTS: ("on_list_prompts", self._prompts),
            Kind.RESOURCES: ("on_list_resources", self._resources),
            Kind.TEMPLATES: ("on_list_resource_templates", self._templates),
        }
        own: dict[str, Any] = dict(handlers[kind] for kind in self.kinds)
        if self._host.push:
            own["on_subscriptions_listen"] = self.listen
        server: Server[Any] = Server("host", on_call_tool=self._call, **own)
        server.middleware.append(self._greet)
        return server

    async def serve(self, read: Any, write: Any) -> None:
        """Serve one client, until it goes or the process dies."""
        push = self._host.push
        declared = NotificationOptions(push, push, push)
        options = self._server.create_initialization_options(declared)
        self._write = write
        async with read, write, anyio.create_task_group() as self._tasks:
            self._host.links.append(self)
            try:
                await self._server.run(read, write, options)
            finally:
                self._host.links.remove(self)
            self._tasks.cancel_scope.cancel()

    def die(self, *, killed: bool) -> None:
        """The process ends at once; unless it is killed, it still says so to whoever waits."""
        if killed:
            self._write.close()
        self._tasks.cancel_scope.cancel()

    def tell(self, channel: Channel) -> None:
        """Announce a change to whoever may hear of it, in a task of its own."""
        if self._host.push:
            self._tasks.start_soon(self._announce, channel)

    async def _announce(self, channel: Channel) -> None:
        await self._bus.publish(EVENTS[channel])
        if self._session is not None:
            await self._session.send_notification(NOTICES[channel])

    async def _greet(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Whoever initializes is told of changes from then on."""
        if ctx.method == "initialize":
            self._session = ctx.session
        return await call_next(ctx)

    async def _tools(self, _: Context, asked: Asked) -> types.ListToolsResult:
        page, common = await self._page(Kind.TOOLS, asked)
        schema = {"type": "object"}
        tools = [types.Tool(name=k, description=t, input_schema=schema) for k, t in page.entries]
        return types.ListToolsResult(tools=tools, **common)

    async def _prompts(self, _: Context, asked: Asked) -> types.ListPromptsResult:
        page, common = await self._page(Kind.PROMPTS, asked)
        prompts = [types.Prompt(name=key, description=text) for key, text in page.entries]
        return types.ListPromptsResult(prompts=prompts, **common)

    async def _resources(self, _: Context, asked: Asked) -> types.ListResourcesResult:
        page, common = await self._page(Kind.RESOURCES, asked)
        found = [types.Resource(name="r", uri=key, description=text) for key, text in page.entries]
        return types.ListResourcesResult(resources=found, **common)

    async def _templates(self, _: Context, asked: Asked) -> types.ListResourceTemplatesResult:
        page, common = await self._page(Kind.TEMPLATES, asked)
        found = [
            types.ResourceTemplate(name="t", uri_template=key, description=text)
            for key, text in page.entries
        ]
        return types.ListResourceTemplatesResult(resource_templates=found, **common)

    async def _page(self, kind: Kind, asked: Asked) -> tuple[Page, dict[str, Any]]:
        """The page, and the fields that results of all kinds share."""
        cursor = None if asked is None else asked.cursor
        page = await self._host.listed(self.number, kind, cursor)
        truth = self._host.truth
        scope = "public" if truth.shared else "private"
        common: dict[str, Any] = {"next_cursor": page.next_cursor, "cache_scope": scope}
        return page, common if self._host.ttl_ms is None else {
            **common,
            "ttl_ms": self._host.ttl_ms,
        }

    async def _call(self, _: Context, __: types.CallToolRequestParams) -> types.CallToolResult:
        await self._host.called()
        return CALLED


class Host:
    """Starts a ``Link`` for each client that connects; the next ``refusals`` attempts fail.

    ``offered``: the kinds of the next process. ``fates``: how the next listing of a kind fails.
    ``ambushes``: what happens right behind each of the next pages, before its answer is sent.
    """

    def __init__(self, truth: Truth, *, push: bool, ttl_ms: int | None) -> None:
        self.truth = truth
        self.push = push
        self.ttl_ms = ttl_ms
        self.gates = Gates()
        self.offered = frozenset(Kind)
        self.refusals = 0
        self.ambushes: dict[Kind, list[Callable[[], None]]] = {}
        self.fates: dict[Kind, Exception] = {}
        self.on_call: Callable[[], None] = lambda: None
        self.links: list[Link] = []  # those whose process runs
        self._started = 0

    @property
    def kinds(self) -> frozenset[Kind]:
        """What the newest process serves, or the next one will."""
        return self.links[-1].kinds if self.links else self.offered

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[TransportStreams]:
        """Start a process and open a pipe to it. Raises ConnectionRefusedError."""
        if self.refusals > 0:
            self.refusals -= 1
            raise ConnectionRefusedError("refused")
        self._started += 1
        link = Link(self, self._started, self.offered)
        async with (
            create_client_server_memory_streams() as (client, (read, write)),
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(partial(link.serve, read, write))
            yield client
            tasks.cancel_scope.cancel()

    async def listed(self, link: int, kind: Kind, cursor: str | None) -> Page:
        """What a handler does: slow or not, before it looks or after. Raises MCPError, or fails."""
        await self.gates.passed((kind, "before"))
        if (fate := self.fates.pop(kind, None)) is not None:
            raise fate
        try:
            page = self.truth.serve(link, kind, cursor)
        except DeadCursor:
            raise MCPError(types.INVALID_PARAMS, "dead cursor") from None
        if ambushes := self.ambushes.get(kind):
            ambushes.pop()()
        await self.gates.passed((kind, "after"))
        return page

    async def called(self) -> None:
        """What the handler of a call does: slow or not, and tools may change by it."""
        await self.gates.passed("call")
        self.on_call()

    def calm(self) -> None:
        """From now on nothing goes wrong, and nothing is late."""
        self.gates.open()
        self.ambushes.clear()
        self.fates.clear()
        self.refusals = 0
