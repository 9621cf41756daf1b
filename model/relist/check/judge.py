"""The judge: expectations and a history in, a verdict out. Pure, and the only place that decides.

Order is judged, never the clock. What was not observed is not judged: a request that did not come
is missed only when the client passed a fence after it, else the verdict is inconclusive.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import singledispatch
from typing import Any, Literal

from attrs import frozen

from relist.check.expect import (
    Answered,
    Expectation,
    FullWalk,
    NeverRequested,
    NoDuplicates,
    Requested,
    Severity,
)
from relist.check.history import (
    LIST_METHODS,
    Event,
    Exchange,
    History,
    exchanges,
    last_fence,
    mapping,
    marked,
)

Word = Literal["pass", "warn", "fail", "inconclusive"]

_SHOWN_ITEMS = 12
_SHOWN_CHARS = 60


@frozen
class Finding:
    """One expectation that was not met: what was seen, and the events that show it."""

    rule: str
    severity: Severity
    text: str
    witness: tuple[int, ...] = ()


@frozen
class Verdict:
    """The judgement of one run. ``unjudged`` says why an expectation could not be looked at."""

    word: Word
    findings: tuple[Finding, ...] = ()
    unjudged: tuple[str, ...] = ()


@frozen
class _Unknown(Exception):
    """The history cannot decide this expectation; ``blocking`` makes the verdict inconclusive."""

    reason: str
    blocking: bool = True


@frozen
class _Miss:
    text: str
    witness: tuple[int, ...] = ()


def judge(expectations: Iterable[Expectation], history: History, revision: str) -> Verdict:
    """Hold a history against expectations, by the rules and severities of the revision under test.

    Raises ``KeyError`` for an expectation that says nothing about the revision.
    """
    findings: list[Finding] = []
    unjudged: list[str] = []
    blocked = False
    for expectation in expectations:
        rule, severity = expectation.rule[revision], expectation.severity[revision]
        if expectation.given is not None and marked(history, expectation.given) is None:
            unjudged.append(f"{rule}: the run did not come to '{expectation.given}'")
            continue
        try:
            for miss in _misses(expectation, history):
                findings.append(Finding(rule, severity, miss.text, miss.witness))
        except _Unknown as unknown:
            unjudged.append(f"{rule}: {unknown.reason}")
            blocked = blocked or unknown.blocking
    return Verdict(_word(findings, blocked), tuple(findings), tuple(unjudged))


def loud_beliefs(history: History) -> tuple[int, ...]:
    """The list requests that a *believe* seems to have caused (the contract forbids it).

    Only where the driver had said that it is idle, and nothing but the question happened since: all
    else may have a cause of its own.
    """
    loud: list[int] = []
    quiet = asking = False
    for event in history:
        if event.kind == "answer" and event.data.get("op") == "idle":
            quiet = (mapping(event.data.get("ok")) or {}).get("idle") is True
        elif event.kind == "ask" and event.data.get("op") == "believe":
            asking = True
        elif event.kind == "answer" and event.data.get("op") == "believe":
            asking = False
        elif event.kind == "in" and _method(event) in LIST_METHODS.values():
            loud += [event.seq] if quiet and asking else []
        elif event.kind in ("ask", "out", "cut", "close"):
            quiet = False
    return tuple(loud)


def labels(answer: Mapping[str, Any] | None) -> tuple[str, ...] | None:
    """The items of a *need* or *believe* answer as ``name@version``; None for no list at all."""
    items = (answer or {}).get("items")
    return None if items is None else tuple(_label(item) for item in items)


def _label(item: Mapping[str, Any]) -> str:
    name, description = str(item.get("name")), str(item.get("description"))
    return description if description.rpartition("@")[0] == name else f"{name} ({description})"


def _word(findings: Sequence[Finding], blocked: bool) -> Word:
    severities = {finding.severity for finding in findings}
    if severities:
        return "fail" if "fail" in severities else "warn"
    return "inconclusive" if blocked else "pass"


@singledispatch
def _misses(expectation: Expectation, _history: History) -> Iterator[_Miss]:
    raise TypeError(f"no judgement for {type(expectation).__name__}")


@_misses.register
def _(expectation: Requested, history: History) -> Iterator[_Miss]:
    since = _since(expectation, history)
    seen = tuple(
        exchange.asked.seq
        for exchange in exchanges(history)
        if exchange.asked.seq > since and _is(expectation, exchange)
    )
    if expectation.at_most is not None and len(seen) > expectation.at_most:
        yield _Miss(
            f"{_named(expectation)} was sent {len(seen)} times, "
            f"expected at most {expectation.at_most}",
            seen,
        )
    if len(seen) < expectation.at_least:
        _need_fence(history, since)
        yield _Miss(
            f"{_named(expectation)} was sent {len(seen)} times, "
            f"expected at least {expectation.at_least}",
            seen,
        )


@_misses.register
def _(expectation: FullWalk, history: History) -> Iterator[_Miss]:
    since = _since(expectation, history)
    method = LIST_METHODS[expectation.kind]
    listed = [e for e in exchanges(history) if e.method == method and e.asked.seq > since]
    starts = [exchange for exchange in listed if not exchange.has_cursor]
    walks = [_walk(start, listed) for start in starts]
    if any(_ended(walk[-1]) for walk in walks):
        return
    _need_fence(history, since)
    if not starts:
        yield _Miss(f"{expectation.kind} were not listed again from the first page", (since,))
        return
    longest = max(walks, key=len)
    yield _Miss(
        f"no listing of {expectation.kind} came to the last page: the longest read "
        f"{len(longest)} page{'s' if len(longest) > 1 else ''}",
        tuple(exchange.asked.seq for exchange in longest),
    )


@_misses.register
def _(expectation: Answered, history: History) -> Iterator[_Miss]:
    answers = _said(expectation, history)
    telling = [answer for answer in answers if _tells(answer)]
    if not telling:
        # A client that cannot say what it believes is not to blame; one that gives its application
        # nothing at all was not seen doing what is expected in the end.
        believed = any(answer.data.get("op") == "believe" for answer in answers)
        blocking = expectation.which == "last" and not believed
        raise _Unknown(f"the driver said nothing of use for '{expectation.of}'", blocking)
    expected = [None if items is None else Counter(items) for items in expectation.one_of]
    for answer in telling if expectation.which == "every" else telling[-1:]:
        items = labels(answer.data.get("ok"))
        if (None if items is None else Counter(items)) not in expected:
            wanted = " or ".join(_shown(one) for one in expectation.one_of)
            yield _Miss(f"the client offered {_shown(items)}, expected {wanted}", (answer.seq,))


@_misses.register
def _(expectation: NoDuplicates, history: History) -> Iterator[_Miss]:
    for answer in _said(expectation, history):
        items = labels(answer.data.get("ok")) or ()
        twice = tuple(item for item, times in Counter(items).items() if times > 1)
        if twice:
            yield _Miss(f"the client offered {_shown(twice)} more than once", (answer.seq,))


@_misses.register
def _(expectation: NeverRequested, history: History) -> Iterator[_Miss]:
    since = _since(expectation, history)
    for event in history:
        if event.kind == "in" and event.seq > since and _method(event) in expectation.methods:
            yield _Miss(f"the client sent {_method(event)}", (event.seq,))
    _need_fence(history, since)


def _since(expectation: Expectation, history: History) -> int:
    if expectation.since is None:
        return -1
    seq = marked(history, expectation.since)
    if seq is None:
        raise _Unknown(f"the run did not come to '{expectation.since}'")
    return seq


def _need_fence(history: History, since: int) -> None:
    fence = last_fence(history)
    if fence is None or fence <= since:
        raise _Unknown("no fence was passed after which a request could be called absent")


def _method(event: Event) -> str:
    return str((event.message or {}).get("method"))


def _is(expectation: Requested, exchange: Exchange) -> bool:
    if exchange.method != expectation.method:
        return False
    if expectation.cursor is not None and exchange.params.get("cursor") != expectation.cursor:
        return False
    return expectation.page is None or exchange.asked.data.get("page") == expectation.page


def _named(expectation: Requested) -> str:
    if expectation.cursor is not None:
        return f"{expectation.method} with the cursor {expectation.cursor!r}"
    if expectation.page is not None:
        return f"{expectation.method} for page {expectation.page}"
    return expectation.method


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


def _said(expectation: Answered | NoDuplicates, history: History) -> list[Event]:
    since = _since(expectation, history)
    return [
        event
        for event in history
        if event.kind == "answer" and event.seq > since and event.data.get("as") == expectation.of
    ]


def _tells(answer: Event) -> bool:
    ok = answer.data.get("ok")
    if ok is None:
        return False
    return ok.get("items") is not None or answer.data.get("op") == "need"


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
