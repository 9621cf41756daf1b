"""The contract of the official conformance suite: a command that is started once for each play.

``relist check --command "CMD"`` starts ``CMD URL`` through a shell, as the official runner does,
with the environment variables ``MCP_CONFORMANCE_SCENARIO``, ``MCP_CONFORMANCE_PROTOCOL_VERSION``
and ``MCP_CONFORMANCE_CONTEXT``. So the conformance clients of SDKs run as they are. Such a client
cannot be asked anything: it is judged by what the server sees (level *wire*). Its end says that it
has done all it ever will.

For stdio, which the official suite does not have, the last argument is the server's command as one
text (to be split as a shell does), and the context holds it as a list.
"""

import json
import os
import shlex
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from subprocess import DEVNULL
from typing import Any

import anyio
import anyio.abc
import attrs

from relist_conformance.driver import KINDS, Hello, StderrTail, end_group, open_group
from relist_conformance.errors import DriverError, DriverReplyError, plain, quoted

SCENARIOS = ("tools_call", "initialize")
"""Names that each conformance client knows: list and call tools, and only list them."""
_NOT_STARTED = (126, 127)
"""What a shell exits with when it cannot run or find a program."""


@attrs.define
class _Client:
    """One running command, until it was stopped."""

    process: anyio.abc.Process
    stderr: StderrTail = attrs.field(factory=StderrTail)
    ended: anyio.Event = attrs.field(factory=anyio.Event)


class OfficialDriver:
    """Stands where a ``Driver`` does: each *connect* starts the command anew."""

    def __init__(self, command: str, scenario: str, tasks: anyio.abc.TaskGroup) -> None:
        self.hello = Hello(
            name=plain(command, 100),
            version=f"as {scenario}",
            level="wire",
            ops=("hello", "connect", "idle", "stop"),
            transports=("stdio", "http"),
            revisions=("2025-11-25", "2026-07-28"),
            kinds=KINDS,
        )
        self.broken: str | None = None
        self.failed = 0
        """How many starts ended by themselves with an exit code other than 0."""
        self.last_failure = ""
        self._command = command
        self._scenario = scenario
        self._tasks = tasks
        self._clients: dict[object, _Client] = {}

    @classmethod
    @asynccontextmanager
    async def start(cls, command: str, scenario: str) -> AsyncGenerator["OfficialDriver"]:
        """Ready for plays; leaving the block ends what still runs."""
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            driver = cls(command, scenario, tasks)
            try:
                yield driver
            except Exception as error:
                failure = error  # raised below: the task group would wrap it
            finally:
                with anyio.CancelScope(shield=True):
                    for name in list(driver._clients):
                        await driver._stop(name)
        if failure is not None:
            raise failure

    async def ask(self, op: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Perform a command of the driver contract, as far as a client of level wire can.

        Raises ``DriverReplyError`` for what it cannot, and ``DriverError`` when the program is not
        there at all.
        """
        name = fields.get("connection")
        match op:
            case "connect":
                await self._connect(name, fields["target"], fields["revision"])
                return {}
            case "stop":
                await self._stop(name)
                return {}
            case "idle":
                await self._until_ended(name)
                return {"idle": True}
            case "need":
                # A fence may need to know that the client has had its time, which its end says.
                await self._until_ended(name)
                raise DriverReplyError("the command has ended and tells no lists")
            case "call":
                raise DriverReplyError("the command calls what it likes")
            case _:
                raise DriverReplyError(f"a command is not asked for {op!r}", "unsupported")

    async def _connect(self, name: object, target: Mapping[str, Any], revision: str) -> None:
        url = target.get("url") or shlex.join(target["command"])
        context = {"name": self._scenario, **target}
        env = {
            **os.environ,
            "MCP_CONFORMANCE_SCENARIO": self._scenario,
            "MCP_CONFORMANCE_PROTOCOL_VERSION": revision,
            "MCP_CONFORMANCE_CONTEXT": json.dumps(context),
        }
        argv = ("/bin/sh", "-c", f"{self._command} {shlex.quote(url)}")
        called = f"command {quoted(self._command)}"
        process = await open_group(argv, called, stdin=DEVNULL, stdout=DEVNULL, env=env)
        client = self._clients[name] = _Client(process)
        self._tasks.start_soon(self._watch, client)

    async def _watch(self, client: _Client) -> None:
        assert client.process.stderr
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.stderr.read, client.process.stderr)
            await client.process.wait()
            # What the command left running may hold its stderr open for ever.
            with anyio.move_on_after(0.2):
                await client.stderr.ended.wait()
            tasks.cancel_scope.cancel()
        code, last = client.process.returncode or 0, quoted(client.stderr.last_line)
        if code > 0:
            self.failed += 1
            self.last_failure = f"exit code {code}, last line on stderr: {last}"
        if code in _NOT_STARTED:
            self.broken = f"command {quoted(self._command)} does not start: {last}"
        client.ended.set()

    async def _until_ended(self, name: object) -> None:
        client = self._clients.get(name)
        if client is not None:
            await client.ended.wait()
        if self.broken is not None:
            raise DriverError(self.broken)

    async def _stop(self, name: object) -> None:
        client = self._clients.pop(name, None)
        if client is not None:
            await end_group(client.process)
            await client.ended.wait()
