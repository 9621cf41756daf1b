"""From frames to inputs, in the order received. Decides nothing: it only names what was heard."""

import json
from collections import deque
from typing import TypeVar

from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import (
    CONNECTION_CLOSED,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCResponse,
)

from relist import effects as e
from relist import inputs as i
from relist.effects import Note
from relist.messages import (
    NOTICES,
    UPDATED,
    Exclude,
    Heard,
    is_object,
    notes_on_failure,
    read_acknowledgement,
    read_discovery,
    read_failure,
    read_initialization,
    read_page,
    read_updates_acknowledgement,
    use_all,
)
from relist.values import Failure
from relist_mcp.exchange import Exchange, WireId
from relist_mcp.speech import RequestEffect

_HeardT = TypeVar("_HeardT")

_LATE_MAX = 64  # given up requests whose late answers are still told apart
_LISTEN, _UPDATES = "relist/listen/", "relist/updates/"  # ids of subscriptions; notices carry them
_CUT = "SSE stream"  # how the SDK's own words begin where a stream ended without an answer


def canonical(value: object) -> bytes:
    """Bytes that are equal exactly when the JSON values are, whatever the order of keys.

    Raises ValueError or RecursionError for what is no JSON.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")


GivenUp = e.AbandonWalk | e.CancelListen | e.CancelUpdates | e.CancelSubscribe


def request_id(effect: RequestEffect | GivenUp) -> str:
    """The wire id of a request: never used twice, and never one the SDK would mint.

    Rule: LIFE-14, LIFE-15.
    """
    match effect:
        case e.RequestPage() | e.AbandonWalk():
            return f"relist/{effect.kind.value}/{effect.serial}"
        case e.OpenListen() | e.CancelListen():
            return f"{_LISTEN}{effect.serial}"
        case e.OpenUpdates() | e.CancelUpdates():
            return f"{_UPDATES}{effect.serial}"
        case e.RequestSubscribe() | e.RequestUnsubscribe() | e.CancelSubscribe():
            return f"relist/subscribe/{effect.serial}"
        case _:
            return f"relist/link/{effect.serial}"


class Hearing:
    """What one transport says, as inputs. Remembers which request each id belongs to."""

    def __init__(self, exclude: Exclude = use_all) -> None:
        self._exclude = exclude
        self._asked: dict[WireId, RequestEffect] = {}
        self._given_up: deque[str] = deque()
        self._exchanges: dict[WireId, Exchange] = {}
        self.notes: list[Note] = []

    def expect(self, effect: RequestEffect) -> str:
        """A request is about to be sent; returns its id."""
        wire_id = request_id(effect)
        self._asked[wire_id] = effect
        return wire_id

    def give_up(self, effect: GivenUp) -> str | None:
        """The id of a request that nobody awaits any more; None if it is not outstanding here.

        Its late answer is still told to the core, which knows it for late, unless it comes after
        those of many others. Rule: FAIL-12.
        """
        wire_id = request_id(effect)
        if wire_id not in self._asked:
            return None
        self._given_up.append(wire_id)
        if len(self._given_up) > _LATE_MAX:
            self._forget(self._given_up.popleft())
        return wire_id

    def exchange(self, wire_id: WireId, exchange: Exchange) -> None:
        """How the HTTP exchange of a request went; comes before the frame that ends it."""
        if wire_id in self._asked:
            self._exchanges[wire_id] = exchange

    def _forget(self, wire_id: WireId) -> tuple[RequestEffect | None, Exchange | None]:
        return self._asked.pop(wire_id, None), self._exchanges.pop(wire_id, None)

    def hear(self, message: JSONRPCMessage, now_ms: int) -> i.SessionInput | None:
        """What this frame means to the core; None if nothing."""
        match message:
            case JSONRPCResponse(id=wire_id):
                effect, _ = self._forget(wire_id)
                return None if effect is None else self._answer(effect, message.result, now_ms)
            case JSONRPCError(id=wire_id) if wire_id is not None:
                effect, exchange = self._forget(wire_id)
                if effect is None:
                    return None
                failure = _failure(message, exchange)
                self.notes.extend(notes_on_failure(failure))
                return _failed(effect, failure, now_ms)
            case JSONRPCNotification():
                return self._notice(message, now_ms)
            case _:
                return None

    def _answer(self, effect: RequestEffect, result: object, now_ms: int) -> i.SessionInput:
        match effect:
            case e.RequestPage():
                about = (effect.kind, effect.serial, result)
                return self._noting(read_page(*about, canonical, now_ms, self._exclude))
            case e.OpenListen():
                return i.PushEnded(effect.serial, None, now_ms)
            case e.OpenUpdates():
                return i.UpdatesEnded(effect.serial, None, now_ms)
            case e.RequestSubscribe() | e.RequestUnsubscribe():
                return i.SubscribeAnswered(effect.serial, None, now_ms)
            case e.RequestDiscover():
                return self._noting(read_discovery(effect.serial, result, now_ms))
            case e.RequestInitialize():
                return self._noting(read_initialization(effect.serial, result, now_ms))

    def _noting(self, read: Heard[_HeardT]) -> _HeardT:
        self.notes.extend(read.notes)
        return read.heard

    def _notice(self, message: JSONRPCNotification, now_ms: int) -> i.SessionInput | None:
        """What a notification says, on whichever stream it came; None if it is none of ours.

        Its params may be anything, or missing; nothing is answered. Rule: NOTE-15 to NOTE-18.
        """
        params = message.params or {}
        channel = NOTICES.get(message.method)
        if channel is not None:
            return i.NoticeHeard(channel, _tag(params, _LISTEN), now_ms)
        if message.method == UPDATED:
            uri = params.get("uri")
            tag = _tag(params, _UPDATES)
            return i.UpdateHeard(uri, tag, now_ms) if isinstance(uri, str) else None
        if message.method == "notifications/subscriptions/acknowledged":
            serial = _tag(params, _UPDATES)
            if serial:
                return self._noting(read_updates_acknowledgement(serial, params, now_ms))
            serial = _tag(params, _LISTEN) or 0
            return self._noting(read_acknowledgement(serial, params, now_ms))
        if message.method == "notifications/cancelled":
            return self._ended(params.get("requestId"), now_ms)
        return None

    def _ended(self, wire_id: object, now_ms: int) -> i.SessionInput | None:
        """The server cancels one of our subscriptions. Rule: SUB-21."""
        for prefix in (_LISTEN, _UPDATES):
            serial = _serial(wire_id, prefix)
            effect, _ = self._forget(f"{prefix}{serial}")
            if effect is not None:
                return _ended(effect, None, now_ms)
        return None


def _tag(params: object, prefix: str) -> int | None:
    """The serial of the subscription in a notice's tag; 0 for a foreign tag, None for none."""
    meta = params.get("_meta") if is_object(params) else None
    if not is_object(meta) or SUBSCRIPTION_ID_META_KEY not in meta:
        return None
    return _serial(meta[SUBSCRIPTION_ID_META_KEY], prefix)


def _serial(wire_id: object, prefix: str) -> int:
    """The serial in one of our subscription ids, compared as the string it is. Rule: SUB-11."""
    if isinstance(wire_id, str) and wire_id.startswith(prefix):
        digits = wire_id.removeprefix(prefix)
        if digits.isascii() and digits.isdigit() and len(digits) < 10:
            return int(digits) if f"{prefix}{int(digits)}" == wire_id else 0
    return 0


def _failure(message: JSONRPCError, exchange: Exchange | None) -> Failure:
    """The failure behind an error frame, which over HTTP the SDK may have made up itself.

    Goes by the body of a refusal, if it holds an error. Rule: LIFE-33.
    """
    error = message.error.model_dump(mode="json")
    if exchange is None:
        return read_failure(error)
    if exchange.status is None:
        return Failure("network failure")
    if exchange.status >= 400:
        if exchange.error is None:
            return Failure("refused", None, exchange.status, exchange.retry_after_ms)
        return read_failure(exchange.error, exchange.status, exchange.retry_after_ms)
    if not exchange.speaks:
        return Failure("answer of no use", None, exchange.status)
    if message.error.code == CONNECTION_CLOSED and message.error.message.startswith(_CUT):
        return Failure("stream ended without an answer")
    return read_failure(error)


def _ended(effect: RequestEffect, failure: Failure | None, now_ms: int) -> i.SessionInput | None:
    """A subscription ended, with a failure or in good order; None for any other request."""
    match effect:
        case e.OpenListen():
            return i.PushEnded(effect.serial, failure, now_ms)
        case e.OpenUpdates():
            return i.UpdatesEnded(effect.serial, failure, now_ms)
        case _:
            return None


def _failed(effect: RequestEffect, failure: Failure, now_ms: int) -> i.SessionInput:
    match effect:
        case e.RequestPage():
            return i.PageFailed(effect.kind, effect.serial, failure, now_ms)
        case e.OpenListen():
            return i.PushEnded(effect.serial, failure, now_ms)
        case e.OpenUpdates():
            return i.UpdatesEnded(effect.serial, failure, now_ms)
        case e.RequestSubscribe() | e.RequestUnsubscribe():
            return i.SubscribeAnswered(effect.serial, failure, now_ms)
        case e.RequestDiscover():
            return i.DiscoverFailed(effect.serial, failure, now_ms)
        case e.RequestInitialize():
            return i.InitializeFailed(effect.serial, failure, now_ms)
