"""The reference client judged inside this process: mostly in memory, in virtual time."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc
import trio.testing
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from mutants.at_once import Cell, over_http, played
from relist.policy import Policy
from relist_conformance.drivers.base import perform
from relist_conformance.drivers.reference import ReferenceConnection
from relist_conformance.ends.memory import MemoryLink
from relist_conformance.errors import DriverReplyError
from relist_conformance.play import Played
from relist_conformance.script import Case
from relist_mcp import Catalogs, Http, Stdio, Streams

_Read = MemoryObjectReceiveStream[SessionMessage | Exception]
_Write = MemoryObjectSendStream[SessionMessage]


def _read(message: object) -> SessionMessage | Exception:
    """What the SDK's own transports make of a frame."""
    try:
        parsed = jsonrpc_message_adapter.validate_python(message, by_name=False)
    except ValidationError as error:
        return error
    return SessionMessage(parsed)


@asynccontextmanager
async def _transport(link: MemoryLink) -> AsyncGenerator[tuple[_Read, _Write]]:
    """The link as an `mcp` transport."""
    receive, send = await link.connect()
    inward, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outward = anyio.create_memory_object_stream[SessionMessage](0)

    async def hear() -> None:
        async with inward:
            async for message in receive:
                await inward.send(_read(message))

    async def speak() -> None:
        async for item in outward:
            await send.send(item.message.model_dump(by_alias=True, mode="json", exclude_unset=True))

    async with receive, send, read, write, outward, anyio.create_task_group() as tasks:
        tasks.start_soon(hear)
        tasks.start_soon(speak)
        yield read, write
        tasks.cancel_scope.cancel()


POLICY: dict[str, Any] = {}
"""What a defect changes of the policy."""


class Inside(ReferenceConnection):
    """A reference connection, opened on a link and asked like a driver."""

    def __init__(self, tasks: anyio.abc.TaskGroup) -> None:
        self._tasks = tasks
        self._shown = {}
        self._scope = anyio.CancelScope()
        self._usable = anyio.Event()

    async def ask(self, op: str, fields: Mapping[str, object]) -> Mapping[str, Any]:
        """Answer one command of the driver contract."""
        match op:
            case "connect":
                await self._tasks.start(self._hold, fields)
                return {}
            case "stop":
                self._scope.cancel()
                return {}
            case _:
                await self._usable.wait()
        try:
            return await perform(self, op, fields)
        except Exception as error:
            raise DriverReplyError(repr(error)) from error

    async def _hold(
        self,
        fields: Mapping[str, Any],
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        given = fields["target"]
        limit_ms = fields.get("request_timeout_ms") or 30_000
        policy = Policy(**{"seed": b"inside", "request_limit_ms": limit_ms, **POLICY})
        target = _target(given)
        with self._scope:
            async with Catalogs.connect(target, policy=policy) as self._catalogs:
                task_status.started()
                self._usable.set()
                await anyio.sleep_forever()


class Insides:
    """The connections of a play by name."""

    def __init__(self, tasks: anyio.abc.TaskGroup) -> None:
        self._tasks = tasks
        self._named: dict[object, Inside] = {}

    async def ask(self, op: str, fields: Mapping[str, object]) -> Mapping[str, Any]:
        """Answer one command of the driver contract."""
        name = fields["connection"]
        if name not in self._named:
            self._named[name] = Inside(self._tasks)
        return await self._named[name].ask(op, fields)


def _target(given: Mapping[str, Any]) -> Http | Stdio | Streams:
    if "url" in given:
        return Http(given["url"])
    if "command" in given:
        return Stdio(given["command"], given["env"])
    link: MemoryLink = given["link"]
    return Streams(lambda: _transport(link))


def judge_inside(case: Case, revision: str) -> Played:
    """Play one case against the client as it is now, patches included.

    In memory and in virtual time; what is for HTTP alone over a real port.
    """
    if "memory" not in case.transports:
        return judge_over_http([(case, revision)])[case.id, revision]
    clock = trio.testing.MockClock(autojump_threshold=0)
    options = {"clock": clock}
    return anyio.run(played, case, revision, Insides, backend="trio", backend_options=options)


def judge_really(case: Case, revision: str, transport: str) -> Played:
    """The same over a real transport, in real time."""
    return anyio.run(played, case, revision, Insides, transport)


def judge_over_http(cells: Iterable[Cell]) -> Mapping[tuple[str, str], Played]:
    """The same for many cases over HTTP, side by side."""
    return anyio.run(over_http, cells, Insides)
