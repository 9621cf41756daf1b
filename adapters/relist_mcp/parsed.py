"""The items of a list as JSON objects, each read once for as long as it stays the same."""

import json
from collections.abc import Mapping
from typing import Any

from relist.values import Item, Items

Entries = tuple[Mapping[str, Any], ...]
"""What a server said of each item, with every field. Shared by all who ask: not to be changed."""


class Parsed:
    """Remembers the entries of the list that was asked for last, and of no other."""

    __slots__ = ("_entries", "_items")

    def __init__(self) -> None:
        self._items: Items = ()
        self._entries: Entries = ()

    def of(self, items: Items) -> Entries:
        """The entries of these items, in their order. Never raises for items that are published.

        Goes by identity, which unchanged items and an unchanged list keep: nothing is compared.
        """
        if items is not self._items:
            known = dict(zip(map(id, self._items), self._entries, strict=True))
            self._entries = tuple([known.get(id(item)) or _read(item) for item in items])
            self._items = items
        return self._entries


def _read(item: Item) -> Mapping[str, Any]:
    """By the standard library, which keeps integers of any size."""
    entry: dict[str, Any] = json.loads(item.canonical_json)
    return entry
