"""From frames to inputs, in the order received. Decides nothing: it only names what was heard."""

import json
import math
from collections.abc import Mapping
from typing import TypeVar

import orjson
from mcp.shared.inbound import find_invalid_x_mcp_header
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import (
    CONNECTION_CLOSED,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCResponse,
)

from relist import inputs as i
from relist.effects import Note, RequestDiscover, RequestEffect, RequestInitialize
from relist.messages import Exclude, Heard, is_list, is_object, read_failure, use_all
from relist.requests import (
    CANCELLED,
    LISTEN_ID,
    UPDATES_ID,
    GivenUp,
    Tags,
    answered,
    failed,
    id_of,
    notified,
)
from relist.values import Failure, Kind
from relist_mcp.exchange import Exchange, WireId
from relist_mcp.identity import NOBODY_YET, identity_in, instructions_in

_HeardT = TypeVar("_HeardT")

_LATE_MAX = 64  # given up requests whose late answers are still told apart
_STRICT = (  # what is no JSON is refused
    orjson.OPT_SORT_KEYS
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)
_CUT = "SSE stream"  # how the SDK's own words begin where a stream ended without an answer


def canonical(value: object) -> bytes:
    """Bytes that are equal exactly when the JSON values are, whatever the order of keys.

    NaN and infinity, for which JSON has no number, are null: so other writers have it, too.
    Raises TypeError, ValueError or RecursionError for what is no JSON.
    """
    try:
        text = orjson.dumps(value, option=_STRICT)
    except TypeError:  # also of integers beyond 64 bits, lone surrogates, and what is nested deeply
        return json.dumps(_finite(value), sort_keys=True, separators=(",", ":")).encode("ascii")
    return bytes(memoryview(text))  # a copy: orjson leaves room behind, up to eight thousand bytes


def _finite(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if is_list(value):
        return [_finite(entry) for entry in value]
    return {key: _finite(entry) for key, entry in value.items()} if is_object(value) else value


def unusable_over_http(kind: Kind, entry: Mapping[str, object]) -> str | None:
    """Over modern HTTP a tool whose header annotations are faulty cannot be called.

    Rule: DISC-23, DISC-24.
    """
    if kind is not Kind.TOOLS:
        return None
    try:
        return find_invalid_x_mcp_header(entry.get("inputSchema"))
    except RecursionError:
        return "schema is nested too deeply"


class Hearing:
    """What one transport says, as inputs. Remembers which request each id belongs to."""

    __slots__ = ("_asked", "_exchanges", "_exclude", "_given_up", "instructions", "notes", "server")

    def __init__(self, exclude: Exclude = use_all) -> None:
        self._exclude = exclude
        self._asked: dict[WireId, RequestEffect] = {}
        self._given_up: list[str] = []
        self._exchanges: dict[WireId, Exchange] = {}
        self.notes: list[Note] = []
        self.server = NOBODY_YET
        self.instructions: str | None = None

    def expect(self, effect: RequestEffect) -> str:
        """A request is about to be sent; returns its id."""
        wire_id = id_of(effect)
        self._asked[wire_id] = effect
        return wire_id

    def give_up(self, effect: GivenUp) -> str | None:
        """The id of a request that nobody awaits any more; None if it is not outstanding here.

        Its late answer is still told to the core, which knows it for late, unless it comes after
        those of many others. Rule: FAIL-12.
        """
        wire_id = id_of(effect)
        if wire_id not in self._asked:
            return None
        self._given_up.append(wire_id)
        if len(self._given_up) > _LATE_MAX:
            self._forget(self._given_up.pop(0))
        return wire_id

    def exchange(self, wire_id: WireId, exchange: Exchange) -> None:
        """How the HTTP exchange of a request went; comes before the frame that ends it."""
        if wire_id in self._asked:
            self._exchanges[wire_id] = exchange

    def _forget(self, wire_id: WireId) -> tuple[RequestEffect | None, Exchange | None]:
        return self._asked.pop(wire_id, None), self._exchanges.pop(wire_id, None)

    def hear(self, message: JSONRPCMessage, now_ms: int) -> i.SessionInput | None:
        """What this frame means to the core; None if nothing.

        An answer means something where its id is that of an open request. Rule: ATOM-26.
        """
        heard = self._read(message, now_ms)
        if heard is None:
            return None
        self.notes.extend(heard.notes)
        return heard.heard

    def _read(self, message: JSONRPCMessage, now_ms: int) -> Heard[i.SessionInput] | None:
        match message:
            case JSONRPCResponse(id=wire_id):
                effect, _ = self._forget(wire_id)
                if effect is None:
                    return None
                if isinstance(effect, RequestDiscover | RequestInitialize):
                    self.server = identity_in(message.result)
                    self.instructions = instructions_in(message.result)
                return answered(effect, message.result, canonical, now_ms, self._exclude)
            case JSONRPCError(id=wire_id) if wire_id is not None:
                effect, exchange = self._forget(wire_id)
                if effect is None:
                    return None
                return failed(effect, _failure(message, exchange), now_ms)
            case JSONRPCNotification(method=method) if method == CANCELLED:
                return self._cancelled((message.params or {}).get("requestId"), now_ms)
            case JSONRPCNotification():
                params = message.params or {}
                return notified(message.method, params, _tags(params), now_ms)
            case _:
                return None

    def _cancelled(self, wire_id: object, now_ms: int) -> Heard[i.SessionInput] | None:
        """The server cancels one of our subscriptions, and nothing else. Rule: SUB-21."""
        for prefix in (LISTEN_ID, UPDATES_ID):
            effect, _ = self._forget(f"{prefix}{_serial(wire_id, prefix)}")
            if effect is not None:
                return answered(effect, None, canonical, now_ms)
        return None


def _tags(params: object) -> Tags:
    """The serial in a notice's tag, in either reading; 0 for a foreign tag, None for none."""
    meta = params.get("_meta") if is_object(params) else None
    if not is_object(meta) or SUBSCRIPTION_ID_META_KEY not in meta:
        return Tags()
    tag = meta[SUBSCRIPTION_ID_META_KEY]
    return Tags(_serial(tag, LISTEN_ID), _serial(tag, UPDATES_ID))


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
