"""The normal form of a catalog: one value for all catalogs that will behave alike.

Exploring needs a finite world, and nothing of what makes it infinite matters to what comes next:
times count from now and are forgotten once they are past, serials and generations are compared only
with the newest, failures stop counting where backoff stops growing. Item contents are *ages*: 0 is
what the server lists now, 1 what it listed before its last change that somebody still remembers.
So versions, duplicates, retries and reconnects are unbounded in a finite world.
"""

from typing import Any

from attrs import evolve

from relist.policy import Policy, doublings
from relist.values import Catalog, Doubt, Item, Items, Link, Listen, Snapshot, Walk

Ages = int
"""A set of ages, bit ``n`` for age ``n``."""

ANY_DOUBT = Doubt.NOTICED
"""Stands for every doubt."""


def page_items(page: int, age: int, shared: bool) -> Items:
    """What the server of this age lists on a page; ``shared``: one entry stands on every page."""
    own = Item(f"p{page}", bytes((age,)))
    return (own, Item("both", bytes((age,)))) if shared else (own,)


def ages_of(items: Items) -> Ages:
    """The ages that these items show."""
    ages = 0
    for item in items:
        ages |= 1 << item.canonical_json[0]
    return ages


def ages_held(catalog: Catalog) -> Ages:
    """All ages that this catalog remembers anywhere."""
    walk, ages = catalog.walk, 0
    for items in () if walk is None else walk.pages:
        ages |= ages_of(items)
    for listed in (catalog.snapshot, catalog.candidate):
        ages |= 0 if listed is None else ages_of(listed.items)
    return ages


def ranks(ages: Ages) -> tuple[int, ...]:
    """The map that closes the gaps between ages and keeps their order; index is the old age."""
    closed: list[int] = []
    rank = 0
    for age in range(ages.bit_length()):
        closed.append(rank)
        rank += ages >> age & 1
    return tuple(closed)


def aged(catalog: Catalog, new_age: tuple[int, ...]) -> Catalog:
    """The catalog with every age replaced by ``new_age[age]``."""
    walk = catalog.walk
    if walk is not None:
        walk = evolve(walk, pages=tuple(_aged(items, new_age) for items in walk.pages))
    return evolve(
        catalog,
        walk=walk,
        **_lists(_aged_list(catalog.snapshot, new_age), _aged_list(catalog.candidate, new_age)),
    )


def _lists(snapshot: Snapshot | None, candidate: Snapshot | None) -> dict[str, Any]:
    """Both lists, sharing what is equal, as the rules promise. Rule: DISC-32."""
    if snapshot and candidate and snapshot.items == candidate.items:
        candidate = evolve(candidate, items=snapshot.items)
    return {"snapshot": snapshot, "candidate": candidate}


def _aged(items: Items, new_age: tuple[int, ...]) -> Items:
    return tuple(Item(item.key, bytes((new_age[item.canonical_json[0]],))) for item in items)


def _aged_list(listed: Snapshot | None, new_age: tuple[int, ...]) -> Snapshot | None:
    return None if listed is None else evolve(listed, items=_aged(listed.items, new_age))


def normal(catalog: Catalog, now_ms: int, policy: Policy, *, candidates: bool) -> Catalog:
    """The normal form at this time, which becomes 0. ``policy`` must have no jitter.

    The present partition and version are called ``a``, any other ``b``. All doubts count alike (a
    world checks that they do). Without ``candidates`` a list that was held back is forgotten: only
    a dead cursor ever brings one to light.
    """
    walk, pacing, standing = catalog.walk, catalog.pacing, catalog.standing
    listed_at_ms = _ahead(pacing.listed_at_ms, now_ms, -policy.gap_max_ms)
    if catalog.doubt is not None or catalog.snapshot is None:
        listed_at_ms = None  # it is looked at when a list becomes doubted, and set with each list
    return evolve(
        catalog,
        doubt=None if catalog.doubt is None else ANY_DOUBT,
        walk=None if walk is None else _walk(walk, now_ms, policy),
        **_lists(
            _snapshot(catalog.snapshot, catalog, now_ms),
            _snapshot(catalog.candidate, catalog, now_ms) if candidates else None,
        ),
        generation=1,
        serial=0 if walk is None else 1,
        standing=evolve(standing, epoch=0, version="a", partition="a"),
        pacing=evolve(
            pacing,
            due_at_ms=_ahead(pacing.due_at_ms, now_ms),
            failures=_failures(pacing.failures, policy),
            listed_at_ms=listed_at_ms,
        ),
    )


def normal_link(link: Link, now_ms: int, policy: Policy) -> Link:
    """The normal form of a link: its epoch and serial are 1, times count from now."""
    return evolve(
        link,
        epoch=1,
        serial=1,
        limit_at_ms=_ahead(link.limit_at_ms, now_ms),
        due_at_ms=_ahead(link.due_at_ms, now_ms),
        failures=_failures(link.failures, policy),
        live_at_ms=_ahead(link.live_at_ms, now_ms, -policy.healthy_ms),
        expires_at_ms=_ahead(link.expires_at_ms, now_ms),
        refutable_at_ms=_ahead(link.refutable_at_ms, now_ms) or None,  # once past, as good as never
    )


def normal_listen(listen: Listen, now_ms: int, policy: Policy) -> Listen:
    """The same of the channel for notices."""
    return evolve(
        listen,
        serial=1,
        stream=None if listen.stream is None else int(listen.stream == listen.serial),
        limit_at_ms=_ahead(listen.limit_at_ms, now_ms),
        due_at_ms=_ahead(listen.due_at_ms, now_ms),
        failures=_failures(listen.failures, policy),
        opened_at_ms=_ahead(listen.opened_at_ms, now_ms, -policy.healthy_ms),
    )


def _ahead(at_ms: int | None, now_ms: int, least: int = 0) -> int | None:
    return None if at_ms is None else max(at_ms - now_ms, least)


def _failures(failures: int, policy: Policy) -> int:
    """Counted up to where the backoff stops growing."""
    return min(failures, 1 + doublings(policy.backoff_base_ms, policy.backoff_max_ms))


def _walk(walk: Walk, now_ms: int, policy: Policy) -> Walk:
    return evolve(
        walk,
        first=1,
        serial=1,
        expires_at_ms=_ahead(walk.expires_at_ms, now_ms),
        bare_at_ms=_ahead(walk.bare_at_ms, now_ms, -(policy.unvouched_lifetime_ms or 0)),
        request_limit_at_ms=max(walk.request_limit_at_ms - now_ms, 0),
        walk_limit_at_ms=max(walk.walk_limit_at_ms - now_ms, 0),
    )


def _snapshot(listed: Snapshot | None, catalog: Catalog, now_ms: int) -> Snapshot | None:
    if listed is None:
        return None
    return evolve(
        listed,
        generation=listed.generation - catalog.generation + 1,
        version="a" if listed.version == catalog.standing.version else "b",
        partition="a" if listed.partition == catalog.standing.partition else "b",
        epoch=0,
        walk=0,
        listed_at_ms=0,
        expires_at_ms=_ahead(listed.expires_at_ms, now_ms),
    )
