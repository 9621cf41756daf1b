"""The reference client judged inside this process: over the memory end, in virtual time."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc
import trio.testing
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from relist.policy import Policy
from relist_conformance.drivers.reference import ReferenceConnection
from relist_conformance.ends.memory import MemoryLink
from relist_conformance.play import Played, play
from relist_conformance.script import Case
from relist_mcp import Catalogs, Streams

_Read = MemoryObjectReceiveStream[SessionMessage | Exception]
_Write = MemoryObjectSendStream[SessionMessage]


@asynccontextmanager
async def _transport(link: MemoryLink) -> AsyncGenerator[tuple[_Read, _Write]]:
    """The link as an `mcp` transport."""
    receive, send = await link.connect()
    inward, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outward = anyio.create_memory_object_stream[SessionMessage](0)

    async def hear() -> None:
        async with inward:
            async for message in receive:
                parsed = jsonrpc_message_adapter.validate_python(message, by_name=False)
                await inward.send(SessionMessage(parsed))

    async def speak() -> None:
        async for item in outward:
            await send.send(item.message.model_dump(by_alias=True, mode="json", exclude_unset=True))

    async with receive, send, read, write, outward, anyio.create_task_group() as tasks:
        tasks.start_soon(hear)
        tasks.start_soon(speak)
        yield read, write
        tasks.cancel_scope.cancel()


class Inside(ReferenceConnection):
    """A reference connection, opened on a link and asked like a driver."""

    def __init__(self, tasks: anyio.abc.TaskGroup) -> None:
        self._tasks = tasks
        self._usable = anyio.Event()

    async def ask(self, op: str, fields: Mapping[str, object]) -> Mapping[str, Any]:
        """Answer one command of the driver contract."""
        match op:
            case "connect":
                await self._tasks.start(self._hold, fields)
                return {}
            case _:
                await self._usable.wait()
        match op:
            case "need":
                return await self.need(str(fields["kind"]))
            case "believe":
                return self.believe(str(fields["kind"]))
            case "call":
                return await self.call(str(fields["name"]), {})
            case "idle":
                return await self.idle()
            case _:
                pass
        return {}

    async def _hold(
        self,
        fields: Mapping[str, Any],
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        link: MemoryLink = fields["target"]["link"]
        limit_ms = fields.get("request_timeout_ms") or 30_000
        policy = Policy(seed=b"inside", request_limit_ms=limit_ms)
        target = Streams(lambda: _transport(link))
        async with Catalogs.connect(target, policy=policy) as self._catalogs:
            task_status.started()
            self._usable.set()
            await anyio.sleep_forever()


def judge_inside(case: Case, revision: str) -> Played:
    """Play one case against the client as it is now, patches included."""

    async def run() -> Played:
        async with anyio.create_task_group() as tasks:
            played = await play(case, revision, "memory", Inside(tasks))
            tasks.cancel_scope.cancel()
        return played

    return anyio.run(
        run,
        backend="trio",
        backend_options={"clock": trio.testing.MockClock(autojump_threshold=0)},
    )
