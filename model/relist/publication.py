"""One view of a server's lists: what one authorization is shown, and told. Pure functions.

``publisher.py`` says what all of it is for, and has the object to embed.

A cursor names a version by its digest and a place in it, so it means the same in another instance
and nothing at all once the list is another one. What a reader holds is not known; ``Shown`` keeps
what suffices to say whether *some* reader can hold a list that is not in force, and was not told.
"""

from bisect import bisect_left
from collections.abc import Iterable
from hashlib import sha256
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from attrs import evolve, fields_dict

from relist.errors import ImpossibleAct, PolicyError
from relist.freshness import earliest, reached
from relist.frozen import frozen
from relist.snapshot import share
from relist.values import (
    CHANNEL_OF,
    KINDS,
    Capabilities,
    Channel,
    Item,
    Items,
    Kind,
    Scope,
    Topic,
)

_AT = {kind: number for number, kind in enumerate(KINDS)}
_KEY = attrgetter("key")


@frozen(kw_only=True)
class PublisherPolicy:
    """How a server publishes where the specification leaves it a choice. Durations are in ms.

    Raises PolicyError for a value out of range. Rule: EMIT-19, EMIT-25.
    """

    merge_ms: int = 50  # how long a first change waits for others
    gap_ms: int = 1_000  # least distance between two notices of the same
    page_max: int = 250  # entries of a page
    ttl_ms: int = 60_000  # for how long a list may be taken for fresh
    scope: Scope = Scope.PRIVATE  # public only what everyone may see: then EVERYONE is the one view
    alone: bool = True  # False where other instances serve the same lists
    walks_max: int = 8  # versions kept for those who are reading them, of each list
    views_max: int = 1_000
    subscribers_max: int = 10_000
    uris_max: int = 1_000  # resources that one subscriber hears of

    def __attrs_post_init__(self) -> None:
        """Refuse what cannot be kept."""
        for name in fields_dict(type(self)):
            value = getattr(self, name)
            if type(value) is int and value < (
                0 if name in ("merge_ms", "gap_ms", "ttl_ms") else 1
            ):
                raise PolicyError(f"publisher policy: {name} is out of range: {value!r}")
        if self.merge_ms > self.gap_ms:
            raise PolicyError(
                f"publisher policy: merge_ms ({self.merge_ms}) must not exceed gap_ms"
                f" ({self.gap_ms})"
            )


@frozen
class Listed:
    """One version of a list; ``digest`` is what its cursors name."""

    items: Items
    digest: str


@frozen
class Shown:
    """One kind, as one view is shown it.

    ``known`` is what readers hold who were not told otherwise: the list as of the last notice, or,
    before that, the first that was served. None: nobody was served. ``mixed``: something else was
    served since. ``walked`` are the versions that cursors were given out for, the one last used at
    the end.
    """

    now: Listed
    known: Items | None
    mixed: bool
    walked: tuple[Listed, ...]

    @property
    def outdated(self) -> bool:
        """Whether a reader may hold something else than the list as it is, and was not told."""
        return self.known is not None and (self.mixed or self.known != self.now.items)


@frozen
class Window:
    """When subscribers are told of a topic (None: nothing to tell), and when they last were."""

    topic: Topic
    due_at_ms: int | None
    told_at_ms: int | None


@frozen
class Subscriber:
    """Somebody who hears of these topics. ``name`` is for the caller: where to send."""

    name: str
    topics: frozenset[Topic]


@frozen
class View:
    """All that one authorization is shown and told."""

    shown: tuple[Shown, ...]  # in the order of KINDS
    windows: tuple[Window, ...]
    subscribers: tuple[Subscriber, ...]


class Page(NamedTuple):
    """What one list request is answered with."""

    items: Items
    next_cursor: str | None
    ttl_ms: int
    scope: Scope


class Announce(NamedTuple):
    """Tell these subscribers of a view that this has changed. Nothing else is told."""

    view: str
    topic: Topic
    to: tuple[str, ...]


# --- lists ----------------------------------------------------------------------------------------


def arrange(items: Iterable[Item]) -> Items:
    """By key, whatever order they come in. Raises ImpossibleAct for a key that comes twice.

    Rule: EMIT-21.
    """
    ordered = tuple(sorted(items, key=_KEY))
    for one, other in pairwise(ordered):
        if one.key == other.key:
            raise ImpossibleAct(f"two entries with one key: {one.key!r}")
    return ordered


def _listed(items: Items) -> Listed:
    digest = sha256()
    for item in items:
        key = item.key.encode("utf-8", "surrogatepass")
        digest.update(b"%d %d " % (len(key), len(item.canonical_json)) + key + item.canonical_json)
    return Listed(items, digest.hexdigest()[:32])


NOTHING = View((Shown(_listed(()), None, False, ()),) * len(KINDS), (), ())
"""A view that nobody has committed anything to, or read."""


def commit(
    view: View, kind: Kind, items: Items, now_ms: int, pushes: bool, policy: PublisherPolicy
) -> View:
    """The view with this list in force; the same object where nothing differs.

    ``items`` are arranged; ``pushes``: notices of this kind are declared. A list that nobody was
    served has no readers to tell, unless other instances serve it. Rule: EMIT-01, EMIT-03 to
    EMIT-06, EMIT-17.
    """
    shown = view.shown[_AT[kind]]
    shared = share(shown.now.items, items)
    if shared is shown.now.items:
        return view
    known, mixed = shown.known, shown.mixed
    if not policy.alone:  # another instance may have served either list
        known, mixed = shown.now.items if known is None else known, True
    view = _with(view, kind, Shown(_listed(shared), known, mixed, shown.walked))
    if not pushes or known is None:
        return view
    return _open(view, CHANNEL_OF[kind], now_ms, policy)


def page(
    view: View, kind: Kind, cursor: str | None, policy: PublisherPolicy
) -> tuple[View, Page | None]:
    """A page of the list as it is, or of the version that the cursor names; None: a dead cursor.

    What is outdated is not called fresh. Rule: CAP-17, EMIT-12, EMIT-13, EMIT-19, TTL-01.
    """
    shown = view.shown[_AT[kind]]
    found = (shown.now, 0) if cursor is None else _find(shown, cursor)
    if found is None:
        return view, None
    listed, start = found
    end = start + policy.page_max
    more = _cursor(listed, end) if end < len(listed.items) else None
    known, mixed, walked = shown.known, shown.mixed, shown.walked
    if more is not None:
        others = (other for other in walked if other.digest != listed.digest)
        walked = (*others, listed)[-policy.walks_max :]
    fresh = listed.digest == shown.now.digest
    if fresh:
        known = listed.items if known is None else known
        mixed = mixed or known != listed.items
    served = Page(listed.items[start:end], more, policy.ttl_ms if fresh else 0, policy.scope)
    return _with(view, kind, Shown(shown.now, known, mixed, walked)), served


def find(view: View, kind: Kind, key: str) -> Item | None:
    """The entry with this key that is in force: calls go by it. Rule: CALL-04, CALL-20, EMIT-15."""
    items = view.shown[_AT[kind]].now.items
    at = bisect_left(items, key, key=_KEY)
    return items[at] if at < len(items) and items[at].key == key else None


def _cursor(listed: Listed, start: int) -> str:
    return f"{listed.digest}.{start}"


def _find(shown: Shown, cursor: str) -> tuple[Listed, int] | None:
    """What a cursor names: it comes from the peer, so only what was given out is taken."""
    digest, _, rest = cursor.partition(".")
    start = int(rest) if rest.isdecimal() and len(rest) < 10 else 0
    for listed in (shown.now, *shown.walked):
        if listed.digest == digest and 0 < start < len(listed.items):
            return (listed, start) if cursor == _cursor(listed, start) else None
    return None


def _with(view: View, kind: Kind, shown: Shown) -> View:
    at = _AT[kind]
    return View((*view.shown[:at], shown, *view.shown[at + 1 :]), view.windows, view.subscribers)


# --- notices --------------------------------------------------------------------------------------


def updated(view: View, uri: str, now_ms: int, policy: PublisherPolicy) -> View:
    """The view after the content of a resource changed: told to those who subscribed to it."""
    wanted = any(uri in subscriber.topics for subscriber in view.subscribers)
    return _open(view, uri, now_ms, policy) if wanted else view


def _open(view: View, topic: Topic, now_ms: int, policy: PublisherPolicy) -> View:
    """A change waits for others, but never longer because of them. Rule: EMIT-04."""
    before = next((w for w in view.windows if w.topic == topic), Window(topic, None, None))
    if before.due_at_ms is not None:
        return view
    told_ms = before.told_at_ms
    rested_ms = now_ms if told_ms is None else told_ms + policy.gap_ms
    window = evolve(before, due_at_ms=max(now_ms + policy.merge_ms, rested_ms))
    others = (other for other in view.windows if other.topic != topic)
    return evolve(view, windows=(*others, window))


def elapse(name: str, view: View, now_ms: int) -> tuple[View, tuple[Announce, ...]]:
    """The view after this moment, and whom to tell of what. Rule: EMIT-02, EMIT-08, EMIT-20."""
    told: list[Announce] = []
    shown, windows = list(view.shown), list(view.windows)
    for number, window in enumerate(windows):
        if not reached(window.due_at_ms, now_ms):
            continue
        topic = window.topic
        to = tuple(hearer.name for hearer in view.subscribers if topic in hearer.topics)
        if isinstance(topic, Channel):
            kinds = [_AT[kind] for kind in KINDS if CHANNEL_OF[kind] is topic]
            to = to if any(shown[at].outdated for at in kinds) else ()
            for at in kinds if to else ():
                shown[at] = _told(shown[at])
        windows[number] = Window(topic, None, now_ms if to else window.told_at_ms)
        if to:
            told.append(Announce(name, topic, to))
    return View(tuple(shown), tuple(windows), view.subscribers), tuple(told)


def _told(shown: Shown) -> Shown:
    """From now on readers hold the list as it is, or know that they do not."""
    known = None if shown.known is None else shown.now.items
    return Shown(shown.now, known, False, shown.walked)


def view_deadline_ms(view: View) -> int | None:
    """When somebody is to be told of something."""
    return earliest(*(window.due_at_ms for window in view.windows))


def granted(asked: Iterable[Topic], offer: Capabilities) -> frozenset[Topic]:
    """What of this a subscriber will hear of: only what is declared. Rule: EMIT-01, EMIT-08."""
    return frozenset(
        topic
        for topic in asked
        if (topic in offer.channels if isinstance(topic, Channel) else offer.subscribe)
    )


def subscribe(view: View, subscriber: Subscriber) -> View:
    """The view with this subscriber, in place of what it heard of before."""
    others = (other for other in view.subscribers if other.name != subscriber.name)
    return _heard_by(view, (*others, subscriber))


def unsubscribe(view: View, name: str) -> View:
    """The view without this subscriber."""
    return _heard_by(view, tuple(one for one in view.subscribers if one.name != name))


def _heard_by(view: View, subscribers: tuple[Subscriber, ...]) -> View:
    """Resources that nobody hears of any more have no window, so windows are bounded."""

    def kept(topic: Topic) -> bool:
        return isinstance(topic, Channel) or any(topic in one.topics for one in subscribers)

    windows = tuple(window for window in view.windows if kept(window.topic))
    return View(view.shown, windows, subscribers)


def settle(view: View) -> View:
    """The view when nobody is connected: nothing is to be told, and no earlier clock counts."""
    return View(tuple(_told(shown) for shown in view.shown), (), view.subscribers)
