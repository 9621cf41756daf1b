"""The memory end: clients in this process, over plain object streams of decoded JSON messages."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from math import inf
from typing import Any

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from relist.check.history import mapping
from relist_conformance import wire
from relist_conformance.ends import ChannelOutput, Closed, Hear, Opened, Received
from relist_conformance.outputs import Send

Message = dict[str, Any] | wire.Unreadable
"""What a client is given: a JSON object, or what takes the place of a text that is none."""

_BUFFERED = 16


class MemoryLink:
    """Where a client in this process connects, any number of times; ``target["link"]``."""

    def __init__(self, hear: Hear, tasks: TaskGroup) -> None:
        self._hear = hear
        self._tasks = tasks
        self._count = 0
        self._to_client: dict[str, MemoryObjectSendStream[Message]] = {}
        self._from_client: dict[str, MemoryObjectReceiveStream[Message]] = {}

    @property
    def target(self) -> Mapping[str, Any]:
        """For a driver in this process."""
        return {"transport": "memory", "link": self}

    async def connect(
        self,
    ) -> tuple[MemoryObjectReceiveStream[Message], MemoryObjectSendStream[Message]]:
        """A new connection to the referee, as (receive, send). Close both when done.

        Messages are JSON objects (or ``Unreadable``, to a client). The receive stream ends when the
        referee breaks the connection.
        """
        self._count += 1
        channel = f"memory-{self._count}"
        # Without a limit towards the client, since the referee never waits; its scripts are short.
        to_client, client_receives = anyio.create_memory_object_stream[Message](inf)
        client_sends, from_client = anyio.create_memory_object_stream[Message](_BUFFERED)
        self._to_client[channel] = to_client
        self._from_client[channel] = from_client
        await self._hear(Opened(channel, "memory"))
        self._tasks.start_soon(self._pump, channel, from_client)
        return client_receives, client_sends

    def perform(self, output: ChannelOutput) -> None:
        """Send a message, or end the connection."""
        stream = self._to_client.get(output.channel)
        if stream is None:
            return
        if isinstance(output, Send):
            try:
                stream.send_nowait(_delivered(output))
            except anyio.BrokenResourceError:
                self.close(output.channel)
        else:
            self.close(output.channel)

    def close(self, channel: str) -> None:
        """End one connection on our side."""
        self._to_client.pop(channel).close()
        self._from_client.pop(channel).close()

    def close_all(self) -> None:
        """End every connection on our side."""
        for channel in list(self._to_client):
            self.close(channel)

    async def _pump(self, channel: str, stream: MemoryObjectReceiveStream[Message]) -> None:
        try:
            async for message in stream:
                await self._hear(Received(channel, _copied(message)))
        except (anyio.ClosedResourceError, anyio.EndOfStream):
            pass
        if channel in self._to_client:
            self.close(channel)
            await self._hear(Closed(channel))


@asynccontextmanager
async def open_memory_end(hear: Hear) -> AsyncGenerator[MemoryLink, None]:
    """A memory end for one play; leaving the block ends its connections."""
    async with anyio.create_task_group() as tasks:
        link = MemoryLink(hear, tasks)
        try:
            yield link
        finally:
            link.close_all()
            tasks.cancel_scope.cancel()


def _delivered(output: Send) -> Any:
    """What a client reads of it; without the bounds that hold for what clients send."""
    text = wire.text_of(output.message if output.text is None else output.text)
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return wire.Unreadable(text[:200].decode(errors="replace"))
    found = mapping(value)
    return wire.Unreadable(repr(value)[:200]) if found is None else dict(found)


def _copied(message: Any) -> Any:
    """What the referee would read: neither can change what the other holds."""
    return wire.parse(wire.encode(message))
