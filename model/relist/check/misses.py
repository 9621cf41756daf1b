"""Where a history misses an expectation: what was seen, and the fewest events that show it. Pure.

A request that did not come is missed only when the client passed a fence after it; else nobody can
tell, and ``Unknown`` says why.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import singledispatch
from itertools import pairwise
from typing import Any

from attrs import frozen

from relist.check import expect as x
from relist.check.history import (
    LIST_METHODS,
    Event,
    Exchange,
    History,
    RequestMatch,
    exchanges,
    mapping,
    marked,
)

_SHOWN_ITEMS = 12
_SHOWN_CHARS = 60
_TOO_FEW_TO_PACE = 4
_ALIKE = 0.02
"""By how much pauses may differ and still look like one fixed period."""
_LONGER = 1.2
"""How many times as long the later half of the pauses is at least, where they grow."""


@frozen
class Unknown(Exception):
    """The history cannot decide this expectation; ``blocking`` makes the verdict inconclusive."""

    reason: str
    blocking: bool = True


@frozen
class Miss:
    """What was seen instead. ``absent``: something did not happen, or not in time, which a harness
    that was too slow may itself have caused. ``anomaly``: a closer look at what kind of harm."""

    text: str
    witness: tuple[int, ...] = ()
    absent: bool = False
    anomaly: x.Anomaly | None = None


@singledispatch
def misses(expectation: x.Expectation, _history: History) -> Iterator[Miss]:
    """The first miss of each sort: more of the same tells nothing new. Raises ``Unknown``."""
    raise TypeError(f"no judgement for {type(expectation).__name__}")


# --- requests ---


@misses.register
def _(expectation: x.Requested, history: History) -> Iterator[Miss]:
    seen = tuple(event.seq for event in _matching(expectation.request, expectation, history))
    told = f"{expectation.request} was sent {len(seen)} times, expected at"
    most = expectation.at_most
    if most is not None and len(seen) > most:
        yield Miss(f"{told} most {most}", seen[: most + 1])
    elif len(seen) < expectation.at_least:
        behind = () if expectation.timed else (_need_fence(expectation, history),)
        yield Miss(f"{told} least {expectation.at_least}", (*seen, *behind), absent=True)
    elif most is not None:
        _need_fence(expectation, history)


@misses.register
def _(expectation: x.NeverRequested, history: History) -> Iterator[Miss]:
    found = False
    for method in expectation.methods:
        sent = _matching(RequestMatch(method=method), expectation, history)
        found = found or bool(sent)
        if sent:
            yield Miss(f"the client sent {method}", (sent[0].seq,))
    if not found:
        _need_fence(expectation, history)


@misses.register
def _(expectation: x.Ordered, history: History) -> Iterator[Miss]:
    firsts = _matching(expectation.first, expectation, history)
    for event in _matching(expectation.then, expectation, history):
        if firsts and firsts[0].seq <= event.seq:
            return
        yield Miss(f"{_sent(event)} came before {expectation.first}", (event.seq,))
        return


@misses.register
def _(expectation: x.Cancelled, history: History) -> Iterator[Miss]:
    asked = _matching(expectation.request, expectation, history)
    posts = {
        event.channel
        for event in history
        if event.kind == "open" and event.data.get("channel_kind") == "post"
    }
    for event in asked:
        if any(_cancels(later, event, posts) for later in history[event.seq :]):
            return
    if not asked:
        raise Unknown(f"the client did not send {expectation.request}")
    fence = _need_fence(expectation, history)
    yield Miss(f"{expectation.request} was not cancelled", (asked[0].seq, fence), absent=True)


def _cancels(later: Event, asked: Event, posts: Collection[str]) -> bool:
    """By a notification that names the request, or over HTTP by the end of its stream."""
    over_http = asked.channel in posts
    if later.channel == asked.channel and later.kind == "close":
        return over_http
    if later.kind != "in" or not (over_http or later.channel == asked.channel):
        return False
    message = later.message or {}
    found = (mapping(message.get("params")) or {}).get("requestId")
    wanted = (asked.message or {}).get("id")
    named = type(found) is type(wanted) and found == wanted
    return named and message.get("method") == "notifications/cancelled"


@misses.register
def _(expectation: x.Paced, history: History) -> Iterator[Miss]:
    sent = _matching(expectation.request, expectation, history)
    if len(sent) < _TOO_FEW_TO_PACE:
        return
    gaps = [after.at_ms - before.at_ms for before, after in pairwise(sent)]
    if max(gaps) - min(gaps) <= _ALIKE * max(gaps):
        told = f"{expectation.request} was sent every {round(sum(gaps) / len(gaps))} ms, unvaried"
        yield Miss(told, tuple(event.seq for event in sent[:_TOO_FEW_TO_PACE]))
    half = len(gaps) // 2
    if expectation.backoff and sum(gaps[-half:]) < _LONGER * sum(gaps[:half]):
        told = f"{expectation.request} was sent {len(sent)} times, at pauses that did not grow"
        yield Miss(told, (sent[0].seq, sent[1].seq, sent[-2].seq, sent[-1].seq))


@misses.register
def _(expectation: x.FullWalk, history: History) -> Iterator[Miss]:
    since, before = _window(expectation, history)
    method = LIST_METHODS[expectation.kind]
    listed = [
        exchange
        for exchange in exchanges(history)
        if exchange.method == method and since < exchange.asked.seq < before
    ]
    walks = [_walk(start, listed) for start in listed if not start.has_cursor]
    if any(_ended(walk[-1]) for walk in walks):
        return
    fence = _need_fence(expectation, history)
    if not walks:
        told = f"{expectation.kind} were not listed again from the first page"
        yield Miss(told, (max(since, 0), fence), absent=True)
        return
    longest = max(walks, key=len)
    read = f"{len(longest)} page{'s' if len(longest) > 1 else ''}"
    yield Miss(
        f"no listing of {expectation.kind} came to the last page: the longest read {read}",
        tuple(exchange.asked.seq for exchange in longest),
        absent=True,
        anomaly="cut walk",
    )


def _walk(start: Exchange, listed: Sequence[Exchange]) -> list[Exchange]:
    """Follow the served cursors: each next page is asked after the page that named its cursor."""
    walk = [start]
    while (last := walk[-1]).answered is not None and not _ended(last):
        cursor = (last.result or {}).get("nextCursor")
        after = last.answered.seq
        following = next(
            (
                exchange
                for exchange in listed
                if exchange.has_cursor
                and exchange.params["cursor"] == cursor
                and exchange.asked.seq > after
            ),
            None,
        )
        if following is None:
            break
        walk.append(following)
    return walk


def _ended(exchange: Exchange) -> bool:
    return exchange.result is not None and exchange.result.get("nextCursor") is None


# --- what the driver said ---


@misses.register
def _(expectation: x.Answered, history: History) -> Iterator[Miss]:
    answers = _said(expectation, history)
    telling = [answer for answer in answers if _tells(answer)]
    every = expectation.which == "every"
    if expectation.timed and not answers:
        asked = [event.seq for event in history if event.data.get("as") == expectation.of]
        yield Miss(f"nobody was given '{expectation.of}' in time", tuple(asked[-1:]), absent=True)
        return
    if not telling:
        # A client that cannot say what it believes is not to blame; one that gives its application
        # nothing at all was not seen doing what is expected in the end.
        believed = any(answer.data.get("op") == "believe" for answer in answers)
        blocking = not every and not believed
        raise Unknown(f"the driver said nothing of use for '{expectation.of}'", blocking)
    for answer in telling if every else telling[-1:]:
        items = labels(answer.data.get("ok"))
        if not any(_same(items, one, expectation.in_order) for one in expectation.one_of):
            wanted = " or ".join(_shown(one) for one in expectation.one_of)
            truth = _truths(answer, history)
            yield Miss(
                f"the client offered {_shown(items)}, expected {wanted}",
                (*(event.seq for event in truth[-1:]), answer.seq),
                absent=not every,
                anomaly=_looked_at(items, truth),
            )
            return


def _same(items: Sequence[str] | None, wanted: Sequence[str] | None, in_order: bool) -> bool:
    if items is None or wanted is None:
        return items is wanted
    return list(items) == list(wanted) if in_order else Counter(items) == Counter(wanted)


def _truths(answer: Event, history: History) -> list[Event]:
    """What the list asked for was before this answer, oldest first."""
    kind = answer.data.get("kind")
    return [
        event
        for event in history[: answer.seq]
        if event.kind == "truth" and kind in (mapping(event.data.get("pages")) or {})
    ]


def _looked_at(items: Sequence[str] | None, truths: Sequence[Event]) -> x.Anomaly | None:
    """What the items themselves say: nothing left, some pages of a list, or pages of several."""
    lists = [
        [frozenset(page) for page in event.data["pages"][kind]]
        for event in truths
        for kind in event.data["pages"]
    ]
    whole = [frozenset[str]().union(*pages) for pages in lists]
    if not items:
        return "lost catalog" if any(whole) else None
    offered = frozenset(items)
    if offered in whole:
        return None  # an older list, whole: the case knows best why
    if any(offered < one for one in whole):
        return "cut walk"
    return "torn listing" if offered <= frozenset[str]().union(*whole) else None


@misses.register
def _(expectation: x.NoDuplicates, history: History) -> Iterator[Miss]:
    for answer in _said(expectation, history):
        items = labels(answer.data.get("ok")) or ()
        twice = tuple(item for item, times in Counter(items).items() if times > 1)
        if twice:
            yield Miss(f"the client offered {_shown(twice)} more than once", (answer.seq,))
            return


@misses.register
def _(expectation: x.Opinion, history: History) -> Iterator[Miss]:
    for answer in _said(expectation, history):
        state = (mapping(answer.data.get("ok")) or {}).get("state")
        if isinstance(state, str) and state not in expectation.one_of:
            wanted = " or ".join(expectation.one_of)
            yield Miss(
                f"the client called its list {_shown((state,))}, not {wanted}", (answer.seq,)
            )


@misses.register
def _(expectation: x.Outcome, history: History) -> Iterator[Miss]:
    answers = [one for one in _said(expectation, history) if one.data.get("ok") is not None]
    if not answers:
        raise Unknown(f"no call came to an end for '{expectation.of}'")
    for answer in answers:
        outcome = str(answer.data["ok"].get("outcome"))
        if outcome not in expectation.one_of:
            wanted = " or ".join(expectation.one_of)
            yield Miss(f"the call ended in {_shown((outcome,))}, expected {wanted}", (answer.seq,))
            return


# --- what all need ---


def _window(expectation: x.Expectation, history: History) -> tuple[int, float]:
    """The numbers between which an event counts. Raises ``Unknown`` without such marks."""
    bounds: list[int | None] = []
    for name in (expectation.since, expectation.before):
        seq = None if name is None else marked(history, name)
        if name is not None and seq is None:
            raise Unknown(f"the run did not come to '{name}'")
        bounds.append(seq)
    since, before = bounds
    return (-1 if since is None else since), (float("inf") if before is None else before)


def _need_fence(expectation: x.Expectation, history: History) -> int:
    """The last fence in the window: what did not come by then is absent."""
    since, before = _window(expectation, history)
    fence = max(
        (
            event.seq
            for event in history
            if event.kind == "fence" and event.data.get("passed") and since < event.seq < before
        ),
        default=None,
    )
    if fence is None:
        raise Unknown("no fence was passed after which a request could be called absent")
    return fence


def _matching(match: RequestMatch, expectation: x.Expectation, history: History) -> list[Event]:
    """The requests and notifications of the client that are meant; HTTP exchanges likewise."""
    since, before = _window(expectation, history)
    found: list[Event] = []
    opened: dict[str, Event] = {}
    for event in history:
        message: Mapping[str, Any] = event.message or {}
        if event.kind == "open":
            opened[event.channel] = event
            kind = str(event.data.get("channel_kind"))
            message = {"method": kind.upper()} if kind in ("get", "delete") else {}
        elif event.kind != "in":
            continue
        told: Mapping[str, Any] = opened[event.channel].data if event.channel in opened else {}
        headers, principal = mapping(told.get("headers")) or {}, str(told.get("principal", ""))
        meant = "method" in message and match.matches(
            message, event.data.get("page"), headers, principal
        )
        if meant and since < event.seq < before:
            found.append(event)
    return found


def _sent(event: Event) -> str:
    return _shown((str((event.message or {}).get("method", event.data.get("channel_kind"))),))


def _said(
    expectation: x.Answered | x.NoDuplicates | x.Opinion | x.Outcome, history: History
) -> list[Event]:
    since, before = _window(expectation, history)
    return [
        event
        for event in history
        if event.kind == "answer"
        and since < event.seq < before
        and event.data.get("as") == expectation.of
    ]


def _tells(answer: Event) -> bool:
    ok = answer.data.get("ok")
    if ok is None:
        return False
    return ok.get("items") is not None or answer.data.get("op") != "believe"


def labels(answer: Mapping[str, Any] | None) -> tuple[str, ...] | None:
    """The items of a *need* or *believe* answer as ``name@version``; None for no list at all."""
    items = (answer or {}).get("items")
    return None if items is None else tuple(_label(item) for item in items)


def _label(item: Mapping[str, Any]) -> str:
    name, description = str(item.get("name")), str(item.get("description"))
    return description if description.rpartition("@")[0] == name else f"{name} ({description})"


def _shown(items: Sequence[str] | None) -> str:
    """Items for one line of text: bounded, and escaped because a peer wrote them."""
    if items is None:
        return "no list"
    texts = [
        text if text.isprintable() else ascii(text)
        for text in (item[:_SHOWN_CHARS] for item in items[:_SHOWN_ITEMS])
    ]
    more = f", and {len(items) - _SHOWN_ITEMS} more" if len(items) > _SHOWN_ITEMS else ""
    return "[" + ", ".join(texts) + more + "]"
