"""What a server process under test is told, and how it misbehaves over HTTP: the process's side.

``obey`` connects to the test and performs its commands. ``Unruly`` is an ASGI application around
another one, of which it knows nothing: it refuses, tears and ends exchanges when told to.
"""

import json
import os
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from contextlib import suppress
from inspect import isawaitable
from typing import Any

import anyio
import uvicorn
from anyio.streams.buffered import BufferedByteReceiveStream
from attrs import define, field
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

Hello = MutableMapping[str, Any]
_LINE_MAX = 65_536  # bytes of a command
_SSE = b"text/event-stream"
_SESSION = b"mcp-session-id"
_TORN = b'event: message\ndata: {"jsonrpc": "2.0", "method": "notifications/tools/list_ch'
_NO_SESSION = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no session"}}


async def obey(port: int, hello: Hello, perform: Callable[..., Awaitable[Any]]) -> None:
    """Say hello to the test on ``port``, then do what it says. The process ends with the test."""
    with suppress(OSError, anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
        test = await anyio.connect_tcp("127.0.0.1", port)
        lines = BufferedByteReceiveStream(test)
        answer: Any = {"pid": os.getpid(), **hello}
        while True:
            await test.send(json.dumps(answer).encode() + b"\n")
            command = json.loads(await lines.receive_until(b"\n", _LINE_MAX))
            answer = await perform(**command)
    os._exit(0)


async def serve(
    app: ASGIApp, port: int, started: Callable[[int], Coroutine[Any, Any, None]]
) -> None:
    """Serve HTTP on this port (0: a free one); ``started`` is told which once it is open."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port) as listener:
        sock = listener.listeners[0].extra(anyio.abc.SocketAttribute.raw_socket)
        options: Any = {"log_level": "critical", "lifespan": "auto", "timeout_keep_alive": 3_600}
        server = uvicorn.Server(uvicorn.Config(app, **options))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(started, sock.getsockname()[1])
            await server.serve(sockets=[sock])


@define
class _Fault:
    """See ``Unruly.refuse``."""

    of: str
    status: int
    times: int
    unless: str
    headers: dict[str, str]

    def meets(self, exchange: "_Exchange", scope: Scope) -> bool:
        """Whether this exchange is to be refused."""
        shown = dict(scope["headers"]).get(b"authorization", b"").decode()
        meant = self.of in (exchange.what, scope["method"], "*")
        return meant and self.times > 0 and not (self.unless and shown == self.unless)


@define(eq=False)
class _Exchange:
    """One that is under way. Once it was made to end, its application sees the client gone."""

    what: str
    send: Send
    over: bool = False
    scope: anyio.CancelScope = field(factory=anyio.CancelScope)

    async def end(self, how: str) -> None:
        """See ``Unruly.end``."""
        self.over = True
        torn = how == "tear"
        await self.send(
            {"type": "http.response.body", "body": _TORN if torn else b"", "more_body": torn}
        )
        self.scope.cancel()

    async def sending(self, message: Message) -> None:
        """What the application sends."""
        if not self.over:
            await self.send(message)

    async def receive(self, receive: Receive) -> Message:
        """What the application hears next."""
        if not self.over:
            with anyio.CancelScope() as self.scope:
                return await receive()
        return {"type": "http.disconnect"}


class Unruly:
    """Misbehaves in front of ``app``, and lets nobody in before it was told to behave.

    An exchange is known by its JSON-RPC method, else by its verb.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._faults: list[_Fault] = []
        self._open: list[_Exchange] = []
        self._sessions: set[bytes] = set()
        self._expired: set[bytes] = set()
        self._refused = 0
        self._moved = anyio.Event()
        self.begun = anyio.Event()

    # --- what it is told --------------------------------------------------------------------------

    async def perform(self, op: str, **given: Any) -> Any:
        """Do what the test says: one of the following."""
        done = getattr(self, op)(**given)
        return await done if isawaitable(done) else done

    def behave(self) -> None:
        """Do nothing bad any more."""
        self._faults.clear()
        self._sessions.clear()
        self._expired.clear()
        self._refused = 0
        self.begun.set()

    def refuse(
        self, of: str, status: int, times: int = 1_000_000, unless: str = "", **headers: str
    ) -> None:
        """Answer the next so many such exchanges with this status; 0 breaks them off in an event.

        ``of``: a JSON-RPC method, a verb, or * for all. ``unless`` this authorization is shown.
        """
        self._faults.append(_Fault(of, status, times, unless, headers))

    def refused(self) -> int:
        """How many exchanges met their fault."""
        return self._refused

    async def end(self, of: str, how: str) -> int:
        """End what is under way: *close* it in good order, or *tear* it in the middle of an event.

        Returns how many there were.
        """
        ended = [exchange for exchange in self._open if exchange.what == of]
        for exchange in ended:
            await exchange.end(how)
        return len(ended)

    def expire(self) -> None:
        """Know none of the sessions that were begun so far."""
        self._expired |= self._sessions

    async def only(self, of: str, count: int) -> None:
        """Return once no more than so many such exchanges are under way."""
        while sum(exchange.what == of for exchange in self._open) > count:
            await self._moved.wait()

    async def quiet(self) -> None:
        """Return once nothing is under way."""
        while self._open:
            await self._moved.wait()

    # --- what it does -----------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        await self.begun.wait()
        request = Request(scope, receive)
        try:
            body = await request.body()
        except ClientDisconnect:
            return
        exchange = _Exchange(_method_of(body) or scope["method"], send)
        self._open.append(exchange)
        try:
            await self._answer(exchange, body, scope, receive, send)
        finally:
            self._open.remove(exchange)
            self._moved.set()
            self._moved = anyio.Event()

    async def _answer(
        self, exchange: _Exchange, body: bytes, scope: Scope, receive: Receive, send: Send
    ) -> None:
        headers = dict(scope["headers"])
        if headers.get(_SESSION) in self._expired:
            response = Response(json.dumps(_NO_SESSION), 404, media_type="application/json")
            await response(scope, receive, send)
            return
        fault = next((one for one in self._faults if one.meets(exchange, scope)), None)
        if fault is None:
            await self._pass_on(exchange, body, scope, receive)
            return
        fault.times -= 1
        self._refused += 1
        if fault.status:
            await Response(None, fault.status, fault.headers)(scope, receive, send)
            return
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-type", _SSE)]}
        )
        await exchange.end("tear")

    async def _pass_on(
        self, exchange: _Exchange, body: bytes, scope: Scope, receive: Receive
    ) -> None:
        unread = [body]

        async def receive_again() -> Message:
            if unread:
                return {"type": "http.request", "body": unread.pop(), "more_body": False}
            return await exchange.receive(receive)

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._sessions.update(v for k, v in message["headers"] if k == _SESSION)
            await exchange.sending(message)

        await self._app(scope, receive_again, sending)


def _method_of(body: bytes) -> str | None:
    with suppress(ValueError):
        method = json.loads(body)["method"] if body else None
        return method if isinstance(method, str) else None
    return None
