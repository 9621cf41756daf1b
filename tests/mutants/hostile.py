"""Defects before hostile servers: frames nobody expects, storms, and requests of the server."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from attrs import evolve
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from mutants import inside
from mutants.kit import Defect, Patch, pages, replace
from mutants.shapes import _gives_up, _tools
from relist import inputs as i
from relist.effects import Publish, RequestPage
from relist.messages import Heard
from relist.policy import Policy
from relist.requests import answered
from relist.rules import doubt
from relist.rules.base import Step
from relist.rules.walk import note_late
from relist.session import Run
from relist.values import KINDS, WALKING, Catalog, Kind, Phase
from relist_mcp.connection import Connection
from relist_mcp.hearing import Hearing, canonical

OF_THE_LANGUAGE = ("constructor", "prototype", "length", "none", "null", "self", "keys")
OVERTAKEN_MS = 10
MANY = 300


def gives_up_on_control_characters(patch: Patch) -> None:
    """Gives a server up that has a name with a zero byte."""
    _gives_up(patch, lambda message: any("\x00" in tool["name"] for tool in _tools(message)))


def gives_up_on_long_texts(patch: Patch) -> None:
    """Gives a server up that has a title of many letters."""
    _gives_up(
        patch,
        lambda message: any(len(tool.get("title", "")) > 50_000 for tool in _tools(message)),
    )


def gives_up_on_numbers(patch: Patch) -> None:
    """Gives a server up that writes a number which no machine holds."""
    _gives_up(patch, lambda message: "inf" in str(getattr(message, "result", "")))


# --- answers ---


def _takes(patch: Patch, result_of: Callable[[Hearing, Any, list[RequestPage]], Any]) -> None:
    """Take this for a new list of tools, whatever is held."""
    asked: list[RequestPage] = []
    taken: list[Any] = []
    expect, read = Hearing.expect, Hearing._read

    def expecting(self: Hearing, effect: Any) -> str:
        if isinstance(effect, RequestPage):
            asked.append(effect)
        return expect(self, effect)

    def reading(self: Hearing, message: Any, at_ms: int) -> Heard[Any] | None:
        result = result_of(self, message, asked)
        if result is None:
            return read(self, message, at_ms)
        heard = answered(asked[-1], {"resultType": "complete", **result}, canonical, at_ms)
        taken.append(heard.heard)
        return heard

    def overwrite(catalog: Catalog, heard: i.PageArrived, policy: Policy, to: Phase) -> Step:
        if catalog.snapshot is None or not any(heard is one for one in taken):
            return note_late(catalog, heard, policy, to)
        old = evolve(catalog.snapshot, items=heard.items, generation=catalog.generation + 1)
        state = evolve(catalog, snapshot=old, generation=old.generation)
        return Step(state, (Publish(catalog.kind, old, True),))

    patch.setattr(Hearing, "expect", expecting)
    patch.setattr(Hearing, "_read", reading)
    replace(patch, i.PageArrived, {Phase.FRESH: overwrite})


def _list_in(result: object) -> Any:
    return result if isinstance(result, dict) and result.get("tools") else None


def takes_any_answer(patch: Patch) -> None:
    """Takes a list for its own that answers no request."""

    def result_of(_: Hearing, message: Any, asked: list[RequestPage]) -> Any:
        stray = isinstance(message, JSONRPCResponse) and asked
        return _list_in(message.result) if stray and "nobody" in str(message.id) else None

    _takes(patch, result_of)


def takes_the_last_answer(patch: Patch) -> None:
    """Takes a second answer to a request for the better one."""

    def result_of(self: Hearing, message: Any, asked: list[RequestPage]) -> Any:
        if not (isinstance(message, JSONRPCResponse) and asked) or message.id in self._asked:
            return None
        return _list_in(message.result) if str(message.id).startswith("relist/tools") else None

    _takes(patch, result_of)


def takes_the_list_of_a_notice(patch: Patch) -> None:
    """Takes the list that a notice carries, and asks for none."""

    def result_of(_: Hearing, message: Any, __: Any) -> Any:
        return _list_in(message.params) if isinstance(message, JSONRPCNotification) else None

    _takes(patch, result_of)


def result_and_error_is_empty(patch: Patch) -> None:
    """Takes an answer that is a result and an error for an empty list."""
    real = inside._read

    def read(message: Any) -> Any:
        if isinstance(message, dict) and {"result", "error"} <= message.keys():
            emptied = {**message["result"], "tools": []}
            message = {key: message[key] for key in message if key != "error"} | {"result": emptied}
        return real(message)

    patch.setattr(inside, "_read", read)


def loses_names_of_the_language(patch: Patch) -> None:
    """Does not see tools that are called as its language calls things."""

    def without(heard: i.PageArrived) -> i.PageArrived:
        kept = tuple(item for item in heard.items if item.key not in OF_THE_LANGUAGE)
        return evolve(heard, items=kept)

    pages(patch, without)


# --- requests of the server ---


def _deaf_to_requests(patch: Patch, deaf: Callable[[Connection, JSONRPCRequest], bool]) -> None:
    real = Connection._on_frame

    def on_frame(self: Connection, message: Any) -> bool:
        if isinstance(message, JSONRPCRequest) and deaf(self, message):
            return True
        return real(self, message)

    patch.setattr(Connection, "_on_frame", on_frame)


def answers_no_ping_while_it_lists(patch: Patch) -> None:
    """Does not answer a ping while it waits for a list."""

    def lists(self: Connection, _: JSONRPCRequest) -> bool:
        return any(isinstance(effect, RequestPage) for effect in self._hearing._asked.values())

    _deaf_to_requests(patch, lists)


def answers_what_it_knows(patch: Patch) -> None:
    """Answers no request whose method it does not know."""
    _deaf_to_requests(patch, lambda _, message: message.method != "ping")


def answers_in_each_era(patch: Patch) -> None:
    """Answers requests of the server in an era that has none."""
    real = Connection._on_frame

    def on_frame(self: Connection, message: Any) -> bool:
        return not isinstance(message, JSONRPCRequest) and real(self, message)

    patch.setattr(Connection, "_on_frame", on_frame)


# --- storms ---


def hears_one_kind_at_a_time(patch: Patch) -> None:
    """Does not hear notices of one kind while it lists another."""
    real = Run.notice

    def notice(self: Run, heard: i.NoticeHeard) -> None:
        walking = {one.kind for one in self._catalogs if one.phase in WALKING}
        own = {kind for kind in KINDS if heard.channel.value in kind.value} | {Kind.TEMPLATES}
        if not walking - own:
            real(self, heard)

    patch.setattr(Run, "notice", notice)


def damps_only_its_own_echo(patch: Patch) -> None:
    """Takes a notice for feedback only when it comes at once after a listing of that kind."""
    real = doubt._spaced

    def spaced(catalog: Catalog, at_ms: int, now_ms: int, policy: Policy) -> tuple[int, int]:
        listed_ms = catalog.pacing.listed_at_ms
        if listed_ms is not None and now_ms > listed_ms + OVERTAKEN_MS:
            return at_ms, 0
        return real(catalog, at_ms, now_ms, policy)

    patch.setattr(doubt, "_spaced", spaced)


def owes_a_listing_for_each_notice(patch: Patch) -> None:
    """Keeps the notices that come while it lists, and lists once for each."""
    real = Connection._tell
    kept: list[i.NoticeHeard] = []

    def tell(self: Connection, heard: Any) -> None:
        lists = any(isinstance(effect, RequestPage) for effect in self._hearing._asked.values())
        if isinstance(heard, i.NoticeHeard) and lists:
            kept.append(heard)
            return
        real(self, heard)
        if isinstance(heard, i.PageArrived) and kept:
            real(self, kept.pop())

    patch.setattr(Connection, "_tell", tell)
    patch.setattr(Policy, "gap_ms", lambda *_: 0)


def wants_it_undisturbed(patch: Patch) -> None:
    """Offers no listing during which there was a notice, however many there are."""
    patch.setitem(inside.POLICY, "spoiled_in_row_max", 10**9)


def drops_who_talks_much(patch: Patch) -> None:
    """Hears no more notices after three hundred."""
    real = Connection._tell
    heard_by: Counter[int] = Counter()

    def tell(self: Connection, heard: Any) -> None:
        if isinstance(heard, i.NoticeHeard):
            heard_by[id(self)] += 1
            if heard_by[id(self)] > MANY:
                return
        real(self, heard)

    patch.setattr(Connection, "_tell", tell)


DEFECTS = (
    Defect("gives-up-on-control", "hostile:odd-text", gives_up_on_control_characters),
    Defect("gives-up-on-long-texts", "hostile:huge-entries", gives_up_on_long_texts),
    Defect("gives-up-on-numbers", "hostile:numbers", gives_up_on_numbers),
    Defect("takes-any-answer", "hostile:answers-nobody-asked-for", takes_any_answer),
    Defect("takes-the-last-answer", "hostile:answered-twice", takes_the_last_answer),
    Defect("takes-the-list-of-a-notice", "hostile:notice-with-a-tail", takes_the_list_of_a_notice),
    Defect("both-is-empty", "hostile:result-and-error", result_and_error_is_empty),
    Defect("loses-names", "hostile:names-of-the-language", loses_names_of_the_language),
    Defect("no-pong-while-listing", "peer:ping-while-listing", answers_no_ping_while_it_lists),
    Defect("answers-what-it-knows", "peer:unknown-request", answers_what_it_knows),
    Defect("answers-in-each-era", "peer:no-answers", answers_in_each_era),
    Defect("hears-one-kind", "storm:all-kinds", hears_one_kind_at_a_time),
    Defect("damps-only-its-own-echo", "storm:feedback:across-kinds", damps_only_its_own_echo),
    Defect("owes-a-listing", "storm:while-listing", owes_a_listing_for_each_notice),
    Defect("wants-it-undisturbed", "storm:refresh-ends", wants_it_undisturbed),
    Defect("drops-who-talks-much", "storm:hundreds-at-once", drops_who_talks_much),
)
