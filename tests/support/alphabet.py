"""Alphabets: for a state of each machine, inputs of every class, chosen to make guards differ."""

from collections.abc import Iterator
from itertools import product

from relist import inputs as i
from relist.machine import deadline_ms
from relist.policy import Policy
from relist.values import (
    NO_CAPABILITIES,
    Capabilities,
    Carrier,
    Catalog,
    Channel,
    Era,
    Failure,
    Kind,
    Link,
    Listen,
    Scope,
    Topic,
)
from support.one import (
    INVALID_PARAMS,
    LEGACY,
    METHOD_NOT_FOUND,
    MODERN,
    REFUSED,
    TRANSIENT,
    UNAUTHORIZED,
    items,
)

FULL = Capabilities(frozenset(Kind), frozenset(Channel))
PAGES = (items("a", "b"), items("a@2"), items("a", "a@2"), ())
SHORT = Failure("error answer", status=429, retry_after_ms=700)


def _times(now_ms: int, wake_ms: int | None) -> tuple[int, ...]:
    return (now_ms,) if wake_ms is None else (now_ms, max(now_ms, wake_ms - 1), wake_ms)


def for_catalog(catalog: Catalog, now_ms: int, policy: Policy) -> list[i.CatalogInput]:
    """What this catalog might hear now."""
    kind, generation = catalog.kind, catalog.generation
    return [
        i.LinkOpened(catalog.standing.epoch + 1, now_ms),
        i.LinkLost(now_ms),
        *(i.CredentialsChanged(partition, now_ms) for partition in ("A", "B")),
        *_offers(now_ms),
        i.ListChangedHeard(now_ms),
        i.CoverageGained(now_ms),
        i.CoverageLost(now_ms),
        *(i.StalenessProved(kind, g, now_ms) for g in (generation, generation - 1)),
        i.ReadWanted(kind, now_ms),
        i.VerificationWanted(kind, now_ms),
        i.RefreshWanted(kind, now_ms),
        *(i.TimePassed(at_ms) for at_ms in _times(now_ms, deadline_ms(catalog, policy))),
        *_answers(catalog, now_ms),
    ]


def _offers(now_ms: int) -> Iterator[i.CatalogInput]:
    for declared, push in product((True, False), repeat=2):
        yield i.CapabilitiesChanged(declared, push, now_ms)
        yield i.ListingAllowed(Era.MODERN, MODERN, declared, push, now_ms)
    yield i.ListingAllowed(Era.LEGACY, LEGACY, True, True, now_ms)


def _answers(catalog: Catalog, now_ms: int) -> Iterator[i.CatalogInput]:
    kind, serial = catalog.kind, catalog.serial
    shapes = [
        (None, None, Scope.PUBLIC),
        (None, 0, Scope.PRIVATE),
        ("", 400, Scope.PUBLIC),
        ("c", None, Scope.PRIVATE),
    ]
    for entries, (cursor, ttl_ms, scope) in product(PAGES, shapes):
        yield i.PageArrived(kind, serial, entries, cursor, ttl_ms, scope, now_ms)
    yield i.PageArrived(kind, serial - 1, PAGES[0], None, None, Scope.PUBLIC, now_ms)
    for failure in (TRANSIENT, SHORT, UNAUTHORIZED, REFUSED, INVALID_PARAMS, METHOD_NOT_FOUND):
        yield i.PageFailed(kind, serial, failure, now_ms)
    yield i.PageFailed(kind, serial - 1, TRANSIENT, now_ms)


FAILURES = (
    Failure("no answer", timed_out=True),
    TRANSIENT,
    SHORT,
    UNAUTHORIZED,
    METHOD_NOT_FOUND,
    Failure("error answer", code=-32600, status=400),
    Failure("error answer", code=-32020, status=400),
    Failure("error answer", code=-32022, supported=(MODERN,)),
    Failure("error answer", code=-32022, supported=(LEGACY,)),
    Failure("error answer", code=-32022, supported=("1999-01-01",)),
)


def for_link(link: Link, now_ms: int, _: Policy) -> list[i.LinkInput]:
    """What the link might hear now."""
    heard: list[i.LinkInput] = [
        i.ConnectWanted(now_ms),
        i.CloseWanted(now_ms),
        i.CredentialsChanged("B", now_ms),
        i.DiscoveryWanted(now_ms),
        i.DiscoveryWanted(now_ms, doubted=True),
        i.DiscoveryWanted(now_ms if link.expires_at_ms is None else link.expires_at_ms),
    ]
    for at_ms in (link.limit_at_ms, link.due_at_ms):
        heard += [i.TimePassed(at) for at in _times(now_ms, at_ms)]
    for epoch in (link.epoch, link.epoch - 1):
        heard += [
            i.TransportOpened(epoch, now_ms),
            i.TransportLost(epoch, now_ms),
            i.SessionExpired(epoch, now_ms),
        ]
    for serial in (link.serial, link.serial - 1):
        for versions in ((MODERN, LEGACY), (LEGACY,), ("1999-01-01",), ()):
            heard.append(i.DiscoverAnswered(serial, versions, FULL, now_ms))
        for version in (LEGACY, MODERN, "1999-01-01"):
            heard.append(i.InitializeAnswered(serial, version, NO_CAPABILITIES, now_ms))
        for failure in FAILURES:
            heard.append(i.DiscoverFailed(serial, failure, now_ms))
            heard.append(i.InitializeFailed(serial, failure, now_ms))
    return heard


def for_listen(listen: Listen, now_ms: int, _: Policy) -> list[i.ListenInput]:
    """What the listen chart might hear now."""
    some, every = frozenset({Channel.TOOLS}), frozenset(Channel)
    wanted: tuple[frozenset[Topic], ...] = (frozenset(), some, some | {"a:resource"})
    heard: list[i.ListenInput] = [
        i.PushWanted(topics, carrier, now_ms) for topics, carrier in product(wanted, Carrier)
    ]
    heard.append(i.PushReleased(now_ms))
    for at_ms in (listen.limit_at_ms, listen.due_at_ms):
        heard += [i.TimePassed(at) for at in _times(now_ms, at_ms)]
    for serial in {listen.serial, listen.serial - 1, listen.stream or 0}:
        heard += [i.PushOpened(serial, granted, now_ms) for granted in (some, every)]
        heard += [i.PushEnded(serial, failure, now_ms) for failure in (None, *FAILURES)]
        heard.append(i.PushEnded(serial, Failure("error answer", status=405), now_ms))
    return heard
