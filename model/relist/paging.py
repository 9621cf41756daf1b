"""Walking pages: gathering them aside, bounding the walk, joining them."""

from itertools import chain
from typing import NamedTuple

from relist.freshness import earliest, lifetime_ms
from relist.inputs import PageArrived
from relist.policy import Policy
from relist.values import Era, Item, Items, Scope, Walk

_NONE: frozenset[str] = frozenset()  # one for all: each empty set takes 216 bytes


class Listing(NamedTuple):
    """The joined pages: equal repetitions dropped, keys with differing definitions named."""

    items: Items
    ambiguous: frozenset[str]


def add_page(
    walk: Walk, page: PageArrived, era: Era | None, policy: Policy, *, next_serial: int
) -> Walk:
    """The walk with this page put aside, and the next request (if any) as the outstanding one.

    Each lifetime counts from the receipt of its own page, and the earliest end is that of the walk;
    one private page makes all of it private. In the legacy era every page is bare and private: its
    hints are not interpreted. Rule: TTL-03, TTL-17, TTL-20, TTL-25, TTL-32.
    """
    now_ms, modern = page.now_ms, era is Era.MODERN
    ttl_ms = lifetime_ms(page.ttl_ms, policy) if modern else None
    ends, bare = walk.expires_at_ms, walk.bare_at_ms
    if ttl_ms is None:
        bare = earliest(bare, now_ms)
    else:
        ends = earliest(ends, now_ms + ttl_ms)
    return Walk(
        walk.first,
        next_serial,
        page.next_cursor,
        (*walk.pages, page.items),
        walk.count + len(page.items),
        walk.scope if modern and page.scope is Scope.PUBLIC else Scope.PRIVATE,
        ends,
        bare,
        walk.spoiled,
        walk.covered,
        walk.serves,
        now_ms + policy.request_limit_ms,
        walk.walk_limit_at_ms,
        walk.size_bytes + page.size_bytes,
    )


def too_long(walk: Walk, page: PageArrived, policy: Policy) -> bool:
    """Whether this page takes the walk over a bound: items, bytes, or pages with more to come.

    Bounds count; they never look at the cursor's value, but its length. Rule: DISC-08, DISC-16.
    """
    if walk.count + len(page.items) > policy.items_max:
        return True
    if walk.size_bytes + page.size_bytes > policy.bytes_max:
        return True
    cursor = page.next_cursor
    if cursor is None:
        return False
    return len(walk.pages) + 1 >= policy.pages_max or len(cursor) > policy.bytes_max


def join(pages: tuple[Items, ...]) -> Listing:
    """All items in the order received, each key once. Rule: DISC-19, DISC-20, DISC-32."""
    received = tuple(chain.from_iterable(pages))
    if len({item.key for item in received}) == len(received):
        return Listing(received, _NONE)  # the usual case, at half the price
    seen: dict[str, Item] = {}
    ambiguous: set[str] = set()
    for item in received:
        first = seen.setdefault(item.key, item)
        if first is not item and first != item:
            ambiguous.add(item.key)
    return Listing(tuple(seen.values()), frozenset(ambiguous))
