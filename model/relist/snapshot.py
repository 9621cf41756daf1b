"""Snapshots: from a walk to what readers see, sharing what did not change.

Unchanged items and an unchanged list keep object identity; an equal set in a new order keeps the
old order, so that an unchanged catalog gives the model an unchanged prompt. Rule: DISC-32.
"""

from hashlib import sha256

from relist.freshness import snapshot_deadline_ms
from relist.paging import Listing
from relist.policy import Policy
from relist.values import Catalog, Items, Snapshot, Walk


def share(old: Items, new: Items) -> Items:
    """``new`` with the objects of ``old`` where equal; ``old`` itself where nothing changed.

    A new order is no change, listing the same again is none. Rule: ATOM-23, DISC-33.
    """
    if old == new:
        return old
    known = {item.key: item for item in old}
    same = 0
    shared: list[object] = []
    for item in new:
        before = known.get(item.key)
        if before == item:
            same += 1
            shared.append(before)
        else:
            shared.append(item)
    if same == len(old) == len(new):
        return old
    return tuple(shared)  # type: ignore[arg-type]


def make_snapshot(
    catalog: Catalog, walk: Walk, listing: Listing, clean: bool, now_ms: int, policy: Policy
) -> Snapshot:
    """What this complete walk would publish: the generation rises only if content differs.

    It belongs to the partition that it was read for. Rule: ATOM-04, ATOM-19, AUTH-01, NOTE-20.
    """
    held, standing = catalog.snapshot, catalog.standing
    items = share(held.items, listing.items) if held is not None else listing.items
    same = (
        held is not None
        and items is held.items
        and held.scope is walk.scope
        and held.ambiguous == listing.ambiguous
    )
    vouched = clean and walk.covered and standing.covered
    return Snapshot(
        items,
        catalog.generation if same else catalog.generation + 1,
        walk.scope,
        standing.version,
        standing.partition,
        standing.epoch,
        walk.first,
        now_ms,
        snapshot_deadline_ms(walk, standing.era, vouched, policy),
        clean,
        listing.ambiguous,
    )


def digest(snapshot: Snapshot) -> str:
    """SHA-256 over keys and contents in their order, hexadecimal. Rule: ATOM-05."""
    found = sha256()
    for item in snapshot.items:
        for part in (item.key.encode("utf-8", "surrogatepass"), item.canonical_json):
            found.update(len(part).to_bytes(8, "big") + part)
    return found.hexdigest()
