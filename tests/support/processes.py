"""Server processes as a test sees them: started, told what to do, killed, started again.

Two kinds: the SDK's own server and the referee. Each connects back to the test and is told over
that connection what to do, so nothing is timed. What they can be told: ``unruly``, ``sdk_process``.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.abc
import pytest
from attrs import define, field

from relist.values import Wire
from relist_mcp import Http, Stdio
from support.brain import MODERN

LAUNCH_LIMIT_S = 30.0


class Control:
    """The connection over which one process is told what to do."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._unread = b""
        self.hello: Mapping[str, Any] = {}

    async def answer(self) -> Any:
        """The next answer. Raises EOFError when the process is gone."""
        while b"\n" not in self._unread:
            await anyio.wait_readable(self._sock)
            try:
                data = self._sock.recv(65_536)
            except ConnectionResetError:
                data = b""
            if not data:
                raise EOFError
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return json.loads(line)

    async def ask(self, op: str, **given: Any) -> Any:
        """Have it do something; what it answers once that is done."""
        self._sock.sendall(json.dumps({"op": op, **given}).encode() + b"\n")
        return await self.answer()

    def close(self) -> None:
        """The process ends when it notices."""
        self._sock.close()


class ServerProcess(ABC):
    """A server in a process of its own. ``tools`` outlive it."""

    def __init__(self) -> None:
        self._door = socket.create_server(("127.0.0.1", 0))
        self._door.setblocking(False)
        self._control: Control | None = None
        self.tools: list[str] = []
        self.era = MODERN

    async def begin(self, era: str, tools: list[str]) -> None:
        """Be as new, with these tools; the process is started if it is not there."""
        self.era, self.tools = era, tools
        await self.start()

    @abstractmethod
    async def start(self) -> None:
        """See to it that somebody answers to ``target``, unless it is the client who starts it."""

    @abstractmethod
    async def met(self) -> None:
        """The client connects: if that started the process, wait for it."""

    @abstractmethod
    def target(self, wire: Wire) -> Http | Stdio:
        """What a client connects to."""

    async def ask(self, op: str, **given: Any) -> Any:
        """Have it do something; what it answers. See the programs and ``unruly``."""
        self.tools = given.get("tools", self.tools)
        assert self._control is not None
        return await self._control.ask(op, **given)

    async def gone(self) -> None:
        """The client has left: wait until nothing of it is under way."""
        await self.ask("quiet")

    def kill(self) -> None:
        """End the process without a farewell."""
        assert self._control is not None
        with suppress(ProcessLookupError):
            os.kill(self._control.hello["pid"], signal.SIGKILL)
        self._control.close()
        self._control = None

    def close(self) -> None:
        """End it for good."""
        if self._control is not None:
            self.kill()
        self._door.close()

    async def _arrived(self) -> Mapping[str, Any]:
        """Wait for the process to say hello, and tell it its tools."""
        with anyio.fail_after(LAUNCH_LIMIT_S):
            await anyio.wait_readable(self._door)
            self._control = Control(self._door.accept()[0])
            self._control.hello = await self._control.answer()
            await self._control.ask("begin", era=self.era, tools=self.tools)
        return self._control.hello

    @property
    def _test_port(self) -> str:
        return str(self._door.getsockname()[1])


class SdkOnPipe(ServerProcess):
    """The SDK's own server on stdin and stdout of a process that the client starts."""

    async def start(self) -> None:
        """See ``ServerProcess``."""

    async def met(self) -> None:
        """See ``ServerProcess``."""
        await self._arrived()

    def target(self, wire: Wire) -> Stdio:
        """The command."""
        return Stdio([sys.executable, "-m", "support.sdk_process", self._test_port], _PATH)

    async def gone(self) -> None:
        """See ``ServerProcess``. The process does not outlive the client."""
        assert self._control is not None
        with pytest.raises(ProcessLookupError):
            os.kill(self._control.hello["pid"], 0)
        self._control.close()
        self._control = None


class Standing(ServerProcess):
    """A process that is there before any client, and always at the ports of the first time."""

    def __init__(self, program: str, *ports: str) -> None:
        super().__init__()
        self._program = program
        self._ports = dict.fromkeys(ports, 0)
        self._child: subprocess.Popen[bytes] | None = None
        self._hello: Mapping[str, Any] = {}

    async def start(self) -> None:
        """See ``ServerProcess``."""
        if self._control is not None:
            await self.ask("begin", era=self.era, tools=self.tools)
            return
        ports = [self._test_port, *map(str, self._ports.values())]
        command = [sys.executable, "-m", self._program, *ports]
        env = {**os.environ, **_PATH}
        self._child = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=env)
        self._hello = await self._arrived()
        self._ports = {name: self._hello[name] for name in self._ports}

    async def met(self) -> None:
        """See ``ServerProcess``."""

    def kill(self) -> None:
        """See ``ServerProcess``."""
        super().kill()
        assert self._child is not None
        self._child.wait()

    def target(self, wire: Wire) -> Http | Stdio:
        """The URL, or the command of the relay to it."""
        if wire is Wire.HTTP:
            return Http(self._hello["url"])
        return Stdio(self._hello["command"])

    @property
    def port(self) -> int:
        """Of HTTP."""
        return self._ports["port"]


def sdk_over_http() -> Standing:
    """The SDK's own server over HTTP."""
    return Standing("support.sdk_process", "port")


def referee() -> Standing:
    """The referee's servers over both transports."""
    return Standing("support.referee_process", "port", "relay_port")


_PATH = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


class Relay:
    """A TCP relay that can make connections half open: they stand, and nothing comes through."""

    def __init__(self, port: int) -> None:
        self._behind = port
        self._lines: list[_Line] = []
        self._stalls_new = False
        self.url = ""

    @classmethod
    @asynccontextmanager
    async def before(cls, url: str) -> AsyncGenerator["Relay"]:
        """A relay to the server at this URL."""
        there = urlsplit(url)
        assert there.port is not None
        relay = cls(there.port)
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        relay.url = there._replace(netloc=f"127.0.0.1:{port}").geturl()
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, relay._carry)
            yield relay
            tasks.cancel_scope.cancel()

    def stall(self, *, new: bool = False) -> int:
        """Nothing comes through what stands by now; with ``new`` neither through what will.

        Returns how many stand.
        """
        self._stalls_new = new
        for line in self._lines:
            line.stalled = True
        return len(self._lines)

    def recover(self) -> None:
        """What is opened from now on works, and what is stalled is found to be dead."""
        self._stalls_new = False
        for line in self._lines:
            if line.stalled:
                line.scope.cancel()

    async def _carry(self, client: anyio.abc.SocketStream) -> None:
        line = _Line(self._stalls_new)
        self._lines.append(line)
        try:
            server = await anyio.connect_tcp("127.0.0.1", self._behind)
            async with client, server, anyio.create_task_group() as tasks:
                line.scope = tasks.cancel_scope
                tasks.start_soon(line.pump, client, server)
                tasks.start_soon(line.pump, server, client)
        finally:
            self._lines.remove(line)


@define(eq=False)
class _Line:
    """One connection through the relay."""

    stalled: bool
    scope: anyio.CancelScope = field(factory=anyio.CancelScope)

    async def pump(self, source: anyio.abc.SocketStream, sink: anyio.abc.SocketStream) -> None:
        """Carry bytes in one direction; not even the end comes through a stalled line."""
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while True:
                data = await source.receive()
                if self.stalled:
                    break
                await sink.send(data)
        if self.stalled:
            await anyio.sleep_forever()
        self.scope.cancel()
