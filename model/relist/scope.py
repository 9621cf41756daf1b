"""Whose list is it: the key under which a list may be kept and shown.

A superset key can only cost a fetch, never mix data (D-28). The server's identity is the caller's
to give: what a server says of itself proves nothing (AGG-12).
"""

from relist.frozen import frozen
from relist.values import Catalog, Era, Kind, Scope


@frozen
class CacheKey:
    """Under what a list is kept. ``partition`` is None for a public list.

    Anonymous use is a partition of its own, the empty one. Rule: AUTH-09.

    ``server`` and ``capabilities`` are the caller's: a name or digest of the endpoint or command,
    and of the client capabilities sent; neither may hold a credential. Whole lists are kept, so no
    cursor is part of it. Rule: AUTH-04, TTL-21, TTL-22.
    """

    server: str
    era: Era | None
    version: str
    partition: str | None
    capabilities: str
    kind: Kind


def cache_key(catalog: Catalog, server: str, capabilities: str = "") -> CacheKey | None:
    """The key of the published list, None while there is none.

    A public list may be shared over partitions, a private one never leaves its own.

    Rule: TTL-23, TTL-24.
    """
    snapshot = catalog.snapshot
    if snapshot is None:
        return None
    partition = None if snapshot.scope is Scope.PUBLIC else snapshot.partition
    era = catalog.standing.era
    return CacheKey(server, era, snapshot.version, partition, capabilities, catalog.kind)


def may_show(key: CacheKey, partition: str) -> bool:
    """Whether a reader of this partition may see what is kept under the key. Rule: AUTH-03."""
    return key.partition in (None, partition)
