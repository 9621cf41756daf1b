"""Everybody around a publisher: who commits, reads and listens, and what each was promised.

What readers can hold is kept here as sets of whole lists, apart from how the publisher keeps it.
Each promise is a named check; what breaks one raises ``Violation``.
"""

from collections.abc import Iterable
from typing import ClassVar

from attrs import define, evolve, field

from relist.publication import View, page
from relist.publisher import Announce, Page, Publisher, PublisherPolicy
from relist.values import (
    CHANNEL_OF,
    CHANNELS,
    KINDS,
    Capabilities,
    Channel,
    Failure,
    Item,
    Items,
    Kind,
    Scope,
    Topic,
)

OFFER = Capabilities(
    frozenset(KINDS), frozenset({Channel.TOOLS, Channel.RESOURCES}), subscribe=True
)
POLICY = PublisherPolicy(merge_ms=10, gap_ms=40, page_max=2, ttl_ms=100, walks_max=2)
VIEWS = ("", "readers", "writers")
URIS = ("file:///one", "file:///two")
TOPICS: tuple[Topic, ...] = (*CHANNELS, *URIS)
Place = tuple[str, Kind]


class Violation(AssertionError):
    """A promise was broken."""

    def __init__(self, promise: str, told: str) -> None:
        super().__init__(f"{promise}: {told}")
        self.promise = promise


@define
class Walk:
    """A reader on its way through the pages of the version that was in force when it began."""

    place: Place
    version: Items
    pages: list[Items]
    cursor: str


@define
class Audience:
    """A publisher and all that is to be known of it from outside.

    ``watched``: the one promise that counts, while it is shown to bite; None: all of them.
    """

    watched: ClassVar[str | None] = None
    alone: bool = True
    now_ms: int = 0
    publisher: Publisher = field(init=False)
    in_force: dict[Place, Items] = field(factory=dict[Place, Items])
    held: dict[Place, set[Items]] = field(factory=dict[Place, set[Items]])  # and not told of
    order: dict[frozenset[Item], Items] = field(factory=dict[frozenset[Item], Items])
    issued: dict[Place, dict[str, Items]] = field(factory=dict[Place, dict[str, Items]])
    walks: list[Walk] = field(factory=list[Walk])
    hearers: dict[str, tuple[str, frozenset[Topic]]] = field(
        factory=dict[str, tuple[str, frozenset[Topic]]]
    )
    told_ms: dict[tuple[str, Topic], int] = field(factory=dict[tuple[str, Topic], int])
    owed_ms: dict[tuple[str, Topic], int] = field(factory=dict[tuple[str, Topic], int])
    told: int = 0
    broken: bool = False

    def __attrs_post_init__(self) -> None:
        self.publisher = Publisher(OFFER, evolve(POLICY, alone=self.alone))
        for place in ((view, kind) for view in VIEWS for kind in KINDS):
            self.in_force[place] = ()
            self.held[place] = set()
            self.issued[place] = {}

    # --- acts -------------------------------------------------------------------------------------

    def commit(self, place: Place, letters: str) -> None:
        """Put these entries in force; a capital is another definition under the same key."""
        view, kind = place
        owner = _owner(place)
        items = [Item(one.lower(), owner + one.encode()) for one in letters]
        before = self.publisher.views.get(view)
        self.publisher.commit(kind, items, self.now_ms, view)
        now = tuple(sorted(items, key=lambda item: item.key))
        was, self.in_force[place] = self.in_force[place], now
        if not self.alone and now != was:  # somebody else may have been served either
            self.held[place] |= {was, now}
        if now == was and before is not None:
            self.promise("nothing-for-nothing", self.publisher.views[view] is before)
        self._owe(view, CHANNEL_OF[kind])

    def begin(self, place: Place) -> None:
        """Somebody reads from the first page."""
        version = self.in_force[place]
        self.held[place].add(version)
        self._serve(Walk(place, version, [], ""), None)

    def read(self, place: Place) -> None:
        """Somebody reads all pages at once."""
        others, self.walks = self.walks, []
        self.begin(place)
        while self.walks:
            self.go_on(0)
        self.walks = others

    def go_on(self, number: int) -> None:
        """One of those who read asks for its next page."""
        walk = self.walks.pop(number % len(self.walks))
        self._serve(walk, walk.cursor)

    def ask_junk(self, place: Place, cursor: str) -> None:
        """A cursor of anywhere is taken if it was given out for this list, else it is dead."""
        view, kind = place
        answer = self.publisher.page(kind, cursor, view)
        if isinstance(answer, Failure):
            self.promise("dead-cursors", answer.code == -32602, answer)
        else:
            self.promise("dead-cursors", cursor in self.issued[place], cursor)
            self._look(place, answer)
            if self.issued[place].get(cursor) == self.in_force[place]:
                self.held[place].add(self.in_force[place])

    def subscribe(self, name: str, view: str, topics: Iterable[Topic]) -> None:
        """Somebody wants to hear of this; a known name asks anew, in its own view."""
        view = self.hearers.get(name, (view, None))[0]
        asked = frozenset(topics)
        granted = self.publisher.subscribe(name, asked, view)
        allowed = frozenset(t for t in asked if t in OFFER.channels or t in URIS)
        self.promise("declared-only", granted == allowed, granted)
        self.hearers[name] = (view, allowed)
        self._forgive()

    def leave(self, name: str) -> None:
        self.publisher.unsubscribe(name)
        self.hearers.pop(name, None)
        self._forgive()

    def update(self, uri: str, view: str | None) -> None:
        """The content of a resource changes."""
        self.publisher.updated(uri, self.now_ms, view)
        for name in VIEWS if view is None else (view,):
            if self._hear(name, uri):
                self.owed_ms.setdefault((name, uri), self.now_ms)

    def wait(self, for_ms: int) -> None:
        """Time passes; the publisher wakes when it wants to."""
        until_ms = self.now_ms + for_ms
        while (due_ms := self.publisher.deadline_ms()) is not None and due_ms <= until_ms:
            self.now_ms = max(due_ms, self.now_ms)
            self._elapse()
            next_ms = self.publisher.deadline_ms()
            self.promise("wakes-ahead", next_ms is None or next_ms > self.now_ms, next_ms)
        self.now_ms = until_ms
        self._elapse()

    def settle(self) -> None:
        """Nothing happens any more: whoever listens has been told of what is not as it holds."""
        self.wait(2 * POLICY.gap_ms)
        self.promise("wakes-ahead", self.publisher.deadline_ms() is None)

    # --- promises ---------------------------------------------------------------------------------

    def promise(self, promise: str, kept: bool, told: object = "") -> None:
        """Raises Violation if it is not kept."""
        if not kept and self.watched in (None, promise):
            self.broken = True
            raise Violation(promise, str(told))

    def _serve(self, walk: Walk, cursor: str | None) -> None:
        view, kind = walk.place
        answer = self.publisher.page(kind, cursor, view)
        if isinstance(answer, Failure):
            self.promise("dead-cursors", cursor is not None and answer.code == -32602, answer)
            return
        self._look(walk.place, answer)
        if walk.version == self.in_force[walk.place]:
            self.held[walk.place].add(walk.version)
        else:
            self.promise("hints-are-true", answer.ttl_ms == 0, answer)
        walk.pages.append(answer.items)
        if answer.next_cursor is None:
            read = tuple(item for items in walk.pages for item in items)
            self.promise("one-version", read == walk.version, read)
            self._ordered(read)
        else:
            walk.cursor = answer.next_cursor
            self.issued[walk.place][walk.cursor] = walk.version
            self.walks.append(walk)

    def _look(self, place: Place, answer: Page) -> None:
        apart = all(item.canonical_json.startswith(_owner(place)) for item in answer.items)
        self.promise("views-stay-apart", apart, answer)
        self.promise("hints-are-true", answer.scope is Scope.PRIVATE and answer.ttl_ms in (0, 100))

    def _ordered(self, read: Items) -> None:
        self.promise("order-of-the-set", self.order.setdefault(frozenset(read), read) == read, read)

    def _elapse(self) -> None:
        for announced in self.publisher.elapse(self.now_ms):
            self._judge(announced)
        for (view, topic), since_ms in self.owed_ms.items():
            late = since_ms + POLICY.gap_ms <= self.now_ms
            self.promise("bounded-lag", not late, (view, topic))
        self._bounded()

    def _judge(self, announced: Announce) -> None:
        view, topic, to = announced
        self.told += 1
        self.promise("asked-only", bool(to) and len(set(to)) == len(to), announced)
        for name in to:
            self.promise("asked-only", topic in self.hearers.get(name, (view, ()))[1], announced)
            self.promise(
                "views-stay-apart", self.hearers.get(name, (view, ()))[0] == view, announced
            )
        self.promise("asked-only", set(to) == set(self._hear(view, topic)), announced)
        last_ms = self.told_ms.get((view, topic))
        spaced = last_ms is None or self.now_ms - last_ms >= POLICY.gap_ms
        self.promise("bounded-traffic", spaced, announced)
        self.told_ms[view, topic] = self.now_ms
        self.owed_ms.pop((view, topic), None)
        if isinstance(topic, Channel):
            self._judge_list(view, topic, announced)

    def _judge_list(self, view: str, channel: Channel, announced: Announce) -> None:
        self.promise("declared-only", channel in OFFER.channels, announced)
        places = [(view, kind) for kind in KINDS if CHANNEL_OF[kind] is channel]
        for place in places:
            whole = _walk(self.publisher.views[view], place[1], self.publisher.policy)
            self.promise("committed-before-notice", whole == self.in_force[place], announced)
        self.promise("visible-change", self._is_outdated(view, channel), announced)
        for place in places:
            if self.held[place]:
                self.held[place] = {self.in_force[place]}

    def _hear(self, view: str, topic: Topic) -> list[str]:
        return [
            name
            for name, (home, topics) in self.hearers.items()
            if home == view and topic in topics
        ]

    def _owe(self, view: str, channel: Channel) -> None:
        """From the change on, for as long as somebody can hold what is not in force."""
        if channel in OFFER.channels and self._is_outdated(view, channel):
            self.owed_ms.setdefault((view, channel), self.now_ms)
        self._forgive()

    def _forgive(self) -> None:
        """Nothing is owed to nobody, and not of what is as everybody holds it.

        Who subscribes after a change hears of the next one: it has to read after it subscribed.
        """
        for view, topic in list(self.owed_ms):
            current = isinstance(topic, Channel) and not self._is_outdated(view, topic)
            if current or not self._hear(view, topic):
                del self.owed_ms[view, topic]
        for view, topic in list(self.told_ms):
            if isinstance(topic, str) and not self._hear(view, topic):
                del self.told_ms[view, topic]  # it was told to somebody else
        self._bounded()

    def _is_outdated(self, view: str, channel: Channel) -> bool:
        return any(
            bool(self.held[view, kind] - {self.in_force[view, kind]})
            for kind in KINDS
            if CHANNEL_OF[kind] is channel
        )

    def _bounded(self) -> None:
        policy = self.publisher.policy
        for view in self.publisher.views.values():
            self.promise("bounded-state", len(view.windows) <= len(TOPICS), view.windows)
            for shown in view.shown:
                self.promise("bounded-state", len(shown.walked) <= policy.walks_max, shown.walked)


def _owner(place: Place) -> bytes:
    """How each entry of this place begins."""
    return f"{place[0]}:{place[1].value}:".encode()


def _walk(view: View, kind: Kind, policy: PublisherPolicy) -> Items:
    """What a reader would get now; nobody notices, since views are values."""
    read: list[Item] = []
    cursor: str | None = None
    while True:
        view, answer = page(view, kind, cursor, policy)
        assert answer is not None
        read += answer.items
        if (cursor := answer.next_cursor) is None:
            return tuple(read)
