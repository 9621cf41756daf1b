"""One epoch's transport: opened, written to, heard, closed. It decides nothing."""

import logging
import math
from collections.abc import Callable

import anyio
from mcp.client.session import ClientSession
from mcp_types import JSONRPCMessage

from relist import inputs as i
from relist.effects import AbandonWalk, CancelListen
from relist.inputs import SessionInput
from relist.values import Failure, Listen
from relist_mcp.hearing import Hearing, request_id
from relist_mcp.observed import Ears, Exchange, now_ms
from relist_mcp.speech import Frame, RequestEffect, Voice
from relist_mcp.tap import Tap
from relist_mcp.targets import Target

logger = logging.getLogger("relist_mcp")

CLOSE_GRACE_S = 3.0


class Connection:
    """The transport of one epoch. ``tell`` takes what is heard, in order."""

    def __init__(
        self,
        epoch: int,
        voice: Voice,
        tell: Callable[[SessionInput], None],
        listen: Callable[[], Listen],
    ) -> None:
        self._epoch = epoch
        self._voice = voice
        self._tell = tell
        self._listen = listen
        self._hearing = Hearing(epoch)
        self._scope = anyio.CancelScope()
        self._outbox, self._to_send = anyio.create_memory_object_stream[Frame](math.inf)
        self.tap: Tap | None = None
        self.closed = anyio.Event()

    async def run(self, target: Target) -> None:
        """Open the transport, then send what is queued, until it ends or is closed."""
        try:
            with self._scope, self._outbox, self._to_send:
                await self._converse(target)
        except Exception as error:
            # Untrusted text may stand in the message: the type says enough.
            logger.debug("transport of epoch %d: %s", self._epoch, type(error).__name__)
        finally:
            self.tap = None
            self.closed.set()
        self._tell(i.TransportLost(self._epoch, now_ms()))

    async def _converse(self, target: Target) -> None:
        ears = Ears(self._on_exchange, self._on_stream_opened, self._on_stream_ended)
        async with target.open(ears) as (read, write):
            tap = Tap(read, write, self._on_frame, self._scope.cancel)
            async with ClientSession(dispatcher=tap):
                self.tap = tap
                self._tell(i.TransportOpened(self._epoch, now_ms()))
                async for frame in self._to_send:
                    await tap.post(*frame)

    def ask(self, effect: RequestEffect) -> None:
        """Queue the request that an effect asks for."""
        self.send(self._voice.request(self._hearing.expect(effect), effect))

    def cancel(self, effect: AbandonWalk | CancelListen) -> None:
        """Queue the cancellation of a request."""
        self.send(self._voice.cancel(request_id(effect), "no longer awaited"))

    def send(self, frame: Frame) -> None:
        """Queue a frame; dropped once the transport is closed."""
        try:
            self._outbox.send_nowait(frame)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            logger.debug("dropped a frame: epoch %d is closed", self._epoch)

    def close(self) -> None:
        """End in good order within a grace, so that a legacy session can be given back."""
        self._outbox.close()
        self._scope.deadline = min(self._scope.deadline, anyio.current_time() + CLOSE_GRACE_S)

    def _on_frame(self, message: JSONRPCMessage) -> None:
        heard = self._hearing.hear(message, now_ms())
        while self._hearing.notes:
            logger.debug("noted: %s", self._hearing.notes.pop(0))
        if heard is not None:
            self._tell(heard)

    def _on_exchange(self, wire_id: str | int, exchange: Exchange) -> None:
        self._hearing.exchange(wire_id, exchange)
        if exchange.status == 404 and exchange.in_session:
            self._tell(i.SessionExpired(self._epoch, now_ms()))

    def _on_stream_opened(self) -> None:
        listen = self._listen()
        self._tell(i.PushOpened(listen.serial, listen.channels, now_ms()))

    def _on_stream_ended(self, status: int | None) -> None:
        failure = None if status is None else Failure("no stream", None, status)
        self._tell(i.PushEnded(self._listen().serial, failure, now_ms()))
