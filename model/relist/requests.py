"""From effects to JSON-RPC messages, and from messages to inputs: what every adapter needs.

Pure: envelopes of the modern era, headers and bytes are the adapter's.
"""

from collections.abc import Mapping, MutableMapping
from typing import NamedTuple

from relist import effects as e
from relist import inputs as i
from relist.effects import Effect, RequestEffect
from relist.failures import METHOD_NOT_FOUND
from relist.inputs import SessionInput
from relist.messages import (
    FILTERS,
    NAMES,
    NOTICES,
    UPDATED,
    Canonical,
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
from relist.values import Channel, Failure

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
CANCELLED, INITIALIZED = "notifications/cancelled", "notifications/initialized"


class Client(NamedTuple):
    """What ``initialize`` says of the client: ``clientInfo`` and ``capabilities``."""

    info: Mapping[str, object]
    capabilities: Mapping[str, object]


class Request(NamedTuple):
    """A JSON-RPC request without its id; modern metadata come on top."""

    method: str
    params: dict[str, object]


def request_of(effect: RequestEffect, client: Client) -> Request:
    """The request that an effect asks for.

    Rule: DISC-02, LIFE-01, RES-03, RES-04, SUB-02, SUB-03.
    """
    match effect:
        case e.RequestPage():
            cursor = {} if effect.cursor is None else {"cursor": effect.cursor}
            return Request(NAMES[effect.kind].method, {**cursor})
        case e.RequestInitialize():
            about = {"capabilities": client.capabilities, "clientInfo": client.info}
            return Request("initialize", {"protocolVersion": effect.version, **about})
        case e.RequestDiscover():
            return Request("server/discover", {})
        case e.OpenListen():
            topics = effect.topics
            wanted = {FILTERS[topic]: True for topic in topics if isinstance(topic, Channel)}
            return Request("subscriptions/listen", {"notifications": wanted})
        case e.OpenUpdates():
            uris = {"resourceSubscriptions": sorted(effect.uris)}
            return Request("subscriptions/listen", {"notifications": uris})
        case e.RequestSubscribe():
            return Request("resources/subscribe", {"uri": effect.uri})
        case e.RequestUnsubscribe():  # pragma: no branch: there is no other
            return Request("resources/unsubscribe", {"uri": effect.uri})


GivenUp = e.AbandonWalk | e.CancelListen | e.CancelUpdates | e.CancelSubscribe
LISTEN_ID, UPDATES_ID = "relist/listen/", "relist/updates/"  # notices carry the id of their own


def id_of(effect: RequestEffect | GivenUp) -> str:
    """The id of a request, or of the one that is given up: never used twice on a link.

    Rule: LIFE-14, LIFE-15.
    """
    match effect:
        case e.RequestPage() | e.AbandonWalk():
            return f"relist/{effect.kind.value}/{effect.serial}"
        case e.OpenListen() | e.CancelListen():
            return f"{LISTEN_ID}{effect.serial}"
        case e.OpenUpdates() | e.CancelUpdates():
            return f"{UPDATES_ID}{effect.serial}"
        case e.RequestSubscribe() | e.RequestUnsubscribe() | e.CancelSubscribe():
            return f"relist/subscribe/{effect.serial}"
        case e.RequestDiscover() | e.RequestInitialize():  # pragma: no branch: there is no other
            return f"relist/link/{effect.serial}"


def cancellation_of(request_id: str, reason: str = "no longer awaited") -> Request:
    """The notification that nobody waits for this request any more. Rule: FAIL-11."""
    return Request(CANCELLED, {"requestId": request_id, "reason": reason})


def message_of(effect: Effect, client: Client) -> dict[str, object] | None:
    """The legacy JSON-RPC message that performs this effect; None if it takes more than a message.

    Rule: FAIL-24, LIFE-03.
    """
    message: dict[str, object] = {"jsonrpc": "2.0"}
    if isinstance(effect, RequestEffect):
        method, params = request_of(effect, client)
        return message | {"id": id_of(effect), "method": method, "params": params}
    if isinstance(effect, GivenUp):
        method, params = cancellation_of(id_of(effect))
        return message | {"method": method, "params": params}
    return message | {"method": INITIALIZED} if isinstance(effect, e.SendInitialized) else None


def answered(
    effect: RequestEffect,
    result: object,
    canonical: Canonical,
    now_ms: int,
    exclude: Exclude = use_all,
) -> Heard[SessionInput]:
    """What the result of this request means. Never raises for a peer's fault. Rule: SUB-20."""
    serial = effect.serial
    match effect:
        case e.RequestPage():
            return read_page(effect.kind, serial, result, canonical, now_ms, exclude)
        case e.RequestInitialize():
            return read_initialization(serial, result, now_ms)
        case e.RequestDiscover():
            return read_discovery(serial, result, now_ms)
        case e.OpenListen():
            return Heard(i.PushEnded(serial, None, now_ms), ())
        case e.OpenUpdates():
            return Heard(i.UpdatesEnded(serial, None, now_ms), ())
        case e.RequestSubscribe() | e.RequestUnsubscribe():  # pragma: no branch: there is no other
            return Heard(i.SubscribeAnswered(serial, None, now_ms), ())


def failed(effect: RequestEffect, failure: Failure, now_ms: int) -> Heard[SessionInput]:
    """What the failure of this request means."""
    return Heard(_failed(effect, failure, now_ms), notes_on_failure(failure))


def _failed(effect: RequestEffect, failure: Failure, now_ms: int) -> SessionInput:
    serial = effect.serial
    match effect:
        case e.RequestPage():
            return i.PageFailed(effect.kind, serial, failure, now_ms)
        case e.RequestInitialize():
            return i.InitializeFailed(serial, failure, now_ms)
        case e.RequestDiscover():
            return i.DiscoverFailed(serial, failure, now_ms)
        case e.OpenListen():
            return i.PushEnded(serial, failure, now_ms)
        case e.OpenUpdates():
            return i.UpdatesEnded(serial, failure, now_ms)
        case e.RequestSubscribe() | e.RequestUnsubscribe():  # pragma: no branch: there is no other
            return i.SubscribeAnswered(serial, failure, now_ms)


class Tags(NamedTuple):
    """To which of our subscriptions a notice is tagged: None without a tag, 0 for none of them.

    Each is the serial, once read as one to the lists and once as one to single resources.
    """

    lists: int | None = None
    updates: int | None = None


NO_TAGS = Tags()


def notified(
    method: str, params: Mapping[str, object], tags: Tags, now_ms: int
) -> Heard[SessionInput] | None:
    """What a notification means; None if it is none of ours. Rule: NOTE-15 to NOTE-18."""
    if method in NOTICES:
        return Heard(i.NoticeHeard(NOTICES[method], tags.lists, now_ms), ())
    if method == UPDATED:  # without a URI it is about nothing that anybody asked for (RES-17)
        uri = params.get("uri")
        about = uri if isinstance(uri, str) else ""
        return Heard(i.UpdateHeard(about, tags.updates, now_ms), ())
    if method == ACKNOWLEDGED and tags.updates:
        return read_updates_acknowledgement(tags.updates, params, now_ms)
    return read_acknowledgement(tags.lists or 0, params, now_ms) if method == ACKNOWLEDGED else None


def understood(
    message: object,
    asked: MutableMapping[str, RequestEffect],
    canonical: Canonical,
    now_ms: int,
    tags: Tags = NO_TAGS,
) -> Heard[SessionInput] | None:
    """What a decoded JSON-RPC message means; None if it is none of ours. Never raises for it.

    ``asked``: what was asked, by id; what is answered is taken out. A request of the server is none
    of ours.
    """
    if not is_object(message):
        return None
    method, params, wire_id = map(message.get, ("method", "params", "id"))
    if isinstance(method, str):
        about: Mapping[str, object] = params if is_object(params) else {}
        return None if "id" in message else notified(method, about, tags, now_ms)
    effect = asked.pop(wire_id, None) if isinstance(wire_id, str) else None
    if effect is None:
        return None
    if "error" in message:
        return failed(effect, read_failure(message["error"]), now_ms)
    return answered(effect, message.get("result"), canonical, now_ms)


def reply_of(message: object) -> dict[str, object] | None:
    """The answer to a request of the server, for a client that offers nothing; None to all else.

    A ping is answered at once, any other method does not exist here.
    """
    if not is_object(message) or not isinstance(message.get("method"), str):
        return None
    if "id" not in message:
        return None
    reply: dict[str, object] = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "ping":
        return reply | {"result": dict[str, object]()}
    return reply | {"error": {"code": METHOD_NOT_FOUND, "message": "Method not found"}}
