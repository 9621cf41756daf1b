"""The witness of a miss: the fewest events of a history that show it. Pure.

A set of events is a *witness* when both hold:

- It shows the judge the same miss when nothing else had happened, apart from what only bounds and
  explains: the marks that the expectation names, and the opening of the channels on which the
  events came (where that is no request itself, as a GET is). What is absent is shown by the fence,
  or the end of the time, until which it did not come: that event is always part of it.
- It tells the story of its kind of harm, as far as the history has it: a lost notice holds a
  notice. ``STORY`` says what each kind holds.

The judge's is the smallest that a search finds among the events that its expectation points at. The
search is bounded: where hundreds of events are needed to show that something was too often, it may
end before each of them was tried, and what the expectation points at is the fewest by itself.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, combinations, islice

from relist.check import expect as x
from relist.check.frames import misses
from relist.check.history import Event, History, mapping
from relist.check.misses import Miss
from relist.check.seen import Unknown

_TRIES_MAX = 200
"""How many sets are tried that are smaller than what leaving out came to."""
_JUDGED_MAX = 50_000
"""How many events are judged in all, in sets that are tried: a quarter of a second at most."""
_ENDING_STEPS = ("cut", "end_subscriptions")
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_LISTS = ("tools", "prompts", "resources", "resourceTemplates")

Part = Callable[[Event], bool]


class Reduced:
    """What a miss of this history is shown by, and whether it is the same miss without the rest."""

    def __init__(self, expectation: x.Expectation, history: History, miss: Miss) -> None:
        marks = {expectation.since, expectation.before} - {None}
        self._expectation, self._miss = expectation, miss
        self.judged = 0
        """How many events were judged so far."""
        self._events = {event.seq: event for event in history}
        self._marks = [e for e in history if e.kind == "mark" and e.data.get("name") in marks]
        self._opened = {event.channel: event for event in reversed(history) if _opens(event)}
        before = [event for event in history if event.seq < max(miss.enough, default=0)]
        story = STORY.get(miss.anomaly or expectation.anomaly, ())
        found = ((part, event.seq) for part in story for event in reversed(before) if part(event))
        self._part: Part | None
        self._part, self._told = next(found, (None, -1))

    @property
    def enough(self) -> tuple[int, ...]:
        """Events that are a witness, perhaps with more than it takes."""
        found = self._miss.enough
        return found if self._tells(found) else tuple(sorted((*found, self._told)))

    def shown_by(self, some: Sequence[int]) -> bool:
        """Whether these events are a witness."""
        if not self._tells(some):
            return False
        kept = {seq: self._events[seq] for seq in some}
        opened = [self._opened.get(event.channel, event) for event in kept.values()]
        kept |= {event.seq: event for event in (*self._marks, *opened)}
        history = [kept[seq] for seq in sorted(kept)]
        self.judged += len(history)
        try:
            return any(self._miss.is_like(found) for found in misses(self._expectation, history))
        except Unknown:
            return False

    def _tells(self, some: Sequence[int]) -> bool:
        part, until = self._part, self._miss.until
        told = part is None or any(part(self._events[seq]) for seq in some)
        return told and (until is None or until in some)


def fewest(expectation: x.Expectation, history: History, miss: Miss) -> tuple[int, ...]:
    """The witness of a miss that this history has, by the numbers of its events."""
    reduced = Reduced(expectation, history, miss)

    def do(some: Sequence[int]) -> bool:
        return reduced.judged < _JUDGED_MAX and reduced.shown_by(some)

    found = _without_the_rest(reduced.enough, do)
    sizes = range(1, len(found))
    smaller = chain.from_iterable(combinations(reduced.enough, size) for size in sizes)
    return next(filter(do, islice(smaller, _TRIES_MAX)), found)


def _without_the_rest(
    some: tuple[int, ...], shown_by: Callable[[Sequence[int]], bool]
) -> tuple[int, ...]:
    """Leave out parts of halved size as long as the rest is a witness, until no event can go."""
    size = len(some)
    while size:
        before, at = some, 0
        while at < len(some):
            rest = some[:at] + some[at + size :]
            if shown_by(rest):
                some = rest
            else:
                at += size
        size = size // 2 if size > 1 or some == before else size
    return some


# --- what tells the story -------------------------------------------------------------------------


def _opens(event: Event) -> bool:
    """Whether a channel was opened by this, and nothing asked."""
    return event.kind == "open" and event.data.get("channel_kind") not in ("get", "delete")


def _sent(event: Event, what: str) -> Mapping[str, object]:
    return mapping((event.message or {}).get(what)) or {} if event.kind == "out" else {}


def _notice(event: Event) -> bool:
    method = str((event.message or {}).get("method"))
    return event.kind == "out" and method.endswith("/list_changed")


def _result(event: Event) -> bool:
    return bool(_sent(event, "result"))


def _list(event: Event) -> bool:
    return any(name in _sent(event, "result") for name in _LISTS)


def _more(event: Event) -> bool:
    return _sent(event, "result").get("nextCursor") is not None


def _change(event: Event) -> bool:
    return event.kind == "truth"


def _loss(event: Event) -> bool:
    return event.kind == "cut" or "forgot" in event.data


def _failure(event: Event) -> bool:
    return _loss(event) or bool(_sent(event, "error")) or "unanswered" in event.data


def _ending(event: Event) -> bool:
    ends = event.kind == "step" and event.data.get("op") in _ENDING_STEPS
    granted = event.kind == "out" and (event.message or {}).get("method") == _ACKNOWLEDGED
    return ends or granted or _failure(event)


def _wrong(event: Event) -> bool:
    if event.kind != "out":
        return False
    odd = _sent(event, "result").get("resultType", "complete") != "complete"
    return odd or "malformed" in event.data or _notice(event)


STORY: Mapping[x.Anomaly, tuple[Part, ...]] = {
    "lost notice": (_notice, _change),
    "late overwrite": (_list, _change),
    "torn listing": (_change,),
    "cut walk": (_more, _change),
    "starvation": (_notice, _change),
    "live-lock": (_notice, _change),
    "lost subscription": (_ending, _change),
    "lost connection": (_loss, _change),
    "lost catalog": (_failure, _change),
    "stale list": (_change,),
    "stale call": (_change,),
    "partition leak": (_change,),
    "wrong answer reused": (_result, _change),
    "wrong frame taken": (_wrong, _change),
}
"""A witness of such harm holds an event of the first of these sorts that the history has before the
end of what was seen, the last of them where the expectation does not point at one itself."""
