"""The server's side: lists that change, and whom to tell of it. Pure, like the client's side.

A server commits whole lists; a reader gets them page by page; a subscriber is told that a list has
changed. ``Publisher`` is the object to embed; its law, ``publication.py``, is pure functions over
values. Nobody is told anything but by ``elapse``, so a change can be read before it is told of.

    publisher = Publisher(Capabilities(frozenset({Kind.TOOLS}), frozenset({Channel.TOOLS})))
    publisher.commit(Kind.TOOLS, items, now_ms)         # readable from here on
    publisher.subscribe("alice's stream", {Channel.TOOLS})
    publisher.page(Kind.TOOLS, cursor=None)             # Page, or Failure with its JSON-RPC code
    publisher.elapse(now_ms)                            # at deadline_ms(): whom to tell of what

**Views.** What a reader may see depends on its authorization and on nothing else: a *view* is a
harmless name for that ("readers", or a digest; never a credential). Each view has its own lists,
subscribers and notices. Nothing here knows of connections: a subscriber is a name for where to
send, and has no list of its own. Rule: DISC-30, EMIT-14, EMIT-16, EMIT-32, EMIT-33.

**Order.** Lists are in the order of their keys. That is the one order that depends on the set
alone: the same after a restart, in another instance, and after an entry has come and gone.

**Pages.** A cursor names a version by its digest and a place in it. Versions that somebody is still
reading are kept, a few of them, so that a walk sees one version; any other cursor is dead, and its
reader starts over.

**Notices.** The first change opens a window of ``merge_ms``, longer if the last notice was less
than ``gap_ms`` ago; nothing moves it. At its end subscribers are told once, unless no reader can
hold anything but the list as it is. Readers hold what they were told of, or were served since.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from relist.errors import ImpossibleAct, PolicyError
from relist.failures import INVALID_PARAMS, METHOD_NOT_FOUND
from relist.freshness import earliest, reached
from relist.publication import (
    NOTHING,
    Announce,
    Page,
    PublisherPolicy,
    Subscriber,
    View,
    arrange,
    commit,
    elapse,
    find,
    granted,
    page,
    settle,
    subscribe,
    unsubscribe,
    updated,
    view_deadline_ms,
)
from relist.values import CHANNEL_OF, Capabilities, Failure, Item, Kind, Scope, Topic

__all__ = ["EVERYONE", "Announce", "Page", "Publisher", "PublisherPolicy"]

EVERYONE = ""
"""The view of a server whose lists are the same for all."""


class Publisher:
    """The lists of one server, in all their views. Not thread safe; never blocks; holds no clock.

    ``offer`` is what the server declares: kinds, notices of them, updates of single resources.
    Raises PolicyError for notices of a kind that is not offered. Rule: CAP-22, EMIT-23, EMIT-24.
    """

    def __init__(self, offer: Capabilities, policy: PublisherPolicy | None = None) -> None:
        if not offer.channels <= {CHANNEL_OF[kind] for kind in offer.kinds}:
            raise PolicyError("publisher: notices are declared of a kind that is not offered")
        self.offer = offer
        self.policy = policy or PublisherPolicy()
        self._views: dict[str, View] = {}
        self._homes: dict[str, str] = {}  # the view of each subscriber

    @property
    def views(self) -> Mapping[str, View]:
        """The frozen state of each view."""
        return self._views

    def commit(self, kind: Kind, items: Iterable[Item], now_ms: int, view: str = EVERYONE) -> None:
        """This list is in force from now on. After calling this you must re-arm the timer.

        Raises ImpossibleAct, with nothing changed, for a kind that is not offered, a key that comes
        twice, or a view too many.
        """
        if kind not in self.offer.kinds:
            raise ImpossibleAct(f"{kind.value} are not offered")
        pushes = CHANNEL_OF[kind] in self.offer.channels
        arranged = arrange(items)
        self._views[view] = commit(self._at(view), kind, arranged, now_ms, pushes, self.policy)

    def page(self, kind: Kind, cursor: str | None, view: str = EVERYONE) -> Page | Failure:
        """The answer to a list request. Raises ImpossibleAct for a view too many."""
        if kind not in self.offer.kinds:
            return Failure(f"{kind.value} are not offered", METHOD_NOT_FOUND)
        self._views[view], served = page(self._at(view), kind, cursor, self.policy)
        return Failure("dead cursor", INVALID_PARAMS) if served is None else served

    def find(self, kind: Kind, key: str, view: str = EVERYONE) -> Item | None:
        """The entry that is in force under this key; None: no call of it may go on."""
        return find(self._views.get(view, NOTHING), kind, key)

    def subscribe(
        self, name: str, asked: Collection[Topic], view: str = EVERYONE
    ) -> frozenset[Topic] | None:
        """Tell this subscriber of what it asks for; returns what it will hear of, None: refused.

        A name that is known keeps its place: what it hears of is replaced. Raises ImpossibleAct for
        a view too many, or a name that is known in another view.
        """
        if self._homes.get(name, view) != view:
            raise ImpossibleAct("a subscriber has one authorization")
        topics = granted(asked, self.offer)
        uris = sum(isinstance(topic, str) for topic in topics)
        full = name not in self._homes and len(self._homes) >= self.policy.subscribers_max
        if full or uris > self.policy.uris_max:
            return None
        self._views[view] = subscribe(self._at(view), Subscriber(name, topics))
        self._homes[name] = view
        return topics

    def unsubscribe(self, name: str) -> None:
        """This subscriber is gone, if it was there."""
        view = self._homes.pop(name, None)
        if view is not None:
            self._views[view] = unsubscribe(self._views[view], name)

    def updated(self, uri: str, now_ms: int, view: str | None = None) -> None:
        """The content of a resource has changed, for this view or for all. Re-arm the timer."""
        for name in self._views if view is None else {view} & self._views.keys():
            self._views[name] = updated(self._views[name], uri, now_ms, self.policy)

    def elapse(self, now_ms: int) -> tuple[Announce, ...]:
        """Whom to tell of what, now. Call it at ``deadline_ms()``."""
        return tuple(self._elapse(now_ms))

    def _elapse(self, now_ms: int) -> Iterator[Announce]:
        for name, view in self._views.items():
            if reached(view_deadline_ms(view), now_ms):
                self._views[name], told = elapse(name, view, now_ms)
                yield from told

    def deadline_ms(self) -> int | None:
        """When to call ``elapse``; None: not before a change."""
        return earliest(*(view_deadline_ms(view) for view in self._views.values()))

    def settle(self) -> None:
        """Nobody is connected, and a clock may begin anew: forget what is to be told."""
        self._views = {name: settle(view) for name, view in self._views.items()}

    def forget(self) -> bool:
        """Make room: drop the oldest view without subscribers, lists and all. Returns whether."""
        idle = next((name for name, view in self._views.items() if not view.subscribers), None)
        if idle is not None:
            del self._views[idle]
        return idle is not None

    @property
    def full(self) -> bool:
        """Whether there is room for no other view."""
        return len(self._views) >= self.policy.views_max

    def _at(self, view: str) -> View:
        known = self._views.get(view)
        if known is not None:
            return known
        if self.policy.scope is Scope.PUBLIC and view != EVERYONE:
            raise ImpossibleAct("what differs by authorization is not public")
        if self.full:
            raise ImpossibleAct("too many views")
        return NOTHING
