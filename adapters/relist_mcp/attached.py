"""The binding to a session that the application owns: the core's effects over its connection.

Nothing is opened, negotiated or closed here: what the session agreed on is told to the core, and
what the core asks for goes out among the owner's own requests. See ``Catalogs.attach``.
"""

import logging
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, Protocol

import anyio
import anyio.abc
from mcp import Client, ClientSession, MCPError
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import INVALID_REQUEST, DiscoverResult, InitializeResult
from pydantic import BaseModel

from relist import effects as e
from relist import inputs as i
from relist.effects import Effect, RequestEffect
from relist.failures import METHOD_NOT_FOUND, UNSUPPORTED_VERSION
from relist.inputs import SessionInput
from relist.messages import Heard, is_object, read_failure
from relist.requests import (
    ACKNOWLEDGED,
    CANCELLED,
    GivenUp,
    Tags,
    answered,
    failed,
    id_of,
    notified,
    request_of,
)
from relist.requests import Client as Described
from relist.values import Era, Failure, Kind, ListenPhase, Wire
from relist_mcp.binding import NotConnected
from relist_mcp.connection import CLOSE_GRACE_S
from relist_mcp.exchange import now_ms
from relist_mcp.hearing import canonical, unusable_over_http
from relist_mcp.identity import NOBODY_YET, Identity, identity_in
from relist_mcp.loop import Loop
from relist_mcp.seam import Seam

logger = logging.getLogger("relist_mcp")

_NOBODY = Described({}, {})  # who speaks is the session's to say
_wire_ids = count(1)  # of all subscriptions, so that no session ever sees one twice
_EXPIRED = "Session terminated"  # the SDK's own words for a 404 within a session


class Owner(Protocol):
    """A client that has a session, as those of `mcp` and FastMCP do; it may get another one."""

    @property
    def session(self) -> ClientSession:
        """The session of now. Raises while there is none."""
        ...


class Hold:
    """One epoch: the session as it is held, until its connection ends or it is let go.

    ``on_end`` is called once if the connection ends.
    """

    def __init__(
        self, epoch: int, seam: Seam, wire: Wire, loop: Loop, on_end: Callable[[], None]
    ) -> None:
        self.epoch = epoch
        self.over = False
        self.seam = seam
        self._wire = wire
        self._loop = loop
        self._on_end = on_end
        self.server = identity_in(_dump(_agreed(seam.session)))
        self._told_offer = False
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._listens: dict[str, e.OpenListen | e.OpenUpdates] = {}
        self._subscribed: set[str] = set()
        self._watch = anyio.CancelScope()

    async def run(self) -> None:
        """Until the connection ends, or the session is let go."""
        with self._watch:
            await self.seam.ended()
            self._lose()

    def release(self) -> None:
        """The session is as it was; requests of ours are cancelled."""
        self.over = True
        self.seam.leave(self)
        for scope in (self._watch, *self._scopes.values()):
            scope.cancel()

    async def unsubscribe(self) -> None:
        """Give back what a legacy session would stay subscribed to."""
        while self._subscribed and not self.seam.closed:
            await self._try_to_unsubscribe(self._subscribed.pop())

    async def _try_to_unsubscribe(self, uri: str) -> None:
        try:
            await self.seam.request("resources/unsubscribe", {"uri": uri})
        except Exception as error:
            logger.debug("unsubscribing: %s", type(error).__name__)

    def _lose(self) -> None:
        if not self.over:
            self.release()
            self._on_end()

    def _hear(self, heard: Heard[SessionInput]) -> None:
        for note in heard.notes:
            logger.debug("noted: %s", note)
        self._loop.tell(heard.heard)

    # --- what is asked ----------------------------------------------------------------------------

    def ask(self, effect: RequestEffect, tasks: anyio.abc.TaskGroup) -> None:
        """Answer from what the session knows, or send a request of ours."""
        known = self._known(effect)
        if known is not None:
            self._hear(known)
            return
        scope = self._scopes[id_of(effect)] = anyio.CancelScope()
        wire_id = None
        if isinstance(effect, e.OpenListen | e.OpenUpdates):
            wire_id = f"relist/attached/{next(_wire_ids)}"
            self._listens[wire_id] = effect
        tasks.start_soon(self._ask, effect, scope, wire_id)

    def cancel(self, effect: GivenUp) -> None:
        """Cancel a request: the SDK tells the server."""
        if (scope := self._scopes.get(id_of(effect))) is not None:
            scope.cancel()

    async def _ask(
        self, effect: RequestEffect, scope: anyio.CancelScope, wire_id: str | None
    ) -> None:
        method, params = request_of(effect, _NOBODY)
        try:
            with scope:
                self._note_subscription(effect, stands=True)
                result = await self.seam.request(method, params, wire_id)
                self._note_subscription(effect, stands=isinstance(effect, e.RequestSubscribe))
                self._hear(answered(effect, result, canonical, now_ms(), self._unusable))
        except Exception as error:
            self._note_subscription(effect, stands=isinstance(effect, e.RequestUnsubscribe))
            if self.seam.closed or _is_expired(error):
                self._lose()
            else:
                self._hear(failed(effect, _failure(error), now_ms()))
        finally:
            del self._scopes[id_of(effect)]
            self._listens.pop(wire_id or "", None)

    def _note_subscription(self, effect: RequestEffect, *, stands: bool) -> None:
        """Whether a legacy server may hold this session for subscribed, also without an answer."""
        if isinstance(effect, e.RequestSubscribe | e.RequestUnsubscribe):
            (self._subscribed.add if stands else self._subscribed.discard)(effect.uri)

    def _known(self, effect: RequestEffect) -> Heard[SessionInput] | None:
        """What the session has agreed on with its server, as the answer to this; else None.

        What it was offered is as old as the session, so the next need asks the server itself. So
        does the first, where it was offered nothing: a client that is pinned to a version makes
        that up. Rule: CAP-18, LIFE-45.
        """
        session = self.seam.session
        version = session.protocol_version or ""
        offer, agreed = session.discover_result, session.initialize_result
        match effect:
            case e.RequestInitialize() if agreed is not None:
                return answered(effect, _dump(agreed), canonical, now_ms())
            case e.RequestInitialize():
                other = Failure("the session is modern", UNSUPPORTED_VERSION, supported=(version,))
                return failed(effect, other, now_ms())
            case e.RequestDiscover() if offer is not None:
                return self._offer(effect, offer, version)
            case e.RequestDiscover():
                legacy = Failure("the session is legacy", METHOD_NOT_FOUND)
                return failed(effect, legacy, now_ms())
            case _:
                return None

    def _offer(
        self, effect: e.RequestDiscover, offer: DiscoverResult, version: str
    ) -> Heard[SessionInput] | None:
        if self._told_offer or not _dump(offer.capabilities):
            return None
        self._told_offer = True
        told = {**_dump(offer), "supportedVersions": [version], "ttlMs": 0}
        return answered(effect, told, canonical, now_ms())

    def _unusable(self, kind: Kind, entry: Mapping[str, object]) -> str | None:
        """Nobody knows whether the session is over HTTP, so what HTTP excludes is left out."""
        modern = self.seam.session.discover_result is not None
        return unusable_over_http(kind, entry) if modern and self._wire is Wire.HTTP else None

    # --- what is heard ----------------------------------------------------------------------------

    def on_notification(self, method: str, params: Mapping[str, Any]) -> bool:
        """Whether it answers us alone. Every other notice is the owner's, too."""
        if method == CANCELLED:
            self._cancelled(params.get("requestId"))
            return False
        tags = self._tags(params)
        if tags is None or (method == ACKNOWLEDGED and not any(tags)):
            return False
        heard = notified(method, params, tags, now_ms())
        if heard is not None:
            self._hear(heard)
        return method == ACKNOWLEDGED

    def _cancelled(self, wire_id: object) -> None:
        """The server cancels a subscription of ours. Rule: SUB-21."""
        effect = self._listens.pop(wire_id, None) if isinstance(wire_id, str) else None
        if effect is not None:
            self._hear(answered(effect, None, canonical, now_ms()))
            self._scopes[id_of(effect)].cancel()

    def _tags(self, params: Mapping[str, Any]) -> Tags | None:
        """To which subscription of ours a notice is tagged; None if to one of somebody else."""
        meta = params.get("_meta")
        if not is_object(meta) or SUBSCRIPTION_ID_META_KEY not in meta:
            return Tags()
        tag = meta[SUBSCRIPTION_ID_META_KEY]
        match self._listens.get(tag) if isinstance(tag, str) else None:
            case e.OpenListen(serial=serial):
                return Tags(serial, 0)
            case e.OpenUpdates(serial=serial):
                return Tags(0, serial)
            case None:
                return Tags(0, 0) if self._loop.session.link.era is Era.LEGACY else None


class Attached:
    """The binding over the session of ``client``. Raises TypeError for what has none.

    Raises NotConnected for a client that is not connected.
    """

    def __init__(self, client: ClientSession | Owner, wire: Wire, loop: Loop) -> None:
        self._client = client
        self._wire = wire
        self._loop = loop
        self._tasks: anyio.abc.TaskGroup | None = None
        self._hold: Hold | None = None
        self._gone: ClientSession | None = None
        if self._look() is None:
            raise NotConnected("the client to attach to is not connected")

    @property
    def server(self) -> Identity:
        """See ``Binding``. Where it is, is the owner's to know."""
        return NOBODY_YET if self._hold is None else self._hold.server

    @property
    def instructions(self) -> str | None:
        """See ``Binding``."""
        return None if self._hold is None else self._hold.seam.session.instructions

    def start(self, tasks: anyio.abc.TaskGroup) -> None:
        """See ``Binding``."""
        self._tasks = tasks

    def perform(self, effect: Effect) -> None:
        """See ``Binding``."""
        hold = self._hold
        match effect:
            case e.OpenTransport():
                self._open(effect.epoch)
            case e.CloseTransport():
                if hold is not None:
                    hold.release()
            case e.SendInitialized():
                self._admit_no_stream()
            case e.AbandonWalk() | e.CancelListen() | e.CancelUpdates() | e.CancelSubscribe():
                if hold is not None:
                    hold.cancel(effect)
            case _ if isinstance(effect, RequestEffect) and hold is not None and not hold.over:
                assert self._tasks is not None
                hold.ask(effect, self._tasks)
            case _:
                pass  # for observers, or what it was about has gone with the session

    async def request(
        self, method: str, params: dict[str, Any], name: str | None, headers: Mapping[str, str]
    ) -> dict[str, Any]:
        """See ``Binding``. The session's own time limit for requests holds."""
        hold = self._hold
        if hold is None or hold.over:
            raise NotConnected("the session has just ended")
        return await hold.seam.request_for_owner(method, params, name, headers)

    @property
    def sdk_session(self) -> ClientSession | None:
        """See ``Binding``. Its owner's callbacks answer."""
        hold = self._hold
        return None if hold is None or hold.over else hold.seam.session

    async def close(self) -> None:
        """Leave the session as it was found, subscriptions included."""
        if self._hold is not None:
            self._hold.release()
            with anyio.move_on_after(CLOSE_GRACE_S, shield=True):
                await self._hold.unsubscribe()

    def _look(self) -> Seam | None:
        """The session that the client has now, if it can be used. Raises TypeError if none can."""
        session: object = self._client
        if not isinstance(session, ClientSession):
            try:
                session = self._client.session  # type: ignore[union-attr]
            except AttributeError:
                raise TypeError(f"no client with a session: {self._client!r}") from None
            except Exception:  # each client has its own way to say that it is not connected
                return None
        if not isinstance(session, ClientSession):
            raise TypeError(f"no session of the mcp SDK: {session!r}")
        seam = Seam(session)
        usable = session is not self._gone and session.protocol_version is not None
        return seam if usable and not seam.closed else None

    def _open(self, epoch: int) -> None:
        assert self._tasks is not None
        seam = self._look()
        if seam is None:
            self._lose(epoch)
            return
        hold = Hold(epoch, seam, self._wire, self._loop, lambda: self._lose(epoch))
        seam.listen(hold)
        self._hold = hold
        self._tasks.start_soon(hold.run)
        self._loop.tell(i.TransportOpened(epoch, now_ms()))

    def _lose(self, epoch: int) -> None:
        """A session never comes back, and `mcp.Client` has one in its life; others may get another.

        For those the core looks again, at the pace of its backoff and without any traffic.
        """
        self._gone = None if self._hold is None else self._hold.seam.session
        self._loop.tell(i.TransportLost(epoch, now_ms()))
        if isinstance(self._client, ClientSession | Client):
            self._loop.tell(i.CloseWanted(now_ms()))

    def _admit_no_stream(self) -> None:
        """What carries the notices of a legacy session over HTTP cannot be seen from here.

        On a pipe it need not be asked for.
        """
        listen = self._loop.session.listen
        if listen.phase is ListenPhase.ASKED:
            unseen = Failure("the stream of notices is out of sight", METHOD_NOT_FOUND)
            self._loop.tell(i.PushEnded(listen.serial, unseen, now_ms()))


def _agreed(session: ClientSession) -> InitializeResult | DiscoverResult:
    """What a session that is connected has agreed on with its server."""
    agreed = session.discover_result or session.initialize_result
    assert agreed is not None
    return agreed


def _dump(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def _is_expired(error: Exception) -> bool:
    if not isinstance(error, MCPError):
        return False
    return (error.error.code, error.error.message) == (INVALID_REQUEST, _EXPIRED)


def _failure(error: Exception) -> Failure:
    """The failure behind what the session raised; over HTTP the SDK may have made up the error."""
    if isinstance(error, MCPError):
        return read_failure(error.error.model_dump(mode="json"))
    return Failure(type(error).__name__)
