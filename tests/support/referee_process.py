"""The referee's servers as a process that does what a test tells it: see ``unruly``, ``processes``.

    python -m support.referee_process TEST_PORT HTTP_PORT RELAY_PORT

The suite plays a case with a driver in its own process; here its server of the era and its two ends
run without a script, since no step of the language answers an HTTP status, ends a subscription or
breaks a stream in the middle of an event. Both ends lead to one server at a time.
"""

import sys
from functools import partial
from typing import Any

import anyio
import anyio.abc
from anyio.streams.stapled import MultiListener

from relist.check.history import RequestMatch
from relist_conformance import steps, wire
from relist_conformance.ends import Closed, Heard, Opened, Received
from relist_conformance.ends.http import HttpEnd, HttpHub
from relist_conformance.ends.stdio import StdioEnd, StdioHub
from relist_conformance.history import Recorder
from relist_conformance.legacy import LegacyServer
from relist_conformance.modern import ModernServer
from relist_conformance.outputs import Output
from relist_conformance.script import ServerSetup
from relist_conformance.server import Server
from support.unruly import Unruly, obey, serve

TOKEN = "obedient"
HOLD = steps.Answer(request=RequestMatch(method="tools/list"), delivery=steps.Delivery(hold="it"))

_HOW: dict[str, steps.How] = {"result": "result", "error": "error", "cancel": "cancelled"}


class ObedientReferee:
    """One server of one era at a time, at the far side of both ends."""

    def __init__(self) -> None:
        self.http, self.relays = HttpHub(0), StdioHub(0)
        self.unruly = Unruly(self.http)
        self._ends: list[HttpEnd | StdioEnd] = []
        self._outputs: list[Output] = []
        self._server: Server = self._made(wire.MODERN, [])
        self._moved = anyio.Event()

    def _made(self, era: str, tools: list[str]) -> Server:
        setup = ServerSetup(
            capabilities={"tools": {"listChanged": True}},
            pages={"tools": _pages(tools)},
            cursors={},
            ttl_ms=3_600_000,
            cache_scope="private",
        )
        self._outputs = []
        made = LegacyServer if era == wire.LEGACY else ModernServer
        return made(setup, Recorder(), self._outputs, TOKEN)

    # --- the wire ---------------------------------------------------------------------------------

    async def run(
        self, test_port: int, relays: MultiListener[anyio.abc.SocketStream], http_port: int
    ) -> None:
        """Be there for the test, behind its HTTP URL and its relays."""
        relay_port = relays.extra(anyio.abc.SocketAttribute.local_port)
        command = StdioEnd(relay_port, TOKEN, self._hear).target["command"]
        url = f"http://127.0.0.1:{http_port}/{TOKEN}/mcp"
        hello = {"url": url, "port": http_port, "command": command, "relay_port": relay_port}
        async with (
            self.http.open_end(TOKEN, self._hear) as http,
            self.relays.open_end(TOKEN, self._hear) as stdio,
            anyio.create_task_group() as tasks,
        ):
            self._ends = [http, stdio]
            tasks.start_soon(obey, test_port, hello, self.perform)
            await self.unruly.begun.wait()
            await relays.serve(self.relays.accept)

    async def _hear(self, heard: Heard) -> None:
        match heard:
            case Opened():
                self._server.opened(heard.channel, heard.kind, heard.headers)
            case Received():
                self._server.received(heard.channel, heard.message)
            case Closed():
                self._server.closed(heard.channel)
        self._send()

    def _send(self) -> None:
        outputs, self._outputs[:] = list(self._outputs), []
        for output in outputs:
            for end in self._ends:
                end.perform(output)  # type: ignore[arg-type]
        self._moved.set()
        self._moved = anyio.Event()

    # --- what the test says -----------------------------------------------------------------------

    async def perform(self, op: str, **given: Any) -> Any:
        """Do it."""
        answer = None
        match op:
            case "begin":
                self._server = self._made(given["era"], given["tools"])
                self.unruly.behave()
            case "change" | "tell":
                self._server.catalogs.change("tools", _pages(given["tools"]))
                if op == "tell":
                    self._server.notify("tools")
            case "hold":
                self._server.rules.arm(HOLD)
            case "held":
                while "it" not in self._server.rules.held:
                    await self._moved.wait()
            case "release":
                self._server.release("it")
            case "unlisten":
                answer = self._unlisten(given["how"])
            case "quiet":
                await self.unruly.quiet()
                while self._server._channels:
                    await self._moved.wait()
            case _:
                answer = await self.unruly.perform(op, **given)
        self._send()
        return answer

    def _unlisten(self, how: str) -> int:
        """End all subscriptions: by a *result*, an *error*, or by a *cancel*."""
        assert isinstance(self._server, ModernServer)
        ending = len(self._server._subscriptions)
        self._server.end_subscriptions(_HOW[how])
        return ending


def _pages(names: list[str]) -> tuple[tuple[str, ...], ...]:
    labels = [f"{name}@1" for name in names]
    return tuple(tuple(labels[start : start + 2]) for start in range(0, len(labels), 2)) or ((),)


async def _main(test_port: int, http_port: int, relay_port: int) -> None:
    referee = ObedientReferee()
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=relay_port)
    await serve(referee.unruly, http_port, partial(referee.run, test_port, listener))


if __name__ == "__main__":
    test_port, http_port, relay_port = map(int, sys.argv[1:])
    anyio.run(_main, test_port, http_port, relay_port)
