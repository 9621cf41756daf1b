"""The reference machine made to follow a client: its walks, and the lists that they come to.

A client may walk twice at once, so each walk of it has a machine of its own: a copy of the session
from the moment of its first request. What such a machine publishes the client may show.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping

from attrs import define, evolve, field, frozen

from relist import inputs as i
from relist.check.following import POLICY
from relist.check.history import Event
from relist.effects import Publish
from relist.messages import NAMES, is_list, is_object, read_page
from relist.rules.base import open_walk
from relist.session import Session, receive
from relist.values import (
    KINDS,
    WALKING,
    Catalog,
    Failure,
    Item,
    Kind,
    Scope,
    Snapshot,
)

Labels = tuple[tuple[str, str], ...]
"""The name and the description of each item, sorted."""

_TELL_WHEN = (429, 503)  # HTTP statuses that may say when to try again; a history does not
_HEADER = b"x-mcp-header"
_WALKS_MAX = 32  # open walks of one kind that are followed


@frozen
class Listed:
    """A list that a walk came to: the client may show it.

    ``begin`` and ``end`` are the events of its first request and of its last page. ``lifetime_ms``
    None: no end. ``headed``: tools that ask for headers, which a client may have to leave out.
    """

    labels: Labels
    names: tuple[str, ...]
    begin: int
    end: int
    partition: str
    public: bool
    ambiguous: bool
    generation: int
    lifetime_ms: int | None
    headed: frozenset[tuple[str, str]] = frozenset()

    def shows(self, labels: Labels) -> bool:
        """Whether these items are this list; of a name with two definitions either will do.

        Rule: DISC-23, DISC-24.
        """
        if self.ambiguous:
            return self.names == tuple(name for name, _ in labels)
        left_out = set(self.labels) - set(labels)
        return left_out <= self.headed and Counter(labels) <= Counter(self.labels)


@frozen
class Unused:
    """What an answer held of which no list may be made, and why."""

    labels: Labels
    why: str
    seq: int


@define(eq=False)
class Walker:
    """A walk of the client, and the machine that follows it. ``flying``: a page is on its way."""

    session: Session
    kind: Kind
    begin: int
    partition: str
    flying: bool = True
    pages: list[Labels] = field(factory=list[Labels])

    @property
    def catalog(self) -> Catalog:
        """The catalog that walks."""
        return self.session.catalog(self.kind)

    @property
    def cursor(self) -> str | None:
        """The cursor of the page that it is at."""
        return None if self.catalog.walk is None else self.catalog.walk.cursor


class Walks:
    """All walks of one kind, and the lists they came to. ``newest``: when that began whose end
    the machine goes by."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.open: list[Walker] = []
        self.ended: list[Listed] = []
        self.pages: list[list[Labels]] = []
        """What the pages of each walk held."""
        self.unused: list[Unused] = []
        self.newest = -1
        self.refused = -1
        """When the last page was refused, or was of no use."""
        self.wait_ms: int | None = 0
        """How long the machine would have waited after that; None: nobody knows."""
        self.given: set[str] = set()
        """All cursors that an answer gave out."""
        self.kept: dict[str | None, i.PageArrived] = {}
        """By cursor the pages that nothing speaks against."""

    def begin(self, session: Session, seq: int, partition: str, now_ms: int) -> Walker | None:
        """A walk from the first page; None where this machine may not begin one."""
        begun, _ = receive(session, i.RefreshWanted(self.kind, now_ms), POLICY)
        if begun.catalog(self.kind).phase not in WALKING:
            return None
        walker = Walker(begun, self.kind, seq, partition)
        self.open = [*self.open, walker][-_WALKS_MAX:]
        return walker

    def at(self, cursor: str) -> Walker | None:
        """The walk that comes to the page of this cursor, or waits for it already."""
        waiting = [one for one in self.open if one.cursor == cursor]
        return max(waiting, key=lambda one: (not one.flying, one.begin), default=None)

    def renew(
        self, session: Session, cursor: str, seq: int, partition: str, now_ms: int
    ) -> Walker | None:
        """A walk that begins with pages kept, and asks for the one of this cursor."""
        before: list[i.PageArrived] = []
        at: str | None = None
        while at != cursor:
            page = self.kept.get(at)
            if page is None or page.next_cursor is None or len(before) > len(self.kept):
                return None
            before.append(page)
            at = page.next_cursor
        walker = self.begin(session, seq, partition, now_ms)
        if walker is not None:
            for page in before:
                _hear(walker, page)
        return walker

    def arrived(self, walker: Walker, result: object, event: Event) -> Session | None:
        """A page arrived; the session in which its list is published, if it was the last."""
        if walker not in self.open:
            self.pass_over(result, event, "came too late")
            return None
        walk = open_walk(walker.catalog)
        heard, _ = read_page(self.kind, walk.serial, result, _canonical, event.at_ms)
        if isinstance(heard, i.PageFailed):
            self.pass_over(result, event, "is of no use")
            return self.fails(walker, heard.failure, event)
        self.kept[walk.cursor] = heard
        if not walker.pages:
            self.pages.append(walker.pages)
        walker.pages.append(labels_of(heard.items))
        if heard.next_cursor is not None:
            self.given.add(heard.next_cursor)
            self._complete(walker, heard, event.seq)
        walker.flying = False
        published = _hear(walker, heard)
        if published is None:
            return None
        self.open.remove(walker)
        self.ended.append(_listed(walker, published, event.seq))
        return walker.session

    def _complete(self, walker: Walker, page: i.PageArrived, seq: int) -> None:
        """The rest of the list may be kept from before: then this is a whole list, too."""
        rest = Walker(walker.session, self.kind, walker.begin, walker.partition)
        following: i.PageArrived | None = page
        for _ in range(len(self.kept) + 1):
            if following is None:
                return
            published = _hear(rest, following)
            if published is not None:
                self.ended.append(_listed(rest, published, seq))
                return
            following = self.kept.get(following.next_cursor)

    def fails(self, walker: Walker, failure: Failure, event: Event) -> Session | None:
        """A page was refused, or will not come; the session after it."""
        if walker not in self.open:
            return None
        self.refused = event.seq
        serial = open_walk(walker.catalog).serial
        heard = i.PageFailed(self.kind, serial, failure, event.at_ms)
        walker.session, _ = receive(walker.session, heard, POLICY)
        self.open.remove(walker)
        due_ms = walker.catalog.pacing.due_at_ms or event.at_ms
        self.wait_ms = None if failure.status in _TELL_WHEN else due_ms - event.at_ms
        return walker.session

    def pass_over(self, result: object, event: Event, why: str) -> None:
        """Remember what an answer held of which no list may be made; its cursor is one."""
        if not is_object(result):
            return
        entries, cursor = result.get(NAMES[self.kind].field), result.get("nextCursor")
        if isinstance(cursor, str):
            self.given.add(cursor)
        if is_list(entries):
            found = [_named(entry, "") for entry in entries if is_object(entry)]
            labels = _sorted((name or "", told) for name, told in found)
            self.unused.append(Unused(labels, why, event.seq))

    def forget(self, walker: Walker) -> None:
        """The client gave this walk up."""
        if walker in self.open:
            self.open.remove(walker)

    def unlink(self) -> None:
        """The link is gone: no page outlives it."""
        self.open, self.kept = [], {}


def adopt(session: Session, kind: Kind, walked: Session) -> Session:
    """The session with the catalog that this walk came to."""
    catalogs = list(session.catalogs)
    catalogs[KINDS.index(kind)] = walked.catalog(kind)
    return evolve(session, catalogs=tuple(catalogs))


def _listed(walker: Walker, listed: Snapshot, seq: int) -> Listed:
    labels = labels_of(listed.items)
    ends_ms = listed.expires_at_ms
    return Listed(
        labels,
        tuple(name for name, _ in labels),
        walker.begin,
        seq,
        walker.partition,
        listed.scope is Scope.PUBLIC,
        bool(listed.ambiguous),
        listed.generation,
        None if ends_ms is None else max(0, ends_ms - listed.listed_at_ms),
        frozenset(_label(item) for item in listed.items if _HEADER in item.canonical_json),
    )


def _hear(walker: Walker, page: i.PageArrived) -> Snapshot | None:
    """Let its machine hear the page as the one that it waits for; the list, if that was the last.

    None, too, for a page after the last.
    """
    heard = evolve(page, serial=walker.catalog.serial)
    walker.session, effects = receive(walker.session, heard, POLICY)
    return next((told.snapshot for told in effects if isinstance(told, Publish)), None)


def _canonical(value: object) -> bytes:
    """The label in a line, and the whole entry in the next: what is equal is equal in both."""
    label = _named(value if is_object(value) else {}, None)
    lines = (json.dumps(one, sort_keys=True) for one in (label, value))
    return "\n".join(lines).encode("ascii")


def labels_of(items: tuple[Item, ...]) -> Labels:
    """How a driver tells these items."""
    return _sorted(_label(item) for item in items)


def _label(item: Item) -> tuple[str, str]:
    name, description = json.loads(item.canonical_json.partition(b"\n")[0])
    return item.key if name is None else name, description


def _named(entry: Mapping[str, object], key: str | None) -> tuple[str | None, str]:
    """The name of an entry, or its key where it has none, and its description."""
    name, description = entry.get("name"), entry.get("description")
    told = description if isinstance(description, str) else ""
    return name if isinstance(name, str) else key, told


def _sorted(labels: Iterable[tuple[str, str]]) -> Labels:
    return tuple(sorted(labels))
