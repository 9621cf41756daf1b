"""Defects in what is made of frames of the wrong shape, and of those that come at odd moments."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from attrs import evolve

from mutants.kit import Defect, Patch, Result, results
from relist import effects as e
from relist import freshness, messages, paging, requests
from relist import inputs as i
from relist.inputs import SessionInput
from relist.messages import Heard, is_object
from relist.paging import Listing
from relist.rules import walk
from relist.values import Kind
from relist_conformance.drivers.base import Answer
from relist_conformance.drivers.reference import ReferenceConnection
from relist_mcp import hearing, tap
from relist_mcp.connection import Connection
from relist_mcp.exchange import now_ms

ENDLESS_MS = 10**13


def missing_is_empty(patch: Patch) -> None:
    """Takes a result without a list for one of an empty list."""
    results(patch, lambda _, result: {"tools": []} | result)


def anything_is_a_list(patch: Patch) -> None:
    """Takes what is no list for an empty one."""

    def change(_: Any, result: Result) -> Result:
        number = isinstance(result.get("tools"), int)
        return result | {"tools": []} if number else result

    results(patch, change)


def bad_entry_empties(patch: Patch) -> None:
    """Offers nothing of a list that holds one entry of the wrong shape."""

    def change(_: Any, result: Result) -> Result:
        bad = any(not is_object(entry) for entry in result.get("tools", ()))
        return result | {"tools": []} if bad else result

    results(patch, change)


def any_type_will_do(patch: Patch) -> None:
    """Uses results of types that it does not know."""
    known = ("complete", "input_required")

    def change(_: Any, result: Result) -> Result:
        kind = result.get("resultType", "complete")
        return result if kind in known else result | {"resultType": "complete"}

    results(patch, change)


def untyped_is_empty(patch: Patch) -> None:
    """Takes a result that does not name its type for one of an empty list."""

    def change(_: object, result: Result) -> Result:
        typed = "resultType" in result or "ttlMs" not in result  # legacy results have no type
        return result if typed else result | {"tools": []}

    results(patch, change)


def _lifetimes(patch: Patch, endless: Callable[[Any], bool]) -> None:
    """Do not cap such lifetimes."""
    real = freshness.lifetime_ms

    def lifetime_ms(raw: object, policy: Any) -> int | None:
        return ENDLESS_MS if endless(raw) else real(raw, policy)

    patch.setattr(paging, "lifetime_ms", lifetime_ms)


def text_means_no_limit(patch: Patch) -> None:
    """Takes a lifetime that is no number for one without end."""
    real = messages.read_ttl_ms
    patch.setattr(
        messages,
        "read_ttl_ms",
        lambda result: ENDLESS_MS if isinstance(result.get("ttlMs"), str) else real(result),
    )
    _lifetimes(patch, lambda raw: raw == ENDLESS_MS)


def believes_any_lifetime(patch: Patch) -> None:
    """Keeps a list as long as the server says, were it a thousand years."""
    _lifetimes(patch, lambda raw: isinstance(raw, int) and raw > ENDLESS_MS)


def offers_repeated_items(patch: Patch) -> None:
    """Offers an item as often as it came."""

    def join(received: Any) -> Listing:
        return Listing(tuple(item for page in received for item in page), frozenset())

    patch.setattr(walk, "join", join)


def _gives_up(patch: Patch, on: Callable[[Any], bool]) -> None:
    """Give the server up for good on hearing such a frame."""
    real = Connection._on_frame

    def on_frame(self: Connection, message: Any) -> bool:
        if on(message):
            self._tell(i.CloseWanted(now_ms()))
            return True
        return real(self, message)

    patch.setattr(Connection, "_on_frame", on_frame)


def _tools(message: Any) -> list[Any]:
    result = getattr(message, "result", None)
    return list(result.get("tools", ())) if isinstance(result, dict) else []


def gives_up_on_many(patch: Patch) -> None:
    """Gives a server up that has many tools."""
    _gives_up(patch, lambda message: len(_tools(message)) > 1_000)


def gives_up_on_depth(patch: Patch) -> None:
    """Gives a server up that nests schemas deeply."""
    _gives_up(
        patch, lambda message: any(json.dumps(tool).count("{") > 50 for tool in _tools(message))
    )


def takes_a_notice_for_the_answer(patch: Patch) -> None:
    """Gives a server up that says anything before it answers ``initialize``."""
    waiting = [False]
    real = Connection.ask

    def ask(self: Connection, effect: Any) -> None:
        waiting[0] = isinstance(effect, e.RequestInitialize)
        real(self, effect)

    patch.setattr(Connection, "ask", ask)
    _gives_up(patch, lambda message: waiting[0] and "list_changed" in str(message))


def gives_up_on_garbage(patch: Patch) -> None:
    """Hangs up on a line that is no JSON, and for good."""
    real = tap._Watched.receive

    async def receive(self: tap._Watched) -> Any:
        item = await real(self)
        if isinstance(item, Exception):
            connection: Connection = self._on_end.__self__  # type: ignore[attr-defined]
            connection._tell(i.CloseWanted(now_ms()))
        return item

    patch.setattr(tap._Watched, "receive", receive)


def calls_whatever_was_planned(patch: Patch) -> None:
    """Calls a tool by its name, on whatever it was planned."""

    async def call(
        self: ReferenceConnection, name: str, arguments: Mapping[str, Any], _: Any
    ) -> Answer:
        return await self.call(name, arguments)

    patch.setattr(ReferenceConnection, "call_planned", call)


def keeps_old_capabilities(patch: Patch) -> None:
    """Believes for ever what the server said at first."""
    real, first = messages.read_capabilities, dict[str, Any]()
    init = Connection.__init__

    def begin(self: Connection, epoch: int, *more: Any) -> None:
        if epoch == 1:
            first.clear()
        init(self, epoch, *more)

    patch.setattr(Connection, "__init__", begin)
    patch.setattr(messages, "read_capabilities", lambda value: first.setdefault("it", real(value)))


def lists_before_it_is_ready(patch: Patch) -> None:
    """Sends a list request ahead of ``notifications/initialized``."""
    real = Connection.welcome

    def welcome(self: Connection) -> None:
        self._send(self._voice.request("early", e.RequestPage(Kind.TOOLS, 0, None)))
        real(self)

    patch.setattr(Connection, "welcome", welcome)


def knows_two_codes(patch: Patch) -> None:
    """Takes a server for legacy on two error codes only."""
    real = requests.failed

    def failed(effect: Any, failure: Any, at_ms: int) -> Heard[SessionInput]:
        if isinstance(effect, e.RequestDiscover) and failure.code not in (-32601, -32602):
            failure = evolve(failure, code=-32022, supported=("2099-01-01",))
        return real(effect, failure, at_ms)

    patch.setattr(hearing, "failed", failed)


DEFECTS = (
    Defect("missing-is-empty", "malformed:no-list", missing_is_empty),
    Defect("anything-is-a-list", "malformed:list-of-another-type", anything_is_a_list),
    Defect("bad-entry-empties", "malformed:one-bad-item", bad_entry_empties),
    Defect("any-type-will-do", "malformed:unknown-result-type", any_type_will_do),
    Defect("untyped-is-empty", "malformed:absent-result-type", untyped_is_empty),
    Defect("text-means-no-limit", "malformed:wrong-lifetime", text_means_no_limit),
    Defect("believes-any-lifetime", "malformed:huge-lifetime", believes_any_lifetime),
    Defect("offers-repeated-items", "paging:repeated-item", offers_repeated_items),
    Defect("gives-up-on-many", "hostile:many-items", gives_up_on_many),
    Defect("gives-up-on-depth", "hostile:deep-schema", gives_up_on_depth),
    Defect("notice-for-answer", "handshake:early-notice", takes_a_notice_for_the_answer),
    Defect("gives-up-on-garbage", "malformed:not-json", gives_up_on_garbage),
    Defect("calls-whatever", "call:planned-on-a-changed-tool", calls_whatever_was_planned),
    Defect("keeps-old-capabilities", "reconnect:other-capabilities", keeps_old_capabilities),
    Defect("lists-before-ready", "handshake:initialized-before-listing", lists_before_it_is_ready),
    Defect("knows-two-codes", "era:any-error-means-legacy", knows_two_codes),
)
