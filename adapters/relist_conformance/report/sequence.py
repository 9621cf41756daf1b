"""The sequence diagram of a finding: what client, server and truth did, as rows to be drawn.

Three lanes. The client and the server exchange messages; beside the client stands what it told its
application, beside the truth what the catalogs really were. Polls that found nothing new are left
out, and of a long history what is near the witness is shown. All texts are safe and short.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, cast

from attrs import frozen

from relist.check.history import Event, History, mapping
from relist.messages import is_list
from relist_conformance.errors import plain

Shape = Literal["to_server", "to_client", "client", "server", "truth", "line", "gap"]
"""An arrow, a note on a lane, a line across all, or events that are left out."""

ROWS_MAX = 40
_LABEL_MAX = 46
_FRAME_MAX = 900
_ITEMS_MAX = 12


@frozen
class Row:
    """One line of the diagram. ``frame`` is the whole event, bounded; ``shows``: it is witness."""

    shape: Shape
    at_ms: int
    label: str
    frame: str
    shows: bool = False


def rows(history: History, witness: Sequence[int]) -> tuple[Row, ...]:
    """The diagram of a history in which these events show what is wrong."""
    told = [event for event in _telling(history, witness) if event.kind in _SHAPES]
    kept = _near([event.seq for event in told], witness)
    return tuple(_with_gaps(told, kept, witness))


def _near(numbers: Sequence[int], witness: Sequence[int]) -> frozenset[int]:
    """Of these events as many as can be shown: the nearest to the witness."""

    def distance(seq: int) -> tuple[int, int]:
        return min((abs(seq - one) for one in witness), default=seq), seq

    return frozenset(sorted(numbers, key=distance)[:ROWS_MAX])


def _with_gaps(
    told: Iterable[Event], kept: frozenset[int], witness: Sequence[int]
) -> Iterator[Row]:
    left_out = 0
    for event in told:
        if event.seq not in kept:
            left_out += 1
            continue
        if left_out:
            yield _gap(left_out)
        left_out = 0
        yield _row(event, witness)
    if left_out:
        yield _gap(left_out)


def _gap(count: int) -> Row:
    return Row("gap", -1, f"{count} event{'s' if count > 1 else ''} left out", "")


# --- which events tell something ------------------------------------------------------------------


def _telling(history: History, witness: Sequence[int]) -> Iterator[Event]:
    """Without pings, script steps, exchanges as such, and answers that repeat the last one."""
    pings = _pings(history)
    posts = _posts(history)
    carried = {event.channel for event in history if event.seq in pings}
    carried -= {e.channel for e in history if e.kind in ("in", "out") and e.seq not in pings}
    last: dict[tuple[object, object], object] = {}
    for event in history:
        told = (event.data.get("op"), event.data.get("kind"))
        if event.kind == "answer":
            answer = {name: event.data.get(name) for name in ("ok", "error")}
            again = last.get(told) == answer and told[0] in ("need", "believe", "idle")
            last[told] = answer
        else:
            again = event.kind in ("step", "ask")
        # Over HTTP each answer to a ping has an exchange of its own, and each request opens one.
        for_ping = event.seq in pings or (event.kind == "status" and event.channel in carried)
        opens = event.kind in ("open", "close") and event.channel in posts
        if event.seq in witness or not (again or for_ping or opens):
            yield event


def _pings(history: History) -> frozenset[int]:
    """The events that are pings and answers to them, which may come on another channel."""
    asked: set[str] = set()
    found: set[int] = set()
    for event in history:
        message = event.message or {}
        own_id = f"{'out' if event.kind == 'in' else 'in'} {message.get('id')!r}"
        if message.get("method") == "ping":
            asked.add(own_id)
            found.add(event.seq)
        elif "method" not in message and f"{event.kind} {message.get('id')!r}" in asked:
            found.add(event.seq)
    return frozenset(found)


def _posts(history: History) -> frozenset[str]:
    """The channels that are a POST each: what they carry says all."""
    return frozenset(
        event.channel
        for event in history
        if event.kind == "open" and event.data.get("channel_kind") == "post"
    )


# --- one event ------------------------------------------------------------------------------------


def _row(event: Event, witness: Sequence[int]) -> Row:
    shape: Shape = "truth" if "changed" in event.data else _SHAPES[event.kind]
    shows = event.seq in witness
    return Row(shape, event.at_ms, plain(_label(event), _LABEL_MAX), _frame(event), shows)


_SHAPES: Mapping[str, Shape] = {
    "in": "to_server",
    "out": "to_client",
    "status": "to_client",
    "ask": "client",
    "answer": "client",
    "open": "server",
    "close": "server",
    "cut": "server",
    "note": "server",
    "step": "server",
    "mark": "line",
    "fence": "line",
    "truth": "truth",
}


def _label(event: Event) -> str:
    data = event.data
    match event.kind:
        case "in" | "out":
            return _message(event.message or {}, data)
        case "status":
            return f"HTTP {data.get('code', '')}"
        case "ask":
            return f"is asked: {_joined(data.get('op'), data.get('kind'))}"
        case "answer":
            return _answer(data)
        case "mark":
            return str(data.get("name"))
        case "fence":
            return "fence" if data.get("passed") else "fence, not passed"
        case "note" if "changed" in data:
            return f"{_listed(data['changed'])}: changed"
        case "truth":
            return _truth(data)
        case _:
            told = ", ".join(f"{name} {value}" for name, value in data.items())
            return _joined(event.kind, event.channel) if event.kind != "note" else told


def _message(message: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    if "malformed" in data:
        return "no JSON-RPC message"
    if "method" in message:
        page = data.get("page")
        return _joined(message["method"], f"(page {page})" if page not in (None, 1) else "")
    error = mapping(message.get("error"))
    if error is not None:
        return f"error {error.get('code')}"
    return _result(mapping(message.get("result")) or {})


def _result(result: Mapping[str, Any]) -> str:
    for name in ("tools", "prompts", "resources", "resourceTemplates"):
        items = result.get(name)
        if is_list(items):
            more = ", and more" if result.get("nextCursor") is not None else ""
            return f"{name}: {_items(items)}{more}"
    return "result"


def _items(items: Sequence[object]) -> str:
    return ", ".join(_item(one) for one in items[:_ITEMS_MAX]) or "none"


def _item(item: object) -> str:
    found = mapping(item) or {}
    name, description = (str(found.get(field)) for field in ("name", "description"))
    return description if description.rpartition("@")[0] == name else name


def _answer(data: Mapping[str, Any]) -> str:
    answer = mapping(data.get("ok"))
    op = data.get("op")
    if answer is None:
        return f"{op} fails: {data.get('error')}"
    if op in ("need", "believe"):
        items = answer.get("items")
        listed = _items(items) if is_list(items) else "no list"
        return f"{'offers' if op == 'need' else 'believes'} {listed}"
    return _joined(op, answer.get("outcome") or answer.get("idle"), mark=": ")


def _truth(data: Mapping[str, Any]) -> str:
    pages = mapping(data.get("pages")) or {}
    told = "; ".join(f"{kind}: {_pages(held)}" for kind, held in pages.items())
    return _joined(data.get("principal"), told or "nothing", mark=": ")


def _pages(pages: object) -> str:
    if not isinstance(pages, list | tuple):
        return str(pages)
    some = [_listed(page) for page in cast("Sequence[object]", pages)[:_ITEMS_MAX]]
    return " | ".join(some) or "none"


def _listed(names: object) -> str:
    if isinstance(names, list | tuple):
        return ", ".join(map(str, cast("Sequence[object]", names)[:_ITEMS_MAX])) or "none"
    return str(names)


def _joined(*parts: object, mark: str = " ") -> str:
    return mark.join(str(part) for part in parts if part not in (None, ""))


def _frame(event: Event) -> str:
    """The whole event for whoever points at it."""
    carried: Any = event.message or event.data
    body = json.dumps(carried, ensure_ascii=False, default=str)
    where = f" on {event.channel}" if event.channel else ""
    return plain(f"#{event.seq} at {event.at_ms} ms{where}: {event.kind} {body}", _FRAME_MAX)
