"""What happened, for programs: JSON, one object in a line, with one name in it that says what.

Of a published list only what is new in it. The schema is ``watch.schema.json``.
"""

from typing import Any, Literal

from attrs import frozen

from relist.check.codec import encode, schema, text_of
from relist.check.trace import Stood
from relist.values import Items, Kind
from relist_mcp import events as ev
from relist_mcp.changes import change
from relist_mcp.events import Event

Why = Literal["time", "idle", "not idle", "interrupted"]
NAMES_MAX = 1_000  # entries of a list that are named
_NAME_MAX = 1_000  # characters of a name


@frozen
class Names:
    """How many there are, and the first of their names."""

    count: int
    first: tuple[str, ...]


@frozen
class Altered:
    """An entry that is listed otherwise than before, and the top-level fields that differ."""

    name: str
    fields: tuple[str, ...]


@frozen
class AlteredNames:
    """How many there are, and the first of them."""

    count: int
    first: tuple[Altered, ...]


@frozen
class Listed:
    """Readers see another list from now on, or the same one, looked at again.

    ``lag_ms``: since the first of the ``notices`` that it answers. ``covered``: had there been
    none, a change was one that nobody announced.
    """

    at_ms: int
    epoch: int
    kind: Kind
    generation: int
    entries: int
    changed: bool
    clean: bool
    covered: bool
    notices: int
    lag_ms: int | None
    added: Names
    removed: Names
    altered: AlteredNames


@frozen
class Ended:
    """Nothing is watched any more: why, and where everything stood before it was closed."""

    why: Why
    stood: Stood


Told = (
    ev.LinkMoved
    | ev.Agreed
    | ev.ListenMoved
    | ev.CredentialsMoved
    | ev.Noticed
    | ev.ContentNoticed
    | ev.WalkBegan
    | ev.PageListed
    | ev.WalkEnded
    | Listed
    | ev.Withdrawn
    | ev.Doubted
    | ev.WasParked
    | ev.Unparked
    | ev.Adopted
    | ev.Noted
    | Ended
)


def json_of(event: Event | Ended) -> str:
    """One line, without its end."""
    return text_of(encode(_listed(event) if isinstance(event, ev.Published) else event, Told))


def watch_schema() -> Any:
    """JSON Schema of one line of ``relist watch --json``."""
    definitions: dict[str, Any] = {}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of relist watch --json",
        "description": "Times are milliseconds of a monotonic clock; see relist_mcp.events.",
        **schema(Told, definitions),
        "$defs": definitions,
    }


def _listed(event: ev.Published) -> Listed:
    listed = event.snapshot
    new = change(event.kind, event.replaced, listed) if event.changed else None
    changed = () if new is None else new.changed
    altered = tuple(Altered(_cut(one.after.key), _all_cut(one.fields)) for one in changed)
    return Listed(
        event.at_ms,
        event.epoch,
        event.kind,
        listed.generation,
        len(listed.items),
        event.changed,
        listed.clean,
        event.covered,
        event.notices,
        event.lag_ms,
        _names(() if new is None else new.added),
        _names(() if new is None else new.removed),
        AlteredNames(len(altered), altered[:NAMES_MAX]),
    )


def _names(items: Items) -> Names:
    return Names(len(items), _all_cut(tuple(item.key for item in items[:NAMES_MAX])))


def _all_cut(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(_cut, names[:NAMES_MAX]))


def _cut(name: str) -> str:
    return name if len(name) <= _NAME_MAX else f"{name[:_NAME_MAX]}…"
