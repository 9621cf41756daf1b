"""Whatever a server may answer, over real transports: a TCP port, or a process behind a pipe.

The answers are made in the test itself. HTTP is written by hand; on a pipe the client starts the
referee's relay, which brings its lines here.
"""

import json
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream
from attrs import field, frozen

import relist_conformance.ends.relay
from relist.values import Wire
from relist_mcp import Http, Stdio
from support.brain import Frame

RELAY = str(Path(relist_conformance.ends.relay.__file__))
_HEAD_MAX = 65_536
_GONE = (
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.DelimiterNotFound,
    anyio.EndOfStream,
    anyio.IncompleteRead,
)


@frozen
class Answer:
    """What to answer. On a pipe only the body counts; ``cut`` ends the connection instead.

    A body that is no bytes is sent as JSON, with the id of the request if it is an object.
    """

    body: Any = b""
    status: int = 200
    headers: dict[str, str] = field(factory=dict[str, str])
    cut: bool = False

    def bytes_for(self, frame: Frame) -> bytes:
        """The body as an answer to this frame."""
        if isinstance(self.body, bytes):
            return self.body
        body: Any = self.body
        if isinstance(body, dict) and "id" in frame:
            body = {"jsonrpc": "2.0", "id": frame["id"], **body}
        return json.dumps(body).encode()


Answers = Callable[[Frame], Answer | None]


@asynccontextmanager
async def raw_server(wire: Wire, answers: Answers) -> AsyncGenerator[Http | Stdio]:
    """What a client connects to while the block runs. ``answers`` None: there is none."""
    serve = _http if wire is Wire.HTTP else _lines

    async def carry(connection: anyio.abc.SocketStream) -> None:
        async with connection:
            with suppress(*_GONE):
                await serve(BufferedByteReceiveStream(connection), connection, answers)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, carry)
        if wire is Wire.HTTP:
            yield Http(f"http://127.0.0.1:{port}/mcp")
        else:
            yield Stdio([sys.executable, "-I", "-S", RELAY, str(port), "raw"])
        tasks.cancel_scope.cancel()


async def _lines(
    heard: BufferedByteReceiveStream, connection: anyio.abc.SocketStream, answers: Answers
) -> None:
    await heard.receive_until(b"\n", _HEAD_MAX)  # the relay's token
    while True:
        frame = json.loads(await heard.receive_until(b"\n", _HEAD_MAX))
        answer = answers(frame)
        if answer is not None and answer.cut:
            return
        if answer is not None:
            await connection.send(answer.bytes_for(frame) + b"\n")


async def _http(
    heard: BufferedByteReceiveStream, connection: anyio.abc.SocketStream, answers: Answers
) -> None:
    while True:
        head = (await heard.receive_until(b"\r\n\r\n", _HEAD_MAX)).decode().lower().split("\r\n")
        told = dict(line.split(": ", 1) for line in head[1:])
        body = await heard.receive_exactly(int(told.get("content-length", "0")))
        frame: Frame = json.loads(body) if body else {}
        answer = answers(frame)
        if answer is None:
            await anyio.sleep_forever()
            raise AssertionError
        if answer.cut:
            return
        content = answer.bytes_for(frame)
        headers = {"content-type": "application/json", **answer.headers}
        lines = [f"HTTP/1.1 {answer.status} x", *(f"{key}: {headers[key]}" for key in headers)]
        top = "\r\n".join([*lines, f"content-length: {len(content)}", "", ""])
        await connection.send(top.encode() + content)
