"""Where a history misses an expectation: what was seen, and enough events to show it. Pure.

A request that did not come is missed only when the client passed a fence after it; else nobody can
tell, and ``Unknown`` says why.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import singledispatch
from itertools import pairwise

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
)
from relist.check.seen import (
    Unknown,
    deadline,
    labels,
    matching,
    need_fence,
    said,
    sent_as,
    shown,
    window,
)

_TOO_FEW_TO_PACE = 4
_ALIKE = 0.02
"""By how much pauses may differ and still look like one fixed period."""
_LONGER = 1.2
"""How many times as long the later half of the pauses is at least, where they grow."""


@frozen
class Miss:
    """What was seen instead. ``absent``: something did not happen, or not in time, which a harness
    that was too slow may itself have caused. ``anomaly``: a closer look at what kind of harm.

    ``enough`` are the numbers of events that show it, perhaps more than it takes; ``until`` is that
    one of them until which something did not come. ``sort`` tells it from other misses of its
    expectation where the text cannot, because it counts or measures.
    """

    text: str
    enough: tuple[int, ...] = ()
    absent: bool = False
    anomaly: x.Anomaly | None = None
    sort: str = ""
    until: int | None = None

    def is_like(self, other: "Miss") -> bool:
        """Whether it is the same miss, seen in other events."""
        mine, theirs = ((one.sort or one.text, one.anomaly, one.absent) for one in (self, other))
        return mine == theirs


@singledispatch
def misses(expectation: x.Expectation, _history: History) -> Iterator[Miss]:
    """The first miss of each sort: more of the same tells nothing new. Raises ``Unknown``."""
    raise TypeError(f"no judgement for {type(expectation).__name__}")


# --- requests ---


@misses.register
def _(expectation: x.Requested, history: History) -> Iterator[Miss]:
    seen = tuple(event.seq for event in matching(expectation.request, expectation, history))
    told = f"{expectation.request} was sent {len(seen)} times, expected at"
    most = expectation.at_most
    if most is not None and len(seen) > most:
        yield Miss(f"{told} most {most}", seen[: most + 1], sort="too many")
    elif len(seen) < expectation.at_least:
        timed = expectation.timed
        last = deadline(expectation, history, seen) if timed else need_fence(expectation, history)
        text = f"{told} least {expectation.at_least}"
        yield Miss(text, (*seen, last), absent=True, until=last)
    elif most is not None and not expectation.timed:
        need_fence(expectation, history)


@misses.register
def _(expectation: x.NeverRequested, history: History) -> Iterator[Miss]:
    found = False
    for method in expectation.methods:
        sent = matching(RequestMatch(method=method), expectation, history)
        found = found or bool(sent)
        if sent:
            yield Miss(f"the client sent {method}", (sent[0].seq,))
    if not found and not expectation.timed:
        need_fence(expectation, history)


@misses.register
def _(expectation: x.Ordered, history: History) -> Iterator[Miss]:
    firsts = matching(expectation.first, expectation, history)
    for event in matching(expectation.then, expectation, history):
        if firsts and firsts[0].seq <= event.seq:
            return
        yield Miss(f"{sent_as(event)} came before {expectation.first}", (event.seq,))
        return


@misses.register
def _(expectation: x.NewIds, history: History) -> Iterator[Miss]:
    seen: dict[str, Event] = {}
    for event in matching(expectation.request, expectation, history):
        before = seen.setdefault(repr((event.message or {}).get("id")), event)
        if before is not event:
            told = f"{expectation.request} was sent again under the same id"
            yield Miss(told, (before.seq, event.seq))
            return


@misses.register
def _(expectation: x.Paced, history: History) -> Iterator[Miss]:
    sent = matching(expectation.request, expectation, history)
    if len(sent) < _TOO_FEW_TO_PACE:
        return
    gaps = [after.at_ms - before.at_ms for before, after in pairwise(sent)]
    if max(gaps) - min(gaps) <= _ALIKE * max(gaps):
        told = f"{expectation.request} was sent every {round(sum(gaps) / len(gaps))} ms, unvaried"
        yield Miss(told, tuple(event.seq for event in sent[:_TOO_FEW_TO_PACE]), sort="unvaried")
    half = len(gaps) // 2
    if expectation.backoff and sum(gaps[-half:]) < _LONGER * sum(gaps[:half]):
        told = f"{expectation.request} was sent {len(sent)} times, at pauses that did not grow"
        shows = sent[0], sent[half], sent[-2], sent[-1]
        yield Miss(told, tuple(event.seq for event in shows), sort="unextended")


@misses.register
def _(expectation: x.FullWalk, history: History) -> Iterator[Miss]:
    since, before = window(expectation, history)
    method = LIST_METHODS[expectation.kind]
    listed = [
        exchange
        for exchange in exchanges(history)
        if exchange.method == method and since < exchange.asked.seq < before
    ]
    pages = _pages_read(listed)
    if any(_ended(page.exchange) for page in pages):
        return
    fence = need_fence(expectation, history)
    if not pages:
        told = f"{expectation.kind} were not listed again from the first page"
        yield Miss(told, (fence,), absent=True, until=fence)
        return
    longest = max(pages, key=lambda page: page.number)
    read = f"{longest.number} page{'s' if longest.number > 1 else ''}"
    yield Miss(
        f"no listing of {expectation.kind} came to the last page: the longest read {read}",
        (*_numbers(longest), fence),
        absent=True,
        anomaly="cut walk",
        until=fence,
    )


@frozen
class _Page:
    """The ``number``-th page of a walk, and the one ``before`` it, which named its cursor."""

    exchange: Exchange
    number: int
    before: "_Page | None"


def _pages_read(listed: Iterable[Exchange]) -> Collection[_Page]:
    """All pages of all walks: the first has no cursor, each other was asked after it was named.

    A cursor may be asked for again, as after an error: then the walk goes on from there as well.
    """
    moments = {exchange.asked.seq: exchange for exchange in listed}
    moments |= {one.answered.seq: one for one in listed if one.answered is not None}
    asked: dict[int, _Page] = {}
    named: dict[str, _Page] = {}
    for seq, exchange in sorted(moments.items()):
        if seq == exchange.asked.seq:
            before = named.get(repr(exchange.params.get("cursor")))
            if before is not None or not exchange.has_cursor:
                number = 1 if before is None else before.number + 1
                asked[seq] = _Page(exchange, number, before)
        elif exchange.asked.seq in asked:
            page = asked[exchange.asked.seq]
            cursor = (exchange.result or {}).get("nextCursor")
            held = named.get(repr(cursor))
            if cursor is not None and (held is None or held.number <= page.number):
                named[repr(cursor)] = page
    return asked.values()


def _numbers(last: _Page) -> tuple[int, ...]:
    """The requests and answers of a walk up to this page."""
    numbers: list[int] = []
    page: _Page | None = last
    while page is not None:
        exchange = page.exchange
        numbers += [one.seq for one in (exchange.asked, exchange.answered) if one is not None]
        page = page.before
    return tuple(numbers)


def _ended(exchange: Exchange) -> bool:
    return exchange.result is not None and exchange.result.get("nextCursor") is None


# --- what the driver said ---


@misses.register
def _(expectation: x.Answered, history: History) -> Iterator[Miss]:
    answers = said(expectation, history)
    telling = [answer for answer in answers if _tells(answer)]
    every = expectation.which == "every"
    if expectation.timed and not answers:
        _, before = window(expectation, history)
        asks = (one for one in history if one.kind == "ask" and one.seq < before)
        asked = [ask.seq for ask in asks if ask.data.get("as") == expectation.of]
        if not asked:
            raise Unknown(f"the run did not come to ask for '{expectation.of}'")
        last = deadline(expectation, history, asked)
        text = f"nobody was given '{expectation.of}' in time"
        yield Miss(text, (asked[-1], last), absent=True, until=last)
        return
    if not telling and answers and not expectation.or_error:
        yield Miss(f"the client gave an error for '{expectation.of}'", (answers[-1].seq,))
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
            wanted = " or ".join(shown(one) for one in expectation.one_of)
            kind = answer.data.get("kind")
            truth = _truths(kind, answer.seq, history)
            yield Miss(
                f"the client offered {shown(items)}, expected {wanted}",
                (*(event.seq for event in truth), answer.seq),
                absent=not every,
                anomaly=_looked_at(items, [event.data["pages"][kind] for event in truth]),
            )
            return


def _same(items: Sequence[str] | None, wanted: Sequence[str] | None, in_order: bool) -> bool:
    if items is None or wanted is None:
        return items is wanted
    return list(items) == list(wanted) if in_order else Counter(items) == Counter(wanted)


def _truths(kind: object, before: int, history: History) -> list[Event]:
    """What the list of this kind was until then, oldest first."""
    return [
        event
        for event in history
        if event.kind == "truth"
        and event.seq < before
        and kind in (mapping(event.data.get("pages")) or {})
    ]


def _looked_at(
    items: Sequence[str] | None, lists: Iterable[Sequence[Sequence[str]]]
) -> x.Anomaly | None:
    """What the items themselves say: nothing left, some pages of a list, or pages of several."""
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
    for answer in said(expectation, history):
        items = labels(answer.data.get("ok")) or ()
        twice = tuple(item for item, times in Counter(items).items() if times > 1)
        if twice:
            yield Miss(f"the client offered {shown(twice)} more than once", (answer.seq,))
            return


@misses.register
def _(expectation: x.Opinion, history: History) -> Iterator[Miss]:
    for answer in said(expectation, history):
        state = (mapping(answer.data.get("ok")) or {}).get("state")
        if isinstance(state, str) and state not in expectation.one_of:
            wanted = " or ".join(expectation.one_of)
            yield Miss(f"the client called its list {shown((state,))}, not {wanted}", (answer.seq,))


@misses.register
def _(expectation: x.Outcome, history: History) -> Iterator[Miss]:
    answers = [one for one in said(expectation, history) if one.data.get("ok") is not None]
    if not answers:
        raise Unknown(f"no call came to an end for '{expectation.of}'")
    for answer in answers:
        outcome = str(answer.data["ok"].get("outcome"))
        if outcome not in expectation.one_of:
            wanted = " or ".join(expectation.one_of)
            yield Miss(f"the call ended in {shown((outcome,))}, expected {wanted}", (answer.seq,))
            return


def _tells(answer: Event) -> bool:
    ok = answer.data.get("ok")
    if ok is None:
        return False
    return ok.get("items") is not None or answer.data.get("op") != "believe"
