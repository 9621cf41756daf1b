"""What binds one core to a server: it performs effects, and carries an application's requests.

``Transports`` opens transports of its own, one for each epoch.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import anyio
import anyio.abc
from attrs import evolve
from mcp.client.session import ClientSession
from mcp.shared.dispatcher import CallOptions

from relist import effects as e
from relist.effects import Effect, RequestEffect
from relist_mcp.connection import Connection
from relist_mcp.credentials import Credentials
from relist_mcp.handlers import Handlers
from relist_mcp.identity import NOBODY_YET, Identity, address_of
from relist_mcp.loop import Loop
from relist_mcp.speech import Voice
from relist_mcp.targets import Target


class NotConnected(Exception):
    """A request needs a live connection, and there is none right now."""


class Binding(Protocol):
    """How a core reaches its server. Decides nothing about freshness."""

    @property
    def server(self) -> Identity:
        """Who is at the other end now, as far as that is known."""
        ...

    @property
    def instructions(self) -> str | None:
        """The instructions of the server at the other end; None if it gives none."""
        ...

    def start(self, tasks: anyio.abc.TaskGroup) -> None:
        """From now on whatever runs may run in these tasks."""

    def perform(self, effect: Effect) -> None:
        """Do what the effect asks for, without waiting. Never raises for what a peer did."""

    async def request(
        self, method: str, params: dict[str, Any], name: str | None, headers: Mapping[str, str]
    ) -> dict[str, Any]:
        """The raw result of an application's request on the live link.

        ``name`` is what it is about, ``headers`` go along over modern HTTP. Raises MCPError for an
        error answer or a transport that is lost meanwhile, NotConnected if there is none.
        """
        ...

    @property
    def sdk_session(self) -> ClientSession | None:
        """The session of the SDK whose callbacks answer what the server asks; None if none runs."""

    async def close(self) -> None:
        """Close what is open, in good order."""


class Transports:
    """The binding that owns its transports: one at a time is live, the core says which."""

    def __init__(
        self, target: Target, loop: Loop, voice: Voice, handlers: Handlers, first: Credentials
    ) -> None:
        self._target = target
        self._address = address_of(target)
        self._said, self._server = NOBODY_YET, evolve(NOBODY_YET, address=self._address)
        self._loop = loop
        self._voice = voice
        self._handlers = handlers
        self._credentials = {first.partition: first}
        self._tasks: anyio.abc.TaskGroup | None = None
        self._ended: anyio.Event | None = None  # made when somebody waits for it
        self.connections: dict[int, Connection] = {}

    @property
    def server(self) -> Identity:
        """See ``Binding``."""
        current = self._current()
        said = NOBODY_YET if current is None else current.server
        if said is not self._said:  # asked for with each event, and hardly ever another
            self._said, self._server = said, evolve(said, address=self._address)
        return self._server

    @property
    def instructions(self) -> str | None:
        """See ``Binding``."""
        current = self._current()
        return None if current is None else current.instructions

    def start(self, tasks: anyio.abc.TaskGroup) -> None:
        """See ``Binding``."""
        self._tasks = tasks

    def use(self, credentials: Credentials) -> None:
        """Open transports of this partition with these credentials from now on. Rule: AUTH-04."""
        self._credentials[credentials.partition] = credentials

    def perform(self, effect: Effect) -> None:
        """See ``Binding``."""
        match effect:
            case e.OpenTransport():
                self._open(effect.epoch)
            case e.CloseTransport():
                if (connection := self.connections.get(effect.epoch)) is not None:
                    connection.close()
            case e.Publish() | e.Withdraw() | e.DoubtList() | e.NeedCredentials() | e.Note():
                pass  # for observers
            case e.ContentChanged() | e.ContentUncovered():
                pass  # likewise
            case _ if (current := self._current()) is not None:
                link = self._loop.session.link
                self._voice.settle(link.era, link.version)
                _say(current, effect)
            case _:
                pass  # what it was about went with its transport

    async def request(
        self, method: str, params: dict[str, Any], name: str | None, headers: Mapping[str, str]
    ) -> dict[str, Any]:
        """See ``Binding``."""
        current = self._current()
        if current is None:
            raise NotConnected(self._loop.session.link.phase.value)
        if current.tap is None:
            raise NotConnected("the transport has just been lost")
        params, envelope = self._voice.envelope(method, params, name)
        options: CallOptions = {"headers": {**headers, **envelope}}
        return await current.tap.send_raw_request(method, params, options)

    @property
    def sdk_session(self) -> ClientSession | None:
        """See ``Binding``."""
        current = self._current()
        return None if current is None else current.sdk_session

    async def close(self) -> None:
        """See ``Binding``."""
        for connection in self.connections.values():
            connection.close()
        while self.connections:
            self._ended = anyio.Event()
            await self._ended.wait()

    def _current(self) -> Connection | None:
        return self.connections.get(self._loop.session.link.epoch)

    def _open(self, epoch: int) -> None:
        """Its transport has the credentials of the partition that the core is in. Rule: AUTH-12."""
        assert self._tasks is not None
        loop = self._loop
        partition = loop.session.catalogs[0].standing.partition
        self.connections[epoch] = Connection(
            epoch, self._target, self._credentials[partition], self._voice, self._handlers, loop
        )
        self._tasks.start_soon(self._run, epoch)

    async def _run(self, epoch: int) -> None:
        try:
            await self.connections[epoch].run()
        finally:
            del self.connections[epoch]
            if self._ended is not None:
                self._ended.set()


def _say(connection: Connection, effect: Effect) -> None:
    match effect:
        case e.SendInitialized():
            connection.welcome()
        case e.AbandonWalk() | e.CancelListen() | e.CancelUpdates() | e.CancelSubscribe():
            connection.cancel(effect)
        case _ if isinstance(effect, RequestEffect):
            connection.ask(effect)
        case _:
            raise AssertionError(f"nobody performs {type(effect).__name__}")
