"""A scripted server at the other end of an in-memory pipe, opened anew for each epoch."""

import json
import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from relist_mcp.targets import Streams
from support.brain import Brain, Frame

_Read = MemoryObjectReceiveStream[SessionMessage | Exception]
_Write = MemoryObjectSendStream[SessionMessage]


class Pipe:
    """Serves a ``Brain``. ``send`` is synchronous, so that frames follow each other at once.

    The next ``refusals`` attempts to open it fail; while ``deaf`` it reads nothing; ``grant`` is
    what an acknowledgement grants, if not all that was asked for.
    """

    def __init__(self, brain: Brain) -> None:
        self.brain = brain
        self.opened = 0
        self.open = 0
        self.refusals = 0
        self.deaf = False
        self.grant: Frame | None = None
        self._out: MemoryObjectSendStream[SessionMessage | Exception] | None = None

    @property
    def target(self) -> Streams:
        """What a client connects to."""
        return Streams(self._connect)

    @asynccontextmanager
    async def _connect(self) -> AsyncGenerator[tuple[_Read, _Write]]:
        if self.refusals > 0:
            self.refusals -= 1
            raise ConnectionRefusedError("scripted")
        out, read = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
        write, into = anyio.create_memory_object_stream[SessionMessage](0)
        self.opened += 1
        self.open += 1
        self._out = out
        self.brain.listens.clear()
        self.brain.held.clear()
        try:
            async with out, read, write, into, anyio.create_task_group() as tasks:
                tasks.start_soon(self._serve, into, out)
                yield read, write
                tasks.cancel_scope.cancel()
        finally:
            self.open -= 1

    async def _serve(
        self,
        into: MemoryObjectReceiveStream[SessionMessage],
        out: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        if self.deaf:
            await anyio.sleep_forever()
        async for item in into:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            frame = json.loads(text)
            answer = self.brain.take(frame)
            if out is not self._out:
                return
            if answer is not None:
                self.send(answer)
            if frame.get("method") == "subscriptions/listen" and self.brain.listens:
                self.send(self.brain.acknowledgement(frame, self.grant))

    def send(self, *frames: Frame) -> None:
        """Send frames, one right behind the other."""
        for frame in frames:
            self.send_text(json.dumps(frame))

    def send_text(self, text: str) -> None:
        """Send a line, which may be garbage: then the transport hands up an exception."""
        assert self._out is not None
        item: Any
        try:
            item = SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
        except ValueError as error:
            item = error
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody listens
            self._out.send_nowait(item)

    def reply(self, request: Frame) -> None:
        """Answer a held request as it would have been answered."""
        answer = self.brain.answer(request)
        assert answer is not None
        self.send(answer)

    def cut(self) -> None:
        """The process is gone."""
        assert self._out is not None
        self._out.close()
