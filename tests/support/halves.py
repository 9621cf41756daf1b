"""A run in which pages come in two halves, told in words of the run in which they come whole."""

from collections.abc import Callable, Iterable
from typing import Any

from attrs import evolve

from relist.effects import Effect, RequestPage
from relist.inputs import PageArrived, PageFailed
from relist.session import Session, receive
from relist.values import KINDS, Catalog, Items, Kind, Scope
from support.relations import Heard, Script, Wording


class Halved:
    """The second run: pages in two, and its serials in words of the first."""

    def __init__(self, script: Script, cuts: bytes) -> None:
        self._session, self._policy = script.first(), script.policy
        self._cuts, self._turn = cuts, 0
        self._serial: dict[tuple[Kind, int], int] = {}  # of the first run -> of this run
        self._first: dict[tuple[Kind, int], int] = {}  # and back
        self._words = {kind: Wording(self._wording(kind)) for kind in KINDS}

    def _wording(self, kind: Kind) -> Callable[[str, Any], Any]:
        serials = ("serial", "first", "walk")  # Snapshot.walk is the serial of its first request
        return lambda name, value: (
            self._first.get((kind, value), value) if name in serials else value
        )

    def hear(self, step: Heard) -> list[Effect]:
        """Hear what the first run heard, a page perhaps in halves; the effects in its words."""
        heard = step.heard
        if isinstance(heard, PageArrived | PageFailed):
            walk, serial = step.before.catalog(heard.kind).walk, heard.serial
            heard = evolve(heard, serial=self._serial[heard.kind, serial])
            if isinstance(heard, PageArrived) and walk is not None and walk.serial == serial:
                heard = self._second_half(heard, serial)
        self._session, effects = receive(self._session, heard, self._policy)
        for mine, other in zip(_requests(step.effects), _requests(effects), strict=True):
            self._serial[mine.kind, mine.serial] = other.serial
            self._first[mine.kind, other.serial] = mine.serial
        return [self._worded(effect) for effect in effects]

    def _worded(self, effect: Effect) -> Effect:
        kind: Kind | None = getattr(effect, "kind", None)
        return effect if kind is None else self._words[kind](effect)

    def _second_half(self, page: PageArrived, serial: int) -> PageArrived:
        """Hear the first half, answered by one request; the answer to that is the second half."""
        cut = self._cuts[self._turn % len(self._cuts)]
        self._turn += 1
        if cut % 4 == 0:
            return page
        size = cut // 4 % (len(page.items) + 1)
        loose = page
        if page.ttl_ms is not None:
            loose = evolve(loose, ttl_ms=page.ttl_ms + (0, 7, 5_000)[cut % 3])
        if cut >= 128:
            loose = evolve(loose, scope=Scope.PUBLIC)
        one, other = (page, loose) if cut // 16 % 2 else (loose, page)
        half = evolve(one, items=page.items[:size], next_cursor="the other half")
        self._session, effects = receive(self._session, half, self._policy)
        (request,) = effects
        assert isinstance(request, RequestPage)
        assert request.cursor == "the other half"
        self._first[page.kind, request.serial] = serial
        return evolve(other, serial=request.serial, items=page.items[size:])

    def session(self) -> Session:
        """This run's session, with the serials of the first run."""
        catalogs = (self._words[c.kind](c) for c in self._session.catalogs)
        return joined(evolve(self._session, catalogs=tuple(catalogs)))


def _requests(effects: Iterable[Effect]) -> list[RequestPage]:
    return [effect for effect in effects if isinstance(effect, RequestPage)]


def joined(session: Session) -> Session:
    """The session, with the pages of open walks as one."""
    return evolve(session, catalogs=tuple(map(_joined_walk, session.catalogs)))


def _joined_walk(catalog: Catalog) -> Catalog:
    if catalog.walk is None:
        return catalog
    items: Items = tuple(item for page in catalog.walk.pages for item in page)
    return evolve(catalog, walk=evolve(catalog.walk, pages=(items,)))
