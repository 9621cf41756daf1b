"""What a client of a ``Host`` is held to, by what the server really had and really served.

The environment: one ordered pipe, but answers and notices leave the server from tasks of their own,
so a notice may be overtaken until everybody has come to rest. None is lost while somebody listens.
So what is fresh and vouched is the truth, unless a change was not told yet or has just been told.
"""

import json
from collections.abc import Iterable, Iterator
from functools import cache

from relist import effects as e
from relist.check.isolation import SessionEdge
from relist.machine import Hit
from relist.session import Session
from relist.values import CHANNEL_OF, Catalog, Channel, Items, Kind, Phase, Scope, Snapshot
from relist_mcp import Catalogs, Change
from support.host import Host
from support.truth import SHARED


class Promise:
    """``untold``: changed, and nobody was told. ``unsettled``: what was told may be on its way."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.untold: set[Kind] = set()
        self.unsettled: set[Kind] = set()
        self._links: dict[int, int] = {}  # by epoch
        self._published: dict[tuple[int, Kind], int] = {}

    def begin(self) -> None:
        """Another client begins, and counts its epochs anew."""
        self._links.clear()

    # --- what the schedule says -------------------------------------------------------------------

    def changed(self, kind: Kind) -> None:
        """The list was replaced."""
        self.untold.add(kind)

    def told(self, channel: Channel) -> None:
        """An announcement leaves the server."""
        kinds = {kind for kind in Kind if CHANNEL_OF[kind] is channel}
        self.unsettled |= self.untold & kinds
        self.untold -= kinds

    def settled(self, session: Session) -> Iterator[str]:
        """Everybody is at rest: what was told has arrived, or whoever it was for is gone."""
        self.unsettled.clear()
        yield from self._listed(session)

    def supported(self, kind: Kind) -> bool:
        """Whether the process that runs serves the kind: templates need the resources, too."""
        kinds = self.host.kinds
        return kind in kinds and (kind is not Kind.TEMPLATES or Kind.RESOURCES in kinds)

    def pushes(self) -> bool:
        """Whether the process that runs announces changes of anything."""
        return self.host.push and any(self.supported(kind) for kind in Kind)

    # --- what is checked --------------------------------------------------------------------------

    def broken(self, edge: SessionEdge) -> Iterator[str]:
        """Complaints about one step of the client's core."""
        for effect in edge.effects:
            if isinstance(effect, e.Publish):
                yield from self._served(effect.kind, effect.snapshot)
        yield from self._listed(edge.after)

    def _listed(self, session: Session) -> Iterator[str]:
        for catalog in session.catalogs:
            if catalog.snapshot is not None:
                yield from self._current(catalog, catalog.snapshot)
                yield from _own(catalog, catalog.snapshot)

    def _served(self, kind: Kind, listed: Snapshot) -> Iterator[str]:
        """What is published is one complete walk of a link that stands, a later one each time.

        An epoch is bound to the link of its first list, which no earlier one has had.
        """
        got, others = _entries(listed.items), {*self._links.values()}
        for link in (one.number for one in self.host.links):
            if self._links.get(listed.epoch, None if link in others else link) != link:
                continue
            before = self._published.get((link, kind), -1)
            for begun, entries in self.host.truth.walks(link, kind):
                if begun > before and _same(entries, got, listed.ambiguous):
                    self._links[listed.epoch] = link
                    self._published[link, kind] = begun
                    return
        yield f"as-served: {kind.value}: no later walk gave {sorted(got)}"

    def _current(self, catalog: Catalog, listed: Snapshot) -> Iterator[str]:
        kind = catalog.kind
        if catalog.phase is not Phase.FRESH or not catalog.vouched:
            return
        if kind in self.untold | self.unsettled:
            return
        got, have = _entries(listed.items), set(self.host.truth.entries(kind))
        if got != have:
            yield f"current: {kind.value}: fresh and vouched {sorted(got)}, truly {sorted(have)}"

    def converged(self, catalogs: Catalogs) -> Iterator[str]:
        """Complaints about a client that had all the time it needs."""
        for kind in Kind:
            catalog, reading = catalogs.session.catalog(kind), catalogs.read(kind)
            if not self.supported(kind):
                if catalog.phase is not Phase.UNSUPPORTED:
                    yield f"converges: {kind.value}: {catalog.phase.value}, not served"
            elif catalog.phase is not Phase.FRESH or reading.hit not in (Hit.HIT, Hit.EXPIRED):
                yield f"converges: {kind.value}: {catalog.phase.value}, {reading.hit.value}"
            elif _entries(_items(catalog)) != set(self.host.truth.entries(kind)):
                yield f"converges: {kind.value}: not what the server has"
            elif catalog.vouched is not self.host.push:
                yield f"converges: {kind.value}: vouched is {catalog.vouched}"


class Follower:
    """Adds up the changes of one kind; they must always fit onto what was known before."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._known: dict[str, bytes] = {}
        self._generation = 0

    def add(self, change: Change) -> Iterator[str]:
        """Complaints about a change that does not fit."""
        gone = {item.key: item.canonical_json for item in change.removed}
        gone |= {one.before.key: one.before.canonical_json for one in change.changed}
        if not gone.items() <= self._known.items():
            yield f"changes: {self._kind.value}: takes away what was not there"
        new = {item.key: item.canonical_json for item in change.added}
        if new.keys() & self._known.keys():
            yield f"changes: {self._kind.value}: adds what was there"
        new |= {one.after.key: one.after.canonical_json for one in change.changed}
        self._known = {k: v for k, v in self._known.items() if k not in gone} | new
        if change.generation is not None:
            if change.generation <= self._generation:
                yield f"changes: {self._kind.value}: generation {change.generation} again"
            self._generation = change.generation

    def caught_up(self, catalog: Catalog) -> Iterator[str]:
        """Complaints if the changes do not add up to what is published."""
        if self._known != {item.key: item.canonical_json for item in _items(catalog)}:
            yield f"changes: {self._kind.value}: they do not add up"


def _own(catalog: Catalog, listed: Snapshot) -> Iterator[str]:
    """What is private belongs to whom the client acts for."""
    owners = {text.split(" ")[2] for _, text in _entries(listed.items)}
    if listed.scope is Scope.PRIVATE and owners - {SHARED, catalog.standing.partition}:
        yield f"private-stays-private: {catalog.kind.value}: {owners}"


def _items(catalog: Catalog) -> Items:
    return () if catalog.snapshot is None else catalog.snapshot.items


def _entries(items: Items) -> set[tuple[str, str]]:
    return {(item.key, _text(item.canonical_json)) for item in items}


@cache
def _text(canonical_json: bytes) -> str:
    text: str = json.loads(canonical_json)["description"]
    return text


def revisions(items: Items) -> set[int]:
    """The revisions of the list that these entries come from."""
    return {int(text.split(" ")[1]) for _, text in _entries(items)}


def _same(
    served: Iterable[tuple[str, str]], got: set[tuple[str, str]], ambiguous: frozenset[str]
) -> bool:
    """Whether a walk joins to this list: each key once, and those that were defined twice named."""
    texts: dict[str, list[str]] = {}
    for key, text in served:
        texts.setdefault(key, []).append(text)
    twice = {key for key, found in texts.items() if len(set(found)) > 1}
    return twice == ambiguous and got == {(key, found[0]) for key, found in texts.items()}
