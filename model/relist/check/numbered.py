"""Catalogs by number: each normal form once, each thing it can hear worked out and checked once.

Far fewer catalogs than situations exist, and ``step`` is pure. So a world counts with numbers, and
every (catalog, input) runs through the real ``step`` and all checks exactly once.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from attrs import evolve

from relist.check.edge import Edge
from relist.check.invariants import Check
from relist.check.normal import Ages, aged, ages_held, ages_of, normal, ranks
from relist.check.rows import row_of
from relist.inputs import CatalogInput
from relist.machine import CATALOG_TABLE, deadline_ms
from relist.policy import Policy
from relist.rules.base import Step
from relist.values import WALKING, Catalog, Doubt, Phase

Stepper = Callable[[Catalog, CatalogInput, Policy], Step]
Key = str | tuple[int, ...]
"""What a world calls something that can be heard."""
Inputs = Callable[[Key], tuple[CatalogInput, ...]]
"""What a key stands for: inputs that are heard in a row, at time 0."""

_DOUBTS = tuple(Doubt)


class Heard(NamedTuple):
    """What became of a catalog that heard something, and the promise that this broke, if any."""

    catalog: int
    requests: bool
    complaint: str | None


class Traits(NamedTuple):
    """What a world asks of a catalog all the time. ``ages`` and ``listed``: see ``normal``."""

    phase: Phase
    page: int  # the page that is asked for, 0 when none is
    ages: Ages
    listed: Ages
    items: int | None  # how many are listed, if any list is held
    vouched: bool
    covered: bool
    parked: bool  # and not tried at present
    sound: bool  # FRESH or on the way to it, and nothing spoke against the list
    due: bool  # its deadline has come


class Numbered:
    """All catalogs that were met so far. Times in them count from now."""

    def __init__(
        self,
        policy: Policy,
        step: Stepper,
        checks: Mapping[str, Check],
        inputs: Inputs,
        *,
        candidates: bool,
    ) -> None:
        self._policy, self._step, self._checks, self._inputs = policy, step, checks, inputs
        self._candidates = candidates
        self._numbers: dict[Catalog, int] = {}
        self._catalogs: list[Catalog] = []
        self._heard: dict[tuple[int, Key], Heard] = {}
        self._aged: dict[tuple[int, tuple[int, ...]], int] = {}
        self._closed: dict[tuple[int, Ages], int] = {}
        self._later: dict[int, int] = {}
        self._turn = 0
        self.traits: list[Traits] = []
        self.reached: set[str] = set()

    def catalog(self, number: int) -> Catalog:
        """The catalog itself."""
        return self._catalogs[number]

    def number(self, catalog: Catalog, now_ms: int = 0) -> int:
        """The number of a catalog's normal form."""
        return self._number(normal(catalog, now_ms, self._policy, candidates=self._candidates))

    def _number(self, catalog: Catalog) -> int:
        known = self._numbers.get(catalog)
        if known is not None:
            return known
        number = self._numbers[catalog] = len(self._catalogs)
        self._catalogs.append(catalog)
        self.traits.append(_traits(catalog, self._policy))
        self.reached.add(catalog.phase.value)
        return number

    def later(self, number: int) -> int:
        """The same catalog one millisecond later."""
        later = self._later.get(number)
        if later is None:
            later = self._later[number] = self.number(self._catalogs[number], 1)
        return later

    def aged(self, number: int, new_age: tuple[int, ...]) -> int:
        """The same catalog with its ages renamed."""
        key = number, new_age
        renamed = self._aged.get(key)
        if renamed is None:
            renamed = self._aged[key] = self._number(aged(self._catalogs[number], new_age))
        return renamed

    def closed(self, number: int, ages: Ages) -> int:
        """The same catalog after the gaps between these ages were closed."""
        key = number, ages
        closed = self._closed.get(key)
        if closed is None:
            closed = self._closed[key] = self.aged(number, ranks(ages))
        return closed

    def hear(self, number: int, key: Key) -> Heard:
        """What becomes of a catalog that hears what the key stands for."""
        memo = number, key
        known = self._heard.get(memo)
        if known is None:
            known = self._heard[memo] = self._hear(number, key)
        return known

    def _hear(self, number: int, key: Key) -> Heard:
        before = catalog = self._catalogs[number]
        complaint, requests = None, False
        for edge in self.edges(number, key):
            catalog = edge.after
            requests = requests or bool(edge.requests)
            complaint = complaint or next(self._broken(edge), None)
            if catalog.doubt is not None:
                self.reached.add(f"doubt {catalog.doubt.value}")
        after = number if catalog is before else self.number(catalog)
        return Heard(after, requests, complaint)

    def edges(self, number: int, key: Key) -> Iterator[Edge]:
        """The steps that hearing this takes."""
        catalog = self._catalogs[number]
        for heard in self._inputs(key):
            after, effects = self._step(catalog, heard, self._policy)
            yield Edge(catalog, heard, after, effects, self._policy)
            catalog = after

    def _broken(self, edge: Edge) -> Iterator[str]:
        row, complaint = row_of(CATALOG_TABLE, edge.before, edge.heard, edge.policy)
        if row is not None:
            self.reached.add(row)
        if complaint is not None:
            yield complaint
        for name, check in self._checks.items():
            complaint = check(edge)
            if complaint is not None:
                yield f"{name}: {complaint}"
        complaint = no_regression(edge) or self._tells_doubts_apart(edge)
        if complaint is not None:
            yield complaint

    def _tells_doubts_apart(self, edge: Edge) -> str | None:
        """Whether another doubt would have led elsewhere: then no doubt may stand for all.

        One edge in four is tried with one of the doubts, chosen without a pattern.
        """
        before = edge.before
        self._turn = (self._turn * 1_103_515_245 + 12_345) % 2**31
        choice = self._turn >> 16
        if before.doubt is None or choice % 4:
            return None
        other = _DOUBTS[choice // 4 % len(_DOUBTS)]
        after, _ = self._step(evolve(before, doubt=other), edge.heard, edge.policy)
        cleared = edge.after.doubt is None
        if evolve(after, doubt=None if cleared else before.doubt) == edge.after:
            return None
        return f"doubts-alike: {other.value} and {before.doubt.value} lead apart"


def _traits(catalog: Catalog, policy: Policy) -> Traits:
    walk, snapshot = catalog.walk, catalog.snapshot
    at_ms = deadline_ms(catalog, policy)
    undoubted = catalog.doubt is None and (walk is None or not walk.spoiled)
    return Traits(
        catalog.phase,
        0 if walk is None else len(walk.pages) + 1,
        ages_held(catalog),
        0 if snapshot is None else ages_of(snapshot.items),
        None if snapshot is None else len(snapshot.items),
        catalog.vouched,
        catalog.standing.covered,
        catalog.pacing.parked is not None and walk is None,
        undoubted and catalog.phase in (*WALKING, Phase.FRESH),
        at_ms is not None and at_ms <= 0,
    )


def no_regression(edge: Edge) -> str | None:
    """No published list shows anything older than what the list before it showed. Rule: ATOM-12.

    Only in a world, where contents carry their age.
    """
    held, publish = edge.before.snapshot, edge.published
    if held is None or publish is None:
        return None
    oldest = ages_of(publish.snapshot.items).bit_length() - 1
    newest = (ages_of(held.items) & -ages_of(held.items)).bit_length() - 1
    if oldest <= newest:
        return None
    return f"no-regression: age {oldest} was published after age {newest}"
