"""How the scripted client reaches a server: memory, a process, or HTTP. Decoded messages both ways.

A link is one connection. ``messages`` yields what the server sends and ends when it is lost.
"""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from math import inf
from subprocess import DEVNULL, PIPE
from typing import Any

import anyio
import httpx2
from anyio.abc import ByteSendStream, ObjectSendStream, TaskGroup
from anyio.streams.buffered import BufferedByteReceiveStream

Message = dict[str, Any]
GONE = (
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    anyio.IncompleteRead,
    httpx2.TransportError,
    OSError,
)


class Link:
    """A connection. ``lost`` is set when it broke."""

    def __init__(self) -> None:
        self.lost = anyio.Event()
        self.to_client, self.messages = anyio.create_memory_object_stream[Message](inf)

    async def send(self, message: Message) -> None:
        raise NotImplementedError

    async def give_up(self, request_id: object, modern: bool) -> None:
        """Cancel a request, the way the transport and the era have it."""
        params = {"requestId": request_id, "reason": "too slow"}
        await self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    async def listen(self) -> None:
        """Open a stream for notices where the era has one beside the requests."""


class MemoryPipe(Link):
    def __init__(self, receive: Any, send: ObjectSendStream[Message]) -> None:
        super().__init__()
        self.receive, self.sending = receive, send

    async def send(self, message: Message) -> None:
        await self.sending.send(message)

    async def read(self) -> None:
        async for message in self.receive:
            self.to_client.send_nowait(message)
        self.lost.set()


class ProcessPipe(Link):
    def __init__(self, process: anyio.abc.Process) -> None:
        super().__init__()
        assert process.stdin
        assert process.stdout
        self.stdin: ByteSendStream = process.stdin
        self.lines = BufferedByteReceiveStream(process.stdout)

    async def send(self, message: Message) -> None:
        await self.stdin.send(json.dumps(message).encode() + b"\n")

    async def read(self) -> None:
        with suppress(*GONE):
            while True:
                line = await self.lines.receive_until(b"\n", 1 << 20)
                self.to_client.send_nowait(json.loads(line))
        self.lost.set()


class HttpLink(Link):
    def __init__(self, client: httpx2.AsyncClient, url: str, tasks: TaskGroup) -> None:
        super().__init__()
        self.client, self.url, self.tasks = client, url, tasks
        self.session: str | None = None
        self.open: dict[object, anyio.CancelScope] = {}

    def headers(self, message: Message | None) -> dict[str, str]:
        found = {"accept": "application/json, text/event-stream"}
        if self.session is not None:
            found |= {"mcp-session-id": self.session, "mcp-protocol-version": "2025-11-25"}
        params: Message = (message or {}).get("params") or {}
        meta: Message = params.get("_meta") or {}
        version = meta.get("io.modelcontextprotocol/protocolVersion")
        if message is not None and version is not None:
            found |= {"mcp-protocol-version": version, "mcp-method": message["method"]}
            if message["method"] == "tools/call":
                found["mcp-name"] = params["name"]
        return found

    async def send(self, message: Message) -> None:
        if "id" in message and "method" in message:
            self.tasks.start_soon(self.post, message)
        else:
            await self.post(message)

    async def give_up(self, request_id: object, modern: bool) -> None:
        if modern:
            self.open[request_id].cancel()
        else:
            await super().give_up(request_id, modern)

    async def post(self, message: Message) -> None:
        with anyio.CancelScope() as scope, suppress(*GONE):
            self.open[message.get("id")] = scope
            headers = self.headers(message)
            async with self.client.stream(
                "POST", self.url, json=message, headers=headers
            ) as answer:
                self.session = answer.headers.get("mcp-session-id", self.session)
                if answer.status_code == 404 and self.session is not None:
                    self.lost.set()
                await self.read(answer, message)
            return
        if message.get("method") == "subscriptions/listen":
            self.lost.set()

    async def read(self, answer: httpx2.Response, message: Message | None) -> None:
        if answer.headers.get("content-type") == "text/event-stream":
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    self.to_client.send_nowait(json.loads(line[6:]))
        elif body := await answer.aread():
            self.to_client.send_nowait(json.loads(body))

    async def listen(self) -> None:
        opened = anyio.Event()
        self.tasks.start_soon(self.get, opened)
        await opened.wait()

    async def get(self, opened: anyio.Event) -> None:
        with suppress(*GONE):
            headers = self.headers(None)
            async with self.client.stream("GET", self.url, headers=headers) as answer:
                opened.set()
                await self.read(answer, None)
        self.lost.set()


@asynccontextmanager
async def open_link(target: Mapping[str, Any], tasks: TaskGroup) -> AsyncGenerator[Link, None]:
    """Connect to the target of a *connect* command."""
    opened = {"memory": _memory, "stdio": _process, "http": _http}[target["transport"]]
    async with opened(target, tasks) as link:
        with link.to_client, link.messages:
            yield link


@asynccontextmanager
async def _memory(target: Mapping[str, Any], tasks: TaskGroup) -> AsyncGenerator[Link, None]:
    receive, send = await target["link"].connect()
    with receive, send:
        pipe = MemoryPipe(receive, send)
        tasks.start_soon(pipe.read)
        yield pipe


@asynccontextmanager
async def _process(target: Mapping[str, Any], tasks: TaskGroup) -> AsyncGenerator[Link, None]:
    async with await anyio.open_process(
        target["command"], stdin=PIPE, stdout=PIPE, stderr=DEVNULL
    ) as process:
        pipe = ProcessPipe(process)
        tasks.start_soon(pipe.read)
        try:
            yield pipe
        finally:
            with anyio.CancelScope(shield=True):
                await pipe.stdin.aclose()
                await process.wait()


@asynccontextmanager
async def _http(target: Mapping[str, Any], tasks: TaskGroup) -> AsyncGenerator[Link, None]:
    async with httpx2.AsyncClient(timeout=None) as client:
        yield HttpLink(client, target["url"], tasks)
