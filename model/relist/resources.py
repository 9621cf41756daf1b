"""What resources contain: a cache per URI, which list notices never touch.

Values in, values out: each function returns a new ``Contents``. Bodies are bytes; the core does not
look into them. ``resources/updated`` concerns one URI and starts no list walk.
"""

from collections.abc import Iterable, Mapping

from attrs import evolve

from relist.freshness import lifetime_ms
from relist.frozen import frozen
from relist.policy import Policy
from relist.values import Scope


@frozen
class Content:
    """One cached read: its body, its lifetime, whose it is, and whether an update was announced."""

    body: bytes
    scope: Scope
    partition: str
    read_at_ms: int
    expires_at_ms: int
    doubted: bool


Contents = Mapping[str, Content]
"""By URI, byte exact, oldest first; at most ``policy.contents_max`` and ``contents_bytes_max``.

Of reads of resources only: a rendered prompt is never kept. Rule: RES-08, RES-18.
"""


def keep(
    contents: Contents,
    uri: str,
    body: bytes,
    *,
    ttl_ms: object,
    scope: Scope,
    partition: str,
    by_retry: bool,
    now_ms: int,
    policy: Policy,
) -> Contents:
    """Contents with this read, received at ``now_ms``.

    ``by_retry``: completed with input responses or request state, so never kept (RES-09). A missing
    or zero lifetime is over at once, so keeping it would serve nobody (TTL-06). The oldest reads
    make room, by count and by bytes.
    """
    ttl = lifetime_ms(ttl_ms, policy) or 0
    others = {known: content for known, content in contents.items() if known != uri}
    if by_retry or ttl == 0:
        return others
    kept = {**others, uri: Content(body, scope, partition, now_ms, now_ms + ttl, False)}
    size_bytes = sum(len(content.body) for content in kept.values())
    for oldest in list(kept):
        if len(kept) <= policy.contents_max and size_bytes <= policy.contents_bytes_max:
            break
        size_bytes -= len(kept.pop(oldest).body)
    return kept


def look_up(contents: Contents, uri: str, partition: str, now_ms: int) -> Content | None:
    """What may be served for this URI to this partition without asking. Rule: RES-08, RES-10."""
    content = contents.get(uri)
    if content is None or content.doubted or now_ms >= content.expires_at_ms:
        return None
    if content.scope is Scope.PRIVATE and content.partition != partition:
        return None
    return content


def updated(contents: Contents, uri: str) -> Contents:
    """An update was announced: that URI, and what contains it, is doubted.

    The list of resources is not. Rule: RES-01, RES-05, RES-06.
    """
    return _doubt(contents, (known for known in contents if _reaches(known, uri)))


def uncovered(contents: Contents, uris: Iterable[str]) -> Contents:
    """Updates of these URIs, and of what lies below them, may have been missed. Rule: RES-05."""
    lost = tuple(uris)
    return _doubt(
        contents, (known for known in contents if any(_reaches(uri, known) for uri in lost))
    )


def withdrawn(contents: Contents, partition: str) -> Contents:
    """Contents without what is private to other partitions than this one. Rule: RES-10, AUTH-03."""
    return {
        uri: content
        for uri, content in contents.items()
        if content.scope is Scope.PUBLIC or content.partition == partition
    }


def _doubt(contents: Contents, uris: Iterable[str]) -> Contents:
    doubted = {uri for uri in uris if uri in contents and not contents[uri].doubted}
    if not doubted:
        return contents
    return {
        uri: evolve(content, doubted=True) if uri in doubted else content
        for uri, content in contents.items()
    }


def _reaches(subscribed: str, uri: str) -> bool:
    return uri == subscribed or contains(subscribed, uri)


def contains(outer: str, inner: str) -> bool:
    """Whether the second URI lies below the first. Rule: RES-05."""
    return inner.startswith(outer if outer.endswith("/") else outer + "/")
