"""The normal form forgets only what makes no difference: it commutes with ``step``.

A catalog with real times, serials, versions and generations runs beside its normal form. Whatever
both hear, the normal form of what the one became is what the other became.
"""

from collections.abc import Callable
from random import Random

import pytest
from attrs import evolve

from relist import inputs as i
from relist.check.normal import aged, ages_held, normal, page_items, ranks
from relist.check.setting import FAILURES, KIND, POLICY
from relist.machine import step
from relist.policy import Policy
from relist.values import Catalog, Era, Scope, new_catalog

POLICIES = {
    "eager": POLICY,
    "lazy, larger": evolve(
        POLICY, lazy=True, gap_max_ms=4, backoff_max_ms=4, request_limit_ms=2, walk_limit_ms=5
    ),
    "lifetimes, polling": evolve(POLICY, unvouched_lifetime_ms=3, poll_ms=4, pages_max=3),
}
Pair = tuple[i.CatalogInput, i.CatalogInput]


def closed(catalog: Catalog) -> Catalog:
    return aged(catalog, ranks(ages_held(catalog) | 1))


class Alike:
    """Both catalogs, and inputs that mean the same to each of them."""

    def __init__(self, policy: Policy, random: Random, *, cursors_die: bool) -> None:
        self.policy, self.random, self.cursors_die = policy, random, cursors_die
        self.failures = tuple(
            failure for name, failure in FAILURES.items() if cursors_die or name != "dead cursor"
        )
        self.real = new_catalog(KIND, "p0")
        self.now_ms, self.version, self.names = 5_000, 0, 0

    def hear(self) -> None:
        self.now_ms += self.random.choice((0, 0, 0, 1, 1, 2, 7))
        self.version += self.random.random() < 0.2
        small = self._form(self.real)
        heard, alike = self._pair(small)
        self.real, _ = step(self.real, heard, self.policy)
        became, _ = step(small, alike, self.policy)
        expected = closed(normal(became, 0, self.policy, candidates=self.cursors_die))
        assert self._form(self.real) == expected

    def _form(self, catalog: Catalog) -> Catalog:
        """The normal form of a catalog whose contents are versions up to the present one."""
        ages = tuple(self.version - version for version in range(self.version + 1))
        by_age = aged(catalog, ages)
        return closed(normal(by_age, self.now_ms, self.policy, candidates=self.cursors_die))

    def _pair(self, small: Catalog) -> Pair:
        if self.random.random() < 0.4 and self.real.walk is not None:
            return self._answer(small)
        both: Callable[[i.CatalogInput], Pair] = lambda heard: (  # noqa: E731
            evolve(heard, now_ms=self.now_ms),
            heard,
        )
        era = self.random.choice(tuple(Era))
        fresh = self._name()
        push = self.random.random() < 0.8
        declared = self.random.random() < 0.9
        allowed = i.ListingAllowed(era, "a", declared, push, 0)
        real = evolve(allowed, version=self.real.standing.version, now_ms=self.now_ms)
        proof = i.StalenessProved(KIND, 1, 0)
        older = self.random.random() < 0.3
        pairs: tuple[Pair, ...] = (
            (i.LinkOpened(self.real.standing.epoch + 1, self.now_ms), i.LinkOpened(0, 0)),
            both(i.LinkLost(0)),
            (i.CredentialsChanged(fresh, self.now_ms), i.CredentialsChanged("c", 0)),
            *self._returns(small, real, allowed),
            (real, allowed),
            (real, allowed),
            (evolve(real, version=fresh), evolve(allowed, version="c")),
            both(i.CapabilitiesChanged(declared, push, 0)),
            both(i.ListChangedHeard(0)),
            both(i.CoverageGained(0)),
            both(i.CoverageLost(0)),
            (
                evolve(proof, generation=self.real.generation - older, now_ms=self.now_ms),
                evolve(proof, generation=1 - older),
            ),
            both(i.ReadWanted(KIND, 0)),
            both(i.RefreshWanted(KIND, 0)),
            both(i.TimePassed(0)),
            both(i.TimePassed(0)),
        )
        return self.random.choice(pairs)

    def _returns(
        self, small: Catalog, real: i.ListingAllowed, allowed: i.ListingAllowed
    ) -> tuple[Pair, ...]:
        """Back to the partition or the version of the list that is still held."""
        mine, its = self.real.snapshot, small.snapshot
        if mine is None or its is None:
            return ()
        return (
            (
                i.CredentialsChanged(mine.partition, self.now_ms),
                i.CredentialsChanged(its.partition, 0),
            ),
            (evolve(real, version=mine.version), evolve(allowed, version=its.version)),
        )

    def _name(self) -> str:
        self.names += 1
        return f"n{self.names}"

    def _answer(self, small: Catalog) -> Pair:
        assert self.real.walk is not None
        assert small.walk is not None
        page = len(self.real.walk.pages) + 1
        serials = self.real.walk.serial, small.walk.serial
        if self.random.random() < 0.1:
            serials = self.real.walk.serial - 1, 0
        if self.random.random() < 0.2:
            failure = self.random.choice(self.failures)
            return (
                i.PageFailed(KIND, serials[0], failure, self.now_ms),
                i.PageFailed(KIND, serials[1], failure, 0),
            )
        ttl_ms, scope = self.random.choice((None, 0, 2)), self.random.choice(tuple(Scope))
        cursor = f"after {page}" if self.random.random() < 1 / (page + 1) else None
        arrived = i.PageArrived(KIND, serials[1], (), cursor, ttl_ms, scope, 0)
        items = page_items(page, self.version, shared=True), page_items(page, 0, shared=True)
        return (
            evolve(arrived, serial=serials[0], items=items[0], now_ms=self.now_ms),
            evolve(arrived, items=items[1]),
        )


@pytest.mark.parametrize("cursors_die", [True, False])
@pytest.mark.parametrize("name", POLICIES)
def test_the_normal_form_commutes_with_step(name: str, cursors_die: bool) -> None:
    for seed in range(60):
        alike = Alike(POLICIES[name], Random(seed), cursors_die=cursors_die)
        for _ in range(80):
            alike.hear()


def test_ranks_close_gaps_and_keep_order() -> None:
    assert ranks(0b1) == (0,)
    assert ranks(0b101101) == (0, 1, 1, 2, 3, 3)
