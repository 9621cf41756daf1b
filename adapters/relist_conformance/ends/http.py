"""The HTTP end: one server on loopback for all plays, a path for each, one channel per exchange."""

import logging
import socket
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from math import inf
from typing import Any
from urllib.parse import urlsplit

import anyio
import uvicorn
from anyio.abc import TaskStatus
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope
from starlette.types import Send as SendPart

from relist_conformance import wire
from relist_conformance.ends import ChannelOutput, Closed, Hear, Opened, Received
from relist_conformance.outputs import SSE, URL, ChannelKind, Finish, Send, Status

_KINDS: Mapping[str, ChannelKind] = {"POST": "post", "GET": "get", "DELETE": "delete"}
_LOCAL = ("127.0.0.1", "localhost", "::1")


class HttpEnd:
    """One play's endpoint. Each HTTP exchange is a channel."""

    def __init__(self, url: str, hear: Hear) -> None:
        self._url = url
        self._hear = hear
        self._count = 0
        self._outgoing: dict[str, MemoryObjectSendStream[ChannelOutput]] = {}

    @property
    def target(self) -> Mapping[str, Any]:
        """The URL that the client shall use."""
        return {"transport": "http", "url": self._url}

    def perform(self, output: ChannelOutput) -> None:
        """Hand the output to its exchange."""
        stream = self._outgoing.get(output.channel)
        if stream is None:
            return
        stream.send_nowait(output)
        if not isinstance(output, Send) and not _begins_stream(output):
            self._outgoing.pop(output.channel).close()

    def close(self) -> None:
        """Cut all exchanges."""
        while self._outgoing:
            self._outgoing.popitem()[1].close()

    async def exchange(self, kind: ChannelKind, request: Request, send: SendPart) -> None:
        """Carry one exchange until it is answered, cut, or the client goes away."""
        try:
            body = await _read(request)
        except ClientDisconnect:
            return
        self._count += 1
        channel = f"{kind}-{self._count}"
        # Without a limit, since the referee never waits; its scripts are short.
        outgoing, queue = anyio.create_memory_object_stream[ChannelOutput](inf)
        self._outgoing[channel] = outgoing
        with queue:
            told = {**request.headers, URL: self._url}
            await self._hear(Opened(channel, kind, told))
            if kind == "post":
                await self._hear(Received(channel, wire.parse(body)))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_watch, request, tasks.cancel_scope)
                await _answer(queue, request, send)
                tasks.cancel_scope.cancel()
        if self._outgoing.pop(channel, None) is not None:
            outgoing.close()
            await self._hear(Closed(channel))


async def _watch(request: Request, scope: anyio.CancelScope) -> None:
    """Ends the scope when the client goes away."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


def _begins_stream(output: ChannelOutput) -> bool:
    return isinstance(output, Status) and output.headers.get("content-type") == SSE


async def _read(request: Request) -> bytes:
    """The request body, cut where it is longer than a message may be."""
    body = b""
    async for part in request.stream():
        body = (body + part)[: wire.MAX_MESSAGE_BYTES + 1]
    return body


async def _answer(
    queue: MemoryObjectReceiveStream[ChannelOutput], request: Request, send: SendPart
) -> None:
    """Write outputs to the client. Returning early cuts the connection: the server closes it."""
    async for output in queue:
        match output:
            case Status() if _begins_stream(output):
                await _start_stream(send, output)
            case Status():
                body = wire.text_of(output.body)
                response = Response(body, output.code, output.headers)
                return await response(request.scope, request.receive, send)
            case Send():
                event = _event(output)
                await send({"type": "http.response.body", "body": event, "more_body": True})
            case Finish():
                return await send({"type": "http.response.body", "body": b""})
            case _:
                return


def _event(output: Send) -> bytes:
    """A server-sent event; each line of its text is a data line, which the client joins again."""
    if output.bare:
        return wire.text_of(output.text)
    lines = wire.text_of(output.message if output.text is None else output.text).splitlines()
    data = b"".join(b"data: " + line + b"\n" for line in lines or [b""])
    return b"event: message\n" + data + b"\n"


async def _start_stream(send: SendPart, status: Status) -> None:
    """By hand, unlike other answers: a streaming response cannot be left unfinished on purpose."""
    told = {**status.headers, "cache-control": "no-cache", "x-accel-buffering": "no"}
    headers = [(key.encode(), value.encode()) for key, value in told.items()]
    await send({"type": "http.response.start", "status": status.code, "headers": headers})


class HttpHub:
    """The server of all plays: finds the play by the path and refuses what is not from here."""

    def __init__(self, port: int, path: str = "/{token}/mcp") -> None:
        self._port = port
        self._path = path
        self._ends: dict[str, HttpEnd] = {}

    @asynccontextmanager
    async def open_end(self, token: str, hear: Hear) -> AsyncGenerator[HttpEnd, None]:
        """An HTTP end for one play; leaving the block cuts its exchanges."""
        path = self._path.format(token=token)
        end = self._ends[path] = HttpEnd(f"http://127.0.0.1:{self._port}{path}", hear)
        try:
            yield end
        finally:
            del self._ends[path]
            end.close()

    async def __call__(self, scope: Scope, receive: Receive, send: SendPart) -> None:
        """The ASGI application."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        end = self._ends.get(scope["path"])
        kind = _KINDS.get(request.method)
        if not _is_local(request.headers.get("origin")):
            await Response(status_code=403)(scope, receive, send)
        elif end is None:
            await Response(status_code=404)(scope, receive, send)
        elif kind is None:
            await Response(status_code=405)(scope, receive, send)
        else:
            await end.exchange(kind, request, send)


def _is_local(origin: str | None) -> bool:
    """Whether a browser may have sent this: no page of another host may reach the server."""
    return origin is None or urlsplit(origin).hostname in _LOCAL


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals belong to the program around: a Ctrl-C ends the run, not just this server."""
        yield


async def serve_http(sock: socket.socket, path: str, *, task_status: TaskStatus[HttpHub]) -> None:
    """Serve HTTP on a bound socket until cancelled; starts with the hub. Needs asyncio.

    In ``path`` the word ``{token}`` stands for the play; without it there can be one at a time.
    """
    hub = HttpHub(sock.getsockname()[1], path)
    config = uvicorn.Config(
        hub,
        log_config=None,
        log_level=logging.CRITICAL,  # a cut stream is what a script asked for
        access_log=False,
        lifespan="off",
        ws="none",
        http="h11",
        timeout_keep_alive=3600,
        timeout_graceful_shutdown=1,
    )
    server = _Server(config)

    async def serve() -> None:
        with anyio.CancelScope(shield=True):  # it closes its connections when it is told to exit
            await server.serve(sockets=[sock])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        task_status.started(hub)
        try:
            await anyio.sleep_forever()
        finally:
            server.should_exit = True
