"""``relist check --url URL``: a client that somebody connects by hand, such as an editor.

The server of each play is at that URL. A person is told which case is on, connects the client, and
says when it has done all that it will do. Nobody can ask such a client anything: it is judged by
what the server sees (level *wire*), one play after the other.
"""

import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import anyio
import attrs
from anyio.to_thread import run_sync
from rich.console import Console

from relist_conformance.driver import KINDS, Hello
from relist_conformance.errors import ConformanceError, DriverError, DriverReplyError, quoted
from relist_conformance.script import REVISIONS

PATIENCE_MS = 60_000
"""How long a step waits for a client that a person has to connect."""


@attrs.frozen
class Address:
    """A place on this machine."""

    port: int
    path: str


def address_of(url: str) -> Address:
    """Port and path of a URL of this machine. Raises ``ConformanceError`` for any other."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    local = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost")
    if not local or port is None or parts.query or parts.fragment or not parts.path.strip("/"):
        form = "http://127.0.0.1:PORT/PATH, where the server of the cases shall be"
        raise ConformanceError(f"--url {quoted(url)}: not of the form {form}")
    return Address(port, parts.path)


class HandDriver:
    """Stands where a ``Driver`` does: what it is asked, it asks the person at the terminal."""

    def __init__(self, url: str, console: Console) -> None:
        self.hello = Hello(
            name=f"client at {url}"[:200],
            version="connected by hand",
            level="wire",
            ops=("hello", "connect", "idle", "stop"),
            transports=("http",),
            revisions=REVISIONS,
            kinds=KINDS,
        )
        self.broken: str | None = None
        self._url = url
        self._console = console
        self._done = anyio.Event()
        self._asking = anyio.Lock()

    @classmethod
    @asynccontextmanager
    async def start(cls, url: str, console: Console) -> AsyncGenerator["HandDriver"]:
        """Ready for plays, one at a time."""
        yield cls(url, console)

    async def begin(self, told: str) -> None:
        """Announce a play; ``told`` says which. Returns when the person is ready."""
        self._done = anyio.Event()
        self._console.print(f"{told}: press Enter to begin", soft_wrap=True, markup=False)
        await self._line()

    async def ask(self, op: str, _: Mapping[str, object]) -> Mapping[str, Any]:
        """Perform a command of the driver contract, as far as a person can.

        Raises ``DriverReplyError`` for what nobody can, and ``DriverError`` when nobody is there.
        """
        match op:
            case "connect":
                self._say("now connect the client (anew) to", self._url)
                return {}
            case "idle" | "need":
                await self._until_done()
            case _:
                pass
        if op in ("idle", "stop"):
            return {"idle": True}
        raise DriverReplyError(f"nobody can ask this client for {op!r}")

    async def _until_done(self) -> None:
        async with self._asking:
            if not self._done.is_set():
                self._say("press Enter when it has listed, called and waited as it likes", "")
                await self._line()
                self._done.set()

    def _say(self, what: str, where: str) -> None:
        self._console.print(f"  {what} {where}".rstrip(), soft_wrap=True, markup=False)

    async def _line(self) -> None:
        if not await run_sync(sys.stdin.readline, abandon_on_cancel=True):
            self.broken = "--url: stdin has ended, so nobody can say when the client is done"
            raise DriverError(self.broken)
