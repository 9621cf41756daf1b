"""What is read of Relist's own catalogs, in the words of the driver contract."""

import json

from relist.machine import Hit, Reading
from relist.values import Item
from relist_conformance.drivers.base import Answer

_STATES = {
    Hit.HIT: "fresh",
    Hit.EXPIRED: "stale",
    Hit.DOUBTED: "stale",
    Hit.MISS: "unknown",
    Hit.UNSUPPORTED: "unsupported",
}


def told(reading: Reading) -> Answer:
    """The list that is held, and how good it is."""
    snapshot = reading.snapshot
    items = None if snapshot is None else [_listed(item) for item in snapshot.items]
    return {"items": items, "state": _STATES[reading.hit]}


def _listed(item: Item) -> dict[str, str]:
    entry = json.loads(item.canonical_json)
    return {"name": entry.get("name", item.key), "description": entry.get("description") or ""}
