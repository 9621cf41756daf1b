"""The stdio end: the client starts a relay process, which brings its bytes here over loopback."""

import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from math import inf
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from relist_conformance import wire
from relist_conformance.ends import ChannelOutput, Closed, Hear, Opened, Received
from relist_conformance.outputs import Send

_RELAY = Path(__file__).with_name("relay.py")
_TOKEN_BYTES = 256
_TOKEN_PATIENCE_S = 10
_GONE = (
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    anyio.IncompleteRead,
    anyio.DelimiterNotFound,  # a line longer than any message: whoever sends it is hung up on
)


class StdioEnd:
    """One play's relays. Each process that the client starts is a channel."""

    def __init__(self, port: int, token: str, hear: Hear) -> None:
        self._port = port
        self._token = token
        self._hear = hear
        self._count = 0
        self._outgoing: dict[str, MemoryObjectSendStream[bytes]] = {}

    @property
    def target(self) -> Mapping[str, Any]:
        """The command that the client shall start."""
        relay = [sys.executable, "-I", "-S", str(_RELAY), str(self._port), self._token]
        return {"transport": "stdio", "command": relay, "env": {}}

    def perform(self, output: ChannelOutput) -> None:
        """Write a line, or hang up (which ends the relay process)."""
        stream = self._outgoing.get(output.channel)
        if stream is None:
            return
        if isinstance(output, Send):
            with suppress(anyio.BrokenResourceError):
                stream.send_nowait(_line(output))
        else:
            self._outgoing.pop(output.channel).close()

    def close(self) -> None:
        """Hang up on all relays."""
        while self._outgoing:
            self._outgoing.popitem()[1].close()

    async def serve(
        self, lines: BufferedByteReceiveStream, connection: anyio.abc.SocketStream
    ) -> None:
        """Carry one relay's connection until either side hangs up."""
        self._count += 1
        channel = f"stdio-{self._count}"
        # Without a limit, since the referee never waits; its scripts are short.
        outgoing, queue = anyio.create_memory_object_stream[bytes](inf)
        self._outgoing[channel] = outgoing
        with queue:
            await self._hear(Opened(channel, "stdio"))
            await self._carry(channel, queue, lines, connection)
        if self._outgoing.pop(channel, None) is not None:
            outgoing.close()
            await self._hear(Closed(channel))

    async def _carry(
        self,
        channel: str,
        queue: MemoryObjectReceiveStream[bytes],
        lines: BufferedByteReceiveStream,
        connection: anyio.abc.SocketStream,
    ) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_write, queue, connection, tasks.cancel_scope)
            with suppress(*_GONE):
                while True:
                    line = await lines.receive_until(b"\n", wire.MAX_MESSAGE_BYTES)
                    if line.strip():
                        await self._hear(Received(channel, wire.parse(line)))
            tasks.cancel_scope.cancel()


def _line(output: Send) -> bytes:
    return wire.text_of(output.message if output.text is None else output.text) + b"\n"


async def _write(
    queue: MemoryObjectReceiveStream[bytes],
    connection: anyio.abc.SocketStream,
    scope: anyio.CancelScope,
) -> None:
    with suppress(*_GONE):
        async for line in queue:
            await connection.send(line)
    scope.cancel()


class StdioHub:
    """The loopback port that all relays of all plays come to; their token says whose they are."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._ends: dict[str, StdioEnd] = {}

    @asynccontextmanager
    async def open_end(self, token: str, hear: Hear) -> AsyncGenerator[StdioEnd, None]:
        """A stdio end for one play; leaving the block hangs up on its relays."""
        end = self._ends[token] = StdioEnd(self._port, token, hear)
        try:
            yield end
        finally:
            del self._ends[token]
            end.close()

    async def accept(self, connection: anyio.abc.SocketStream) -> None:
        """Carry one relay's connection to the play it belongs to."""
        async with connection:
            lines = BufferedByteReceiveStream(connection)
            token = b""
            with anyio.move_on_after(_TOKEN_PATIENCE_S), suppress(*_GONE):
                token = await lines.receive_until(b"\n", _TOKEN_BYTES)
            end = self._ends.get(token.decode(errors="replace"))
            if end is not None:
                await end.serve(lines, connection)


async def serve_stdio(*, task_status: anyio.abc.TaskStatus[StdioHub]) -> None:
    """Open the port of the relays and accept them until cancelled; starts with the hub."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        hub = StdioHub(listener.extra(anyio.abc.SocketAttribute.local_port))
        task_status.started(hub)
        await listener.serve(hub.accept)
