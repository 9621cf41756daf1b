"""Defects with what carries notices: subscriptions, and the streams of legacy HTTP."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import httpx2
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import JSONRPCRequest

from mutants import inside
from mutants.kit import Defect, Patch, replace
from relist import effects as e
from relist import inputs as i
from relist import messages, requests
from relist.messages import is_object
from relist.policy import Policy
from relist.requests import CANCELLED, LISTEN_ID
from relist.rules import walk
from relist.values import Era, Phase
from relist_mcp import observed, speech
from relist_mcp.connection import Connection
from relist_mcp.exchange import now_ms
from relist_mcp.hearing import Hearing
from relist_mcp.observed import ObservedTransport

ONE_ID = "relist/the-listen"
LIMIT_MS = 4_000


# --- subscriptions ---


def listens_to_whatever(patch: Patch) -> None:
    """Subscribes without saying to what."""
    real = requests.request_of

    def request_of(effect: Any, client: Any) -> requests.Request:
        asked = real(effect, client)
        if isinstance(effect, e.OpenListen):
            asked.params.pop("notifications")
        return asked

    patch.setattr(speech, "request_of", request_of)


def vouches_for_what_it_had(patch: Patch) -> None:
    """Lists before the acknowledgment, and takes that list for covered by it."""
    patch.setitem(inside.POLICY, "ack_limit_ms", 1)
    replace(patch, i.CoverageGained, {Phase.FRESH: walk.nothing})


def insists_on_known_fields(patch: Patch) -> None:
    """Takes an acknowledgment with a field that it does not know for none."""
    real = messages.read_granted
    known = {*messages.FILTERS.values(), "resourceSubscriptions"}

    def read_granted(params: Any) -> Any:
        granted = params.get("notifications") if is_object(params) else None
        strange = is_object(granted) and not {*granted} <= known
        return frozenset() if strange else real(params)

    patch.setattr(messages, "read_granted", read_granted)


def _deaf_after(patch: Patch, last: Callable[[Hearing, Any], bool]) -> None:
    """Hear no more notices once such a frame came."""
    real = Hearing._read
    deaf: list[Hearing] = []

    def read(self: Hearing, message: Any, at_ms: int) -> Any:
        if last(self, message):
            deaf.append(self)
        is_notice = str(getattr(message, "method", "")).endswith("list_changed")
        return None if is_notice and self in deaf else real(self, message, at_ms)

    patch.setattr(Hearing, "_read", read)


def second_acknowledgment_ends(patch: Patch) -> None:
    """Takes a second acknowledgment for the end of its subscription."""
    seen: list[Hearing] = []

    def last(self: Hearing, message: Any) -> bool:
        acknowledged = str(getattr(message, "method", "")).endswith("subscriptions/acknowledged")
        again = acknowledged and self in seen
        seen.extend([self] if acknowledged else [])
        return again

    _deaf_after(patch, last)


def any_cancellation_ends(patch: Patch) -> None:
    """Takes the cancellation of anything for the end of its subscription."""
    _deaf_after(patch, lambda _, message: getattr(message, "method", "") == CANCELLED)


def hammers_what_ends(patch: Patch) -> None:
    """Subscribes again at once when a subscription has ended."""
    real = Policy.backoff_ms

    def backoff_ms(self: Policy, failures: int, owner: str, *more: Any) -> int:
        return 100 if owner == "listen" else real(self, failures, owner, *more)

    patch.setattr(Policy, "backoff_ms", backoff_ms)


def has_one_id_for_all(patch: Patch) -> None:
    """Subscribes under the same id each time."""
    send, hear = Connection._send, Connection._on_frame
    serial = [""]

    def sending(self: Connection, frame: speech.Frame) -> None:
        wire_id = str(getattr(frame.message, "id", ""))
        if wire_id.startswith(LISTEN_ID):
            serial[0] = wire_id
            frame = speech.Frame(frame.message.model_copy(update={"id": ONE_ID}), frame.headers)
        send(self, frame)

    def hearing(self: Connection, message: Any) -> bool:
        params = getattr(message, "params", None)
        meta = params.get("_meta") if is_object(params) else None
        if getattr(message, "id", None) == ONE_ID:
            message = message.model_copy(update={"id": serial[0]})
        if is_object(params) and params.get("requestId") == ONE_ID:
            told = {**params, "requestId": serial[0]}
            message = message.model_copy(update={"params": told})
        if is_object(meta) and meta.get(SUBSCRIPTION_ID_META_KEY) == ONE_ID:
            told = {**params, "_meta": {**meta, SUBSCRIPTION_ID_META_KEY: serial[0]}}  # type: ignore[dict-item]
            message = message.model_copy(update={"params": told})
        return hear(self, message)

    patch.setattr(Connection, "_send", sending)
    patch.setattr(Connection, "_on_frame", hearing)


def limits_subscriptions(patch: Patch) -> None:
    """Hears a subscription no longer than it would wait for an answer."""
    ask, tell = Connection.ask, Connection._tell
    asked_ms: list[int] = []

    def asking(self: Connection, effect: Any) -> None:
        if isinstance(effect, e.OpenListen):
            asked_ms[:] = [now_ms()]
        ask(self, effect)

    def telling(self: Connection, heard: Any) -> None:
        late = any(now_ms() > began_ms + LIMIT_MS for began_ms in asked_ms)
        notice = isinstance(heard, i.NoticeHeard) and self._voice.era is Era.MODERN
        if not (late and notice):
            tell(self, heard)

    patch.setattr(Connection, "ask", asking)
    patch.setattr(Connection, "_tell", telling)


# --- eras ---


def _says_too(patch: Patch, era: Era, method: str, params: dict[str, Any]) -> None:
    """Send such a request beside those for lists."""
    real = Connection.ask

    def ask(self: Connection, effect: Any) -> None:
        if isinstance(effect, e.RequestPage) and self._voice.era is era:
            told, headers = self._voice.envelope(method, params)
            message = JSONRPCRequest(
                jsonrpc="2.0", id=f"beside-{effect.serial}", method=method, params=told
            )
            self._send(speech.Frame(message, headers))
        real(self, effect)

    patch.setattr(Connection, "ask", ask)


def listens_in_each_era(patch: Patch) -> None:
    """Subscribes with a legacy server, too."""
    wanted = {"notifications": {"toolsListChanged": True}}
    _says_too(patch, Era.LEGACY, "subscriptions/listen", wanted)


def pings_in_each_era(patch: Patch) -> None:
    """Pings a server of the era without pings."""
    _says_too(patch, Era.MODERN, "ping", {})


# --- streams over HTTP ---


class _Altered(httpx2.AsyncByteStream):
    """A body whose chunks are altered on their way."""

    def __init__(self, inner: Any, alter: Callable[[bytes], bytes]) -> None:
        self._inner = inner
        self._alter = alter

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            yield self._alter(chunk)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _alters(patch: Patch, verb: str, alter: Callable[[bytes], bytes]) -> None:
    """Alter what comes on the event streams of such exchanges."""
    real = observed._apart

    def apart(request: httpx2.Request, response: httpx2.Response, wire_id: Any) -> Any:
        stream = real(request, response, wire_id)
        return _Altered(stream, alter) if request.method == verb else stream

    patch.setattr(observed, "_apart", apart)


def breaks_on_comments(patch: Patch) -> None:
    """Takes a comment for the end of its stream."""

    def alter(chunk: bytes) -> bytes:
        if chunk.startswith(b":"):
            raise httpx2.ReadError("a comment")
        return chunk

    _alters(patch, "POST", alter)


def resumes_in_each_era(patch: Patch) -> None:
    """Asks by GET for the rest of a stream, in the era that has none."""
    real = ObservedTransport._heard

    def heard(self: ObservedTransport, *args: Any, **_: Any) -> httpx2.Response:
        return real(self, *args, final=False)

    patch.setattr(ObservedTransport, "_heard", heard)


def does_not_miss_its_stream(patch: Patch) -> None:
    """Does not notice that its stream of notices has ended."""
    patch.setattr(Connection, "on_stream_ended", lambda *_: None)


def hears_on_one_stream_only(patch: Patch) -> None:
    """Does not hear notices on the streams of answers."""
    _alters(patch, "POST", lambda chunk: chunk.replace(b"tools/list_changed", b"tools/unheard"))


def asks_for_a_refused_stream(patch: Patch) -> None:
    """Asks again at once for a stream that it is refused."""
    real = ObservedTransport._stream

    async def stream(self: ObservedTransport, request: httpx2.Request) -> httpx2.Response:
        while (response := await real(self, request)).status_code == 405:
            await anyio.sleep(0.1)
        return response

    patch.setattr(ObservedTransport, "_stream", stream)


def does_not_wait_as_told(patch: Patch) -> None:
    """Does not heed the pause that a stream names."""
    _alters(patch, "GET", lambda chunk: chunk.replace(b"retry:", b"pause:"))


DEFECTS = (
    Defect("listens-to-whatever", "listen:has-a-filter", listens_to_whatever),
    Defect("vouches-for-what-it-had", "listen:late-acknowledgment", vouches_for_what_it_had),
    Defect("insists-on-known", "listen:acknowledgment-with-more", insists_on_known_fields),
    Defect("second-ack-ends", "listen:acknowledged-twice", second_acknowledgment_ends),
    Defect("any-cancellation-ends", "listen:noise", any_cancellation_ends),
    Defect("hammers-what-ends", "listen:answered-at-once", hammers_what_ends),
    Defect("has-one-id-for-all", "listen:renewed-under-a-new-id", has_one_id_for_all),
    Defect("limits-subscriptions", "listen:outlives-the-time-limit", limits_subscriptions),
    Defect("listens-in-each-era", "listen:not-to-a-legacy-server", listens_in_each_era),
    Defect("pings-in-each-era", "listen:instead-of-the-old-ways", pings_in_each_era),
    Defect("breaks-on-comments", "listen:keep-alive", breaks_on_comments),
    Defect("resumes-in-each-era", "listen:not-resumed", resumes_in_each_era),
    Defect("does-not-miss-its-stream", "stream:cut", does_not_miss_its_stream),
    Defect("hears-on-one-stream", "stream:of-an-answer", hears_on_one_stream_only),
    Defect("asks-for-a-refused", "stream:refused-later", asks_for_a_refused_stream),
    Defect("does-not-wait-as-told", "stream:retry-is-respected", does_not_wait_as_told),
)
