"""One epoch's transport: opened, written to, heard, closed. It decides nothing."""

import logging
from collections.abc import Iterator, Mapping
from typing import Protocol

import anyio
from mcp.client.session import ClientSession
from mcp_types import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest

from relist import inputs as i
from relist.effects import RequestEffect
from relist.inputs import SessionInput
from relist.requests import CANCELLED, GivenUp
from relist.values import Era, Failure, Kind, Listen, Wire
from relist_mcp import logs
from relist_mcp.arrays import ARRAYS_VERSION
from relist_mcp.credentials import Credentials
from relist_mcp.exchange import Exchange, WireId, now_ms
from relist_mcp.handlers import Handlers
from relist_mcp.hearing import Hearing, unusable_over_http
from relist_mcp.identity import Identity
from relist_mcp.speech import Frame, Voice
from relist_mcp.tap import Tap
from relist_mcp.targets import Target

logger = logging.getLogger("relist_mcp")

CLOSE_GRACE_S = 3.0
OUTBOX_MAX = 256  # frames that wait to be written; a peer that takes none of them is gone


class Host(Protocol):
    """What a connection needs of the loop that owns it."""

    def tell(self, heard: SessionInput) -> object:
        """Take what is heard, in order."""

    async def room(self) -> None:
        """Wait until what was told has been fed."""

    @property
    def listen(self) -> Listen:
        """The state of the channel for notices."""
        ...


class Connection:
    """The transport of one epoch. Tells its host nothing more once it is lost or closed."""

    def __init__(
        self,
        epoch: int,
        target: Target,
        credentials: Credentials,
        voice: Voice,
        handlers: Handlers,
        host: Host,
    ) -> None:
        self._epoch = epoch
        self._target = target
        self._credentials = credentials
        self._voice = voice
        self._handlers = handlers
        self._host = host
        self._hearing = Hearing(self._unusable)
        self._in_session = False
        self._over = False
        self._scope = anyio.CancelScope()
        self._outbox: list[Frame] = []
        self._ready = anyio.Event()  # there is something to send, or it is over
        self.tap: Tap | None = None
        self.sdk_session: ClientSession | None = None

    def _unusable(self, kind: Kind, entry: Mapping[str, object]) -> str | None:
        """Why this transport cannot use an entry."""
        modern = self._target.wire is Wire.HTTP and self._voice.era is Era.MODERN
        return unusable_over_http(kind, entry) if modern else None

    def _takes_arrays(self) -> bool:
        """Whether the version in force has arrays of messages. Rule: LIFE-10."""
        return self._voice.version == ARRAYS_VERSION

    @property
    def server(self) -> Identity:
        """What the server of this epoch says of itself."""
        return self._hearing.server

    @property
    def instructions(self) -> str | None:
        """How to use it, as it says."""
        return self._hearing.instructions

    async def run(self) -> None:
        """Open the transport, then send what is queued, until it ends or is closed."""
        try:
            with self._scope:
                await self._converse()
        except* Exception as group:  # also of a transport that fails while it is cancelled
            # Untrusted text may stand in the messages: the types say enough.
            names = sorted({type(error).__name__ for error in _leaves(group)})
            logger.debug("transport of epoch %d: %s", self._epoch, ", ".join(names))
        finally:
            self.tap = self.sdk_session = None
        self._lose()

    async def _converse(self) -> None:
        async with self._target.open(self, self._credentials) as (read, write):
            tap = Tap(
                *(read, write, self._on_frame, self._host.room, self._lose),
                takes_arrays=self._takes_arrays,
            )
            async with self._handlers.session(tap) as self.sdk_session:
                self.tap = tap
                self._tell(i.TransportOpened(self._epoch, now_ms()))
                while not self._over:
                    self._ready = anyio.Event()
                    await self._flush(tap)
                    await self._ready.wait()
                await self._flush(tap)

    async def _flush(self, tap: Tap) -> None:
        while self._outbox:
            await tap.post(*self._outbox.pop(0))

    # --- what the loop wants ----------------------------------------------------------------------

    def ask(self, effect: RequestEffect) -> None:
        """Queue the request that an effect asks for."""
        self._send(self._voice.request(self._hearing.expect(effect), effect))

    def cancel(self, effect: GivenUp) -> None:
        """Queue the cancellation of a request, if it was made on this transport."""
        wire_id = self._hearing.give_up(effect)
        if wire_id is not None:
            self._send(self._voice.cancel(wire_id, "no longer awaited"))

    def welcome(self) -> None:
        """Queue ``notifications/initialized``.

        Over HTTP the SDK opens no stream without a session: nobody needs to wait for one.
        """
        self._send(self._voice.initialized())
        if self._target.wire is Wire.HTTP and not self._in_session:
            failure = Failure("no stream without a session")
            self._tell(i.PushEnded(self._host.listen.serial, failure, now_ms()))

    def close(self) -> None:
        """End in good order within a grace, so that a legacy session can be given back."""
        self._over = True
        self._ready.set()
        self._scope.deadline = min(self._scope.deadline, anyio.current_time() + CLOSE_GRACE_S)

    def _send(self, frame: Frame) -> None:
        if self._over:
            logger.debug("dropped a frame: epoch %d is closed", self._epoch)
        elif len(self._outbox) >= OUTBOX_MAX:
            self._lose()
        else:
            self._outbox.append(frame)
            self._ready.set()

    def _lose(self) -> None:
        """The peer is gone. The host hears of it at once, not only when all is cleaned up."""
        self._tell(i.TransportLost(self._epoch, now_ms()))
        self._over = True
        self._scope.cancel()

    def _tell(self, heard: SessionInput) -> None:
        if not self._over:
            self._host.tell(heard)

    # --- what is heard ----------------------------------------------------------------------------

    def _on_frame(self, message: JSONRPCMessage) -> bool:
        """Whether the frame was for the core, or for nobody.

        A server of the modern era has no requests, and they get no answers. Rule: LIFE-50.
        """
        if isinstance(message, JSONRPCRequest) and self._voice.era is Era.MODERN:
            return True
        heard = self._hearing.hear(message, now_ms())
        for note in self._hearing.notes:
            logs.note(note, self._epoch)
        self._hearing.notes.clear()
        if heard is not None:
            self._tell(heard)
            self._let_go(message)
        return heard is not None

    def _let_go(self, message: JSONRPCMessage) -> None:
        """A subscription that the server cancelled is over, but over HTTP its stream may stand.

        Closing it is how one cancels there; else each would keep a connection. Rule: SUB-18.
        """
        if self._target.wire is not Wire.HTTP or not isinstance(message, JSONRPCNotification):
            return
        if message.method == CANCELLED:
            wire_id = str((message.params or {}).get("requestId"))
            self._send(self._voice.cancel(wire_id, "cancelled by the server"))

    def on_exchange(self, wire_id: WireId, exchange: Exchange) -> None:
        """Keep it until the frame that it explains. See ``Ears``."""
        self._in_session = self._in_session or exchange.names_session
        self._hearing.exchange(wire_id, exchange)

    def on_expired(self) -> None:
        """Rule: LIFE-12. See ``Ears``."""
        self._tell(i.SessionExpired(self._epoch, now_ms()))

    def on_undelivered(self) -> None:
        """A session that never began is of no use. See ``Ears``."""
        self._lose()

    def on_stream_opened(self) -> None:
        """Whatever was declared is carried from now on. See ``Ears``."""
        listen = self._host.listen
        self._tell(i.PushOpened(listen.serial, listen.topics, now_ms()))

    def on_stream_ended(self, status: int | None) -> None:
        """Nothing is carried any more. See ``Ears``."""
        failure = None if status is None else Failure("no stream", None, status)
        self._tell(i.PushEnded(self._host.listen.serial, failure, now_ms()))


def _leaves(group: BaseExceptionGroup[Exception]) -> Iterator[Exception]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
