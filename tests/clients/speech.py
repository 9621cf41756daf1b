"""Both eras of MCP on a raw wire, for clients that share no code with Relist's own.

Nothing is kept and nothing is tried again: that is what the clients differ in.
"""

import base64
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.abc

from clients import mirrored
from clients.wires import Failed, Json, Web, Wire, child, memory, process, web
from relist_conformance.drivers.base import Target

MODERN, LEGACY = "2026-07-28", "2025-11-25"
METHODS = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "resource_templates": "resources/templates/list",
}
CHANNELS = {**{kind: kind for kind in METHODS}, "resource_templates": "resources"}
"""Which capability and which notice a kind has."""
_FIELDS = {channel: f"{channel}ListChanged" for channel in ("tools", "prompts", "resources")}
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_PREFIX = "io.modelcontextprotocol"
_WHO = {"name": "relist variant", "version": "1"}
_META = {
    f"{_PREFIX}/protocolVersion": MODERN,
    f"{_PREFIX}/clientInfo": _WHO,
    f"{_PREFIX}/clientCapabilities": {},
}
_UNSUPPORTED_VERSION = -32022
_MODERN_ERRORS = (-32020, -32021, _UNSUPPORTED_VERSION)
"""Errors that only modern servers send: headers, capabilities, version."""
_PROBE_S, _ACKNOWLEDGED_S = 5.0, 4.0


class Speech:
    """One connection, spoken in the era that its server has. ``noticed`` is told of changes."""

    def __init__(self, noticed: Callable[[str], None], limit_s: float, probes: bool) -> None:
        self.version: str | None = None
        self.capabilities: Mapping[str, Any] | None = None
        """None where the client never asked: it does not know."""
        self.wire: Wire
        self._noticed, self._limit_s, self._probes = noticed, limit_s, probes
        self._opening = anyio.Lock()
        self._count = 0
        self._tools: dict[str, Json] = {}
        """Definitions as listed, for what of a call is mirrored in headers."""
        self._granted: dict[object, tuple[set[str], Callable[[set[str]], None]]] = {}
        self._ended: dict[object, anyio.CancelScope] = {}

    async def open(self) -> None:
        """Find out the era, and what the server has, before anything else. Raises ``Failed``."""
        if self._probes:
            limit_s = None if isinstance(self.wire, Web) else _PROBE_S
            found = await self._first("server/discover", {}, limit_s)
            if found is not None:
                self.capabilities = child(found, "capabilities")

    async def request(self, method: str, params: Json | None = None) -> Json:
        """The result of a request. Raises ``Failed``."""
        async with self._opening:
            if self.version is None:
                result = await self._first(method, params or {}, self._limit_s)
                if result is not None:
                    return result
        return await self._ask(method, params or {}, self._limit_s)

    def has(self, kind: str) -> bool:
        """Whether the kind may be asked for."""
        return self.capabilities is None or CHANNELS[kind] in self.capabilities

    def announces(self, channel: str) -> bool:
        """Whether notices may be hoped for."""
        if self.capabilities is None:
            return True
        return bool(child(self.capabilities, channel).get("listChanged"))

    async def follow(
        self,
        channels: set[str],
        ended: Callable[[set[str]], None],
        *,
        task_status: anyio.abc.TaskStatus[set[str]],
    ) -> None:
        """Hear of changes. Starts with the channels of which the server will tell, if any.

        ``ended`` is told the same once it will no more.
        """
        granted, answered = set[str](), anyio.Event()

        def grant(found: set[str]) -> None:
            granted.update(found)
            answered.set()

        async def listen() -> None:
            with suppress(Failed):
                await self._listen(channels, grant)
            answered.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen)
            with anyio.move_on_after(_ACKNOWLEDGED_S):
                await answered.wait()
            if not answered.is_set():
                tasks.cancel_scope.cancel()
            task_status.started(granted)
        ended(granted)

    async def _listen(self, channels: set[str], granted: Callable[[set[str]], None]) -> None:
        if self.version == MODERN:
            await self._subscribe(channels, granted)
        elif isinstance(self.wire, Web):
            await self.wire.follow(self._headers("", {}), lambda: granted(channels))
        else:
            granted(channels)
            await self.wire.lost.wait()

    async def _subscribe(self, channels: set[str], granted: Callable[[set[str]], None]) -> None:
        """Until the subscription ends, in whichever way."""
        listen_id = self._next_id()
        self._granted[listen_id] = set(), granted
        params = {"notifications": {_FIELDS[channel]: True for channel in channels}}
        try:
            with anyio.CancelScope() as scope:
                self._ended[listen_id] = scope
                await self._ask("subscriptions/listen", params, None, listen_id)
        finally:
            del self._granted[listen_id], self._ended[listen_id]

    async def _first(self, method: str, params: Json, limit_s: float | None) -> Json | None:
        """Try this request as a modern one; None when the server turned out to be legacy."""
        self.version = MODERN
        try:
            try:
                return await self._ask(method, params, limit_s, told=False)
            except Failed as failed:
                if failed.code != _UNSUPPORTED_VERSION:
                    raise
                return await self._ask(method, params, limit_s)
        except Failed as failed:
            # Over HTTP only a bad request tells; on a pipe whatever is no modern error.
            legacy = not isinstance(self.wire, Web) or failed.http == 400
            if not legacy or failed.code in _MODERN_ERRORS or self.wire.lost.is_set():
                self.version = None
                raise
            self.version = LEGACY
            await self._shake_hands()
            return None
        except BaseException:
            self.version = None
            raise

    async def _shake_hands(self) -> None:
        hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": _WHO}
        found = await self._ask("initialize", hello, self._limit_s, told=False)
        if found.get("protocolVersion") != LEGACY:
            self.wire.lost.set()
            raise Failed("no common version")
        self.capabilities = child(found, "capabilities")
        await self._tell("notifications/initialized", {})

    async def _ask(
        self,
        method: str,
        params: Json,
        limit_s: float | None,
        request_id: str | None = None,
        *,
        told: bool = True,
    ) -> Json:
        """One request; with ``told`` the server hears it when it is given up."""
        request_id = request_id or self._next_id()
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        if self.version == MODERN:
            message["params"] = {**params, "_meta": _META}
        try:
            with anyio.fail_after(limit_s):
                result = await self.wire.exchange(message, self._headers(method, params))
        except Failed:
            raise
        except BaseException as error:
            if told:
                await self._give_up(request_id)
            if isinstance(error, TimeoutError):
                raise Failed(f"{method}: no answer in {limit_s} s") from None
            raise
        if self.version == MODERN and result.get("resultType", "complete") != "complete":
            raise Failed(f"a result of type {result['resultType']!r}")
        if method == "tools/list" and self._mirrors() and isinstance(result.get("tools"), list):
            result["tools"] = [tool for tool in result["tools"] if mirrored.is_sound(tool)]
            named = [tool for tool in result["tools"] if isinstance(tool, dict) and "name" in tool]
            self._tools |= {str(tool["name"]): tool for tool in named}
        return result

    def _mirrors(self) -> bool:
        return self.version == MODERN and isinstance(self.wire, Web)

    async def _give_up(self, request_id: str) -> None:
        """On modern HTTP the stream that was closed says so."""
        if request_id in self._ended and self._ended[request_id].cancel_called:
            return  # it was the server that gave it up
        if self.version == LEGACY or not isinstance(self.wire, Web):
            with anyio.move_on_after(1, shield=True):
                await self._tell("notifications/cancelled", {"requestId": request_id})

    async def _tell(self, method: str, params: Json) -> None:
        more = {"params": params} if params else {}
        message = {"jsonrpc": "2.0", "method": method, **more}
        await self.wire.tell(message, self._headers(method, params))

    async def heard(self, message: Json) -> None:
        """A request or a notice of the server. The modern era has no requests, and no answers."""
        method, params = str(message["method"]), child(message, "params")
        if "id" in message:
            if self.version != MODERN:
                reply = {"jsonrpc": "2.0", "id": message["id"], "result": {}}
                await self.wire.tell(reply, self._headers("", {}))
        elif method == "notifications/cancelled":
            if isinstance(found := params.get("requestId"), str) and found in self._ended:
                self._ended[found].cancel()
        elif method == "notifications/subscriptions/acknowledged":
            self._acknowledged(params)
        elif method.endswith("/list_changed"):
            channel = method.split("/")[1]
            if self.version == LEGACY or channel in self._subscription(params)[0]:
                self._noticed(channel)

    def _acknowledged(self, params: Json) -> None:
        covered, granted = self._subscription(params)
        fields = child(params, "notifications")
        covered |= {channel for channel, field in _FIELDS.items() if fields.get(field) is True}
        granted(covered)

    def _subscription(self, params: Json) -> tuple[set[str], Callable[[set[str]], None]]:
        found = child(params, "_meta").get(f"{_PREFIX}/subscriptionId")
        nobody: tuple[set[str], Callable[[set[str]], None]] = set(), lambda _: None
        return self._granted.get(found, nobody) if isinstance(found, str) else nobody

    def _next_id(self) -> str:
        self._count += 1
        return f"request-{self._count}"

    def _headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        if not isinstance(self.wire, Web) or method == "initialize":
            return {}
        if self.version == LEGACY:
            return {"mcp-protocol-version": LEGACY}
        more = {"mcp-name": str(params[_NAMED[method]])} if method in _NAMED else {}
        if method == "tools/call" and (tool := self._tools.get(str(params["name"]))):
            more |= mirrored.headers(tool, child(params, "arguments"))
        told = {name: _header(value) for name, value in more.items()}
        return {"mcp-protocol-version": MODERN, "mcp-method": method, **told}


def _header(value: str) -> str:
    if value.isascii() and value.isprintable() and value == value.strip():
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


@asynccontextmanager
async def connected(
    target: Target, link: Any, token: str | None, speech: Speech
) -> AsyncGenerator[None]:
    """Give the speech its wire: to ``link`` in this process, else to where the target is."""
    if link is not None:
        opened: AbstractAsyncContextManager[Wire] = memory(link, speech.heard)
    elif target.command is not None:
        own = {"RELIST_TOKEN": token} if token else {}
        opened = process([*target.command], {**os.environ, **target.env, **own}, speech.heard)
    else:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        opened = web(target.url or "", headers, speech.heard)
    async with opened as speech.wire:
        yield
