"""A ledger as rows, each with a place: what differs between two ledgers, and a ledger from rows.

The rows of a mapping stand in its order. A manifest is a row for each item, so one change of a
large catalog writes one row of it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from relist.drift.ledger import Granted, Ledger
from relist.drift.values import (
    CapabilityId,
    CapabilityRef,
    Definition,
    Known,
    Presence,
    Profile,
    Publication,
    Seen,
    Subject,
    SurfaceManifest,
)
from relist_mcp.drift.codec import (
    Json,
    id_json,
    id_of,
    known_json,
    known_of,
    profile_json,
    profile_of,
    ref_json,
    ref_of,
)

Place = tuple[str, ...]
"""The name of a part of the ledger, and the key in it."""

Keep = Callable[[Definition], str]
"""Keeps a definition, and returns the address under which ``Fetch`` finds it."""

Fetch = Callable[[str, CapabilityId], Definition]
"""The definition at this address, with this ``upstream``. Raises ValueError."""

_K = TypeVar("_K")
_V = TypeVar("_V")
_LISTED: Mapping[str, Json] = {}
_NO_ITEMS: Mapping[CapabilityRef, CapabilityId] = {}


class Row(NamedTuple):
    """What stands at a place; None: nothing any more."""

    place: Place
    value: Json


def differing(before: Ledger, after: Ledger, keep: Keep) -> Iterator[Row]:
    """The rows that make ``after`` of ``before``. Costs little for what is the same object."""
    for server, known in _differing(before.servers, after.servers):
        yield Row(("server", server), known and known_json(known))
    for at, versions in _differing(before.seen, after.seen):
        yield from _versions(at, before.seen.get(at), versions or {}, keep)
    for (server, subject), why in _differing(before.failing, after.failing):
        yield Row(("failing", server, subject.value), why)
    for consumer, profile in _differing(before.profiles, after.profiles):
        yield Row(("profile", consumer), profile and profile_json(profile))
    for (consumer, ref), granted in _differing(before.granted, after.granted):
        yield Row(("granted", consumer, *ref_json(ref)), granted and _granted_json(granted, keep))
    for consumer, publication in _differing(before.publications, after.publications):
        yield from _surface(consumer, before.publications.get(consumer), publication)


def _differing(before: Mapping[_K, _V], after: Mapping[_K, _V]) -> Iterator[tuple[_K, _V | None]]:
    if before is after:
        return
    for key, value in after.items():
        held = before.get(key)
        if held is not value and (held is None or held != value):
            yield key, value
    for key in before:
        if key not in after:
            yield key, None


def _versions(
    at: tuple[str, Subject],
    before: Mapping[str, Seen] | None,
    after: Mapping[str, Seen],
    keep: Keep,
) -> Iterator[Row]:
    server, subject = at
    if before is None:
        yield Row(("list", server, subject.value), _LISTED)
    for key, seen in _differing(before or {}, after):
        yield Row(("seen", server, subject.value, key), seen and _seen_json(seen, keep))


def _seen_json(seen: Seen, keep: Keep) -> Json:
    shown = None if seen.definition is None else kept_json(seen.definition, keep)
    return {"definition": shown, "presence": seen.presence.value, "since_ms": seen.since_ms}


def _granted_json(granted: Granted, keep: Keep) -> Json:
    return {
        "approved": [kept_json(one, keep) for one in granted.approved.values()],
        "rejected": [id_json(one) for one in sorted(granted.rejected)],
        "lapsed": granted.lapsed,
    }


def kept_json(definition: Definition, keep: Keep) -> Json:
    """Where a definition is kept, and what the server had sent when it was seen."""
    return [keep(definition), id_json(definition.upstream)]


def kept_of(data: Json, fetch: Fetch) -> Definition:
    """What ``kept_json`` wrote."""
    address, upstream = data
    return fetch(address, id_of(upstream))


def _surface(consumer: str, before: Publication | None, after: Publication | None) -> Iterator[Row]:
    about = after and {"generation": after.generation, "parent": after.parent}
    yield Row(("publication", consumer), about)
    held = _NO_ITEMS if before is None else before.manifest.items
    shown = _NO_ITEMS if after is None else after.manifest.items
    for ref, id in _differing(held, shown):
        yield Row(("shown", consumer, *ref_json(ref)), id_json(id))


# --- from rows ------------------------------------------------------------------------------------


class _Parts:
    """A ledger's mappings while rows are read."""

    def __init__(self, fetch: Fetch) -> None:
        self.fetch = fetch
        self.servers: dict[str, Known] = {}
        self.seen: dict[tuple[str, Subject], dict[str, Seen]] = {}
        self.failing: dict[tuple[str, Subject], str] = {}
        self.profiles: dict[str, Profile] = {}
        self.granted: dict[tuple[str, CapabilityRef], Granted] = {}
        self.published: dict[str, Json] = {}
        self.shown: dict[str, dict[CapabilityRef, CapabilityId]] = {}

    def server(self, value: Json, server: str) -> None:
        self.servers[server] = known_of(value)

    def list(self, _: Json, server: str, subject: str) -> None:
        self.seen[server, Subject(subject)] = {}

    def see(self, value: Json, server: str, subject: str, key: str) -> None:
        shown = value["definition"]
        self.seen[server, Subject(subject)][key] = Seen(
            None if shown is None else kept_of(shown, self.fetch),
            Presence(value["presence"]),
            value["since_ms"],
        )

    def fail(self, value: Json, server: str, subject: str) -> None:
        self.failing[server, Subject(subject)] = value

    def profile(self, value: Json, consumer: str) -> None:
        self.profiles[consumer] = profile_of(value)

    def grant(self, value: Json, consumer: str, *ref: str) -> None:
        approved = [kept_of(one, self.fetch) for one in value["approved"]]
        self.granted[consumer, ref_of(ref)] = Granted(
            {one.id: one for one in approved},
            frozenset(id_of(one) for one in value["rejected"]),
            value["lapsed"] is True,
        )

    def publication(self, value: Json, consumer: str) -> None:
        self.published[consumer] = value
        self.shown[consumer] = {}

    def show(self, value: Json, consumer: str, *ref: str) -> None:
        self.shown[consumer][ref_of(ref)] = id_of(value)


_READ: Mapping[str, Callable[..., Any]] = {
    "server": _Parts.server,
    "list": _Parts.list,
    "seen": _Parts.see,
    "failing": _Parts.fail,
    "profile": _Parts.profile,
    "granted": _Parts.grant,
    "publication": _Parts.publication,
    "shown": _Parts.show,
}


def ledger_of(rows: Iterable[Row], entries: int, fetch: Fetch) -> Ledger:
    """The ledger of all rows, in their order. Raises KeyError, TypeError or ValueError."""
    parts = _Parts(fetch)
    for place, value in rows:
        part, *key = place
        _READ[part](parts, value, *key)
    publications = {
        consumer: Publication(
            consumer, about["generation"], about["parent"], SurfaceManifest(parts.shown[consumer])
        )
        for consumer, about in parts.published.items()
    }
    return Ledger(
        servers=parts.servers,
        seen=parts.seen,
        failing=parts.failing,
        profiles=parts.profiles,
        granted=parts.granted,
        publications=publications,
        entries=entries,
    )
