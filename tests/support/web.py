"""A scripted Streamable HTTP server inside an httpx2 transport: no socket, so time can be virtual.

The brain decides what is answered; this decides how: statuses, sessions, streams, cuts.
"""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import httpx2

from relist_mcp.targets import Http
from support.brain import LEGACY, Brain, Frame

Fault = httpx2.Response | Exception | None


class Stream(httpx2.AsyncByteStream):
    """The body of a stream of server-sent events."""

    def __init__(self, on_close: Callable[["Stream"], None]) -> None:
        self._chunks: list[bytes | Exception | None] = []
        self._more = anyio.Event()
        self._on_close = on_close
        self.open = True

    def _put(self, chunk: bytes | Exception | None) -> None:
        self._chunks.append(chunk)
        self._more.set()

    def send(self, *frames: Frame, event_id: str | None = None) -> None:
        """Send frames as events, all in one chunk."""
        head = "" if event_id is None else f"id: {event_id}\n"
        self._put("".join(f"{head}data: {json.dumps(frame)}\n\n" for frame in frames).encode())

    def prime(self, event_id: str, retry_ms: int) -> None:
        """An event without data: the client may resume from here."""
        self._put(f"id: {event_id}\nretry: {retry_ms}\ndata:\n\n".encode())

    def send_bytes(self, chunk: bytes) -> None:
        """Send anything."""
        self._put(chunk)

    def end(self) -> None:
        """End in good order."""
        self._put(None)

    def cut(self) -> None:
        """Break off."""
        self._put(httpx2.ReadError("scripted"))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            while not self._chunks:
                self._more = anyio.Event()
                await self._more.wait()
            chunk = self._chunks.pop(0)
            if isinstance(chunk, Exception):
                raise chunk
            if chunk is None:
                return
            yield chunk

    async def aclose(self) -> None:
        if self.open:
            self.open = False
            self._on_close(self)


class Web(httpx2.AsyncBaseTransport):
    """Serves a ``Brain`` over HTTP. ``fault`` may answer a request in its place, or raise.

    ``streaming``: methods that are answered on a stream of events instead of in one piece.
    """

    def __init__(self, brain: Brain) -> None:
        self.brain = brain
        self.sessions: set[str] = set()
        self.with_session = True
        self.with_get = True
        self.down = False
        self.streaming: set[str] = set()
        self.fault: Callable[[httpx2.Request, Frame], Fault] = lambda _, __: None
        self.requests: list[tuple[str, Frame, httpx2.Headers]] = []
        self.streams: list[Stream] = []  # those of GET
        self.bodies: dict[Any, Stream] = {}  # those of POST, by request id
        self.waiting: dict[Any, anyio.Event] = {}  # held requests, by id
        self._issued = 0

    @property
    def target(self) -> Http:
        """What a client connects to."""
        return Http("http://scripted.test/mcp", {"authorization": "Bearer s3cret"}, lambda: self)

    def verbs(self, verb: str) -> list[httpx2.Headers]:
        """The headers of all requests with this verb."""
        return [headers for found, _, headers in self.requests if found == verb]

    def forget_sessions(self) -> None:
        """The server was restarted."""
        self.sessions.clear()
        for stream in self.streams:
            if stream.open:
                stream.end()

    async def aclose(self) -> None:
        """Shared by all connections, so it stays open."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await anyio.lowlevel.checkpoint()
        content = await request.aread()
        frame: Frame = json.loads(content) if content else {}
        self.requests.append((request.method, frame, request.headers))
        self.brain.stir()
        fault = self.fault(request, frame)
        if self.down:
            fault = httpx2.ConnectError("scripted")
        if isinstance(fault, Exception):
            raise fault
        if fault is not None:
            return fault
        session = request.headers.get("mcp-session-id")
        if session is not None and session not in self.sessions:
            return self.refusal(404, -32600)
        if request.method == "GET":
            return self._get()
        if request.method == "DELETE":
            self.sessions.discard(session or "")
            return httpx2.Response(200)
        return await self._post(frame)

    def refusal(self, status: int, code: int | None = None, **headers: str) -> httpx2.Response:
        """A refusal, with a JSON-RPC error in it if there is a code."""
        if code is None:
            return httpx2.Response(status, headers=headers, text="<html>no</html>")
        body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": "scripted"}}
        return httpx2.Response(status, headers=headers, json=body)

    def _get(self) -> httpx2.Response:
        if not self.with_get:
            return httpx2.Response(405)
        stream = Stream(self._closed)
        self.streams.append(stream)
        return self._events(stream)

    async def _post(self, frame: Frame) -> httpx2.Response:
        answer = self.brain.take(frame)
        if "method" not in frame or "id" not in frame:
            return httpx2.Response(202)
        method, request_id = frame["method"], frame["id"]
        headers = {}
        if method == "initialize" and self.brain.era == LEGACY and self.with_session:
            self._issued += 1
            headers["mcp-session-id"] = f"session-{self._issued}"
            self.sessions.add(headers["mcp-session-id"])
        if method in self.streaming or method == "subscriptions/listen":
            return self._answer_on_stream(frame, answer)
        if answer is None:
            waiting = self.waiting[request_id] = anyio.Event()
            self.brain.stir()
            await waiting.wait()
            answer = self.brain.answer(frame)
        return httpx2.Response(200, headers=headers, json=answer)

    def _answer_on_stream(self, frame: Frame, answer: Frame | None) -> httpx2.Response:
        if frame["method"] == "subscriptions/listen" and answer is not None:
            return httpx2.Response(200, json=answer)
        stream = self.bodies[frame["id"]] = Stream(self._closed)
        if frame["method"] == "subscriptions/listen":
            stream.send(self.brain.acknowledgement(frame))
        elif answer is not None:
            stream.send(answer)
            stream.end()
        self.brain.stir()
        return self._events(stream)

    @staticmethod
    def _events(stream: Stream) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=stream)

    def _closed(self, _: Stream) -> None:
        self.brain.stir()

    def release(self, request: Frame) -> None:
        """Answer a held request as it would have been answered."""
        self.waiting[request["id"]].set()

    def change(self) -> None:
        """Tell the client that the tools have changed, on whatever carries notices."""
        if self.brain.era == LEGACY:
            self.streams[-1].send(self.brain.change())
        else:
            self.bodies[self.brain.listens[-1]["id"]].send(self.brain.change())
