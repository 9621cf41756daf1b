"""The judgements on single frames of a client: how they look, their ids, what is cancelled. Pure.

With those of ``misses`` these are all that there are; who wants them takes ``misses`` from here.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from relist.check import expect as x
from relist.check.history import Event, History, mapping
from relist.check.misses import Miss, misses
from relist.check.seen import Unknown, matching, need_fence, sent_as, window

__all__ = ["misses"]

_SESSION_HEADER = "mcp-session-id"
_POST = "post"


@misses.register
def _(expectation: x.Each, history: History) -> Iterator[Miss]:
    sent = matching(expectation.request, expectation, history)
    if not sent:
        raise Unknown(f"the client did not send {expectation.request}")
    like = {event.seq for event in matching(expectation.like, expectation, history)}
    for event in sent:
        if event.seq not in like:
            yield Miss(f"{sent_as(event)} was sent, and was not {expectation.like}", (event.seq,))
            return


@misses.register
def _(_expectation: x.WellFormed, history: History) -> Iterator[Miss]:
    asked: set[str] = set()
    for event in history:
        message = event.message or {}
        if event.kind == "out" and "method" in message and "id" in message:
            asked.add(_id_of(message))
        elif event.kind == "in" and event.message is None:
            yield Miss("the client sent what is no message of MCP", (event.seq,))
            return
        elif event.kind == "in" and "method" not in message and _id_of(message) not in asked:
            yield Miss("the client answered what was no request", (event.seq,))
            return


# --- ids ---


@misses.register
def _(expectation: x.DistinctIds, history: History) -> Iterator[Miss]:
    find = _repeated if expectation.among == "session" else _repeated_while_open
    since, until = window(expectation, history)
    seen = tuple(one for one in history if one.kind == "open" or since < one.seq < until)
    for before, again in find(seen):
        told = f"{sent_as(again)} has the id of an earlier request, {sent_as(before)}"
        yield Miss(told, (before.seq, again.seq), sort="same id")
        return


def _repeated(history: History) -> Iterator[tuple[Event, Event]]:
    """Pairs of requests of one session with one id: on a pipe the connection is the session."""
    opened = _opened(history)
    known: dict[tuple[str, str], Event] = {}
    for event in filter(_is_request, history):
        channel = opened[event.channel]
        headers = mapping(channel.data.get("headers")) or {}
        session = headers.get(_SESSION_HEADER) if _is_post(channel) else event.channel
        if session is not None:
            before = known.setdefault((session, _id_of(event.message)), event)
            if before is not event:
                yield before, event


def _repeated_while_open(history: History) -> Iterator[tuple[Event, Event]]:
    """Pairs of requests with one id, the first neither answered nor given up at the second.

    The end of a channel ends what was asked on it. On two pipes there are two who ask.
    """
    opened = _opened(history)
    waiting: list[Event] = []
    for event in history:
        if event.kind in ("close", "cut", "status"):
            waiting = [one for one in waiting if one.channel != event.channel]
        elif event.kind == "out" and "method" not in (event.message or {}):
            waiting = [one for one in waiting if not _answers(event, one)]
        elif _is_request(event):
            for one in waiting:
                if _share(one, event, opened) and _id_of(one.message) == _id_of(event.message):
                    yield one, event
            waiting.append(event)
        elif event.kind == "in":
            waiting = [one for one in waiting if not _cancels(event, one, opened)]


def _answers(event: Event, asked: Event) -> bool:
    return event.channel == asked.channel and _id_of(event.message) == _id_of(asked.message)


def _is_request(event: Event) -> bool:
    message = event.message or {}
    return event.kind == "in" and "method" in message and "id" in message


def _id_of(message: Mapping[str, Any] | None) -> str:
    """The id with its type: the text "1" and the number 1 are two."""
    return repr((message or {}).get("id"))


# --- cancellation ---


@misses.register
def _(expectation: x.Cancelled, history: History) -> Iterator[Miss]:
    asked = matching(expectation.request, expectation, history)
    opened = _opened(history)
    for event in asked:
        over_http = _is_post(opened.get(event.channel))
        for later in _after(event, history):
            ended = later.kind == "close" and later.channel == event.channel
            if (ended and over_http) or _cancels(later, event, opened):
                return
    if not asked:
        raise Unknown(f"the client did not send {expectation.request}")
    fence = need_fence(expectation, history)
    text = f"{expectation.request} was not cancelled"
    yield Miss(text, (asked[0].seq, fence), absent=True, until=fence)


@misses.register
def _(expectation: x.Uncancelled, history: History) -> Iterator[Miss]:
    opened = _opened(history)
    for event in matching(expectation.request, expectation, history):
        for later in _after(event, history):
            if _cancels(later, event, opened):
                yield Miss(f"{expectation.request} was cancelled", (event.seq, later.seq))
                return


def _cancels(later: Event, asked: Event, opened: Mapping[str, Event]) -> bool:
    """A notification that names the request, id type included."""
    if later.kind != "in" or not _share(asked, later, opened):
        return False
    message = later.message or {}
    named = (mapping(message.get("params")) or {}).get("requestId")
    same = repr(named) == _id_of(asked.message)
    return same and message.get("method") == "notifications/cancelled"


def _after(event: Event, history: History) -> Iterator[Event]:
    return (later for later in history if later.seq > event.seq)


# --- channels ---


def _opened(history: History) -> dict[str, Event]:
    return {event.channel: event for event in history if event.kind == "open"}


def _is_post(opened: Event | None) -> bool:
    return opened is not None and opened.data.get("channel_kind") == _POST


def _share(one: Event, other: Event, opened: Mapping[str, Event]) -> bool:
    """Whether both came over one pipe, or over HTTP, where each message has its own channel."""
    return one.channel == other.channel or _is_post(opened.get(one.channel))
