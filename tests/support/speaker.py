"""A client of raw frames at an in-process server, which sees all that is sent, and when."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import anyio
from mcp.client._memory import InMemoryTransport
from mcp.server import Server
from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.mcpserver import MCPServer
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from support.brain import LEGACY, MODERN, SUBSCRIPTION, Frame, notice

CHANGED = "/list_changed"
_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "speaker", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_INITIALIZE = {
    "protocolVersion": LEGACY,
    "capabilities": {},
    "clientInfo": {"name": "speaker", "version": "1"},
}


class Speaker:
    """Speaks in one era, as whoever has this scope. ``frames`` is all that came but answers."""

    def __init__(self, era: str, scope: str | None, read: Any, write: Any) -> None:
        self.era = era
        self._user: AuthenticatedUser | None = None
        if scope is not None:
            self._user = AuthenticatedUser(
                AccessToken(token="s3cret", client_id=scope, scopes=[scope])
            )
        self.frames: list[tuple[float, Frame]] = []
        self._read, self._write = read, write
        self._ids = count(1)
        self._answers: dict[Any, Frame] = {}
        self._moved = anyio.Event()

    async def say(self, frame: Frame) -> None:
        message = jsonrpc_message_adapter.validate_python({"jsonrpc": "2.0", **frame})
        before = auth_context_var.set(self._user)  # handlers run in the context of the sender
        await self._write.send(SessionMessage(message))
        auth_context_var.reset(before)

    async def request(self, method: str, params: Frame | None = None) -> int:
        """Ask, without waiting; returns the id."""
        params = {**(params or {}), **({"_meta": _META} if self.era == MODERN else {})}
        number = next(self._ids)
        await self.say({"id": number, "method": method, "params": params})
        return number

    async def answer(self, number: int) -> Frame:
        """The answer to a request: a result, or an error."""
        while number not in self._answers:
            await self._moved.wait()
        frame = self._answers[number]
        body: Frame = frame["result"] if "result" in frame else frame["error"]
        return body

    async def ask(self, method: str, params: Frame | None = None) -> Frame:
        return await self.answer(await self.request(method, params))

    async def begin(self) -> Frame:
        """What the server declares, once it may send notices."""
        if self.era == MODERN:
            discovered: Frame = (await self.ask("server/discover"))["capabilities"]
            return discovered
        declared: Frame = (await self.ask("initialize", _INITIALIZE))["capabilities"]
        await self.say(notice("notifications/initialized"))
        await self.ask("ping")
        await anyio.wait_all_tasks_blocked()
        return declared

    async def listen(self, **asked: Any) -> int:
        """A subscription that was acknowledged; returns its id, which its frames bear."""
        number = await self.request("subscriptions/listen", {"notifications": asked})
        await self.until(lambda: self.tagged(number))
        return number

    async def keys(self, method: str = "tools/list", field: str = "tools") -> list[str]:
        """What is listed, all pages of it."""
        cursor: Frame = {}
        keys: list[str] = []
        while True:
            page = await self.ask(method, cursor)
            keys += [entry["name"] for entry in page[field]]
            if "nextCursor" not in page:
                return keys
            cursor = {"cursor": page["nextCursor"]}

    def tagged(self, number: int) -> list[Frame]:
        """All frames of a subscription, by its tag."""
        return [
            frame
            for _, frame in self.frames
            if frame.get("params", {}).get("_meta", {}).get(SUBSCRIPTION) == number
        ]

    def changes(self) -> list[tuple[float, str]]:
        """When which list was said to have changed."""
        found = [(at, frame["method"]) for at, frame in self.frames]
        return [(at, method) for at, method in found if method.endswith(CHANGED)]

    def updates(self) -> list[str]:
        """The resources that were said to have changed."""
        method = "notifications/resources/updated"
        return [frame["params"]["uri"] for _, frame in self.frames if frame["method"] == method]

    async def until(self, condition: Any) -> None:
        """Wait until a frame has made it true."""
        while not condition():
            await self._moved.wait()

    async def hear(self) -> None:
        async for item in self._read:
            frame = item.message.model_dump(mode="json", by_alias=True, exclude_none=True)
            if "method" in frame:
                self.frames.append((anyio.current_time(), frame))
            else:
                self._answers[frame["id"]] = frame
            self._moved.set()
            self._moved = anyio.Event()


@asynccontextmanager
async def speaking(
    server: Server[Any] | MCPServer[Any], era: str, scope: str | None = None
) -> AsyncGenerator[Speaker]:
    """A connection for as long as the block runs; nothing is said yet."""
    async with InMemoryTransport(server) as (read, write), anyio.create_task_group() as tasks:
        speaker = Speaker(era, scope, read, write)
        tasks.start_soon(speaker.hear)
        yield speaker
        tasks.cancel_scope.cancel()
