"""What differs between two published lists, by entry and by field. Pure. Rule: RES-15."""

import json
from collections.abc import Mapping
from typing import Any, Protocol

from attrs import frozen

from relist.values import Item, Items, Kind


@frozen
class Changed:
    """One entry whose definition differs; ``fields`` are its top-level fields that do, sorted."""

    before: Item
    after: Item
    fields: tuple[str, ...]


@frozen
class Change:
    """What became of a list, from one published generation to a later one.

    ``generation`` is the later one, None if the list was withdrawn: then all of it is removed.
    """

    kind: Kind
    generation: int | None
    added: Items
    removed: Items
    changed: tuple[Changed, ...]


class Listed(Protocol):
    """A list with its generation: a snapshot, or the surface that was made of one."""

    @property
    def items(self) -> Items:
        """The entries."""
        ...

    @property
    def generation(self) -> int:
        """Which list it is of."""
        ...


def change(kind: Kind, before: Listed | None, after: Listed | None) -> Change | None:
    """The change between two lists of a kind; None if no entry differs. Rule: NOTE-20.

    Entries keep the order of the list they stand in. None is a list that nobody has seen yet, or
    one that was withdrawn. Between two surfaces it tells of nothing that a model may not see.
    """
    old = {} if before is None else {item.key: item for item in before.items}
    new = {} if after is None else {item.key: item for item in after.items}
    added = tuple(new[key] for key in new if key not in old)
    removed = tuple(old[key] for key in old if key not in new)
    changed = tuple(
        Changed(was, item, fields(was, item))
        for key, item in new.items()
        # Most are the same object, which is quicker to see than that they are equal.
        if (was := old.get(key)) is not item and was is not None and was != item
    )
    if not (added or removed or changed) and (before is None) is (after is None):
        return None
    return Change(kind, None if after is None else after.generation, added, removed, changed)


def fields(before: Item, after: Item) -> tuple[str, ...]:
    """The top-level fields in which two definitions differ, sorted.

    Compared as JSON text, since Python takes True for 1.
    """
    old, new = _texts(before), _texts(after)
    return tuple(sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name)))


def _texts(item: Item) -> Mapping[str, str]:
    entry: Any = json.loads(item.canonical_json)
    return {name: json.dumps(value, sort_keys=True) for name, value in entry.items()}
