"""The client of the `mcp` SDK 1.x (1.24 or later), used as its documentation tells its users.

Run this file by its path with the Python of an environment that has `mcp<2`; it needs no more.
One `ClientSession` stays open; lists are read page by page at each need; the session keeps none.
"""

import json
import sys
from collections.abc import Mapping
from datetime import timedelta
from importlib import import_module
from importlib.metadata import version
from typing import Any, cast

import anyio
import anyio.to_thread
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

if not version("mcp").startswith("1."):
    sys.exit(f"this driver is for mcp 1.x; here is mcp {version('mcp')}")

Json = Mapping[str, Any]
types: Any = import_module("mcp.types")  # by name: type checkers see an SDK that has it no more
_OPS = ("hello", "connect", "need", "believe", "call", "idle", "stop")
_KINDS = ("tools", "prompts", "resources", "resource_templates")
_CLIENT = {"name": "mcp.ClientSession", "version": version("mcp"), "level": "full"}
_SPOKEN = {"transports": ("stdio", "http"), "revisions": (types.LATEST_PROTOCOL_VERSION,)}


class Connection:
    """One `ClientSession`, open until stopped."""

    def __init__(self, target: Json, timeout_ms: int | None) -> None:
        self.usable, self.ended, self.scope = anyio.Event(), anyio.Event(), anyio.CancelScope()
        self.waiting: set[anyio.CancelScope] = set()
        if target["transport"] == "http":
            self._transport: Any = streamable_http_client(target["url"])
        else:
            command, *args = target["command"]
            server = StdioServerParameters(command=command, args=args, env=target.get("env"))
            self._transport = stdio_client(server)
        self._timeout = None if timeout_ms is None else timedelta(milliseconds=timeout_ms)
        self._session: Any = None

    async def run(self) -> None:
        """Hold the session open; whatever ends it is told on stderr."""
        try:
            with self.scope:
                async with self._transport as streams:
                    session = cast("Any", ClientSession)(*streams[:2], self._timeout)
                    async with session as self._session:
                        await self._session.initialize()
                        self.usable.set()
                        await anyio.sleep_forever()
        except Exception as error:
            print(f"connection ended: {error!r}", file=sys.stderr)
        finally:
            self.usable.set()
            self.ended.set()

    async def need(self, kind: str) -> Json:
        """List now, all pages, in the loop that the documentation shows."""
        list_page = getattr(self._session, f"list_{kind}")
        field = "resourceTemplates" if kind == "resource_templates" else kind
        items: list[Json] = []
        cursor: str | None = None
        while True:
            page = await list_page(params=types.PaginatedRequestParams(cursor=cursor))
            for one in getattr(page, field):
                items.append({"name": one.name, "description": one.description or ""})
            if not (cursor := page.nextCursor):
                return {"items": items}

    async def call(self, name: str, arguments: Json) -> Json:
        """Call a tool."""
        try:
            result = await self._session.call_tool(name, dict(arguments))
        except Exception as error:
            return {"outcome": "error", "detail": str(error)}
        return {"outcome": "error" if result.isError else "result"}

    async def stop(self) -> None:
        """End the commands that wait, and then the session."""
        for scope in self.waiting:
            scope.cancel()
        self.scope.cancel()
        await self.ended.wait()


class Host:
    """The driver contract on stdin and stdout."""

    def __init__(self) -> None:
        self._connections: dict[str, Connection] = {}

    async def serve(self) -> None:
        """Until stdin closes; each command in its own task."""
        async with anyio.create_task_group() as self._tasks:
            while line := await anyio.to_thread.run_sync(sys.stdin.buffer.readline):
                self._tasks.start_soon(self._answer, json.loads(line))
            await self._stop(None)

    async def _answer(self, command: Json) -> None:
        try:
            reply = {"ok": await self._perform(command)}
        except Exception as error:
            code = "unsupported" if isinstance(error, NotImplementedError) else None
            reply = {"error": {"message": str(error) or repr(error), "code": code}}
        print(json.dumps({"id": command["id"], **reply}), flush=True)

    async def _perform(self, command: Json) -> Json:
        op = command["op"]
        if op == "hello":
            return {"contract": 1, **_CLIENT, **_SPOKEN, "ops": _OPS, "kinds": _KINDS}
        if op not in _OPS:
            raise NotImplementedError("unknown op")
        if op == "stop":
            return await self._stop(command.get("connection"))
        if op == "connect":
            new = Connection(command["target"], command.get("request_timeout_ms"))
            self._connections[command["connection"]] = new
            self._tasks.start_soon(new.run)
            await new.usable.wait()
            return {}
        if (connection := self._connections.get(command["connection"])) is None:
            raise RuntimeError("unknown connection")
        if op == "believe":
            return {"items": None, "state": "unknown"}
        with anyio.CancelScope() as scope:
            connection.waiting.add(scope)
            await connection.usable.wait()
            if op == "need":
                return await connection.need(command["kind"])
            if op == "call":
                return await connection.call(command["name"], command.get("arguments") or {})
            return {"idle": None}
        raise RuntimeError("the connection was stopped")

    async def _stop(self, name: str | None) -> Json:
        for each in [*self._connections] if name is None else [name]:
            if connection := self._connections.pop(each, None):
                await connection.stop()
        return {}


if __name__ == "__main__":
    anyio.run(Host().serve)
