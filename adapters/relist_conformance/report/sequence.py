"""The sequence diagram of a finding: what client, server and truth did, as rows to be drawn.

Three lanes. The client and the server exchange messages; beside the client stands what it told its
application, beside the truth what the catalogs really were. Polls that found nothing new are left
out, and of a long history what is near the witness is shown. All texts are safe and short.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from attrs import evolve, frozen

from relist.check.history import Event, History
from relist_conformance.errors import plain
from relist_conformance.report.labels import label

Shape = Literal["to_server", "to_client", "client", "server", "truth", "line", "gap"]
"""An arrow, a note on a lane, a line across all, or events that are left out."""

ROWS_MAX = 40
_LABEL_MAX = 46
_FRAME_MAX = 900
_ACCEPTED = 202
_ACTS = ("connect", "credentials", "advance", "stop")
"""Commands of which it tells something that they were given, and nothing that they were done."""
_TOLD_ASKED = ("call", "refresh", *_ACTS)
"""Commands that the client did not act without; of others the answer tells enough."""


@frozen
class Row:
    """One line of the diagram. ``frame`` is the whole event, bounded; ``shows``: it is witness.

    ``leaves``: here the client left what the reference machine allows.
    """

    shape: Shape
    at_ms: int
    label: str
    frame: str
    shows: bool = False
    leaves: bool = False


def rows(history: History, witness: Sequence[int], leaves: int | None = None) -> tuple[Row, ...]:
    """The diagram of a history in which these events show what is wrong.

    ``leaves`` is the first event that the reference machine does not allow, if there is one.
    """
    about = witness if leaves is None else (*witness, leaves)
    told = [event for event in _telling(history, about) if event.kind in _SHAPES]
    kept = _near([event.seq for event in told], about)
    return tuple(_with_gaps(told, kept, witness, leaves))


def _near(numbers: Sequence[int], witness: Sequence[int]) -> frozenset[int]:
    """Of these events as many as can be shown: the nearest to the witness."""

    def distance(seq: int) -> tuple[int, int]:
        return min((abs(seq - one) for one in witness), default=seq), seq

    return frozenset(sorted(numbers, key=distance)[:ROWS_MAX])


def _with_gaps(
    told: Iterable[Event], kept: frozenset[int], witness: Sequence[int], leaves: int | None
) -> Iterator[Row]:
    left_out = 0
    for event in told:
        if event.seq not in kept:
            left_out += 1
            continue
        if left_out:
            yield _gap(left_out)
        left_out = 0
        row = _row(event, witness)
        yield evolve(row, leaves=True) if event.seq == leaves else row
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
            again = again or (told[0] in _ACTS and answer["ok"] is not None)
            last[told] = answer
        else:
            again = event.kind == "step" or (event.kind == "ask" and told[0] not in _TOLD_ASKED)
        again = again or (event.kind == "status" and event.data.get("code") == _ACCEPTED)
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
    return Row(
        _shape(event), event.at_ms, label(event, _LABEL_MAX), _frame(event), event.seq in witness
    )


def _shape(event: Event) -> Shape:
    if "changed" in event.data:
        return "truth"
    if "ended" in event.data:
        return "line"
    asks = event.kind == "open" and event.data.get("channel_kind") in ("get", "delete")
    return "to_server" if asks else _SHAPES[event.kind]


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


def _frame(event: Event) -> str:
    """The whole event for whoever points at it."""
    carried: Any = event.message or event.data
    body = json.dumps(carried, ensure_ascii=False, default=str)
    where = f" on {event.channel}" if event.channel else ""
    return plain(f"#{event.seq} at {event.at_ms} ms{where}: {event.kind} {body}", _FRAME_MAX)
