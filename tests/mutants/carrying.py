"""Defects in how HTTP is used, and in what is made of failures and lost connections."""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import httpx2
from attrs import evolve
from mcp.client.streamable_http import StreamableHTTPTransport

from mutants.kit import Defect, Patch
from relist import effects as e
from relist import inputs as i
from relist import machine, requests
from relist.inputs import SessionInput
from relist.machine import Row
from relist.messages import Heard
from relist.policy import Policy
from relist.rules import doubt
from relist.rules.base import Step
from relist.values import Catalog, Failure, Kind, Phase
from relist_conformance.drivers import reference
from relist_mcp import hearing, observed, speech
from relist_mcp.connection import Connection
from relist_mcp.exchange import SESSION_HEADER, Exchange, media_type, message_of
from relist_mcp.hearing import Hearing
from relist_mcp.observed import ObservedTransport

Message = Mapping[str, Any]

# --- requests -----------------------------------------------------------------------------------


def _sends_short_first(
    patch: Patch, header: str, meant: Callable[[Message, httpx2.Request], bool]
) -> None:
    """Send the first such request without a header, and then whole."""
    done: set[ObservedTransport] = set()
    real = ObservedTransport.handle_async_request

    async def handle(self: ObservedTransport, request: httpx2.Request) -> httpx2.Response:
        content = await request.aread() if request.method == "POST" else b""
        found = header in request.headers and meant(message_of(content), request)
        if found and self not in done:
            done.add(self)
            headers = httpx2.Headers(request.headers)
            del headers[header]
            short = httpx2.Request("POST", request.url, headers=headers, content=content)
            refusal = await self._inner.handle_async_request(short)
            await refusal.aread()
            await refusal.aclose()
        return await real(self, request)

    patch.setattr(ObservedTransport, "handle_async_request", handle)


def _of(method: str) -> Callable[[Message, httpx2.Request], bool]:
    return lambda message, _: message.get("method") == method


def forgets_the_session(patch: Patch) -> None:
    """Sends its first list request without naming the session, and then again."""
    _sends_short_first(patch, SESSION_HEADER, _of("tools/list"))


def forgets_the_version(patch: Patch) -> None:
    """Does not name the version at first when it says that it is ready."""
    header = "mcp-protocol-version"

    def meant(message: Message, request: httpx2.Request) -> bool:
        legacy = request.headers[header] < "2026"
        return legacy and message.get("method") == "notifications/initialized"

    _sends_short_first(patch, header, meant)


def forgets_the_method(patch: Patch) -> None:
    """Sends its first list request without naming the method in a header, and then again."""
    _sends_short_first(patch, "mcp-method", _of("tools/list"))


def forgets_the_token(patch: Patch) -> None:
    """Asks for a further page as nobody first."""

    def meant(message: Message, _: httpx2.Request) -> bool:
        return "cursor" in (message.get("params") or {})

    _sends_short_first(patch, "authorization", meant)


# --- streams ------------------------------------------------------------------------------------


class _Cut(httpx2.AsyncByteStream):
    """A body without some of its chunks, or that ends at one of them."""

    def __init__(self, inner: Any, ends: Callable[[bytes], bool], drops: bytes) -> None:
        self._inner, self._ends, self._drops = inner, ends, drops

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            if self._ends(chunk):
                return
            if self._drops not in chunk:
                yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


NOTHING = b"\x00"
_PASSING = -30_000


def _never(_: bytes) -> bool:
    return False


def _streams(
    patch: Patch,
    meant: Callable[[str, httpx2.Request], bool],
    ends: Callable[[bytes], bool] = _never,
    drops: bytes = NOTHING,
) -> None:
    """Read the streams that answer such requests otherwise."""
    patch.setattr(reference, "NEED_LIMIT_S", 1.5)  # what does not come need not be waited for
    real = ObservedTransport._ask

    async def ask(self: ObservedTransport, request: httpx2.Request, wire_id: Any) -> Any:
        response = await real(self, request, wire_id)
        method = str(message_of(await request.aread()).get("method"))
        if media_type(response) != observed._MESSAGES[1] or not meant(method, request):
            return response
        return observed._with_body(response, _Cut(response.stream, ends, drops))  # type: ignore[arg-type]

    patch.setattr(ObservedTransport, "_ask", ask)


def _lists(method: str, _: httpx2.Request) -> bool:
    return method == "tools/list"


def reads_bodies_only(patch: Patch) -> None:
    """Takes no stream for the answer to a request for the prompts."""
    _streams(patch, lambda method, _: method == "prompts/list", ends=lambda _: True)


def comments_end_it(patch: Patch) -> None:
    """Takes a comment on a stream for a mistake, and reads no further."""
    _streams(patch, _lists, ends=lambda chunk: chunk.startswith(b":"))


def empty_events_end_it(patch: Patch) -> None:
    """Takes an event without data for a mistake, and reads no further."""
    _streams(patch, _lists, ends=lambda chunk: b"data:\n" in chunk)


def hears_one_stream(patch: Patch) -> None:
    """Hears no notices on the streams that answer calls."""
    _streams(patch, lambda method, _: method == "tools/call", drops=b"list_changed")


def waits_for_the_rest(patch: Patch) -> None:
    """Takes a list whose stream broke for one that it has asked for already."""
    patch.setattr(reference, "NEED_LIMIT_S", 0.5)
    broken: set[Connection] = set()
    real_on, real_ask = Connection.on_exchange, Connection.ask

    def on_exchange(self: Connection, wire_id: Any, exchange: Exchange) -> None:
        asked = self._hearing._asked.get(wire_id)
        if isinstance(asked, e.RequestPage) and exchange.status is None:
            broken.add(self)
        real_on(self, wire_id, exchange)

    def ask(self: Connection, effect: Any) -> None:
        if self not in broken or not isinstance(effect, e.RequestPage):
            real_ask(self, effect)

    patch.setattr(Connection, "on_exchange", on_exchange)
    patch.setattr(Connection, "ask", ask)


def comes_back_at_once(patch: Patch) -> None:
    """Does not wait as long as it was told before it resumes a stream."""
    real = StreamableHTTPTransport._handle_reconnection

    async def resume(self: Any, ctx: Any, event_id: str, _: Any = None, tries: int = 0) -> None:
        await real(self, ctx, event_id, 50, tries)

    patch.setattr(StreamableHTTPTransport, "_handle_reconnection", resume)


# --- failures -----------------------------------------------------------------------------------


def _lists_failing(patch: Patch, change: Callable[[e.RequestPage, Failure], Failure]) -> None:
    """Read the failures of list requests otherwise."""
    real = requests.failed

    def failed(effect: Any, failure: Failure, at_ms: int) -> Heard[SessionInput]:
        if isinstance(effect, e.RequestPage):
            failure = change(effect, failure)
        return real(effect, failure, at_ms)

    patch.setattr(hearing, "failed", failed)


def _retries(patch: Patch, when: Callable[[Failure | None], bool]) -> None:
    """Try again after a tenth of a second, after such failures."""
    real = Policy.backoff_ms

    def backoff_ms(
        self: Policy, failures: int, owner: str, serial: int, failure: Failure | None = None
    ) -> int:
        return 100 if when(failure) else real(self, failures, owner, serial, failure)

    patch.setattr(Policy, "backoff_ms", backoff_ms)


def hammers_a_faulty_server(patch: Patch) -> None:
    """Tries again at once after a fault of the server."""
    _retries(patch, lambda failure: failure is not None and failure.status == 500)


def ignores_retry_after(patch: Patch) -> None:
    """Does not wait until the time that a server names."""
    _retries(patch, lambda failure: failure is not None and failure.retry_after_ms is not None)


def repeats_what_was_refused(patch: Patch) -> None:
    """Takes a refusal that a repetition cannot mend for one that will pass."""

    def change(_: e.RequestPage, failure: Failure) -> Failure:
        return evolve(failure, code=_PASSING) if failure.code == -32021 else failure

    _lists_failing(patch, change)
    _retries(patch, lambda failure: failure is not None and failure.code == _PASSING)


def takes_any_answer(patch: Patch) -> None:
    """Takes a list that answers nobody's request for the one that it waits for."""
    real = Hearing.hear

    def hear(self: Hearing, message: Any, at_ms: int) -> Any:
        wire_id, result = getattr(message, "id", None), getattr(message, "result", None) or {}
        if "tools" in result and wire_id not in self._asked:
            for own, effect in self._asked.items():
                if isinstance(effect, e.RequestPage) and effect.kind is Kind.TOOLS:
                    return real(self, message.model_copy(update={"id": own}), at_ms)
        return real(self, message, at_ms)

    patch.setattr(Hearing, "hear", hear)


def one_failure_stops_all(patch: Patch) -> None:
    """Asks for nothing more while the prompts cannot be listed."""
    failing = [False]

    def change(effect: e.RequestPage, failure: Failure) -> Failure:
        failing[0] = failing[0] or (effect.kind is Kind.PROMPTS and failure.code == -32603)
        return failure

    real_ask, real_init = Connection.ask, Connection.__init__

    def begin(self: Connection, *given: Any) -> None:
        failing[0] = False
        real_init(self, *given)

    def ask(self: Connection, effect: Any) -> None:
        if not (failing[0] and isinstance(effect, e.RequestPage) and effect.kind is Kind.TOOLS):
            real_ask(self, effect)

    _lists_failing(patch, change)
    patch.setattr(Connection, "__init__", begin)
    patch.setattr(Connection, "ask", ask)


def notices_break_the_wait(patch: Patch) -> None:
    """Tries again at each notice, however often it failed."""

    def due(catalog: Catalog, heard: i.ListChangedHeard, policy: Policy, to: Phase) -> Step:
        if not catalog.pacing.failures:
            return doubt.keep_doubting(catalog, heard, policy, to)
        return Step(evolve(catalog, pacing=evolve(catalog.pacing, due_at_ms=heard.now_ms)))

    rows = dict(machine._CATALOG_ROWS)
    rows[i.ListChangedHeard] = {
        **rows[i.ListChangedHeard],
        Phase.STALE: (Row(None, Phase.STALE, due),),
    }
    patch.setattr(machine, "_CATALOG_ROWS", rows)


# --- lost sessions and connections --------------------------------------------------------------


def goes_on_where_it_was(patch: Patch) -> None:
    """Asks a new session first for the page that it asked the one before for last."""
    open_cursor: dict[Kind, str] = {}
    fresh: set[Kind] = set()
    real = requests.request_of
    real_init = Connection.__init__

    def begin(self: Connection, epoch: int, *given: Any) -> None:
        fresh.update(Kind)
        if epoch == 1:
            open_cursor.clear()
        real_init(self, epoch, *given)

    def request_of(effect: Any, client: Any) -> requests.Request:
        if isinstance(effect, e.RequestPage):
            if effect.cursor is not None:
                open_cursor[effect.kind] = effect.cursor
            elif effect.kind in fresh:
                effect = evolve(effect, cursor=open_cursor.pop(effect.kind, None))
            fresh.discard(effect.kind)
        return real(effect, client)

    patch.setattr(Connection, "__init__", begin)
    patch.setattr(speech, "request_of", request_of)


def forgets_with_the_connection(patch: Patch) -> None:
    """Throws its lists away when the connection is lost."""

    def lost(act: Any) -> Any:
        def forget(catalog: Catalog, *given: Any) -> Step:
            state, effects = act(catalog, *given)
            return Step(evolve(state, snapshot=None), effects)

        return forget

    rows = dict(machine._CATALOG_ROWS)
    rows[i.LinkLost] = {
        phase: tuple(row._replace(action=lost(row.action)) for row in cell)
        for phase, cell in rows[i.LinkLost].items()
    }
    patch.setattr(machine, "_CATALOG_ROWS", rows)


DEFECTS = (
    Defect("forgets-the-session", "session:named-in-each-request", forgets_the_session),
    Defect("forgets-the-version", "http:version-in-each-request", forgets_the_version),
    Defect("forgets-the-method", "http:headers-mirror-the-body", forgets_the_method),
    Defect("forgets-the-token", "auth:every-request", forgets_the_token),
    Defect("reads-bodies-only", "stream:answer", reads_bodies_only),
    Defect("comments-end-it", "stream:comments", comments_end_it),
    Defect("empty-events-end-it", "stream:priming-event", empty_events_end_it),
    Defect("hears-one-stream", "stream:of-an-answer", hears_one_stream),
    Defect("waits-for-the-rest", "stream:broken-is-not-resumed", waits_for_the_rest),
    Defect("comes-back-at-once", "stream:answer:retry-is-respected", comes_back_at_once),
    Defect("hammers-a-faulty-server", "failure:server-fault", hammers_a_faulty_server),
    Defect("ignores-retry-after", "failure:retry-after", ignores_retry_after),
    Defect("repeats-what-was-refused", "failure:not-repeated-unchanged", repeats_what_was_refused),
    Defect("takes-an-answer-to-another", "failure:wrong-id", takes_any_answer),
    Defect("one-failure-stops-all", "failure:other-kinds-go-on", one_failure_stops_all),
    Defect("notices-break-the-wait", "failure:notice-while-waiting", notices_break_the_wait),
    Defect("goes-on-where-it-was", "session:lost-in-a-walk", goes_on_where_it_was),
    Defect("forgets-with-the-connection", "reconnect:list-survives", forgets_with_the_connection),
)
